package cli

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/rundir"
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

// Each stop file is obeyed once (D7), the stronger one also after the weaker.
func TestStopFiles(t *testing.T) {
	run := emptyRun(t)
	synctest.Test(t, func(t *testing.T) {
		g, over := newGuard(), make(chan struct{})
		go g.watchFiles(run, over, func(text string) { t.Errorf("said: %s", text) })
		defer close(over)
		for _, step := range []struct {
			file string
			want wish
		}{{rundir.StopFile, wishDrain}, {rundir.StopNowFile, wishCancel}} {
			if err := os.WriteFile(run.Path(step.file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if got := <-g.wishes; got.wish != step.want || len(g.wishes) > 0 {
				t.Errorf("%s: %v and %d more", step.file, got, len(g.wishes))
			}
		}
	})
}

// Removing STOP ends its drain, and creating STOP again drains again.
func TestRemovingTheStopFileEndsItsDrain(t *testing.T) {
	run := emptyRun(t)
	synctest.Test(t, func(t *testing.T) {
		g, over := newGuard(), make(chan struct{})
		go g.watchFiles(run, over, func(text string) { t.Errorf("said: %s", text) })
		defer close(over)
		for range 2 {
			if err := os.WriteFile(run.Path(rundir.StopFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if err := os.Remove(run.Path(rundir.StopFile)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if len(g.wishes) != 2 {
				t.Fatalf("%d requests, want a drain and its end", len(g.wishes))
			}
			if drain, end := <-g.wishes, <-g.wishes; drain.wish != wishDrain || end.wish != wishContinue {
				t.Errorf("%v, %v", drain, end)
			}
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

// A stop file that the user of the run has not created has no effect, and that is
// reported once.
func TestStopFilesOfOthersAreSaidOnce(t *testing.T) {
	run := emptyRun(t)
	synctest.Test(t, func(t *testing.T) {
		g, over := newGuard(), make(chan struct{})
		said := make(chan string, 100)
		go g.watchFiles(run, over, func(text string) { said <- text })
		defer close(over)
		if err := os.Symlink(rundir.AskedFile, run.Path(rundir.StopNowFile)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if len(g.wishes) > 0 || len(said) != 1 {
			t.Errorf("asked for %d things, said %d times", len(g.wishes), len(said))
		}
		if err := os.WriteFile(run.Path(rundir.StopFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if len(g.wishes) != 1 || (<-g.wishes).wish != wishDrain {
			t.Error("the user's own file beside it is not obeyed")
		}
	})
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
