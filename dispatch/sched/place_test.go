package sched

import (
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestMostFreeSlots: the host with the most free slots, weighted, is next; among
// equals the first of the inventory (DESIGN 7).
func TestMostFreeSlots(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 4), box("c", 2))
	s.plain(4)
	o := slices.Concat(s.up("a"), s.up("b"), s.up("c"))
	want(t, "a alone takes what it can", on(o, "a"), "1.1 2.1")
	want(t, "b", on(o, "b"), "3.1 4.1")

	s = newStage(t, Config{}, box("a", 2), box("b", 4), box("c", 2))
	s.up("a", "b", "c")
	s.plain(5)
	want(t, "a", on(s.orders, "a"), "3.1")
	want(t, "b", on(s.orders, "b"), "1.1 2.1 4.1")
	want(t, "c", on(s.orders, "c"), "5.1")

	fast := box("b", 2)
	fast.Weight = 3
	s = newStage(t, Config{}, box("a", 2), fast)
	s.up("a", "b")
	s.plain(3)
	want(t, "the faster one", on(s.orders, "b"), "1.1 2.1")
}

// TestRequirements: tags, GPUs (device numbers) and memory (K10).
func TestRequirements(t *testing.T) {
	big := box("b", 4)
	big.Tags = []string{"big"}
	s := newStage(t, Config{}, box("a", 8), big)
	s.up("a", "b")
	gpu := &jobs.Options{GPUs: 1, Tags: []string{"big"}}
	mem := &jobs.Options{MemBytes: 10 << 30}
	s.submit(true, gpu, gpu, gpu, mem, mem, mem)
	want(t, "b", on(s.orders, "b"), "1.1 2.1 5.1")
	want(t, "a", on(s.orders, "a"), "4.1")
	var gpus [][]int
	for _, o := range s.orders {
		if l, ok := o.(Launch); ok && l.Host == "b" {
			for _, p := range l.Jobs {
				gpus = append(gpus, p.GPUs)
			}
		}
	}
	if len(gpus) != 3 || !slices.Equal(gpus[0], []int{0}) || !slices.Equal(gpus[1], []int{1}) || gpus[2] != nil {
		t.Errorf("devices %v", gpus)
	}
	contains(t, "why", s.c.Why(s.now(), 3), "GPUs it needs are in use")
	contains(t, "why", s.c.Why(s.now(), 6), "memory it needs is in use")
	o := s.ended("b", "1.1", okay)
	want(t, "next GPU job", on(o, "b"), "3.1")
	if l := o[0].(Launch); !slices.Equal(l.Jobs[0].GPUs, []int{0}) {
		t.Errorf("device %v is not the one given back", l.Jobs[0].GPUs)
	}
	want(t, "next memory job", on(s.ended("a", "4.1", okay), "a"), "6.1")
}

// TestRetryElsewhere: the next try prefers another host (D2), waits for one that
// is there, but not for ever, and not at all when there is no other.
func TestRetryElsewhere(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 1))
	s.up("a", "b")
	s.submit(true, jobs.NoOptions, &jobs.Options{Priority: 5}, &jobs.Options{Priority: 5})
	want(t, "b is full", on(s.orders, "b"), "3.1")
	s.started("b", "3.1")
	s.ended("a", "1.1", exit1)
	o := s.wait(5*time.Second, "a", "b")
	want(t, "kept from a", on(o, "a"), "")
	contains(t, "why", s.c.Why(s.now(), 1), "waits for another host")
	want(t, "after ten seconds", on(s.wait(7*time.Second, "a", "b"), "a"), "1.2")

	// A job that fails soon does not wait for long, unless a delay was asked for.
	for _, tt := range []struct {
		delay       *time.Duration
		kept, until time.Duration
	}{{nil, 49 * time.Millisecond, 2 * time.Millisecond}, {new(time.Minute), 59 * time.Second, 2 * time.Second}} {
		s = newStage(t, Config{RetryDelay: tt.delay}, box("a", 1), box("b", 1))
		s.up("a", "b")
		s.plain(2)
		s.started("b", "2.1")
		s.ended("a", "1.1", fastFail) // after 10 ms
		want(t, "kept from a", on(s.wait(tt.kept, "a", "b"), "a"), "")
		want(t, "after its patience", on(s.wait(tt.until, "a", "b"), "a"), "1.2")
	}

	s = newStage(t, Config{}, box("a", 2), box("b", 1))
	s.up("a", "b")
	s.plain(1)
	want(t, "b is free", on(s.ended("a", "1.1", exit1), "b"), "1.2")
	s.ended("b", "1.2", exit1)
	want(t, "failed on both", on(s.wait(3*time.Second, "a", "b"), "a"), "1.3")

	s = newStage(t, Config{}, box("a", 2), box("b", 1))
	s.up("a", "b")
	s.plain(1)
	s.started("a", "1.1")
	s.probedAs("a", "1.1", hosts.Dead, nil)
	want(t, "its supervisor died on a", on(s.wait(3*time.Second, "a", "b"), "a"), "")

	s = newStage(t, Config{}, box("a", 2))
	s.up("a")
	s.plain(1)
	s.ended("a", "1.1", exit1)
	want(t, "the only host", on(s.wait(3*time.Second, "a"), "a"), "1.2")
}

