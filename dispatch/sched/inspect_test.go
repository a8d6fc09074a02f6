package sched

import (
	"slices"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// connectIn connects hosts with a run directory. share is whether they share it with the
// dispatcher.
func (s *stage) connectIn(dir string, share bool, names ...string) {
	s.t.Helper()
	for _, n := range names {
		s.connect(n, hosts.Hello{Slots: 1, MemBytes: 8 << 30, Dir: dir, Shared: share, Uptime: s.at})
	}
}

// waitInspecting lets d pass and returns the Inspect commands of that time. Each is answered by
// answer, unless that is nil.
func (s *stage) waitInspecting(d time.Duration, answer func(Inspect) *hosts.Inspected,
	beating ...string) (asked []Inspect) {
	for end := s.at + d; s.at < end; {
		for _, o := range s.wait(time.Second, beating...) {
			if l, ok := o.(Inspect); ok {
				asked = append(asked, l)
				if answer != nil {
					s.step(HostInspected{l.Via, answer(l)})
				}
			}
		}
	}
	return asked
}

// unreachableStage returns a stage in which a, which runs job 1, cannot be reached. b and c share
// its run directory, which the dispatcher has mounted.
func unreachableStage(t *testing.T, a *hosts.Host, n int) *stage {
	s := newStage(t, Config{}, a, testHost("b", 1), testHost("c", 1))
	s.connectIn("/run", true, "a", "b", "c")
	s.submitPlain(n)
	s.started("a", "1.1")
	s.step(hostDown("a", hosts.Unreachable, "connection reset"))
	return s
}

// TestResultSeenThroughOurMount checks that the result of a job whose host cannot be reached counts
// when its sentinel is visible in the run directory (X2), and that an event explains this.
func TestResultSeenThroughOurMount(t *testing.T) {
	s := unreachableStage(t, testHost("a", 1), 3)
	asked := s.waitInspecting(40*time.Second, func(l Inspect) *hosts.Inspected {
		m := &hosts.Inspected{Host: l.Host}
		if s.at > 30*time.Second {
			m.Jobs = []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1}, Slot: 1}}
		}
		return m
	}, "b", "c")
	if len(asked) == 0 || asked[0].Via != "" || asked[0].Host != "a" || len(asked[0].Attempts) != 1 {
		t.Fatalf("asked: %+v", asked)
	}
	s.wantState(1, jobs.Succeeded)
	if !slices.ContainsFunc(s.journal, func(r jobs.Record) bool {
		return r.Kind == jobs.KindEvent && r.Job == 1 && r.Host == "a"
	}) {
		t.Error("nothing says where the result came from")
	}
	want(t, "looks though nothing is open there", len(s.waitInspecting(time.Minute, nil, "b", "c")), 0)
}

// TestResultSeenThroughAnotherHost checks that, if the run directory is not shared with the
// dispatcher, hosts with the same directory are asked in turn. Hosts with other directories are not
// asked.
func TestResultSeenThroughAnotherHost(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1), testHost("c", 1), testHost("d", 1))
	s.connectIn("/home/x/.dcs-tui/u", false, "a", "b", "d")
	s.connectIn("/scratch/u", false, "c")
	s.submitPlain(1)
	s.started("a", "1.1")
	s.step(hostDown("a", hosts.Unreachable, "connection reset"))
	asked := s.waitInspecting(30*time.Second, nil, "b", "c", "d")
	if len(asked) < 2 || asked[0].Via != "b" || asked[1].Via != "d" {
		t.Fatalf("asked: %+v", asked)
	}
	// An answer of a host that was not asked is ignored.
	s.step(HostInspected{"c", &hosts.Inspected{Host: "a",
		Jobs: []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1}}}}})
	s.wantState(1, jobs.Running)
}

