package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// upIn connects hosts with a run directory. share is whether they share it with the dispatcher.
func (s *stage) upIn(dir string, share bool, names ...string) {
	s.t.Helper()
	for _, n := range names {
		s.step(HostUp{Host: n, Hello: &hosts.Hello{Slots: 1, MemBytes: 8 << 30, Dir: dir, Shared: share, Uptime: s.at}})
		s.step(HostBeat{n, &hosts.Beat{MemFree: -1, DiskFree: -1}})
	}
}

// looks lets d pass and returns the Look commands of that time. Each is answered by answer, unless
// that is nil.
func (s *stage) looks(d time.Duration, answer func(Look) *hosts.Looked, beating ...string) (asked []Look) {
	for end := s.at + d; s.at < end; {
		for _, o := range s.wait(time.Second, beating...) {
			l, ok := o.(Look)
			if !ok {
				continue
			}
			asked = append(asked, l)
			if answer == nil {
				continue
			}
			if m := answer(l); m != nil {
				s.step(HostLooked{l.Via, m})
			}
		}
	}
	return asked
}

// TestLookThroughOurMount checks that the result of a job whose host cannot be reached counts when
// its sentinel is visible in the run directory (X2), and that an event explains this.
func TestLookThroughOurMount(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.upIn("/run", true, "a", "b", "c")
	s.plain(3)
	s.started("a", "1.1")
	s.step(down("a", hosts.Unreachable, "connection reset"))
	asked := s.looks(40*time.Second, func(l Look) *hosts.Looked {
		m := &hosts.Looked{Host: l.Host}
		if s.at > 30*time.Second {
			m.Jobs = []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1}, Slot: 1, Outcome: jobs.Outcome{Exit: 0}}}
		}
		return m
	}, "b", "c")
	if len(asked) == 0 || asked[0].Via != "" || asked[0].Host != "a" || len(asked[0].Attempts) != 1 {
		t.Fatalf("asked: %+v", asked)
	}
	s.wantState(1, jobs.Succeeded)
	told := false
	for _, r := range s.journal {
		told = told || r.Kind == jobs.KindEvent && r.Job == 1 && r.Host == "a"
	}
	if !told {
		t.Error("nothing says where the result came from")
	}
	if n := len(s.looks(time.Minute, nil, "b", "c")); n != 0 {
		t.Errorf("%d looks though nothing is open there", n)
	}
}

// TestLookThroughAnotherHost checks that, if the run directory is not shared with the dispatcher,
// hosts with the same directory are asked in turn. Hosts with other directories are not asked.
func TestLookThroughAnotherHost(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1), box("d", 1))
	s.upIn("/home/x/.dcs-tui/u", false, "a", "b", "d")
	s.upIn("/scratch/u", false, "c")
	s.plain(1)
	s.started("a", "1.1")
	s.step(down("a", hosts.Unreachable, "connection reset"))
	asked := s.looks(30*time.Second, nil, "b", "c", "d")
	if len(asked) < 2 || asked[0].Via != "b" || asked[1].Via != "d" {
		t.Fatalf("asked: %+v", asked)
	}
	// An answer of a host that was not asked is ignored.
	s.step(HostLooked{"c", &hosts.Looked{Host: "a", Jobs: []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1}}}}})
	s.wantState(1, jobs.Running)
}

// TestMountThatHangs checks that another host is asked when the dispatcher's own mount does not
// answer.
func TestMountThatHangs(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.upIn("/run", true, "a", "b", "c")
	s.plain(1)
	s.started("a", "1.1")
	s.step(down("a", hosts.Unreachable, "connection reset"))
	asked := s.looks(40*time.Second, nil, "b", "c")
	if len(asked) < 3 || asked[0].Via != "" || asked[1].Via != "b" || asked[2].Via != "" {
		t.Fatalf("asked: %+v", asked)
	}
}

