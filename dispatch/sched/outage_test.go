package sched

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// outageStage returns a stage in which four hosts, each with a running job, have been silent
// together for d.
func outageStage(t *testing.T, d time.Duration) *stage {
	s := newStage(t, Config{GiveUp: time.Hour}, box("a", 1), box("b", 1), box("c", 1), box("d", 1))
	s.up("a", "b", "c", "d")
	s.plain(4)
	for _, h := range s.c.hosts {
		s.started(h.spec.Name, string('1'+rune(h.index))+".1")
	}
	s.wait(d)
	return s
}

// TestOutageEndsHostByHost checks an outage of all hosts, after which each host returns when its
// next dial is due. Hosts that are still away are not given up as soon as half of the hosts are
// back. A host that stays away is given up in the end.
func TestOutageEndsHostByHost(t *testing.T) {
	for _, long := range []time.Duration{50 * time.Second, 5 * time.Minute, 55 * time.Minute} {
		s := outageStage(t, long)
		s.up("a")
		s.wait(20*time.Second, "a")
		s.up("b")
		s.wait(50*time.Second, "a", "b")
		s.up("c")
		s.wait(85*time.Second, "a", "b", "c")
		if s.lostNow() != 0 {
			t.Fatalf("after %v: %d given up while they came back", long, s.lostNow())
		}
		s.wait(10*time.Second, "a", "b", "c")
		if s.lostNow() != 1 || s.job(4).Attempts[0].State.Open() {
			t.Errorf("after %v: %d given up, want that of d", long, s.lostNow())
		}
	}
}

// TestOutageShorterThanLost checks that no host is given up either if half of them return before
// lost_after.
func TestOutageShorterThanLost(t *testing.T) {
	s := outageStage(t, 55*time.Second)
	s.up("a", "b")
	s.wait(time.Minute, "a", "b")
	if s.lostNow() != 0 {
		t.Errorf("%d given up while they came back", s.lostNow())
	}
}

// TestOutageReturns checks that a host that was back for only a moment counts as part of the
// outage.
func TestOutageReturns(t *testing.T) {
	s := outageStage(t, 5*time.Minute)
	s.up("a")
	s.wait(5*time.Second, "a")
	s.step(down("a", hosts.Unreachable, "no route"))
	s.wait(10 * time.Minute)
	if s.lostNow() != 0 {
		t.Errorf("%d given up", s.lostNow())
	}
}

// TestOutageAtStart checks that the same rules apply to a dispatcher that starts during an outage.
func TestOutageAtStart(t *testing.T) {
	old := outageStage(t, 0)
	s := restart(old, box("a", 1), box("b", 1), box("c", 1), box("d", 1))
	s.wait(5 * time.Minute)
	s.up("a", "b")
	s.wait(time.Minute, "a", "b")
	if s.lostNow() != 0 {
		t.Errorf("%d given up while they came back", s.lostNow())
	}
	s.wait(time.Minute, "a", "b")
	if s.lostNow() != 2 {
		t.Errorf("%d given up, want those of c and d", s.lostNow())
	}
}

// TestOneDiesAfterAnOutage checks that a host that goes silent later is given up even if an outage
// of other hosts continues.
func TestOneDiesAfterAnOutage(t *testing.T) {
	s := newStage(t, Config{GiveUp: time.Hour}, box("a", 1), box("b", 1), box("c", 1), box("d", 1), box("e", 1))
	names := []string{"a", "b", "c", "d", "e"}
	s.up(names...)
	s.plain(5)
	for i, n := range names {
		s.started(n, string('1'+rune(i))+".1")
	}
	s.wait(5*time.Minute, "d", "e")
	if s.lostNow() != 0 {
		t.Fatalf("%d given up", s.lostNow())
	}
	s.wait(2*time.Minute, "e")
	if s.lostNow() != 1 || s.job(4).Attempts[0].State.Open() {
		t.Errorf("%d given up, want that of d", s.lostNow())
	}
}

