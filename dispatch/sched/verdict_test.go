package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// lab plays jobs on simulated hosts until the queue is empty or a time is over.
type lab struct {
	*stage
	bad    map[string]bool  // hosts on which every job fails
	broken map[jobs.ID]bool // jobs that fail everywhere
	// Hosts on which every job that uses a device fails.
	deadGPUs map[string]bool
	takes    time.Duration    // run time of a job that succeeds
	long     map[jobs.ID]bool // jobs that take eight hours
	spread   time.Duration    // how much more others take: a multiple of the job's number, modulo spread
	fails    time.Duration    // run time of one that fails
	change   func()           // called before each step, if set
	ends     map[jobs.AttemptID]span
	ran      map[jobs.ID]int // executions of each job
	failed   map[string]int  // failed executions by host
}

// span is when an attempt starts and ends.
type span struct{ from, to time.Duration }

// runTime returns how long a job takes on a host.
func (l *lab) runTime(id jobs.ID, host string) time.Duration {
	switch {
	case l.isBad(id, host):
		return l.fails
	case l.long[id]:
		return 8 * time.Hour
	case l.spread > 0:
		return l.takes + time.Duration(id)*7919*time.Second%l.spread
	}
	return l.takes
}

// play ends running attempts in their time. It returns the time that passed.
func (l *lab) play(t *testing.T, atMost time.Duration) time.Duration {
	t.Helper()
	began, beat := l.at, l.at
	l.ends, l.ran, l.failed = map[jobs.AttemptID]span{}, map[jobs.ID]int{}, map[string]int{}
	for l.c.table.Unfinished() > 0 {
		if l.change != nil {
			l.change()
		}
		if l.at-began > atMost {
			t.Fatalf("%d jobs have not ended after %v", l.c.table.Unfinished(), atMost)
		}
		next, ok := l.c.Next()
		if !ok {
			t.Fatal("the core waits for nothing")
		}
		next = max(next, l.at+time.Millisecond)
		for _, h := range l.c.hosts {
			busy := 0
			for f := h.oldest; f != nil; f = f.nextOnHost {
				if f.withdrawn {
					continue
				}
				if _, known := l.ends[f.id]; !known && busy < h.slots() {
					l.ends[f.id] = span{l.at, l.at + l.runTime(f.id.Job, h.spec.Name)}
					l.ran[f.id.Job]++
					l.started(h.spec.Name, f.id.String())
				}
				busy++
			}
		}
		for _, s := range l.ends {
			next = min(next, s.to)
		}
		l.at = max(l.at, next)
		for _, h := range l.c.hosts {
			var gone []jobs.AttemptID
			for f := h.oldest; f != nil; f = f.nextOnHost {
				if _, runs := l.ends[f.id]; f.withdrawn && !runs {
					gone = append(gone, f.id)
				}
			}
			if gone != nil {
				l.step(AttemptsWithdrawn{h.spec.Name, &hosts.Withdrawn{Attempts: gone}})
			}
			for f, next := h.oldest, (*inFlight)(nil); f != nil; f = next {
				next = f.nextOnHost
				s, runs := l.ends[f.id]
				if !runs || s.to > l.at {
					continue
				}
				delete(l.ends, f.id)
				o := jobs.Outcome{Started: wallStart + jobs.Stamp(s.from), Ended: wallStart + jobs.Stamp(l.at)}
				// What has begun before its host became bad succeeds.
				if l.isBad(f.id.Job, h.spec.Name) && s.to-s.from == l.fails {
					o.Exit = 1
					l.failed[h.spec.Name]++
				}
				l.ended(h.spec.Name, f.id.String(), o)
			}
		}
		if l.at-beat >= HeartbeatInterval {
			beat = l.at
			for _, h := range l.c.hosts {
				l.step(HostHeartbeat{Host: h.spec.Name,
					Heartbeat: &hosts.Heartbeat{MemFree: -1, DiskFree: -1, Running: h.numOpen}})
			}
		}
		l.step(Tick{})
	}
	return l.at - began
}

// isBad reports whether a job fails on a host. Where only the devices are bad, only jobs that use them
// fail.
func (l *lab) isBad(id jobs.ID, host string) bool {
	return l.bad[host] || l.broken[id] || l.deadGPUs[host] && l.job(id).Spec.GPUs > 0
}

func newLab(t *testing.T, numJobs int, cfg Config, numBad, numGood, slots int) *lab {
	var hs []*hosts.Host
	l := &lab{bad: map[string]bool{}, broken: map[jobs.ID]bool{}}
	for i := range numBad + numGood {
		h := testHost(fmt.Sprintf("node%d", i+1), slots)
		hs = append(hs, h)
		l.bad[h.Name] = i < numBad
	}
	l.stage = stageWithJobs(t, numJobs, cfg, hs...)
	return l
}

