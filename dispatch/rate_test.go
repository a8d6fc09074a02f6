package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
)

// TestTheRateCountsWhenJobsEnded checks that the rate counts a job at the time when it ended. A
// resumed dispatcher, or one whose host was away, learns of ends late.
func TestTheRateCountsWhenJobsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20*time.Second, "a")
		r.submit(6)
		time.Sleep(5 * time.Second)
		r.stop()
		time.Sleep(5 * time.Minute) // four jobs end in the meantime
		r.start(r.replayed(), "a")
		r.submit(0)
		rate := func() *live.State {
			s, err := r.d.Live(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		time.Sleep(10 * time.Second)
		if n, s := r.d.Snapshot().Counts[jobs.Succeeded], rate(); n != 4 || s.Rate != 0 {
			t.Errorf("%d jobs ended while nobody dispatched, and the rate is %v a second", n, s.Rate)
		}
		time.Sleep(20 * time.Second)
		if s := rate(); s.Rate < 2./31 || s.Rate > 2./29 {
			t.Errorf("2 jobs in 30 s: %v a second", s.Rate)
		}
		r.finish(6)
	})
}

// TestTheRateCountsOnlyJobsThatRan checks that jobs that are canceled before they run do not count.
func TestTheRateCountsOnlyJobsThatRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20*time.Second, "a")
		r.submit(8) // four of them run at once
		time.Sleep(5 * time.Second)
		r.d.Do(sched.Cancel{Jobs: []jobs.ID{5, 6, 7, 8}, Why: "test"})
		time.Sleep(20 * time.Second)
		s, err := r.d.Live(t.Context())
		if n := r.d.Snapshot().Counts[jobs.Canceled]; err != nil || n != 4 || s.Rate < 4./26 || s.Rate > 4./24 {
			t.Errorf("4 jobs in 25 s and %d canceled: %v a second (%v)", n, s.Rate, err)
		}
		r.finish(8)
	})
}

// TestEndCountsInItsOwnInterval checks that an end counts in its own interval of the history, and
// that an end before the start does not count.
func TestEndCountsInItsOwnInterval(t *testing.T) {
	var r rate
	r.add(100*time.Second, 95*time.Second)
	r.add(100*time.Second, 30*time.Second) // more than a minute ago
	r.add(100*time.Second, -time.Second)
	if got := r.perSecond(100 * time.Second); got != 1./60 {
		t.Errorf("rate: got %v, want one job per minute", got)
	}
	if h := r.history(110 * time.Second); len(h) != 11 || h[3] != 0.1 || h[9] != 0.1 || h[10] != 0 {
		t.Errorf("history: got %v, want 11 values, of which the fourth and the tenth are 0.1", h)
	}
}
