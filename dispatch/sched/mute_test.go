package sched

import (
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// hello lets d pass; whenever a is to be connected its helper says hello and no more.
func (s *stage) hello(d time.Duration, beating ...string) (all []Order) {
	for end := s.at + d; s.at < end; {
		o := s.wait(time.Second, beating...)
		all = append(all, o...)
		if said[Connect](o) != "" {
			all = append(all, s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1}})...)
		}
	}
	return all
}

// TestMuteHelper: a helper that says hello and gives no beat is tried again; when
// that goes on its host is given up as any silent one, what waits there too, and it
// gets nothing until it gives a beat (promise 1, D6, DESIGN 5).
func TestMuteHelper(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(4)
	s.started("a", "1.1")
	want(t, "handed over, not known to have started", s.job(2).Last().Host, "a")
	s.hello(70*time.Second, "b", "c")
	if s.lostNow() != 0 || !s.c.Linked("a") == (s.c.hosts[0].mute < muteLinks) && s.c.hosts[0].linked {
		t.Errorf("%d given up, %d mute links, linked %v", s.lostNow(), s.c.hosts[0].mute, s.c.Linked("a"))
	}
	s.hello(3*time.Minute, "b", "c")
	if s.lostNow() != 2 {
		t.Errorf("%d given up, want both of a", s.lostNow())
	}
	if s.c.Linked("a") {
		t.Errorf("its hellos still extend leases")
	}
	if n := s.told("no sign of life for 15 s"); n > 5 {
		t.Errorf("said %d times", n)
	}
	before := len(s.c.table.Job(1).Attempts)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1}})
	want(t, "to a mute host", on(s.orders, "a"), "")
	if len(s.job(1).Attempts) != before {
		t.Errorf("launched")
	}
	o := s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1}})
	want(t, "leave to start", said[SetLimit](o), "{a 2}")
	if v := s.c.Hosts()[0]; v.State != Up || !s.c.Linked("a") {
		t.Errorf("after a beat: %s, linked %v", v.State, s.c.Linked("a"))
	}
}

// TestMuteAlone: a run whose only host is mute ends for want of hosts.
func TestMuteAlone(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.plain(1)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 1, MemBytes: 1}})
	s.hello(20 * time.Minute)
	if s.finish == nil || s.finish.How != NoHosts || s.job(1).State.Terminal() {
		t.Errorf("finish %+v, job %s", s.finish, jobs.JobState(s.job(1).State))
	}
}
