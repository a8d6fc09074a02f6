package run

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const ctrlC, term, hup, pipe = syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE

// signalsOf returns a channel with these signals, and then its end.
func signalsOf(sent ...os.Signal) <-chan os.Signal {
	signals := make(chan os.Signal, len(sent))
	for _, s := range sent {
		signals <- s
	}
	close(signals)
	return signals
}

// TestSignalHandlerWaitsForNothing checks that a third Ctrl-C and a second SIGTERM exit at once,
// even if earlier requests were not carried out.
func TestSignalHandlerWaitsForNothing(t *testing.T) {
	for name, sent := range map[string][]os.Signal{
		"Ctrl-C thrice": {ctrlC, ctrlC, ctrlC},
		"SIGTERM twice": {term, term},
		"after many that ask nothing": slices.Concat([]os.Signal{pipe, pipe}, slices.Repeat([]os.Signal{hup}, 16),
			[]os.Signal{ctrlC, term, term}),
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newSignalHandler()
			left := make(chan bool, len(sent))
			h.exit = func() { left <- true }
			go h.listen(signalsOf(sent...), interrupts{})
			synctest.Wait()
			if len(left) != 1 {
				t.Errorf("%s: it does not leave", name)
			}
			select {
			case <-h.stopping:
			default:
				t.Errorf("%s: nobody hurries", name)
			}
		})
	}
}

// TestThirdCtrlCSaysWhatContinues checks that a user who exits by a third Ctrl-C is told so and
// what continues. A terminal that accepts no output does not block the exit.
func TestThirdCtrlCSaysWhatContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		defer close(never)
		for name, hangs := range map[string]bool{"a terminal": false, "one that hangs": true} {
			h := newSignalHandler()
			said := make(chan string, 1)
			h.reportAbort = func(why string) {
				if said <- why; hangs {
					<-never
				}
			}
			left := make(chan bool, 1)
			h.exit = func() { left <- true }
			start := time.Now()
			h.listen(signalsOf(term, ctrlC), interrupts{})
			late := time.Duration(0)
			if hangs {
				late = reportAbortTimeout
			}
			if why := <-said; len(left) != 1 || why != "Ctrl-C" || time.Since(start) != late {
				t.Errorf("%s: left %d times after %s, %q was said", name, len(left), time.Since(start), why)
			}
		}
	})
}

// TestWithTimeout checks that withTimeout waits without a limit until a user requests a stop. From
// then on it waits for the given timeout, counted from when the function has what it needs.
func TestWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, begun, never := newSignalHandler(), make(chan struct{}), make(chan struct{})
		defer close(never)
		time.AfterFunc(time.Hour, func() { close(h.stopping) })
		time.AfterFunc(time.Hour+10*time.Second, func() { close(begun) })
		start := time.Now()
		if !h.withTimeout(time.Second, nil, func() { time.Sleep(time.Minute) }) {
			t.Error("nobody had asked to stop")
		}
		if h.withTimeout(3*time.Second, begun, func() { <-never }) {
			t.Error("it has returned")
		}
		if got, want := time.Since(start), time.Hour+13*time.Second; got != want {
			t.Errorf("left after %s, want %s", got, want)
		}
		if !h.withTimeout(3*time.Second, nil, func() { time.Sleep(time.Second) }) {
			t.Error("not waited for, though it was in time")
		}
		start = time.Now()
		if h.withTimeout(3*time.Second, never, func() { <-never }) || time.Since(start) != CloseTimeout+3*time.Second {
			t.Errorf("left after %s", time.Since(start))
		}
	})
}

// TestCtrlCDrainsAgainAfterContinue checks that Ctrl-C drains again, instead of stopping, after a
// drain was ended.
func TestCtrlCDrainsAgainAfterContinue(t *testing.T) {
	h := newSignalHandler()
	signals := make(chan os.Signal)
	go h.listen(signals, interrupts{})
	signals <- syscall.SIGINT
	first := <-h.requests
	h.drainAgain.Store(true)
	signals <- syscall.SIGINT
	second := <-h.requests
	signals <- syscall.SIGINT
	if third := <-h.requests; first.action != actDrain || second.action != actDrain || third.action != actStop {
		t.Errorf("actions: got %v, %v, %v; want drain, drain, stop", first, second, third)
	}
	close(signals)
}

// TestEachFurtherCtrlCRequestsMore checks that each further Ctrl-C requests more, SIGTERM stops
// dispatching, and a closed terminal stops nothing. Only --on-interrupt=cancel kills running jobs.
func TestEachFurtherCtrlCRequestsMore(t *testing.T) {
	for _, test := range []struct {
		name   string
		cancel bool
		sent   []os.Signal
		want   []signalAction
	}{
		{"Ctrl-C thrice", false, []os.Signal{ctrlC, ctrlC, ctrlC}, []signalAction{actDrain, actStop, actExit}},
		{"cancel by choice", true, []os.Signal{ctrlC, ctrlC}, []signalAction{actCancel, actStop}},
		{"SIGTERM at once", false, []os.Signal{term, ctrlC}, []signalAction{actStop, actExit}},
		{"SIGTERM twice", false, []os.Signal{term, term}, []signalAction{actStop, actExit}},
		{"Ctrl-C and SIGTERM", false, []os.Signal{ctrlC, term, term}, []signalAction{actDrain, actStop, actExit}},
		{"SIGTERM never cancels", true, []os.Signal{term}, []signalAction{actStop}},
		{"the terminal closes", false, []os.Signal{hup, ctrlC}, []signalAction{actDetach, actDrain}},
		{"a pipe breaks", false, []os.Signal{pipe, ctrlC}, []signalAction{actNothing, actDrain}},
	} {
		i := interrupts{cancelFirst: test.cancel}
		var got []signalAction
		for _, s := range test.sent {
			got = append(got, i.action(s))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
