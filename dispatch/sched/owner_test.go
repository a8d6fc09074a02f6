package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
)

// TestOwner: on a host whose owner is there nothing is started. Jobs that are suspended do not
// become stragglers, and the time is not theirs (B7, T4, D4).
func TestOwner(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2))
	s.up("a")
	s.plain(9)
	for range 5 {
		s.ranFor("a", s.c.byName["a"].head.id.String(), 10*time.Second)
	}
	first := s.c.byName["a"].head.id
	s.started("a", first.String())
	held := hosts.Owner{Who: "alice uses the screen", Suspend: true}
	total := time.Duration(0)
	for range 100 {
		s.at += BeatEvery
		total += BeatEvery
		s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, Owner: held, Suspended: total}})
	}
	want(t, "why", s.c.Why(s.now(), first.Job), "Job 6 is suspended on a: alice uses the screen.")
	want(t, "host", s.c.Hosts()[0].Reason, "starts nothing: alice uses the screen; jobs there are suspended")
	want(t, "limit", fmt.Sprint(s.c.byName["a"].limit), "0")
	want(t, "stragglers", fmt.Sprint(s.c.Stragglers()), "0")
	if f := s.c.flights[first]; f.age(s.at) > 2*BeatEvery {
		t.Errorf("its age is %v after %v, all of them suspended", f.age(s.at), total)
	}
	s.at += BeatEvery
	s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, Owner: hosts.Owner{Who: "alice uses the screen"}, Suspended: total}})
	want(t, "paused", s.c.Hosts()[0].Reason, "starts nothing: alice uses the screen")
	for range 9 {
		s.at += BeatEvery
		s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, Suspended: total}})
	}
	want(t, "limit", fmt.Sprint(s.c.byName["a"].limit), "2")
	want(t, "said", events(s.journal), "a is up\na starts nothing: alice uses the screen; jobs there are suspended\na starts jobs again\n"+
		"job 6 is a straggler: it has run for 21 s on a, and jobs of its queue take 10 s at most, as a rule")
}

// TestOwnerAtFirst: nothing is started before the first beat either.
func TestOwnerAtFirst(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2))
	s.plain(1)
	o := s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 2, Slots: 2, Owner: hosts.Owner{Who: "/var/tmp/.dcs-busy is there"}}})
	want(t, "launched", on(o, "a"), "")
	want(t, "why", s.c.Why(s.now(), 1), "Job 1 waits: the only host that can run it cannot take it: a starts nothing: /var/tmp/.dcs-busy is there.")
}
