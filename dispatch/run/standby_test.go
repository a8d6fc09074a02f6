package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// watched is a run that a dispatcher on another machine owns.
func watched(t *testing.T) (*rundir.Run, *journal.Journal) {
	t.Helper()
	run := emptyRun(t)
	j, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{Who: &journal.Owner{Host: "melon3", User: "ada"}})
	if err != nil {
		t.Fatal(err)
	}
	return run, j
}

// numStandbys counts the files by which standbys show that they watch.
func numStandbys(t *testing.T, run *rundir.Run) (n int) {
	t.Helper()
	names, err := run.Disk.Names(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, standbyPrefix) {
			n++
		}
	}
	return n
}

// E7: a standby leaves a dispatcher alone that gives signs of life, shows that it watches, and
// takes the run over within the stale time plus 15 s of the last sign.
func TestStandbyTakesOverFromTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, old := watched(t)
		var last time.Time
		go func() {
			for range 12 {
				time.Sleep(journal.BeatEvery)
				last = time.Now()
				if err := old.Beat(); err != nil {
					t.Error(err)
				}
				if n := numStandbys(t, run); n != 1 {
					t.Errorf("%d files of standbys while one watches", n)
				}
			}
		}()
		o, err := StandBy(t.Context(), run, StandbyOptions{Notify: func(string) {}, Watching: func() {}})
		if err != nil {
			t.Fatal(err)
		}
		if silent := time.Since(last); silent < journal.StaleAfter || silent > journal.StaleAfter+15*time.Second || last.IsZero() {
			t.Errorf("taken over %s after the last sign of life", silent)
		}
		if n := numStandbys(t, run); n != 0 {
			t.Errorf("%d files of standbys after the takeover", n)
		}
		if by, err := old.Fenced(); by != 2 || err != nil {
			t.Errorf("the old dispatcher is fenced off by %d, %v", by, err)
		}
		if err := errors.Join(o.Release(), old.Sync()); !errors.Is(err, journal.ErrFenced) && err != nil {
			t.Error(err)
		}
		old.Close()
	})
}

// A dispatcher that has ended the run, or was asked to stop, is not replaced; one that has
// left without a word is.
func TestStandbyEndsWithTheRun(t *testing.T) {
	for how, over := range map[string]bool{jobs.ClosedDone: true, jobs.ClosedStopped: true, jobs.ClosedDrained: true, "": false} {
		synctest.Test(t, func(t *testing.T) {
			run, old := watched(t)
			go func() {
				time.Sleep(3 * time.Second)
				if how != "" {
					if err := errors.Join(old.Append([]jobs.Record{{Kind: jobs.KindClosed, At: 1, How: how}}), old.Sync()); err != nil {
						t.Error(err)
					}
				}
				old.Close()
			}()
			o, err := StandBy(t.Context(), run, StandbyOptions{Notify: func(string) {}, Watching: func() {}})
			if over != errors.Is(err, ErrOver) || over == (o != nil) {
				t.Errorf("closed %q: %v, %v", how, o, err)
			}
			if o != nil {
				o.Release()
			}
			if n := numStandbys(t, run); n != 0 {
				t.Errorf("%d files of standbys are left", n)
			}
		})
	}
}

// A person can end a standby. A run that nobody dispatches is refused.
func TestStandbyIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, old := watched(t)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := StandBy(ctx, run, StandbyOptions{Notify: func(string) {}, Watching: cancel}); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		old.Close()
		_, err := StandBy(t.Context(), run, StandbyOptions{Notify: func(string) {}, Watching: func() { t.Error("it watches a run that nobody dispatches") }})
		if err == nil || !strings.Contains(err.Error(), "nobody dispatches") {
			t.Errorf("a run that was left: %v", err)
		}
	})
}