// TestBadHostsCostNoTries checks that jobs that fail only on bad hosts succeed in the end, however
// many bad hosts there are, and however long jobs run before they fail or succeed (B2).
func TestBadHostsCostNoTries(t *testing.T) {
	for _, tt := range []struct {
		bad, good, jobs int
		takes, fails    time.Duration
	}{
		{2, 1, 30, 10 * time.Second, 10 * time.Millisecond},
		{2, 2, 30, 10 * time.Second, 10 * time.Millisecond},
		{1, 1, 16, 10 * time.Second, 10 * time.Millisecond},
		{2, 1, 30, 500 * time.Millisecond, 5 * time.Millisecond},
		{5, 1, 30, 10 * time.Second, 10 * time.Millisecond},
		{5, 1, 30, 2 * time.Hour, 10 * time.Millisecond},
		{4, 1, 100, 10 * time.Millisecond, 10 * time.Millisecond},
		{3, 2, 60, time.Minute, 30 * time.Second},
	} {
		t.Run(fmt.Sprintf("%d bad %d good, %v and %v", tt.bad, tt.good, tt.takes, tt.fails), func(t *testing.T) {
			l := newLab(t, tt.jobs, Config{}, tt.bad, tt.good, 2)
			l.takes, l.fails = tt.takes, tt.fails
			l.play(t, 100*time.Hour)
			for i := range l.c.table.Jobs {
				if j := &l.c.table.Jobs[i]; j.State != jobs.Succeeded {
					t.Errorf("job %d: %s", i+1, l.history(jobs.ID(i+1)))
				}
			}
		})
	}
}

// TestBrokenJobsFail checks that jobs that fail everywhere fail after their tries, on different
// hosts, put no host on probation, and take no longer than their executions need (B2).
func TestBrokenJobsFail(t *testing.T) {
	for _, tt := range []struct {
		name    string
		hosts   int
		broken  func(jobs.ID) bool
		maxRuns float64 // executions per broken job, on average
		atMost  time.Duration
	}{
		{"all, one host", 1, func(jobs.ID) bool { return true }, 3, 10 * time.Second},
		{"all, two hosts", 2, func(jobs.ID) bool { return true }, 3, 10 * time.Second},
		{"all, four hosts", 4, func(jobs.ID) bool { return true }, 3.1, 5 * time.Second},
		{"all, thirty hosts", 30, func(jobs.ID) bool { return true }, 3.5, 5 * time.Second},
		{"nine of ten", 4, func(id jobs.ID) bool { return id%10 != 0 }, 4, 5 * time.Second},
		{"nine of ten, thirty hosts", 30, func(id jobs.ID) bool { return id%10 != 0 }, 10, 5 * time.Second},
		{"half", 4, func(id jobs.ID) bool { return id%2 == 0 }, 3.5, 5 * time.Second},
		{"a stretch", 4, func(id jobs.ID) bool { return id > 200 && id <= 260 }, 4, 5 * time.Second},
		{"one", 30, func(id jobs.ID) bool { return id == 300 }, 3, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, 500, Config{}, 0, tt.hosts, 4)
			l.takes, l.fails = 10*time.Millisecond, 10*time.Millisecond
			for id := jobs.ID(1); id <= 500; id++ {
				l.broken[id] = tt.broken(id)
			}
			took := l.play(t, 10*time.Minute)
			runs, broken := 0, 0
			for i := range l.c.table.Jobs {
				id := jobs.ID(i + 1)
				wanted := jobs.Succeeded
				if l.broken[id] {
					wanted = jobs.Failed
					runs, broken = runs+l.ran[id], broken+1
				}
				if j := l.job(id); j.State != wanted {
					t.Errorf("job %d: %s", id, l.history(id))
				}
			}
			if mean := float64(runs) / float64(broken); mean > tt.maxRuns || mean < 3 {
				t.Errorf("broken jobs ran %.2f times each, want 3 to %.2f", mean, tt.maxRuns)
			}
			if took > tt.atMost {
				t.Errorf("it took %v, want at most %v", took, tt.atMost)
			}
			want(t, "hosts on probation", l.numEvents("is on probation"), 0)
		})
	}
}

