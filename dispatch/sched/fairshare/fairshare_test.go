package fairshare

import (
	"math"
	"testing"
	"time"
)

// TestQueueWithLessUsageGoesFirst checks that the queue with the smaller usage per weight goes
// first, that a priority counts before, and that usage halves with each half-life.
func TestQueueWithLessUsageGoesFirst(t *testing.T) {
	s := New(Usage, time.Hour, 0)
	a, b := s.Add("a", 0), s.Add("b", 0)
	a.Charge(0, 100)
	b.Charge(0, 60)
	order := func(when string, want int) {
		t.Helper()
		s.Update(0)
		if got := a.Compare(b); got != want {
			t.Errorf("%s: %d, want %d", when, got, want)
		}
	}
	order("a has used more", 1)
	a.Weight = 2
	order("a has twice the weight", -1)
	b.Priority = -1
	order("b has a priority", 1)
	if got := a.Usage(2 * time.Hour); math.Abs(got-25) > 1e-9 {
		t.Errorf("after two half-lives %v, want 25", got)
	}
}

// TestAttemptIsChargedWhileItRuns checks the usage of an attempt that is sent, runs, and ends. It
// is charged ahead for the mean run time as soon as it is sent.
func TestAttemptIsChargedWhileItRuns(t *testing.T) {
	s := New(Usage, 1e6*time.Hour, 0)
	a, b := s.Add("a", 0), s.Add("b", 0)
	a.MeanRunTime, a.HasWaiting = 10, true
	s.Update(0)
	a.Send(2)
	if a.Compare(b) <= 0 {
		t.Error("a goes first, although it has just got slots")
	}
	a.Start(time.Second, 2, 3*time.Second)
	a.End(5*time.Second, 2, true)
	if got := a.Usage(time.Minute); math.Abs(got-14) > 1e-3 {
		t.Errorf("charged %v s, want two slots for 3 s and 4 s", got)
	}
	a.Charge(time.Minute, Cost(2, 7*time.Second, 20*time.Second)-14)
	if got := a.Usage(time.Minute); math.Abs(got-20) > 1e-3 {
		t.Errorf("charged %v s, want the CPU time of 20 s", got)
	}
	b.Learn(Cost(1, 30*time.Second, 0), 30*time.Second, 0)
	if got := b.Usage(0); math.Abs(got-30) > 1e-3 {
		t.Errorf("learned %v s, want 30", got)
	}
}