// told returns the number of events whose text contains part.
func (s *stage) told(part string) int {
	n := 0
	for _, r := range s.journal {
		if r.Kind == jobs.KindEvent && strings.Contains(r.Reason, part) {
			n++
		}
	}
	return n
}

// lostNow returns the number of attempts that have been given up so far.
func (s *stage) lostNow() int {
	n := 0
	for _, r := range s.journal {
		if r.Kind == jobs.KindLost {
			n++
		}
	}
	return n
}

// TestStall checks that hosts are not charged for silence while the dispatcher was suspended,
// whichever event it processes first afterward. Their silence is counted again from there.
func TestStall(t *testing.T) {
	for _, first := range []Event{Tick{}, HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1, Running: 1}}} {
		for _, gap := range []time.Duration{14 * time.Second, 70 * time.Second, 3 * time.Hour} {
			s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1), box("d", 1))
			s.up("a", "b", "c", "d")
			s.plain(4)
			for _, h := range s.c.hosts {
				s.started(h.spec.Name, string('1'+rune(h.index))+".1")
			}
			s.wait(10*time.Second, "a", "b", "c", "d")
			s.at += gap
			o := s.step(first)
			want(t, "cut off", said[Disconnect](o), "")
			s.wait(10*time.Second, "a", "b", "c")
			if n := s.told("was suspended for"); n != 1 || s.lostNow() != 0 || s.finish != nil {
				t.Errorf("after %v: told %d times, %d attempts given up, finish %+v", gap, n, s.lostNow(), s.finish)
			}
			want(t, "silent at last", said[Disconnect](s.wait(10*time.Second, "a", "b", "c")), "{d}")
			s.wait(time.Minute, "a", "b", "c")
			if s.lostNow() != 1 {
				t.Errorf("%d attempts given up, want that of d", s.lostNow())
			}
		}
	}
}

// TestStallKeepsTheLease checks that a lease does not count as over because the dispatcher was
// suspended.
func TestStallKeepsTheLease(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(1) // sent to a, not known to have started
	s.step(down("a", hosts.Unreachable, "gone"))
	s.wait(30*time.Second, "b", "c")
	s.at += time.Hour
	s.wait(25*time.Second, "b", "c")
	if s.lostNow() != 0 {
		t.Errorf("given up %v after the cut, all of it but 55 s a stall", s.at)
	}
	s.wait(10*time.Second, "b", "c")
	want(t, "then elsewhere", s.job(1).Last().Host, "b")

	s = newStage(t, Config{Buffer: 5 * time.Minute}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(1)
	s.step(down("a", hosts.Unreachable, "gone"))
	s.at += time.Hour
	s.wait(290*time.Second, "b", "c")
	if s.lostNow() != 0 {
		t.Errorf("given up though the lease may last 5 min")
	}
	s.wait(15*time.Second, "b", "c")
	want(t, "then elsewhere", s.job(1).Last().Host, "b")
}

// TestStallsAllTheTime checks that a dispatcher whose every commit takes long still notices a dead
// host, and does not fill the journal with events about it.
func TestStallsAllTheTime(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(3)
	s.started("a", "1.1")
	for range 30 {
		s.at += 10 * time.Second
		for _, n := range []string{"b", "c"} {
			s.step(HostBeat{n, &hosts.Beat{MemFree: -1, DiskFree: -1, Running: 1}})
		}
	}
	if s.job(1).Attempts[0].State != jobs.AttemptLost || s.lostNow() != 1 {
		t.Errorf("attempt on the dead host is %s, %d given up", s.job(1).Attempts[0].State, s.lostNow())
	}
	if n := s.told("was suspended for"); n > 5 {
		t.Errorf("said %d times in five minutes", n)
	}
}

// TestStallIsNotNoHost checks that --give-up does not count the time during which the dispatcher
// was suspended.
func TestStallIsNotNoHost(t *testing.T) {
	s := newStage(t, Config{GiveUp: 10 * time.Minute}, box("a", 1))
	s.plain(1)
	s.wait(time.Minute)
	s.at += time.Hour
	s.step(Tick{})
	if s.finish != nil {
		t.Errorf("finish %+v", s.finish)
	}
	s.wait(9 * time.Minute)
	if s.finish == nil || s.finish.How != NoHosts {
		t.Errorf("finish %+v", s.finish)
	}
}

// TestNoStallBetweenTicks checks that no suspension is reported to a caller that follows Next.
func TestNoStallBetweenTicks(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.wait(5 * time.Minute)
	s.up("a")
	s.wait(5*time.Minute, "a")
	s.plain(1)
	s.ended("a", "1.1", okay)
	s.wait(5*time.Minute, "a") // finished, but more jobs may come
	if n := s.told("was suspended for"); n != 0 {
		t.Errorf("told %d times", n)
	}
	if at, ok := s.c.Next(); !ok || at-s.at > TickInterval {
		t.Errorf("Next is %v away", at-s.at)
	}
}

// hello lets d pass. Whenever a is to be connected, its helper sends a hello and nothing else.
func (s *stage) hello(d time.Duration, beating ...string) (all []Command) {
	for end := s.at + d; s.at < end; {
		o := s.wait(time.Second, beating...)
		all = append(all, o...)
		if said[Connect](o) != "" {
			all = append(all, s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1}})...)
		}
	}
	return all
}