// TestHostsThatBecomeBad checks that jobs keep their tries on hosts that were good before.
func TestHostsThatBecomeBad(t *testing.T) {
	for _, takes := range []time.Duration{10 * time.Millisecond, 10 * time.Second} {
		t.Run(fmt.Sprint(takes), func(t *testing.T) {
			l := newLab(t, 40, Config{}, 0, 5, 2)
			l.takes, l.fails = takes, 10*time.Millisecond
			l.play(t, time.Hour)
			for i := range 4 {
				l.bad[fmt.Sprintf("node%d", i+1)] = true
			}
			l.submitPlain(80)
			l.play(t, time.Hour)
			for i := range l.c.table.Jobs {
				if j := &l.c.table.Jobs[i]; j.State != jobs.Succeeded {
					t.Errorf("job %d: %s", i+1, l.history(jobs.ID(i+1)))
				}
			}
		})
	}
}

// turn makes hosts bad once so many jobs have succeeded.
func (l *lab) turn(numSucceeded int, hosts ...string) {
	l.change = func() {
		if l.c.table.Counts[jobs.Succeeded] >= numSucceeded {
			for _, h := range hosts {
				l.bad[h] = true
			}
		}
	}
}

// TestHostThatBecomesBadFailsFewJobs checks that hosts that begin to fail everything at once in the
// middle of a run fail few jobs, while what began there before still succeeds.
func TestHostThatBecomesBadFailsFewJobs(t *testing.T) {
	for _, tt := range []struct {
		hosts, slots, bad int
		takes             time.Duration
		tries             int
	}{
		{4, 4, 1, time.Second, 3},
		{4, 4, 1, time.Second, 1},
		{4, 4, 1, 10 * time.Minute, 3},
		{4, 4, 1, 10 * time.Minute, 1},
		{4, 16, 1, time.Minute, 3},
		{2, 4, 1, 10 * time.Minute, 3},
		{4, 4, 2, time.Second, 3},
		{4, 4, 2, time.Second, 1},
		{4, 4, 3, time.Second, 3},
	} {
		t.Run(fmt.Sprintf("%d of %d, %d slots, %v, %d tries", tt.bad, tt.hosts, tt.slots, tt.takes, tt.tries),
			func(t *testing.T) {
				l := newLab(t, 2000, Config{Tries: tt.tries}, 0, tt.hosts, tt.slots)
				l.takes, l.spread, l.fails = tt.takes, tt.takes, 10*time.Millisecond
				var bad []string
				for i := range tt.bad {
					bad = append(bad, fmt.Sprintf("node%d", i+1))
				}
				l.turn(200, bad...)
				took := l.play(t, 1000*time.Hour)
				for _, h := range bad {
					if n := l.failed[h]; n > 40+int(took/(20*time.Minute)) {
						t.Errorf("%d jobs failed on %s in %v", n, h, took)
					}
				}
				if n := l.c.table.Counts[jobs.Failed]; tt.tries > 1 && n > 0 {
					t.Errorf("%d jobs failed", n)
				}
				ideal := time.Duration(2000/((tt.hosts-tt.bad)*tt.slots)) * tt.takes * 3 / 2
				if took > ideal*5/4 {
					t.Errorf("it took %v, want about %v", took, ideal)
				}
				t.Logf("failed: %v, took %v", l.failed, took)
			})
	}
}

// TestLongJobsElsewhereAreNoSuccess checks that hosts are not slowed down for long by a part of the jobs
// that fail everywhere, while jobs of hours fill the slots of the only host that is not suspect.
func TestLongJobsElsewhereAreNoSuccess(t *testing.T) {
	for _, tt := range []struct {
		hosts, slots, long, broken, tries int
		atMost                            time.Duration // until all but the long jobs have ended
	}{
		{4, 4, 13, 1500, 1, 12 * time.Minute},
		{4, 4, 13, 60, 3, 75 * time.Minute},
		{2, 1, 1, 60, 1, 200 * time.Minute},
		{2, 1, 1, 700, 1, 50 * time.Minute},
		{10, 1, 4, 200, 1, 40 * time.Minute},
	} {
		t.Run(fmt.Sprintf("%d x %d, %d long, %d broken, %d tries", tt.hosts, tt.slots, tt.long, tt.broken, tt.tries),
			func(t *testing.T) {
				const n = 1000
				l := newLab(t, n, Config{Tries: tt.tries}, 0, tt.hosts, tt.slots)
				l.takes, l.spread, l.fails = 10*time.Second, 6*time.Second, 10*time.Millisecond
				l.long = map[jobs.ID]bool{}
				for id := 201; id <= 200+tt.long; id++ {
					l.long[jobs.ID(id)] = true
				}
				for id := 301; id <= min(n, 300+tt.broken); id++ {
					l.broken[jobs.ID(id)] = true
				}
				var took time.Duration
				began := l.at
				l.change = func() {
					if took == 0 && l.c.table.Unfinished() <= tt.long {
						took = l.at - began
					}
				}
				l.play(t, 100*time.Hour)
				if took > tt.atMost {
					t.Errorf("all but the long jobs took %v, want at most %v", took, tt.atMost)
				}
				t.Logf("took %v", took)
			})
	}
}

