package cli

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/internal/cli/exit"
)

// DESIGN 8: a third Ctrl-C and a second SIGTERM leave there and then, though
// nobody carries out what was asked before.
func TestTheGuardWaitsForNothing(t *testing.T) {
	ctrlC, term, hup, pipe := syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE
	for name, sent := range map[string][]os.Signal{
		"Ctrl-C thrice":               {ctrlC, ctrlC, ctrlC},
		"SIGTERM twice":               {term, term},
		"after many that ask nothing": {pipe, pipe, hup, hup, hup, hup, hup, hup, hup, hup, hup, hup, hup, hup, hup, hup, hup, hup, ctrlC, term, term},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGuard()
			left := make(chan int, len(sent))
			g.quit = func(code int) { left <- code }
			signals := make(chan os.Signal, len(sent))
			for _, s := range sent {
				signals <- s
			}
			close(signals)
			go g.listen(signals, interrupts{})
			synctest.Wait()
			if len(left) != 1 || <-left != exit.Left {
				t.Errorf("%s: it does not leave", name)
			}
			select {
			case <-g.hurry:
			default:
				t.Errorf("%s: nobody hurries", name)
			}
		})
	}
}

// Who leaves by a third Ctrl-C is told so, and what goes on; a terminal that takes no
// line keeps nobody.
func TestTheGuardsLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		defer close(never)
		for name, hangs := range map[string]bool{"a terminal": false, "one that hangs": true} {
			g := newGuard()
			said := make(chan string, 1)
			g.last = func(why string) {
				if said <- why; hangs {
					<-never
				}
			}
			left := make(chan int, 1)
			g.quit = func(code int) { left <- code }
			signals := make(chan os.Signal, 2)
			signals <- syscall.SIGTERM
			signals <- syscall.SIGINT
			close(signals)
			start := time.Now()
			g.listen(signals, interrupts{})
			late := time.Duration(0)
			if hangs {
				late = lastPatience
			}
			if why := <-said; len(left) != 1 || why != "Ctrl-C" || time.Since(start) != late {
				t.Errorf("%s: left %d times after %s, %q was said", name, len(left), time.Since(start), why)
			}
		}
	})
}

// What may hang is waited for without end, until a person asks to stop: then for
// as long as was said, counted from when it had all that it needs.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, begun, never := newGuard(), make(chan struct{}), make(chan struct{})
		defer close(never)
		time.AfterFunc(time.Hour, func() { close(g.hurry) })
		time.AfterFunc(time.Hour+10*time.Second, func() { close(begun) })
		start := time.Now()
		if !g.within(time.Second, nil, func() { time.Sleep(time.Minute) }) {
			t.Error("nobody had asked to stop")
		}
		if g.within(3*time.Second, begun, func() { <-never }) {
			t.Error("it has returned")
		}
		if got, want := time.Since(start), time.Hour+13*time.Second; got != want {
			t.Errorf("left after %s, want %s", got, want)
		}
		if !g.within(3*time.Second, nil, func() { time.Sleep(time.Second) }) {
			t.Error("not waited for, though it was in time")
		}
		start = time.Now()
		if g.within(3*time.Second, never, func() { <-never }) || time.Since(start) != closePatience+3*time.Second {
			t.Errorf("left after %s", time.Since(start))
		}
	})
}

// After a drain was ended, Ctrl-C drains again instead of stopping.
func TestCtrlCDrainsAgainAfterContinue(t *testing.T) {
	g := newGuard()
	signals := make(chan os.Signal)
	go g.listen(signals, interrupts{})
	signals <- syscall.SIGINT
	first := <-g.wishes
	g.continued.Store(true)
	signals <- syscall.SIGINT
	second := <-g.wishes
	signals <- syscall.SIGINT
	if third := <-g.wishes; first.wish != wishDrain || second.wish != wishDrain || third.wish != wishStop {
		t.Errorf("%v, %v, %v", first, second, third)
	}
	close(signals)
}

// hosts check: a second Ctrl-C ends a check whose output nobody reads.
func TestFirstSignal(t *testing.T) {
	for sent, want := range map[int]int{1: 0, 2: 1, 3: 1} {
		signals, first := make(chan os.Signal, sent), make(chan os.Signal, 1)
		for range sent {
			signals <- syscall.SIGINT
		}
		close(signals)
		quits := 0
		firstSignal(signals, first, func() { quits++ })
		if quits != want || len(first) != 1 {
			t.Errorf("%d signals: left %d times, %d handed on", sent, quits, len(first))
		}
	}
}