// TestMuteHelper checks that a helper that sends a hello but no heartbeat is restarted. If that
// continues, its host is declared lost like any silent host, with its buffered jobs. The host gets
// no jobs until it sends a heartbeat (promise 1, D6).
func TestMuteHelper(t *testing.T) {
	s := newStage(t, Config{}, box("a", 2), box("b", 1), box("c", 1))
	s.up("a", "b", "c")
	s.plain(4)
	s.started("a", "1.1")
	want(t, "handed over, not known to have started", s.job(2).Last().Host, "a")
	s.hello(70*time.Second, "b", "c")
	if s.lostNow() != 0 || !s.c.Linked("a") == (s.c.hosts[0].muteLinks < maxMuteLinks) && s.c.hosts[0].linked {
		t.Errorf("%d given up, %d mute links, linked %v", s.lostNow(), s.c.hosts[0].muteLinks, s.c.Linked("a"))
	}
	s.hello(3*time.Minute, "b", "c")
	if s.lostNow() != 2 {
		t.Errorf("%d given up, want both of a", s.lostNow())
	}
	if s.c.Linked("a") {
		t.Errorf("its hellos still extend leases")
	}
	if n := s.told("no heartbeat for 15 s"); n > 5 {
		t.Errorf("said %d times", n)
	}
	before := len(s.c.table.Job(1).Attempts)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 2, MemBytes: 1}})
	want(t, "to a mute host", on(s.commands, "a"), "")
	if len(s.job(1).Attempts) != before {
		t.Errorf("launched")
	}
	o := s.step(HostBeat{"a", &hosts.Beat{MemFree: -1, DiskFree: -1}})
	want(t, "leave to start", said[SetLimit](o), "{a 2}")
	if v := s.c.Hosts()[0]; v.State != Up || !s.c.Linked("a") {
		t.Errorf("after a beat: %s, linked %v", v.State, s.c.Linked("a"))
	}
}

// TestMuteAlone checks that a run ends for lack of hosts if its only host never sends heartbeats.
func TestMuteAlone(t *testing.T) {
	s := newStage(t, Config{}, box("a", 1))
	s.plain(1)
	s.step(HostUp{Host: "a", Hello: &hosts.Hello{Slots: 1, MemBytes: 1}})
	s.hello(20 * time.Minute)
	if s.finish == nil || s.finish.How != NoHosts || s.job(1).State.Terminal() {
		t.Errorf("finish %+v, job %s", s.finish, jobs.JobState(s.job(1).State))
	}
}

