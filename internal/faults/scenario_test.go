package faults

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// scenario makes a lab for one targeted fault. They belong to the long test:
// most of them must wait until a host counts as lost.
func scenario(t *testing.T) *lab {
	t.Helper()
	if *faultsFlag == 0 {
		t.Skip("make faults runs it")
	}
	t.Parallel() // each has a lab of its own, and all mostly wait
	return newLab(t)
}

// ranTimes returns how many attempts of each job ran. The number of an attempt says
// nothing about that: an attempt that was only sent to a host and then withdrawn has one, too.
func (d *director) ranTimes() map[jobs.ID]int {
	times := map[jobs.ID]int{}
	for _, m := range d.marked() {
		times[m.id.Job]++
	}
	return times
}

// onlyOnce checks that no job ran a second time.
func (d *director) onlyOnce() {
	d.t.Helper()
	for id, n := range d.ranTimes() {
		if n > 1 {
			d.t.Errorf("job %d ran %d times, though its first attempt was not over: %v", id, n, d.marked())
		}
	}
}

// X2, a host is unplugged while it runs jobs. It is suspect, then not
// given up while the heartbeat files of its supervisors advance on the shared directory;
// what it finishes is counted there, though nobody can reach it.
func TestUnpluggedHostIsReadThroughTheSharedDirectory(t *testing.T) {
	l := scenario(t)
	d := newDirector(l, "unplugged", newRand(t), same(16, "plain", 50))
	d.start()
	d.until("four jobs on each host", patience, func() bool { return d.marks() == 16 })
	ws1 := l.hosts[0]
	d.must(ws1.link(false))
	d.note("link down: ws1, until the end")
	d.until("the end of the run, without ws1", 3*time.Minute, func() bool { return d.over })
	d.onlyOnce()
	said := d.lives[0].words()
	for _, want := range []string{"ws1  no heartbeat for 15 s", "ws1"} {
		if !strings.Contains(said, want) {
			t.Errorf("the dispatcher did not say %q:\n%s", want, said)
		}
	}
	d.results() // all are there, though ws1 is away
	d.must(ws1.link(true))
	d.check()
}

// X1, X2: a host loses its power during its jobs and comes back with another
// boot id. They are retried elsewhere, before anything that waits, and once.
func TestRebootedHostsJobsAreFirstInLine(t *testing.T) {
	l := scenario(t)
	list := append(same(12, "gate", 0), same(20, "plain", 0.3)...)
	d := newDirector(l, "reboot", newRand(t), list)
	d.start("--max-slots", "12")
	d.until("twelve jobs run, every host is up", patience, func() bool {
		return d.marks() == 12 && d.hostsUp() == hostCount
	})
	victim := l.hosts[0] // any but the gateway that has jobs: the others have room for them
	if on(d.marked(), victim.name) == 0 {
		victim = l.hosts[1]
	}
	lost := on(d.marked(), victim.name)
	victim.powerOff(true)
	d.note("%s without power, %d jobs", victim.name, lost)
	d.must(victim.boot())
	d.note("%s has booted again", victim.name)
	d.until("the lost jobs run again", patience, func() bool { return d.marks() >= 12+lost })
	d.must(l.openGate(d.name))
	d.finish()
	ms := d.marked()
	for _, m := range ms[12 : 12+lost] {
		if m.id.N != 2 || m.host == victim.name {
			t.Errorf("after the reboot %s started on %s; the %d lost jobs are first in line, on other hosts", m.id, m.host, lost)
		}
	}
	if len(ms) != len(list)+lost {
		t.Errorf("%d attempts of %d jobs, %d of them lost", len(ms), len(list), lost)
	}
	d.check()
}

// X2, a launch is written into a link that has just been cut, and the link heals
// when it is too late. It never runs; its job runs once, elsewhere.
func TestLateLaunchNeverRuns(t *testing.T) {
	l := scenario(t)
	list := append(same(1, "gate", 0), same(16, "plain", 1)...)
	for i := range list[1:] {
		list[i+1].after = 1
	}
	d := newDirector(l, "late", newRand(t), list)
	d.start()
	d.until("the first job runs", patience, func() bool { return d.marks() == 1 })
	d.until("every host is up", patience, func() bool { return d.hostsUp() == hostCount })
	var cut *machine
	for _, m := range l.hosts[:2] {
		if m.name != d.marked()[0].host {
			cut = m
		}
	}
	d.must(cut.blackhole(true))
	d.must(l.openGate(d.name))
	d.note("black hole: %s; the gate is open", cut.name)
	d.until("its jobs are tried elsewhere", 2*time.Minute, func() bool { return d.marks() == len(list) })
	d.must(cut.blackhole(false))
	d.note("healed: %s", cut.name)
	d.finish()
	if n := on(d.marked(), cut.name); n > 0 || d.marks() != len(list) {
		t.Errorf("%d launches ran late on %s; %d attempts ran of %d jobs", n, cut.name, d.marks(), len(list))
	}
	d.check()
}

