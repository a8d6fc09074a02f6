package sched

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// ranFor ends an attempt with the given run time.
func (s *stage) ranFor(name, attempt string, d time.Duration) {
	s.ended(name, attempt, jobs.Outcome{Started: s.now().Wall - jobs.Stamp(d), Ended: s.now().Wall})
}

// stragglerEvents returns the texts of the events about stragglers so far.
func (s *stage) stragglerEvents() (lines []string) {
	for _, r := range s.journal {
		if r.Kind == jobs.KindEvent && strings.Contains(r.Reason, "straggler") {
			lines = append(lines, r.Reason)
		}
	}
	return lines
}

// TestStraggler checks that a job that runs longer than twice the mean plus two standard deviations
// of its queue is flagged, once, if at least five jobs have finished (D4).
func TestStraggler(t *testing.T) {
	for _, tt := range []struct {
		finished []int // run times in seconds
		want     int   // the second in which the next job becomes a straggler; 0 means never
	}{
		{[]int{10, 10, 10, 10}, 0},
		{[]int{10, 10, 10, 10, 10}, 20},
		{[]int{8, 9, 10, 11, 12}, 26}, // 2 x (10 + 2 x 1.58)
		{[]int{1, 1, 1, 1, 1}, 5},     // the minimum
	} {
		s := newStage(t, Config{}, box("a", 1))
		s.up("a")
		s.plain(len(tt.finished) + 1)
		for i, sec := range tt.finished {
			s.ranFor("a", fmt.Sprintf("%d.1", i+1), time.Duration(sec)*time.Second)
		}
		id := jobs.ID(len(tt.finished) + 1)
		s.started("a", fmt.Sprintf("%d.1", id))
		at := 0
		for sec := 1; sec <= 60; sec++ {
			s.wait(time.Second, "a")
			if s.c.Straggler(id) && at == 0 {
				at = sec
			}
		}
		if at < tt.want || at > tt.want+4 || (tt.want == 0) != (at == 0) {
			t.Errorf("%v: a straggler after %d s, want %d", tt.finished, at, tt.want)
		}
		if n := len(s.stragglerEvents()); n > 1 || n != s.c.Stragglers() {
			t.Errorf("%v: said %q, %d of them", tt.finished, s.stragglerEvents(), s.c.Stragglers())
		}
		s.ended("a", fmt.Sprintf("%d.1", id), okay)
		if s.c.Stragglers() != 0 || s.c.Straggler(id) {
			t.Errorf("%v: it is over", tt.finished)
		}
	}
}

// TestStragglerOwnEstimate checks that an estimate by the user counts instead, from the first job
// on, and that queues are independent (D4).
func TestStragglerOwnEstimate(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.submit(true, &jobs.Options{Estimate: 20 * time.Second})
	s.started("a", "1.1")
	if d := s.c.Estimate(1); d != 20*time.Second {
		t.Errorf("estimate %s", d)
	}
	s.wait(39*time.Second, "a")
	if s.c.Straggler(1) {
		t.Error("too early")
	}
	s.wait(6*time.Second, "a")
	if !s.c.Straggler(1) {
		t.Error("not flagged")
	}
	want(t, "said", fmt.Sprint(s.stragglerEvents()), "[job 1 is a straggler: it has run for 42 s on a, and it was estimated at 20 s]")

	s = newStage(t, Config{}, box("a", 1))
	s.up("a")
	q := &jobs.Options{Queue: "q"}
	s.submit(true, q, q, q, q, q, q, jobs.NoOptions)
	for i := range 5 {
		s.ranFor("a", fmt.Sprintf("%d.1", i+1), 7*time.Second)
	}
	if a, b, c := s.c.Estimate(6), s.c.Estimate(7), s.c.Estimate(99); a != 7*time.Second || b != 0 || c != 0 {
		t.Errorf("%s, %s, %s", a, b, c)
	}
}

// TestStragglersCensored checks that running jobs never count as short ones. If most running jobs
// are long, the queue has jobs of two kinds and none is late. A single long job is not hidden by
// its own age (D4).
func TestStragglersCensored(t *testing.T) {
	for _, tt := range []struct {
		finished, long int
		flagged        bool
	}{{5, 1, true}, {100, 3, true}, {10, 10, false}, {5, 60, false}} {
		s := newStage(t, Config{}, box("a", 100))
		s.up("a")
		s.plain(tt.finished + tt.long)
		for i := range tt.finished {
			s.ranFor("a", fmt.Sprintf("%d.1", i+1), time.Duration(10+i%3)*time.Second)
		}
		for i := range tt.long {
			s.started("a", fmt.Sprintf("%d.1", tt.finished+i+1))
		}
		s.wait(10*time.Minute, "a")
		if got := s.c.Stragglers(); got != map[bool]int{true: tt.long}[tt.flagged] {
			t.Errorf("%d finished, %d long: %d stragglers", tt.finished, tt.long, got)
		}
		if e := s.c.Estimate(jobs.ID(tt.finished + tt.long)); tt.long > 1 && e < 20*time.Second {
			t.Errorf("%d finished, %d long: the estimate is %s", tt.finished, tt.long, e)
		}
	}
}

