package cli

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// guard handles the signals of a session. It waits for nothing but the next signal.
// Whatever else hangs (a stopped terminal, a blocked reader, a file server, the
// dispatcher itself), requests of a person are received, and a third Ctrl-C or a second
// SIGTERM exits at once.
type guard struct {
	wishes chan request  // requests for others to carry out; requests that do not fit are dropped
	hurry  chan struct{} // closed when a person has asked to stop; no wait is unbounded after that
	once   sync.Once

	continued atomic.Bool // a drain was ended, so the next Ctrl-C drains again

	last func(why string) // reports the immediate exit; nil: no report
	quit func(code int)
}

// request is a wish, and who or what asked for it.
type request struct {
	wish wish
	why  string
}

func newGuard() *guard {
	return &guard{wishes: make(chan request, 16), hurry: make(chan struct{}), quit: os.Exit}
}

// listen classifies signals until there are no more.
func (g *guard) listen(signals <-chan os.Signal, asked interrupts) {
	detached := false
	for sig := range signals {
		if g.continued.Swap(false) && asked.asked == 1 && !asked.cancel {
			asked.asked = 0
		}
		w := asked.signal(sig)
		switch w {
		case wishNothing:
			continue
		case wishDetach:
			if detached {
				continue
			}
			detached = true
		case wishStop:
			g.once.Do(func() { close(g.hurry) })
		case wishQuit:
			g.leave(signalWord(sig))
		}
		select {
		case g.wishes <- request{w, signalWord(sig)}:
		default:
		}
	}
}

// leave ends the program there and then: its last words are not waited for longer than
// a moment.
func (g *guard) leave(why string) {
	if g.last != nil {
		said := make(chan struct{})
		go func() {
			defer close(said)
			g.last(why)
		}()
		select {
		case <-said:
		case <-time.After(lastPatience):
		}
	}
	g.quit(exit.Left)
}

// The patience with what may hang, from when a person has asked to stop.
const (
	writePatience = 3 * time.Second        // with whoever reads what we write
	closePatience = 30 * time.Second       // with the hosts and the journal
	lastPatience  = 300 * time.Millisecond // with a terminal, when a person has asked for the third time
)

// within waits for f, which may hang. Once a person has asked to stop it waits for
// begun (nil: nothing), and from then on not longer than patience. It says whether
// f has returned.
func (g *guard) within(patience time.Duration, begun <-chan struct{}, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	if begun == nil {
		begun = g.hurry
	}
	for _, step := range []struct {
		ready    <-chan struct{}
		patience time.Duration // 0: without end
	}{{g.hurry, 0}, {begun, closePatience}, {nil, patience}} {
		var late <-chan time.Time
		if step.patience > 0 {
			late = time.After(step.patience)
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

// serve carries out the requests that the guard has received.
func (s *session) serve(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case r := <-s.guard.wishes:
			s.obey(r.wish, r.why)
		}
	}
}

// obey carries out a request. It leaves messages to the reporter: a blocked console
// must not delay the next request.
func (s *session) obey(w wish, why string) {
	switch w {
	case wishDrain:
		s.inbox.Ask("signal", &rundir.Request{Do: rundir.DoDrain, Why: why})
	case wishStop:
		s.inbox.Ask("signal", &rundir.Request{Do: rundir.DoStop, Why: why})
	case wishCancel:
		s.inbox.Ask("signal", &rundir.Request{Do: rundir.DoCancel, All: true, Why: why})
	case wishDetach:
		s.detach()
	}
}

// say gives the reporter a line to write. text may look at the run.
func (s *session) say(text func() string) {
	select {
	case s.sayings <- text:
	default: // the console has been blocked for long, so the line would not be read
	}
}

// drainText returns what a drain waits for. The dispatcher itself reports that it
// drains.
func (s *session) drainText() string {
	snap := s.d.Snapshot()
	if snap == nil {
		return "" // it is over
	}
	if snap.Deleted {
		return "the run directory was deleted: dispatching stops, running jobs go on"
	}
	if snap.Problem != "" {
		return "waiting to record what has happened: " + console.CleanLine(snap.Problem) + "; repeated Ctrl-C exits at once, resume continues the run"
	}
	running := console.Running(snap)
	if running == 0 {
		running = snap.Counts[jobs.Running] // handed over: it may have started by now
	}
	switch {
	case running == 0:
		return "no job is running"
	case s.app.starter != nil: // nobody types here
		return "waiting for " + jobs.Plural(running, "running job")
	case running == 1:
		return "waiting for 1 running job; Ctrl-C again stops dispatching and leaves it running"
	default:
		return "waiting for " + jobs.Plural(running, "running job") + "; Ctrl-C again stops dispatching and leaves them running"
	}
}
