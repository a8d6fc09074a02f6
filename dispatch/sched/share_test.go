package sched

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// slotTime runs jobs of several queues on a host with the given number of slots. It returns the
// slot seconds that each queue has used. Each queue always has enough jobs queued; its jobs take
// lane.takes each and start to arrive at lane.from.
func slotTime(t *testing.T, slots int, lasts time.Duration, lanes []lane) []float64 {
	t.Helper()
	s := connectedStage(t, Config{HalfLife: time.Hour}, testHost("a", slots))
	type running struct {
		id  jobs.AttemptID
		end time.Duration
		q   int
	}
	var now []running
	used := make([]float64, len(lanes))
	given := make([]int, len(lanes))
	of := map[jobs.ID]int{}
	feed := func() []Command {
		var all []Command
		for q, l := range lanes {
			if s.at < l.from {
				continue
			}
			var specs []*jobs.Spec
			for ; given[q] < slots*3+int(used[q]/l.takes.Seconds()); given[q]++ {
				id := jobs.ID(len(s.c.table.Jobs) + len(specs) + 1)
				of[id] = q
				specs = append(specs, &jobs.Spec{ID: id, Command: "true",
					Options: &jobs.Options{Queue: fmt.Sprint("q", q), Share: l.share, QueuePriority: l.priority}})
			}
			if len(specs) > 0 {
				all = append(all, s.step(Submit{Specs: specs})...)
			}
		}
		return all
	}
	start := func(commands []Command) {
		for _, p := range launchItems(commands, "") {
			q := of[p.Attempt.Job]
			now = append(now, running{p.Attempt, s.at + lanes[q].takes, q})
			if formatCommands[Launch](s.started("a", p.Attempt.String())) != "" {
				t.Fatal("a start launches something")
			}
		}
	}
	start(feed())
	for step := 0; s.at < lasts; step++ {
		s.at += 100 * time.Millisecond
		if step%20 == 0 {
			start(s.step(HostHeartbeat{Host: "a", Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1}}))
		}
		var over []running
		now = slices.DeleteFunc(now, func(r running) bool {
			used[r.q] += 0.1
			if r.end <= s.at {
				over = append(over, r)
			}
			return r.end <= s.at
		})
		for _, r := range over {
			start(s.endAfter("a", r.id.String(), lanes[r.q].takes))
		}
		start(feed())
	}
	return used
}

// lane is a queue of slotTime: its share, its priority, the run time of its jobs, and when they
// start to arrive.
type lane struct {
	share    int
	priority *int
	takes    time.Duration
	from     time.Duration
}

// TestQueuesGetTheirShares checks that queues get slot time in proportion to their shares, within a
// few percent, however long their jobs take (B4).
func TestQueuesGetTheirShares(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name  string
		slots int
		lanes []lane
		want  []float64 // shares of the slot time
		tol   float64
	}{
		{"1:2", 6, []lane{{share: 1, takes: 60 * s}, {share: 2, takes: 60 * s}}, []float64{1. / 3, 2. / 3}, 0.03},
		{"1:2, one slot", 1, []lane{{share: 1, takes: 40 * s}, {share: 2, takes: 40 * s}}, []float64{1. / 3, 2. / 3},
			0.03},
		{"1:2, short and long jobs", 7, []lane{{share: 1, takes: 31 * s}, {share: 2, takes: 300 * s}},
			[]float64{1. / 3, 2. / 3}, 0.04},
		{"1:2, the other way round", 7, []lane{{share: 1, takes: 300 * s}, {share: 2, takes: 31 * s}},
			[]float64{1. / 3, 2. / 3}, 0.04},
		{"nothing said", 5, []lane{{takes: 50 * s}, {takes: 70 * s}}, []float64{0.5, 0.5}, 0.03},
		{"1:1:2", 9, []lane{{share: 1, takes: 45 * s}, {share: 1, takes: 90 * s}, {share: 2, takes: 33 * s}},
			[]float64{0.25, 0.25, 0.5}, 0.03},
		{"a queue's priority goes before", 4,
			[]lane{{share: 9, takes: 50 * s}, {share: 1, priority: new(-1), takes: 50 * s}}, []float64{0, 1}, 0.02},
	} {
		t.Run(c.name, func(t *testing.T) {
			used := slotTime(t, c.slots, 2*time.Hour, c.lanes)
			sum := 0.0
			for _, u := range used {
				sum += u
			}
			if full := float64(c.slots) * 7200; math.Abs(sum-full) > full/100 {
				t.Errorf("%.0f of %.0f slot seconds were used", sum, full)
			}
			for q, u := range used {
				if math.Abs(u/sum-c.want[q]) > c.tol {
					t.Errorf("queue %d had %.3f of the slot time, want %.3f", q, u/sum, c.want[q])
				}
			}
		})
	}
}

