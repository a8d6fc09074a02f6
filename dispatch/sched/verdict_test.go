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
	takes  time.Duration    // run time of a job that succeeds
	fails  time.Duration    // run time of one that fails
	ends   map[jobs.AttemptID]time.Duration
	ran    map[jobs.ID]int // executions of each job
}

// play ends running attempts in their time. It returns the time that passed.
func (l *lab) play(t *testing.T, atMost time.Duration) time.Duration {
	t.Helper()
	began, beat := l.at, l.at
	l.ends, l.ran = map[jobs.AttemptID]time.Duration{}, map[jobs.ID]int{}
	for l.c.table.Unfinished() > 0 {
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
					l.ends[f.id] = l.at + l.takes
					if l.isBad(f.id.Job, h.spec.Name) {
						l.ends[f.id] = l.at + l.fails
					}
					l.ran[f.id.Job]++
					l.started(h.spec.Name, f.id.String())
				}
				busy++
			}
		}
		for _, at := range l.ends {
			next = min(next, at)
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
				at, runs := l.ends[f.id]
				if !runs || at > l.at {
					continue
				}
				delete(l.ends, f.id)
				o := jobs.Outcome{Started: wallStart + jobs.Stamp(l.at-l.takes), Ended: wallStart + jobs.Stamp(l.at)}
				if l.isBad(f.id.Job, h.spec.Name) {
					o.Exit, o.Started = 1, wallStart+jobs.Stamp(l.at-l.fails)
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

func (l *lab) isBad(id jobs.ID, host string) bool { return l.bad[host] || l.broken[id] }

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
		{"nine of ten, thirty hosts", 30, func(id jobs.ID) bool { return id%10 != 0 }, 8, 5 * time.Second},
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