// newDeviceLab returns a lab of four hosts and 1,500 jobs, of which a third use a device. The devices of
// node1 fail after 200 jobs.
func newDeviceLab(t *testing.T, tries int, queue string) *lab {
	l := newLab(t, 0, Config{Tries: tries}, 0, 4, 4)
	l.deadGPUs = map[string]bool{}
	options := make([]*jobs.Options, 1500)
	for i := range options {
		options[i] = &jobs.Options{}
		if i%3 == 0 {
			options[i] = &jobs.Options{GPUs: jobs.WholeGPU, Queue: queue}
		}
	}
	l.submit(true, options...)
	l.takes, l.spread, l.fails = 5*time.Second, 4*time.Second, 10*time.Millisecond
	l.change = func() { l.deadGPUs["node1"] = l.c.table.Counts[jobs.Succeeded] >= 200 }
	return l
}

// TestBrokenJobsEndNoTrialOfOthers checks that a host whose devices fail gets few jobs that use one, although
// jobs that use none succeed there, and broken ones of them fail. These use up their tries as elsewhere.
func TestBrokenJobsEndNoTrialOfOthers(t *testing.T) {
	for _, tries := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d tries", tries), func(t *testing.T) {
			l := newDeviceLab(t, tries, "g")
			for id := jobs.ID(11); id <= 1500; id += 20 {
				l.broken[id] = true
			}
			took := l.play(t, 10*time.Hour)
			if n := l.failed["node1"]; n > 90 {
				t.Errorf("%d jobs failed", n)
			}
			if atMost := 11 * time.Minute; took > atMost {
				t.Errorf("it took %v, want at most %v", took, atMost)
			}
			runs := 0
			for id := range l.broken {
				runs += l.ran[id]
			}
			if mean := float64(runs) / float64(len(l.broken)); mean > float64(tries)+0.2 {
				t.Errorf("broken jobs ran %.2f times each", mean)
			}
			t.Logf("took %v, failed %v, %d runs of %d broken jobs", took, l.failed, runs, len(l.broken))
		})
	}
}

// TestDeadDevicesStopNoOtherJobs checks that a host whose devices fail gets the jobs that use none as
// before, and fails few of those that do.
func TestDeadDevicesStopNoOtherJobs(t *testing.T) {
	for _, tries := range []int{1, 3} {
		for _, queue := range []string{"", "g"} {
			t.Run(fmt.Sprintf("%d tries, queue %q", tries, queue), func(t *testing.T) {
				l := newDeviceLab(t, tries, queue)
				took := l.play(t, 10*time.Hour)
				if n := l.failed["node1"]; n > 40 {
					t.Errorf("%d jobs failed", n)
				}
				// 1,500 jobs of 7 s on 16 slots; six devices for the 400 jobs that need one.
				if ideal := 10 * time.Minute; took > ideal*11/10 {
					t.Errorf("it took %v, want about %v", took, ideal)
				}
				t.Logf("took %v, failed %v", took, l.failed)
			})
		}
	}
}

// TestTrialsSurviveATakeover checks that the next dispatcher goes on with one job at a time on hosts
// that fail everything, whether they were good before or never, and that good hosts get all jobs.
func TestTrialsSurviveATakeover(t *testing.T) {
	l := newLab(t, 400, Config{}, 1, 3, 4)
	l.takes, l.fails = time.Minute, 10*time.Millisecond
	l.turn(20, "node2")
	turn := l.change
	var hs []*hosts.Host
	for _, h := range l.c.hosts {
		hs = append(hs, h.spec)
	}
	restarted, failed := false, 0
	l.change = func() {
		turn()
		if restarted || l.c.table.Counts[jobs.Succeeded] < 60 {
			return
		}
		restarted, failed = true, l.failed["node1"]+l.failed["node2"]
		next := restart(l.stage, hs...)
		for _, h := range next.c.hosts {
			for _, q := range h.records {
				q.LastSuccessAt = next.at // the clock of a new dispatcher begins at 0
			}
		}
		next.c.resumeTrials()
		next.up("node1", "node2", "node3", "node4")
		l.stage = next
		for i, want := range []bool{true, true, false, false} {
			if got := next.c.hosts[i].probation.onTrial; got != want {
				t.Errorf("%s is on trial: %v, want %v", next.c.hosts[i].spec.Name, got, want)
			}
		}
	}
	l.play(t, 10*time.Hour)
	wantBetween(t, "failures on the bad hosts after the takeover", l.failed["node1"]+l.failed["node2"]-failed, 1, 60)
}

