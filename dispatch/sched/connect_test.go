package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestPause is B1: random(0.5, 1) x min(2^n s, cap), short while the host has been
// away for less than a minute.
func TestPause(t *testing.T) {
	c := New(Config{Seed: 3}, &jobs.Table{}, nil)
	for _, tt := range []struct {
		n    int
		away time.Duration
		most time.Duration
	}{
		{1, 0, 2 * time.Second}, {2, 0, 4 * time.Second}, {3, 0, 8 * time.Second}, {4, 30 * time.Second, 8 * time.Second},
		{9, 59 * time.Second, 8 * time.Second}, {4, time.Minute, 16 * time.Second}, {5, time.Hour, 32 * time.Second},
		{6, time.Hour, time.Minute}, {500, time.Hour, time.Minute},
	} {
		for range 200 {
			if p := c.pause(tt.n, tt.away); p < tt.most/2 || p > tt.most {
				t.Fatalf("%+v: %v", tt, p)
			}
		}
	}
	if p := New(Config{BackoffCap: 4 * time.Second}, &jobs.Table{}, nil).pause(20, time.Hour); p > 4*time.Second {
		t.Errorf("the cap is an option: %v", p)
	}
}

// TestUsedSoonAfterReturn: a host that refuses connections gets no job, costs no
// try, and is used again within 10 s of its return after less than a minute away.
func TestUsedSoonAfterReturn(t *testing.T) {
	for seed := range uint64(200) {
		for _, away := range []time.Duration{2 * time.Second, 20 * time.Second, 45 * time.Second, 59 * time.Second} {
			s := newStage(t, Config{Seed: seed}, box("a", 1), box("b", 1), box("c", 1))
			s.up("a", "b", "c")
			s.plain(50)
			back := s.at + away
			s.step(down("a", hosts.Unreachable, "connection reset")) // tried again at once
			s.step(down("a", hosts.Unreachable, "connection refused"))
			var used time.Duration
			for used == 0 && s.at < back+time.Minute {
				at, ok := s.c.Next()
				if !ok || at > s.at+time.Second {
					at = s.at + time.Second
				}
				s.at = at
				o := s.step(HostBeat{"b", &hosts.Beat{MemFree: -1, DiskFree: -1}})
				o = append(o, s.step(HostBeat{"c", &hosts.Beat{MemFree: -1, DiskFree: -1}})...)
				for said[Connect](o) != "" {
					if s.at >= back {
						used = s.at
						break
					}
					o = s.step(down("a", hosts.Unreachable, "connection refused"))
				}
			}
			if used == 0 || used > back+10*time.Second {
				t.Fatalf("seed %d: away for %v, tried again %v after its return", seed, away, used-back)
			}
			for i := range s.c.table.Jobs {
				if s.c.table.Jobs[i].Failures > 0 {
					t.Fatalf("job %d was charged", i+1)
				}
			}
		}
	}
}

// TestPermanentTrouble: what only a person can mend is tried once a minute, a
// wrong host key never again; the others work on.
func TestPermanentTrouble(t *testing.T) {
	for class, tries := range map[hosts.Class]int{hosts.Denied: 5, hosts.Misconfigured: 5, hosts.HostKey: 0} {
		s := newStage(t, Config{}, box("a", 1), box("b", 1))
		s.up("b")
		s.step(down("a", class, "will not do"))
		if v := s.c.Hosts()[0]; v.State != Disabled {
			t.Errorf("%s: host is %s", class, v.State)
		}
		contains(t, "reason", s.c.Hosts()[0].Reason, "will not do")
		n := 0
		for range 330 {
			if said[Connect](s.wait(time.Second, "b")) != "" {
				n++
				s.step(down("a", class, "will not do"))
			}
		}
		if n != tries {
			t.Errorf("%s: %d more attempts in 5.5 min, want %d", class, n, tries)
		}
	}
}

// TestNoHosts: a run whose every host waits for a person ends at once; otherwise
// after --give-up without a usable host.
func TestNoHosts(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.plain(1)
	s.step(down("a", hosts.HostKey, "the host key has changed"))
	if s.finish != nil {
		t.Fatalf("finished while b may come up")
	}
	s.step(down("b", hosts.Denied, "permission denied"))
	if s.finish == nil || s.finish.How != NoHosts {
		t.Fatalf("finish %+v", s.finish)
	}
	contains(t, "why", s.finish.Why, "the host key has changed")

	s = newStage(t, Config{GiveUp: 5 * time.Minute}, box("a", 1))
	s.plain(1)
	for range 299 {
		if said[Connect](s.wait(time.Second)) != "" {
			s.step(down("a", hosts.Unreachable, "refused"))
		}
	}
	if s.finish != nil {
		t.Fatalf("gave up too early")
	}
	s.step(down("a", hosts.Unreachable, "refused"))
	s.wait(2 * time.Second)
	if s.finish == nil || s.finish.How != NoHosts {
		t.Fatalf("finish %+v after 5 min", s.finish)
	}
}

// TestFlappingHost: a link that ends before its first beat counts as a failure, so
// that a helper which dies at once is not started in a tight loop.
func TestFlappingHost(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.up("b")
	n := 0
	for range 300 {
		s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 1}})
		o := s.step(down("a", hosts.Broken, "the helper died"))
		for said[Connect](o) == "" {
			o = s.wait(time.Second, "b")
		}
		n++
		if s.at > 10*time.Minute {
			break
		}
	}
	if n > 30 {
		t.Errorf("%d connections in 10 min", n)
	}
}

// TestCwdMissing: a host without the directory gets no job and says --cwd.
func TestCwdMissing(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1))
	s.up("b")
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 1, CwdError: "/x: no such directory"}})
	s.plain(3)
	want(t, "a", on(s.orders, "a"), "")
	contains(t, "reason", s.c.Hosts()[0].Reason, "--cwd")
}