// every link is down for longer than lost_after. It is our own network:
// nobody is given up, nothing runs twice.
func TestAllLinksDownAtOnce(t *testing.T) {
	l := scenario(t)
	d := newDirector(l, "all", newRand(t), append(same(16, "plain", 40), same(16, "plain", 1)...))
	d.start()
	d.until("four jobs on each host", patience, func() bool { return d.marks() >= 16 })
	for _, m := range l.hosts {
		d.must(m.link(false))
	}
	d.note("all links down")
	time.AfterFunc(30*time.Second, func() {
		for _, m := range l.hosts {
			if err := m.link(true); err != nil {
				t.Error(err)
			}
		}
	})
	d.finish()
	d.onlyOnce()
	if strings.Contains(d.lives[0].words(), " lost: its host") {
		t.Errorf("a host was given up:\n%s", d.lives[0].words())
	}
	d.check()
}

// X1: every ssh server is killed, with all of its sessions. The jobs continue, and
// are adopted when it is back.
func TestSSHDKilledOnAllHosts(t *testing.T) {
	l := scenario(t)
	d := newDirector(l, "sshd", newRand(t), append(same(16, "plain", 20), same(16, "plain", 1)...))
	d.start()
	d.until("four jobs on each host", patience, func() bool { return d.marks() >= 16 })
	for _, m := range l.hosts {
		signal(m.find(func(p proc) bool { return isListener(p) || isSession(p) }), syscall.SIGKILL)
	}
	d.note("every sshd killed")
	for _, m := range l.hosts {
		d.later(6*time.Second, m.name+" sshd", func() { d.must(m.startSSHD()) })
	}
	d.until("the end of the run", patience, func() bool { return d.over })
	d.onlyOnce()
	d.check()
}

// X1, D6: a dispatcher is stopped, another machine takes over by force or because
// its beats are stale, and the first wakes up: it says that it is fenced off,
// leaves, and changes nothing.
func TestWokenDispatcherIsFencedByForce(t *testing.T) { wakeFenced(t, true) }

// The same, without --force: only stale beats let the other in.
func TestWokenDispatcherIsFencedWhenStale(t *testing.T) { wakeFenced(t, false) }

func wakeFenced(t *testing.T, force bool) {
	l := scenario(t)
	d := newDirector(l, "woken", newRand(t), same(100, "plain", 5))
	d.start()
	d.until("jobs run", patience, func() bool { return d.marks() >= 16 })
	first := d.cur
	first.signal(syscall.SIGSTOP)
	d.fenced = append(d.fenced, first)
	d.must(d.resume(l.desks[1], force))
	d.until("the other is at work", 2*time.Minute, func() bool { return strings.Contains(d.cur.words(), "+ ok") })
	before := l.read(d.runDir() + "/journal/000001.jsonl")
	d.note("waking %s", first.name)
	first.signal(syscall.SIGCONT)
	d.finish()
	if after := l.read(d.runDir() + "/journal/000001.jsonl"); len(after)-len(before) > 64<<10 {
		t.Errorf("the dispatcher that was fenced off went on writing: %d bytes", len(after)-len(before))
	}
	d.onlyOnce()
	d.check()
}

// X1: the whole lab loses its power, dispatcher and hosts, and comes back with
// other boot ids. Every job that ran is retried once, and nothing else.
func TestTheWholeLabLosesItsPower(t *testing.T) {
	l := scenario(t)
	d := newDirector(l, "dark", newRand(t), append(same(16, "gate", 0), same(10, "plain", 1)...))
	d.start()
	d.until("four jobs on each host", patience, func() bool { return d.marks() == 16 })
	for _, m := range l.machines() {
		m.powerOff(true)
	}
	d.note("no power anywhere")
	for _, m := range l.machines() {
		d.must(m.boot())
	}
	d.must(l.openGate(d.name))
	d.finish()
	for id, n := range d.ranTimes() {
		if want := map[bool]int{true: 2, false: 1}[id <= 16]; n != want {
			t.Errorf("job %d ran %d times, not %d", id, n, want)
		}
	}
	d.check()
}

// B3: two hosts stand behind each other. When the gateway's ssh server is killed
// both are away, their jobs continue, and both are adopted.
func TestGatewayKilled(t *testing.T) {
	l := scenario(t)
	d := newDirector(l, "gateway", newRand(t), append(same(16, "plain", 15), same(16, "plain", 1)...))
	d.start()
	d.until("four jobs on each host", patience, func() bool { return d.marks() >= 16 })
	if on := d.killGateway(); on == "" {
		t.Fatal("no gateway")
	}
	d.until("the end of the run", patience, func() bool { return d.over })
	d.onlyOnce()
	d.check()
}