// TestStragglerRecovered checks that a new dispatcher learns the run times from the existing
// results, and knows how long the adopted attempts have run. Attempts on unreachable hosts are not
// judged.
func TestStragglerRecovered(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.up("a")
	s.plain(6)
	for i := range 5 {
		s.ranFor("a", fmt.Sprintf("%d.1", i+1), 10*time.Second)
	}
	s.wait(2*time.Minute, "a") // so that launch and start differ
	s.started("a", "6.1")
	s.wait(3*time.Second, "a")
	s.c = New(Config{}, s.c.table, []*hosts.Host{box("a", 1)})
	s.at += 25 * time.Second
	s.step(Submit{Last: true})
	if e := s.c.Estimate(6); e != 10*time.Second {
		t.Errorf("estimate %s", e)
	}
	if s.c.Straggler(6) {
		t.Error("judged while its host is not heard")
	}
	s.up("a")
	s.wait(TickInterval, "a")
	if !s.c.Straggler(6) {
		t.Error("not flagged")
	}
}

// TestMoments compares the moments with their definition, with censored ages and without one of
// them.
func TestMoments(t *testing.T) {
	var st queueStats
	all := []float64{3, 5, 8, 13, 21, 4}
	for _, x := range all {
		st.add(x)
	}
	mean := st.mean
	ages := []float64{1, 30, 50, 2}
	for _, a := range ages {
		st.addCensored(a)
	}
	for _, without := range []float64{0, 30, 1} {
		values := slices.Clone(all)
		for _, a := range ages {
			if a > mean && a != without {
				values = append(values, a)
			}
		}
		sum, squares := 0.0, 0.0
		for _, v := range values {
			sum += v
		}
		m := sum / float64(len(values))
		for _, v := range values {
			squares += (v - m) * (v - m)
		}
		dev := math.Sqrt(squares / float64(len(values)-1))
		if gm, gd, ok := st.moments(without); !ok || math.Abs(gm-m) > 1e-9 || math.Abs(gd-dev) > 1e-9 {
			t.Errorf("without %v: %v ± %v, want %v ± %v", without, gm, gd, m, dev)
		}
	}
}

// TestWaitingCounts checks that the counts of each queue's waiting jobs and slots stay correct.
func TestWaitingCounts(t *testing.T) {
	s := newStage(t, Config{Tries: 2}, box("a", 2))
	check := func(what string) {
		t.Helper()
		want := map[string][2]int{}
		for i := range s.c.table.Jobs {
			if j := &s.c.table.Jobs[i]; j.State == jobs.Queued {
				n := want[j.Spec.Queue]
				want[j.Spec.Queue] = [2]int{n[0] + 1, n[1] + j.Spec.SlotCount()}
			}
		}
		for q, st := range s.c.stats {
			if want[q] != [2]int{st.queued, st.queuedSlots} {
				t.Errorf("%s: queue %q has %d, %d waiting, want %v", what, q, st.queued, st.queuedSlots, want[q])
			}
		}
	}
	q := &jobs.Options{Queue: "q", Slots: 2}
	s.submit(true, jobs.NoOptions, q, &jobs.Options{After: []jobs.ID{1}}, q, &jobs.Options{GPUs: 99}, q)
	check("submitted")
	s.up("a")
	check("up")
	s.ended("a", "1.1", exit1)
	check("failed")
	s.edit(jobs.Change{Slots: new(1)}, 4, 6)
	check("edited")
	s.step(Cancel{Jobs: []jobs.ID{1, 6}})
	check("canceled")
	s.step(Requeue{[]jobs.ID{1, 3, 6}})
	check("requeued")
	s.c = New(Config{}, s.c.table, []*hosts.Host{box("a", 2)})
	s.step(Submit{Last: true})
	check("recovered")
}

// BenchmarkJudge measures a check of 10,000 running jobs for stragglers.
func BenchmarkJudge(b *testing.B) {
	const n = 10_000
	specs := make([]*jobs.Spec, n)
	for i := range specs {
		specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Options: jobs.NoOptions}
	}
	c := New(Config{}, &jobs.Table{}, []*hosts.Host{box("a", 4096), box("b", 4096), box("c", 4096)})
	now := Time{Wall: wallStart}
	c.Step(now, Submit{Specs: specs, Last: true})
	for _, h := range []string{"a", "b", "c"} {
		_, commands := c.Step(now, HostUp{Host: h, Hello: &hosts.Hello{Slots: 4096, Cores: 4096}})
		m := &hosts.Started{}
		for _, o := range commands {
			if l, ok := o.(Launch); ok {
				for _, p := range l.Jobs {
					m.Jobs = append(m.Jobs, hosts.StartedJob{Attempt: p.Attempt})
				}
			}
		}
		c.Step(now, AttemptsStarted{h, m})
	}
	for i := range 20 {
		c.statsOf(specs[0]).add(float64(100 + i%5))
	}
	c.now.Mono = time.Minute
	for b.Loop() {
		c.judgeAt = 0
		c.judge()
	}
}
