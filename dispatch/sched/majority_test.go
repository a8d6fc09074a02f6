package sched

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// voting is a run on three hosts of one slot each, with a mirror on ws.
func voting(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, Config{Copy: "origin"}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	o := s.step(MirrorUp{ID: "m1", Host: "ws"})
	want(t, "copies", said[SetCopies](o), "{{1 origin m1 false} true}")
	want(t, "voters", fmt.Sprint(s.c.table.Voters), "[a b c]")
	return s
}

// lease lets hosts lease the run and record what was sent last.
func (s *stage) lease(c hosts.Copies, names ...string) (o []Command) {
	for _, name := range names {
		o = append(o, s.step(Leased{Host: name, Pinged: s.now().Mono, Copies: c})...)
	}
	return o
}

var (
	withMirror = hosts.Copies{N: 1, Home: "origin", Mirror: "m1"}
	alone      = hosts.Copies{N: 2, Home: "origin"}
)

// TestMajority: nothing is launched without leases of more than half of the voters.
func TestMajority(t *testing.T) {
	s := voting(t)
	s.plain(3)
	if n := launches(s.commands); n > 0 {
		t.Errorf("%d launched without a lease", n)
	}
	contains(t, "why", s.c.Why(s.now(), 1), "only 0 of 3 hosts lease the run to this dispatcher; it launches nothing")
	if o := s.lease(withMirror, "a"); launches(o) > 0 {
		t.Error("launched with one lease of three")
	}
	o := s.lease(withMirror, "b")
	want(t, "launched", fmt.Sprint(launches(o)), "3")
	want(t, "protected", said[Protected](o), "{m1}")
	want(t, "record", s.c.table.MirrorOn+" "+s.c.table.Mirror, "ws m1")
	s.wait(RunLease-leaseMargin, "a", "b", "c")
	s.ended("a", "1.1", okay)
	s.plain(1)
	if s.job(4).State != jobs.Queued || s.c.Holds() {
		t.Errorf("job 4 is %s after the leases have run out", s.job(4).State)
	}
	s.step(Leased{Host: "a", Pinged: s.now().Mono - RunLease, Copies: withMirror}) // a ping of long ago
	s.step(Leased{Host: "x", Pinged: s.now().Mono, Copies: withMirror})            // no voter
	s.lease(withMirror, "b")
	if s.c.Holds() {
		t.Error("it holds the run with one lease")
	}
	s.lease(withMirror, "c")
	if s.job(4).State != jobs.Running {
		t.Errorf("job 4 is %s", s.job(4).State)
	}
	if s.step(Slept{}); s.c.Holds() {
		t.Error("leases from before a sleep count")
	}
}

// TestUnprotected: the journal waits for a mirror that is gone until more than half of the
// voters have recorded that there is none.
func TestUnprotected(t *testing.T) {
	s := voting(t)
	s.lease(withMirror, "a", "b", "c")
	want(t, "another mirror", said[SetCopies](s.step(MirrorDown{ID: "m0"})), "")
	o := s.step(MirrorDown{ID: "m1", Why: "no answer for 15 s"})
	want(t, "copies", said[SetCopies](o), "{{2 origin  false} false}")
	want(t, "too early", said[Protected](append(o, s.lease(alone, "a")...)), "")
	want(t, "in vain", said[SetCopies](s.step(MirrorUp{ID: "m2", Host: "ws"})), "")
	o = s.lease(alone, "b")
	want(t, "protected", said[Protected](o), "{}")
	want(t, "agreed", said[SetCopies](o), "{{2 origin  true} false}")
	want(t, "record", s.c.table.Mirror, "")
	want(t, "next", said[SetCopies](s.step(MirrorUp{ID: "m2", Host: "ws"})), "{{3 origin m2 false} false}")
}

// TestTakeover: a dispatcher that goes on with a run that has voters launches nothing before
// they have agreed on it, and tells a higher number than any of them has.
func TestTakeover(t *testing.T) {
	table := &jobs.Table{Epoch: 2, Voters: []string{"a", "b", "c"}, Mirror: "m1", MirrorOn: "ws"}
	s := newStageOf(t, Config{Copy: "m1"}, table, box("a", 1), box("b", 1), box("c", 1))
	o := s.step(HostUp{Host: "a", Hello: &hosts.Hello{Cores: 2, Slots: 1, Copies: withMirror}})
	want(t, "copies", said[SetCopies](o), "{{2 m1  false} false}")
	s.up("a", "b", "c")
	s.plain(3)
	mine := hosts.Copies{N: 2, Home: "m1"}
	s.lease(mine, "a")
	o = s.lease(withMirror, "b") // it has not recorded it yet
	want(t, "early", fmt.Sprint(said[Protected](o), launches(o)), "0")
	contains(t, "why", s.c.Why(s.now(), 1), "must first record")
	o = s.step(HostDown{Host: "c", Err: &hosts.LeasedError{Host: "c", Copies: hosts.Copies{N: 7, Home: "origin"}}})
	want(t, "copies", said[SetCopies](o), "{{8 m1  false} false}")
	mine.N = 8
	o = s.lease(mine, "a", "b")
	want(t, "agreed", said[Protected](o), "{}")
	want(t, "unleased", s.c.Unleased(), "")
	if s.step(HostDown{Host: "c", Err: errors.New("refused")}); s.c.majority.copies.N != 8 {
		t.Error("another number without need")
	}
	s.wait(time.Second, "a", "b")
}