// TestBeatFile checks that a host past lost_after keeps its running jobs while its heartbeat file
// changes, and loses them when the file has stopped changing.
func TestBeatFile(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.upIn("/run", true, "a", "b", "c")
	s.plain(1)
	s.started("a", "1.1")
	s.step(down("a", hosts.Unreachable, "connection reset"))
	stopped := s.at + 3*time.Minute
	moving := func(l Look) *hosts.Looked {
		return &hosts.Looked{Host: "a", Beat: min(s.at, stopped).String()}
	}
	s.looks(3*time.Minute, moving, "b", "c")
	s.wantState(1, jobs.Running)
	s.looks(30*time.Second, moving, "b", "c")
	s.wantState(1, jobs.Running)
	s.looks(30*time.Second, moving, "b", "c")
	s.wantState(1, jobs.Running) // again, on another host
	if a := s.job(1).Attempts; len(a) != 2 || a[0].State != jobs.AttemptLost || a[1].Host == "a" {
		t.Errorf("attempts: %+v", a)
	}
}

// TestBeatFileBeforeLostAfter checks a lost_after that is shorter than the time in which a change
// of the heartbeat file can be noticed. The host is not given up before that time, unless nobody
// answers a Look.
func TestBeatFileBeforeLostAfter(t *testing.T) {
	for _, answered := range []bool{true, false} {
		a := box("a", 1)
		a.LostAfter = 8 * time.Second
		s := newStage(t, Config{}, a, box("b", 1), box("c", 1))
		s.upIn("/run", true, "a", "b", "c")
		s.plain(1)
		s.started("a", "1.1")
		s.step(down("a", hosts.Unreachable, "connection reset"))
		moving := func(l Look) *hosts.Looked {
			if answered {
				return &hosts.Looked{Host: "a", Beat: s.at.String()}
			}
			return nil
		}
		s.looks(40*time.Second, moving, "b", "c")
		if lost := s.job(1).Attempts[0].State == jobs.AttemptLost; lost == answered {
			t.Errorf("looks answered: %v; lost: %v", answered, lost)
		}
	}
}

// TestBeatFileOfOld checks that a heartbeat file that does not change proves nothing, however new
// it looks.
func TestBeatFileOfOld(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.upIn("/run", true, "a", "b", "c")
	s.plain(1)
	s.started("a", "1.1")
	s.step(down("a", hosts.Unreachable, "connection reset"))
	s.looks(70*time.Second, func(Look) *hosts.Looked { return &hosts.Looked{Host: "a", Beat: "1"} }, "b", "c")
	if a := s.job(1).Attempts; len(a) != 2 || a[0].State != jobs.AttemptLost {
		t.Errorf("attempts: %+v", a)
	}
}

// TestClaimSeen checks that an attempt whose start was never reported counts as running if its
// claim exists. It is not treated as a buffered attempt. A tombstone frees the job at once.
func TestClaimSeen(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 1), box("c", 1))
	s.upIn("/run", true, "a", "b", "c")
	s.step(DrainHost{Host: "b", On: true})
	s.step(DrainHost{Host: "c", On: true})
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 8 << 30, Dir: "/run", Shared: true}})
	s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1}})
	s.plain(2)
	s.step(down("a", hosts.Unreachable, "connection reset"))
	s.looks(90*time.Second, func(Look) *hosts.Looked {
		return &hosts.Looked{Host: "a", Beat: s.at.String(), Runs: []jobs.AttemptID{{Job: 1, N: 1}}, Never: []jobs.AttemptID{{Job: 2, N: 1}}}
	}, "b", "c")
	if a := s.job(1).Attempts; len(a) != 1 || a[0].State != jobs.AttemptRunning {
		t.Errorf("claimed: %+v", a[0])
	}
	s.wantState(2, jobs.Queued)
}

// TestHostLeftTheInventory checks that an attempt on a host that is no longer in the inventory is
// also read through the shared directory (X2).
func TestHostLeftTheInventory(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.upIn("/run", true, "a", "b")
	s.plain(1)
	s.started("a", "1.1")
	r := restart(s, box("b", 1))
	r.upIn("/run", true, "b")
	r.step(Submit{Last: true})
	asked := r.looks(20*time.Second, func(l Look) *hosts.Looked {
		return &hosts.Looked{Host: "a", Jobs: []hosts.ExitedJob{{Attempt: jobs.AttemptID{Job: 1, N: 1}, Outcome: okay}}}
	}, "b")
	if len(asked) == 0 || asked[0].Host != "a" {
		t.Fatalf("asked: %+v", asked)
	}
	r.wantState(1, jobs.Succeeded)
}
