//go:build linux

package faults

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
)

// startScenario starts a run in a lab for one targeted fault, and waits until n of its attempts
// have begun. Scenarios belong to the long test, because most of them must wait until a host counts
// as lost.
func startScenario(t *testing.T, name string, n int, list []job, flags ...string) (*lab, *director) {
	t.Helper()
	needLong(t)
	l := newLab(t)
	d := newDirector(l, name, newRand(t), list)
	d.start(flags...)
	d.stepUntil(fmt.Sprintf("%d jobs run", n), polltest.Patience, func() bool { return d.numMarks() >= n })
	return l, d
}

// needLong skips a test that is not part of the short form.
func needLong(t *testing.T) {
	t.Helper()
	if *faultsFlag == 0 {
		t.Skip("make faults runs it")
	}
	t.Parallel() // each test has its own lab and mostly waits
}

// awaitOver waits for the end of the run.
func (d *director) awaitOver() {
	d.t.Helper()
	d.stepUntil("the end of the run", polltest.Patience, func() bool { return d.over })
}

// checkRanAtMostOnce checks that no job ran a second time. Attempt numbers do not show that,
// because an attempt that was sent to a host and withdrawn has a number, too.
func (d *director) checkRanAtMostOnce() {
	d.t.Helper()
	for id, ran := range d.checkRanOnce() {
		if len(ran) > 1 {
			d.t.Errorf("job %d ran %d times, though its first attempt was not over: %v", id, len(ran),
				d.markedAttempts())
		}
	}
}

// TestUnpluggedHostIsReadThroughTheSharedDirectory unplugs a host while it runs jobs. The host
// becomes suspect but is not given up while the heartbeat files of its supervisors advance on the
// shared directory. Jobs that it finishes count, though it is unreachable (X2).
func TestUnpluggedHostIsReadThroughTheSharedDirectory(t *testing.T) {
	l, d := startScenario(t, "unplugged", 16, equalJobs(16, "plain", 50))
	ws1 := l.hosts[0]
	d.must(ws1.setLink(false))
	d.logEvent("link down: ws1, until the end")
	d.awaitOver() // without ws1
	d.checkRanAtMostOnce()
	said := d.dispatchers[0].output()
	for _, want := range []string{"ws1  no heartbeat for 15 s", "ws1"} {
		if !strings.Contains(said, want) {
			t.Errorf("the dispatcher did not say %q:\n%s", want, said)
		}
	}
	d.checkResults() // all results exist although ws1 is away
	d.must(ws1.setLink(true))
	d.checkRun()
}

// TestRebootedHostsJobsAreFirstInLine cuts the power of a host during its jobs. It comes back with
// another boot id. Its jobs are retried elsewhere, once, and before all waiting jobs (X1, X2).
func TestRebootedHostsJobsAreFirstInLine(t *testing.T) {
	list := append(equalJobs(12, "gate", 0), equalJobs(20, "plain", 0.3)...)
	l, d := startScenario(t, "reboot", 12, list, "--max-slots", "12")
	d.stepUntil("every host is up", polltest.Patience, func() bool { return d.numHostsUp() == hostCount })
	victim := l.hosts[0] // a host with jobs, not the gateway; the others have slots for its jobs
	if marksOn(d.markedAttempts(), victim.name) == 0 {
		victim = l.hosts[1]
	}
	lost := marksOn(d.markedAttempts(), victim.name)
	victim.powerOff(true)
	d.logEvent("%s without power, %d jobs", victim.name, lost)
	d.must(victim.boot())
	d.logEvent("%s has booted again", victim.name)
	d.stepUntil("the lost jobs run again", polltest.Patience, func() bool { return d.numMarks() >= 12+lost })
	d.must(l.openGate(d.name))
	d.awaitEnd()
	ms := d.markedAttempts()
	for _, m := range ms[12 : 12+lost] {
		if m.id.N != 2 || m.host == victim.name {
			t.Errorf("after the reboot %s started on %s; the %d lost jobs are first in line, on other hosts", m.id,
				m.host, lost)
		}
	}
	if len(ms) != len(list)+lost {
		t.Errorf("%d attempts of %d jobs, %d of them lost", len(ms), len(list), lost)
	}
	d.checkRun()
}

// TestLateLaunchNeverRuns writes a launch into a link that has just been cut, and heals the link
// too late. The launch never runs, and its job runs once, elsewhere (X2).
func TestLateLaunchNeverRuns(t *testing.T) {
	list := append(equalJobs(1, "gate", 0), equalJobs(16, "plain", 1)...)
	for i := range list[1:] {
		list[i+1].after = 1
	}
	l, d := startScenario(t, "late", 1, list)
	d.stepUntil("every host is up", polltest.Patience, func() bool { return d.numHostsUp() == hostCount })
	var cut *machine
	for _, m := range l.hosts[:2] {
		if m.name != d.markedAttempts()[0].host {
			cut = m
		}
	}
	d.must(cut.setBlackhole(true))
	d.must(l.openGate(d.name))
	d.logEvent("black hole: %s; the gate is open", cut.name)
	d.stepUntil("its jobs are tried elsewhere", polltest.Patience, func() bool { return d.numMarks() == len(list) })
	d.must(cut.setBlackhole(false))
	d.logEvent("healed: %s", cut.name)
	d.awaitEnd()
	if n := marksOn(d.markedAttempts(), cut.name); n > 0 || d.numMarks() != len(list) {
		t.Errorf("%d launches ran late on %s; %d attempts ran of %d jobs", n, cut.name, d.numMarks(), len(list))
	}
	d.checkRun()
}