// TestNewestQueueOptionsCount checks that the settings of the newest job apply to its queue,
// including a priority of 0 after another one (K3). A job without settings changes nothing.
func TestNewestQueueOptionsCount(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1))
	for _, c := range []struct {
		says            jobs.Options
		share, priority int
	}{
		{jobs.Options{QueuePriority: new(-1)}, 0, -1},
		{jobs.Options{Share: 3}, 3, -1},
		{jobs.Options{}, 3, -1},
		{jobs.Options{QueuePriority: new(0)}, 3, 0},
		{jobs.Options{QueuePriority: new(2), Share: 1}, 1, 2},
	} {
		c.says.Queue = "q"
		s.submit(false, &c.says)
		is := s.c.stats["q"].share
		if int(is.Weight) != max(1, c.share) || is.Priority != c.priority {
			t.Errorf("share %v, priority %d after share %d, priority %v", is.Weight, is.Priority,
				c.says.Share, c.says.QueuePriority)
		}
	}
}

// TestShareNotSavedForEver checks that a queue that was idle for a long time goes first for at most
// about a half-life, and that an empty queue leaves its slots to others (B4).
func TestShareNotSavedForEver(t *testing.T) {
	lanes := []lane{{takes: 60 * time.Second}, {takes: 60 * time.Second, from: 6 * time.Hour}}
	before := slotTime(t, 4, 6*time.Hour, lanes)
	if alone := 4 * 6 * 3600.0; before[0] < 0.99*alone {
		t.Errorf("alone it had %.0f of %.0f slot seconds", before[0], alone)
	}
	hour := slotTime(t, 4, 8*time.Hour, lanes)
	later := slotTime(t, 4, 10*time.Hour, lanes)
	if late := hour[1]; late > 4*(3600+0.8*3600) {
		t.Errorf("it had %.0f slot seconds in its first two hours", late)
	}
	if part := (later[1] - hour[1]) / (4 * 2 * 3600); math.Abs(part-0.5) > 0.05 {
		t.Errorf("two hours later it has %.2f of the slots", part)
	}
}

// TestUsageIsRebuilt checks that a new dispatcher continues with the usage that the previous one
// measured (B4, X1).
func TestUsageIsRebuilt(t *testing.T) {
	s := connectedStage(t, Config{}, testHost("a", 1))
	a, b := &jobs.Options{Queue: "a"}, &jobs.Options{Queue: "b"}
	s.submit(true, a, a, b, b, b)
	s.endAfter("a", "1.1", 30*time.Second)
	s.endAfter("a", "3.1", 90*time.Second)
	want := []float64{s.c.stats["a"].share.Usage(s.at), s.c.stats["b"].share.Usage(s.at)}
	c := New(Config{}, s.c.table, inventoryOf(testHost("a", 1)))
	c.Step(Time{Mono: 0, Wall: s.now().Wall}, Tick{})
	for i, q := range []string{"a", "b"} {
		if got := c.stats[q].share.Usage(0); math.Abs(got-want[i]) > 1 {
			t.Errorf("queue %s: %.1f slot seconds, want %.1f", q, got, want[i])
		}
	}
}