// meddle schedules random requests of users.
func (w *world) meddle() {
	if w.meddling == 0 {
		return
	}
	w.after(w.between(0, 30*time.Second), func() {
		w.meddling--
		defer w.meddle()
		n := len(w.core.table.Jobs)
		if n == 0 || w.core.finished || w.dead {
			return
		}
		some := []jobs.ID{jobs.ID(1 + w.rng.IntN(n)), jobs.ID(1 + w.rng.IntN(n))}
		h := w.order[w.rng.IntN(len(w.order))].spec.Name
		switch w.rng.IntN(6) {
		case 0, 1:
			w.step(Cancel{Jobs: some, Why: "meddled"})
		case 2:
			w.step(Requeue{some})
		case 3:
			w.step(SetPriority{Jobs: some, Priority: w.rng.IntN(3)})
		case 4:
			w.step(Pause{true})
			w.after(w.between(0, time.Minute), w.continues)
		case 5:
			w.step(DrainHost{Host: h, On: true, Now: w.chance(2)})
			w.after(w.between(0, 2*time.Minute), func() { w.takeBack(DrainHost{Host: h}) })
		}
	})
}

// takeBack revokes a request of a user. If no dispatcher runs now, it revokes the request with the
// next one, because the request outlives a dispatcher.
func (w *world) takeBack(ev Event) {
	if w.dead {
		w.after(time.Second, func() { w.takeBack(ev) })
		return
	}
	w.step(ev)
}

// continues ends a pause. It tries again, because a dispatcher may have died before the
// end of the pause was recorded.
func (w *world) continues() {
	w.takeBack(Pause{false})
	w.after(time.Minute, func() {
		if w.dead || w.core.table.Paused {
			w.continues()
		}
	})
}

// unrest schedules the faults of a world.
func (w *world) unrest() {
	if w.faults == 0 {
		return
	}
	w.after(w.between(0, 40*time.Second), func() {
		w.faults--
		if w.now >= w.stall && w.chance(5) { // the disk hangs, or the process was suspended
			w.stall = w.now + w.between(time.Second, 2*time.Minute)
			w.logf("the dispatcher stands still until %v", w.stall)
		}
		w.order[w.rng.IntN(len(w.order))].suffer()
		w.unrest()
	})
}

// suffer injects one fault into a host.
func (h *fakeHost) suffer() {
	w := h.w
	if !h.up {
		return
	}
	life := w.life
	away := w.between(time.Second, 5*time.Minute)
	switch w.rng.IntN(6) {
	case 0: // the link breaks and both ends know
		w.logf("%s: link breaks", h.spec.Name)
		if h.linked {
			h.cutLink()
			w.after(time.Millisecond, func() {
				if w.life == life {
					w.step(HostDown{h.spec.Name, errRefused})
				}
			})
		}
		return
	case 1: // silence: the network is down, but the jobs continue
		w.logf("%s: silent for %v", h.spec.Name, away)
		h.up = false
		h.gen++
	case 2: // the helper hangs: linked, but silent
		w.logf("%s: hangs", h.spec.Name)
		h.gen++
		return
	case 4: // every helper that starts on the host sends a hello but no heartbeats
		w.logf("%s: mute for %v", h.spec.Name, away)
		h.mute = w.now + away
		return
	case 5: // the dispatcher's network is down; then the hosts become reachable one by one
		w.logf("outage for %v", away)
		for _, o := range w.order {
			if o.up {
				o.up = false
				o.gen++
				w.after(away+w.between(0, 30*time.Second), func() { o.up = true })
			}
		}
		return
	case 3: // the machine crashes
		w.logf("%s: dies for %v", h.spec.Name, away)
		h.up = false
		h.gen++
		for _, a := range h.attempts {
			if a.state == fakeRunning {
				a.state = fakeDead
			} else if a.state == fakeBuffered {
				a.state = fakeTombstone
			}
		}
		h.spool, h.busy = nil, 0
	}
	w.after(away, func() { h.up = true })
}