// TestAllLinksDownAtOnce disconnects every link for longer than lost_after. That indicates a
// failure of the local network, so no host is given up, and nothing runs twice.
func TestAllLinksDownAtOnce(t *testing.T) {
	l, d := startScenario(t, "all", 16, append(equalJobs(16, "plain", 40), equalJobs(16, "plain", 1)...))
	for _, m := range l.hosts {
		d.must(m.setLink(false))
	}
	d.logEvent("all links down")
	time.AfterFunc(30*time.Second, func() {
		for _, m := range l.hosts {
			if err := m.setLink(true); err != nil {
				t.Error(err)
			}
		}
	})
	d.awaitEnd()
	d.checkRanAtMostOnce()
	if strings.Contains(d.dispatchers[0].output(), " lost: its host") {
		t.Errorf("a host was given up:\n%s", d.dispatchers[0].output())
	}
	d.checkRun()
}

// TestSSHDKilledOnAllHosts kills every ssh server with all of its sessions. The jobs continue and
// are adopted when the servers are back (X1).
func TestSSHDKilledOnAllHosts(t *testing.T) {
	l, d := startScenario(t, "sshd", 16, append(equalJobs(16, "plain", 20), equalJobs(16, "plain", 1)...))
	for _, m := range l.hosts {
		signalAll(m.find(func(p process) bool { return isListener(p) || isSession(p) }), syscall.SIGKILL)
	}
	d.logEvent("every sshd killed")
	for _, m := range l.hosts {
		d.repairAfter(6*time.Second, m.name+" sshd", func() { d.must(m.startSSHD()) })
	}
	d.awaitOver()
	d.checkRanAtMostOnce()
	d.checkRun()
}

// TestWokenDispatcherIsFencedByForce stops a dispatcher, lets another machine take the run over by
// force, and continues the first dispatcher. The first one reports that it is fenced off, exits,
// and changes nothing (X1, D6).
func TestWokenDispatcherIsFencedByForce(t *testing.T) { wakeFenced(t, true) }

// TestWokenDispatcherIsFencedWhenStale is the same without --force: the takeover is possible only
// when the heartbeats are stale.
func TestWokenDispatcherIsFencedWhenStale(t *testing.T) { wakeFenced(t, false) }

func wakeFenced(t *testing.T, force bool) {
	l, d := startScenario(t, "woken", 16, equalJobs(100, "plain", 5))
	first := d.current
	first.sendSignal(syscall.SIGSTOP)
	d.fenced = append(d.fenced, first)
	d.must(d.resume(l.desks[1], force))
	d.stepUntil("the other is at work", polltest.Patience,
		func() bool { return strings.Contains(d.current.output(), "+ ok") })
	before := l.readFile(d.runDir() + "/journal/000001.jsonl")
	d.logEvent("waking %s", first.name)
	first.sendSignal(syscall.SIGCONT)
	d.awaitEnd()
	if after := l.readFile(d.runDir() + "/journal/000001.jsonl"); len(after)-len(before) > 64<<10 {
		t.Errorf("the dispatcher that was fenced off went on writing: %d bytes", len(after)-len(before))
	}
	d.checkRanAtMostOnce()
	d.checkRun()
}

// TestTheWholeLabLosesItsPower cuts the power of the dispatcher and all hosts, which come back with
// other boot ids. Every job that ran is retried once, and no other job (X1).
func TestTheWholeLabLosesItsPower(t *testing.T) {
	l, d := startScenario(t, "dark", 16, append(equalJobs(16, "gate", 0), equalJobs(10, "plain", 1)...))
	for _, m := range l.machines() {
		m.powerOff(true)
	}
	d.logEvent("no power anywhere")
	for _, m := range l.machines() {
		d.must(m.boot())
	}
	d.must(l.openGate(d.name))
	d.awaitEnd()
	for id, ran := range d.checkRanOnce() {
		want := 1
		if id <= 16 {
			want = 2
		}
		if len(ran) != want {
			t.Errorf("job %d ran as attempts %v, not %d times", id, ran, want)
		}
	}
	d.checkRun()
}

// TestGatewayKilled kills the ssh server of a gateway with another host behind it. Both hosts are
// away, their jobs continue, and both are adopted (B3).
func TestGatewayKilled(t *testing.T) {
	_, d := startScenario(t, "gateway", 16, append(equalJobs(16, "plain", 15), equalJobs(16, "plain", 1)...))
	if on := d.killGateway(); on == "" {
		t.Fatal("no gateway")
	}
	d.awaitOver()
	d.checkRanAtMostOnce()
	d.checkRun()
}
