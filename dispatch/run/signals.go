package run

import (
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// signalAction is what a signal requests.
type signalAction int

const (
	actNothing signalAction = iota
	actDrain                // finish running jobs and start no more
	actStop                 // stop dispatching; running jobs continue
	actCancel               // end all running jobs
	actDetach               // the terminal is gone: continue without it
	actExit                 // requested a third time: exit immediately
)

// interrupts counts the requests to end the run, because each further Ctrl-C requests more.
type interrupts struct {
	cancelFirst bool // --on-interrupt=cancel
	numAsked    int
}

// action returns the action that a signal requests. Only a confirmed cancel ends running jobs, so
// SIGTERM only stops dispatching.
func (i *interrupts) action(s os.Signal) signalAction {
	switch s {
	case syscall.SIGHUP:
		return actDetach
	case syscall.SIGTERM, syscall.SIGQUIT: // by default Go answers SIGQUIT with a stack dump
		i.numAsked = max(i.numAsked+1, 2)
		if i.numAsked > 2 {
			return actExit
		}
		return actStop
	case syscall.SIGINT:
		i.numAsked++
		switch {
		case i.numAsked == 1 && i.cancelFirst:
			return actCancel
		case i.numAsked == 1:
			return actDrain
		case i.numAsked == 2:
			return actStop
		}
		return actExit
	}
	return actNothing // SIGPIPE: the failed write returns an error
}

// SignalName returns the name that people use for a signal.
func SignalName(s os.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "Ctrl-C"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGQUIT:
		return "Ctrl-\\"
	}
	return s.String()
}

// request is an action and the signal that requested it.
type request struct {
	action signalAction
	why    string
}

// signalHandler receives the signals of a run. It waits only for the next signal. A third Ctrl-C or
// a second SIGTERM thus exits immediately even if a terminal, a reader, a file server, or the
// dispatcher itself hangs.
type signalHandler struct {
	requests chan request // for others to carry out; requests that do not fit are dropped
	// Closed when a person has requested a stop; no wait is unbounded after that.
	stopping chan struct{}
	once     sync.Once

	drainAgain atomic.Bool // the next Ctrl-C drains again

	reportAbort func(why string) // reports the immediate exit; may be nil
	exit        func()           // exits; nil: signals never exit
}

func newSignalHandler() *signalHandler {
	return &signalHandler{requests: make(chan request, 16), stopping: make(chan struct{})}
}

// listen handles signals until the channel is closed.
func (h *signalHandler) listen(signals <-chan os.Signal, asked interrupts) {
	detached := false
	for sig := range signals {
		if h.drainAgain.Swap(false) && asked.numAsked == 1 && !asked.cancelFirst {
			asked.numAsked = 0
		}
		a := asked.action(sig)
		switch a {
		case actNothing:
			continue
		case actDetach:
			if detached {
				continue
			}
			detached = true
		case actStop:
			h.once.Do(func() { close(h.stopping) })
		case actExit:
			h.exitNow(SignalName(sig))
		}
		select {
		case h.requests <- request{a, SignalName(sig)}:
		default:
		}
	}
}

// exitNow exits the program. It waits only reportAbortTimeout for the report.
func (h *signalHandler) exitNow(why string) {
	if h.reportAbort != nil {
		runAtMost(reportAbortTimeout, func() { h.reportAbort(why) })
	}
	if h.exit != nil {
		h.exit()
	}
}

// runAtMost runs f, which may hang, and returns when f has returned or timeout has passed.
func runAtMost(timeout time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(timeout):
	}
}

// Timeouts of operations that may hang. They start when a person has requested a stop.
const (
	WriteTimeout       = 3 * time.Second        // readers of the output
	CloseTimeout       = 30 * time.Second       // the hosts and the journal
	reportAbortTimeout = 300 * time.Millisecond // a terminal, after the third request
)

// withTimeout runs f, which may hang, and reports whether it has returned. It waits forever until a
// person requests a stop. Then it waits for begun, unless that is nil, and after that for at most
// timeout.
func (h *signalHandler) withTimeout(timeout time.Duration, begun <-chan struct{}, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	if begun == nil {
		begun = h.stopping
	}
	for _, step := range []struct {
		ready   <-chan struct{}
		timeout time.Duration // 0: none
	}{{h.stopping, 0}, {begun, CloseTimeout}, {nil, timeout}} {
		var late <-chan time.Time
		if step.timeout > 0 {
			late = time.After(step.timeout)
		}
		select {
		case <-done:
			return true
		case <-step.ready:
		case <-late:
		}
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}