// TestJobsThatBeginToFailSlowNothingDown checks that no host is slowed down for long if all jobs
// fail everywhere after many have succeeded.
func TestJobsThatBeginToFailSlowNothingDown(t *testing.T) {
	for _, tt := range []struct {
		hosts, slots, tries int
		takes               time.Duration
		maxRuns             float64
	}{
		{1, 4, 3, 10 * time.Millisecond, 3},
		{4, 4, 3, 10 * time.Millisecond, 3.2},
		{4, 4, 3, time.Second, 4},
		{4, 4, 1, time.Second, 1},
		{2, 4, 3, 10 * time.Second, 3.1},
		{30, 4, 3, time.Second, 20},
	} {
		t.Run(fmt.Sprintf("%d x %d, %d tries, %v", tt.hosts, tt.slots, tt.tries, tt.takes), func(t *testing.T) {
			l := newLab(t, 2000, Config{Tries: tt.tries}, 0, tt.hosts, tt.slots)
			l.takes, l.spread, l.fails = tt.takes, tt.takes, 10*time.Millisecond
			for id := jobs.ID(200); id <= 2000; id++ {
				l.broken[id] = true
			}
			took := l.play(t, 100*time.Hour)
			runs := 0
			for id := range l.broken {
				runs += l.ran[id]
			}
			mean := float64(runs) / float64(len(l.broken))
			if mean > tt.maxRuns {
				t.Errorf("broken jobs ran %.2f times each", mean)
			}
			ideal := time.Duration(199/(tt.hosts*tt.slots)+2)*tt.takes*3/2 +
				time.Duration(1801*tt.tries/(tt.hosts*tt.slots))*l.fails
			if took > ideal+10*time.Second {
				t.Errorf("it took %v, want about %v", took, ideal)
			}
			t.Logf("took %v, ideal %v, runs %.2f", took, ideal, mean)
		})
	}
}

// TestBrokenAmongLongJobs checks that good hosts with many slots keep them busy while a part of the
// jobs fails at once and the others take long, and that a broken job does not run often.
func TestBrokenAmongLongJobs(t *testing.T) {
	for _, tt := range []struct {
		hosts, slots, jobs, every int
	}{{4, 64, 5000, 10}, {4, 64, 5000, 3}, {4, 4, 1000, 10}} {
		t.Run(fmt.Sprintf("%d x %d, one of %d", tt.hosts, tt.slots, tt.every), func(t *testing.T) {
			l := newLab(t, tt.jobs, Config{}, 0, tt.hosts, tt.slots)
			l.takes, l.spread, l.fails = 5*time.Minute, 10*time.Minute, 10*time.Millisecond
			for id := 1; id <= tt.jobs; id++ {
				l.broken[jobs.ID(id)] = id*7919%10007%tt.every == 0
			}
			took := l.play(t, 100*time.Hour)
			runs, broken, most := 0, 0, 0
			for id, b := range l.broken {
				if b {
					runs, broken, most = runs+l.ran[id], broken+1, max(most, l.ran[id])
				}
			}
			ideal := time.Duration((tt.jobs-broken)/(tt.hosts*tt.slots)+1) * 10 * time.Minute
			t.Logf("took %v, ideal %v; broken jobs ran %.2f times, at most %d", took, ideal,
				float64(runs)/float64(broken), most)
			if took > ideal*5/4 {
				t.Errorf("it took %v, want about %v", took, ideal)
			}
			if most > 6 {
				t.Errorf("a broken job ran %d times", most)
			}
		})
	}
}

// TestSingleTry checks that a job with a single try never runs again after it has failed, unless
// failures on bad hosts are forgiven.
func TestSingleTry(t *testing.T) {
	for _, forgive := range []bool{false, true} {
		t.Run(fmt.Sprintf("forgive %v", forgive), func(t *testing.T) {
			l := newLab(t, 30, Config{Tries: 1, ForgiveHosts: forgive}, 2, 1, 2)
			l.takes, l.fails = 10*time.Second, 10*time.Millisecond
			l.play(t, time.Hour)
			failed := l.c.table.Counts[jobs.Failed]
			want(t, "some have failed", failed > 0, !forgive)
			for id, n := range l.ran {
				if n > 1 && !forgive {
					t.Errorf("job %d ran %d times", id, n)
				}
			}
		})
	}
}