// TestPatienceIsEachJobsOwn: a job that waits for another host does not delay the jobs
// behind it whose wait is over.
func TestPatienceIsEachJobsOwn(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 1))
	s.up("a", "b")
	s.plain(3)
	want(t, "b is full", on(s.orders, "b"), "3.1")
	s.started("b", "3.1")
	s.ended("a", "2.1", exit1)
	s.wait(6*time.Second, "a", "b")
	s.ended("a", "1.1", exit1)
	want(t, "job 2 goes back to a", on(s.wait(5*time.Second, "a", "b"), "a"), "2.2")
	want(t, "so does job 1, later", on(s.wait(5*time.Second, "a", "b"), "a"), "1.2")
}

// TestKeptSlots: slots that are kept for a job of several are not free for jobs behind
// it, which say so (X7); jobs before it that were buffered on that host still go first.
func TestKeptSlots(t *testing.T) {
	s := newStage(t, Config{Buffer: time.Hour}, box("a", 2))
	s.up("a")
	one := &jobs.Options{Estimate: time.Minute}
	s.submit(false, one, one, one, one, &jobs.Options{Slots: 2}, one)
	s.started("a", "1.1 2.1")
	s.wait(2*reserveAfter, "a")
	if s.c.hosts[0].reserved == nil {
		t.Fatal("nothing is kept for the wide job")
	}
	s.step(AttemptsWithdrawn{"a", &hosts.Withdrawn{Attempts: attemptIDs("3.1 4.1 6.1")}})
	want(t, "before the wide one", on(s.ended("a", "2.1", okay), "a"), "3.2")
	s.started("a", "3.2")
	want(t, "before the wide one", on(s.ended("a", "3.2", okay), "a"), "4.2")
	s.started("a", "4.2")
	s.wait(2*reserveAfter, "a")
	want(t, "behind", on(s.ended("a", "4.2", okay), "a"), "")
	want(t, "why", s.c.Why(s.now(), 6), "Job 6 waits: free slots of a are kept for job 5, which needs 2 at once.")
	contains(t, "the wide one", s.c.Why(s.now(), 5), "it needs 2 slots at once")
	urgent := -1
	want(t, "a more urgent queue", on(s.step(Submit{Specs: []*jobs.Spec{{ID: 7, Command: "true", Options: &jobs.Options{Queue: "u", QueuePriority: &urgent}}}}), "a"), "7.1")
	want(t, "a queue as urgent", on(s.step(Submit{Specs: []*jobs.Spec{{ID: 8, Command: "true", Options: &jobs.Options{Queue: "v"}}}}), "a"), "")
	s.started("a", "7.1")
	s.ended("a", "7.1", okay)
	want(t, "its turn", on(s.ended("a", "1.1", okay), "a"), "5.1")
}

// TestSeveralSlots: a job of several slots occupies them, and is not starved by
// single-slot jobs: a host is kept for it.
func TestSeveralSlots(t *testing.T) {
	s := newStage(t, Config{}, box("a", 4))
	s.up("a")
	opts := slices.Repeat([]*jobs.Options{jobs.NoOptions}, 40)
	opts[4] = &jobs.Options{Slots: 3}
	s.submit(true, opts...)
	want(t, "first", on(s.orders, "a"), "1.1 2.1 3.1 4.1")
	s.started("a", "1.1 2.1 3.1 4.1")
	running := attemptIDs("1.1 2.1 3.1 4.1")
	for range 20 {
		s.at += time.Second
		s.step(Tick{})
		o := s.ended("a", running[0].String(), okay)
		running = append(running[1:], attemptIDs(on(o, "a"))...)
		if s.job(5).State == jobs.Running {
			break
		}
	}
	s.wantState(5, jobs.Running)
	if h := s.c.hosts[0]; h.occupied > 4 {
		t.Errorf("%d slots in use of 4", h.occupied)
	}
	var left jobs.ID
	for i := range s.c.table.Jobs {
		if s.c.table.Jobs[i].State == jobs.Queued {
			left++
		}
	}
	if left < 20 {
		t.Errorf("only %d jobs were left when the wide one ran", left)
	}
}