// TestAttemptIsChargedItsTime checks that an attempt is charged its CPU time, and at least the time
// of its slots. It is charged while it runs and at its end (B4).
func TestAttemptIsChargedItsTime(t *testing.T) {
	const s = time.Second
	type heartbeat struct {
		at    time.Duration
		cores float64
	}
	for _, c := range []struct {
		name       string
		slots      int
		heartbeats []heartbeat
		during     float64 // charged after a minute
		took       time.Duration
		cpu        time.Duration
		after      float64
	}{
		{"a job that waits", 1, nil, 60, 60 * s, 0, 60},
		{"one core", 1, []heartbeat{{30 * s, 1}, {60 * s, 1}}, 60, 60 * s, 60 * s, 60},
		{"four threads in one slot", 1, []heartbeat{{30 * s, 4}, {60 * s, 4}}, 240, 60 * s, 230 * s, 230},
		{"four threads in four slots", 4, []heartbeat{{30 * s, 4}, {60 * s, 4}}, 240, 60 * s, 240 * s, 240},
		{"four threads that nobody measured", 1, nil, 60, 60 * s, 240 * s, 240},
		{"more than the host has", 1, []heartbeat{{60 * s, 4000}}, 540, 60 * s, 1e6 * s, 540},
		{"we hear of start and end at once", 1, nil, 60, 20 * s, 40 * s, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := connectedStage(t, Config{HalfLife: 1e6 * time.Hour, Tries: 1}, testHost("a", 8))
			st.submit(false, &jobs.Options{Slots: c.slots})
			st.started("a", "1.1")
			turn := st.c.stats[""].share
			from := st.at
			for _, b := range append(c.heartbeats, heartbeat{at: 60 * s}) {
				st.at = from + b.at
				st.step(HostHeartbeat{Host: "a",
					Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Cores: map[string]float64{"1.1": b.cores}}})
			}
			near := func(when string, want float64) {
				t.Helper()
				if got := turn.Usage(st.c.now.Mono); math.Abs(got-want) > 1 {
					t.Errorf("%s: charged %.1f s, want %.1f", when, got, want)
				}
			}
			near("while it runs", c.during)
			st.ended("a", "1.1", jobs.Outcome{Started: st.now().Wall - jobs.Stamp(c.took), Ended: st.now().Wall,
				CPU: c.cpu})
			near("at its end", c.after)
		})
	}
}

// TestChargeOfALostAttempt checks that a lost attempt is charged for its run time until it is given
// up. The rest is charged once, when its host returns with it or with its outcome (B4).
func TestChargeOfALostAttempt(t *testing.T) {
	for _, runs := range []bool{true, false} {
		a := testHost("a", 1)
		a.Tags = []string{"only"}
		s := connectedStage(t, Config{HalfLife: 1e6 * time.Hour}, a, testHost("b", 1), testHost("c", 1))
		s.submit(true, &jobs.Options{Tags: a.Tags})
		s.started("a", "1.1")
		begun := s.at
		s.step(HostDown{"a", errRefused})
		s.wait(2*time.Minute, "b", "c")
		s.wantState(1, jobs.Queued)
		turn := s.c.stats[""].share
		if got := turn.Usage(s.at); got < 50 || got > 70 {
			t.Errorf("it was charged %.1f s when it was given up", got)
		}
		s.up("a")
		answer, o := hosts.IsRunning, (*jobs.Outcome)(nil)
		if !runs {
			answer, o = hosts.HasExited, &jobs.Outcome{Started: wallStart + jobs.Stamp(begun), Ended: s.now().Wall,
				CPU: 300 * time.Second}
		}
		at := wallStart + jobs.Stamp(begun)
		s.step(AttemptsProbed{"a", &hosts.Probed{Jobs: []hosts.ProbedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1},
			Answer: answer, Outcome: o, Started: at}}}})
		want := (s.at - begun).Seconds()
		if !runs {
			want = min(300, 2*want) // the host has two cores
		}
		if got := turn.Usage(s.at); math.Abs(got-want) > 3 {
			t.Errorf("running %v: charged %.1f s, want %.1f", runs, got, want)
		}
	}
}