// TestAnotherHostIsAskedIfOurMountHangs checks that another host is asked when the dispatcher's own
// mount does not answer.
func TestAnotherHostIsAskedIfOurMountHangs(t *testing.T) {
	s := unreachableStage(t, testHost("a", 1), 1)
	asked := s.waitInspecting(40*time.Second, nil, "b", "c")
	if len(asked) < 3 || asked[0].Via != "" || asked[1].Via != "b" || asked[2].Via != "" {
		t.Fatalf("asked: %+v", asked)
	}
}

// TestChangingHeartbeatFileKeepsJobs checks that a host past lost_after keeps its running jobs
// while its heartbeat file changes, and loses them when the file has stopped changing, however new
// it looks. A lost_after that is shorter than the time in which a change can be noticed is
// extended, unless nobody answers an Inspect.
func TestChangingHeartbeatFileKeepsJobs(t *testing.T) {
	const always = time.Hour
	for _, tt := range []struct {
		name      string
		lostAfter time.Duration
		changes   time.Duration // for how long the file changes; -1: nobody answers
		after     time.Duration
		want      string
	}{
		{"it changes", 0, always, 3 * time.Minute, "running: a running"},
		{"it changed a moment ago", 0, 3 * time.Minute, 210 * time.Second, "running: a running"},
		{"it has stopped changing", 0, 3 * time.Minute, 4 * time.Minute, "running: a lost, b launching"},
		{"it never changed", 0, 0, 70 * time.Second, "running: a lost, b launching"},
		{"it changes, short lost_after", 8 * time.Second, always, 40 * time.Second, "running: a running"},
		{"nobody answers, short lost_after", 8 * time.Second, -1, 40 * time.Second, "running: a lost, b launching"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := testHost("a", 1)
			a.LostAfter = tt.lostAfter
			s := unreachableStage(t, a, 1)
			begin := s.at
			answer := func(Inspect) *hosts.Inspected {
				return &hosts.Inspected{Host: "a", Heartbeat: min(s.at-begin, tt.changes).String()}
			}
			if tt.changes < 0 {
				answer = nil
			}
			s.waitInspecting(tt.after, answer, "b", "c")
			want(t, "job 1", s.history(1), tt.want)
		})
	}
}

// TestSeenClaimCountsAsRunning checks that an attempt whose start was never reported counts as
// running if its claim exists. It is not treated as a buffered attempt. A tombstone frees the job
// at once.
func TestSeenClaimCountsAsRunning(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 2), testHost("b", 1), testHost("c", 1))
	s.connectIn("/run", true, "a", "b", "c")
	s.step(DrainHost{Host: "b", On: true})
	s.step(DrainHost{Host: "c", On: true})
	s.connect("a", hosts.Hello{Slots: 2, MemBytes: 8 << 30, Dir: "/run", Shared: true})
	s.submitPlain(2)
	s.step(hostDown("a", hosts.Unreachable, "connection reset"))
	s.waitInspecting(90*time.Second, func(Inspect) *hosts.Inspected {
		return &hosts.Inspected{Host: "a", Heartbeat: s.at.String(), Runs: []jobs.AttemptID{{Job: 1, N: 1}},
			Never: []jobs.AttemptID{{Job: 2, N: 1}}}
	}, "b", "c")
	want(t, "the claimed one", s.history(1), "running: a running")
	s.wantState(2, jobs.Queued)
}

// TestAttemptOnARemovedHostIsReadElsewhere checks that an attempt on a host that is no longer in
// the inventory is also read through the shared directory (X2).
func TestAttemptOnARemovedHostIsReadElsewhere(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1), testHost("b", 1))
	s.connectIn("/run", true, "a", "b")
	s.submitPlain(1)
	s.started("a", "1.1")
	r := restart(s, testHost("b", 1))
	r.connectIn("/run", true, "b")
	r.step(Submit{Last: true})
	asked := r.waitInspecting(20*time.Second, func(l Inspect) *hosts.Inspected {
		return &hosts.Inspected{Host: "a",
			Jobs: []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1}, Outcome: succeeded}}}
	}, "b")
	if len(asked) == 0 || asked[0].Host != "a" {
		t.Fatalf("asked: %+v", asked)
	}
	r.wantState(1, jobs.Succeeded)
}
