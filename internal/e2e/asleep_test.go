//go:build linux

package e2e

import (
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// nap sleeps as long as a "laptop" does: more than twice the lost_after of the labs here. In the
// complete form, helpers leave meanwhile. The passing time is itself the injected fault, and no
// event can stand for it: what sleeps does nothing.
func nap() { time.Sleep(polltest.Scale(22*time.Second, 22*time.Second, 45*time.Second)) }

// TestSleepingDispatcher stops the dispatcher for much longer than lost_after and then continues
// it. It checks that no host is given up because the dispatcher itself was absent, and that running
// jobs are kept. Unlike a real suspend, SIGSTOP does not stop CLOCK_MONOTONIC; the test covers the
// rule for stalls.
func TestSleepingDispatcher(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 2)
	l.inventoryText = "[defaults]\nlost_after = \"9s\"\n"
	file := l.writeBusyJobs(600, 4)
	p := l.start(l.runArgs(4, "--json", file)...)
	l.until("some have ended", func() bool { return l.numEnded("run/attempts/*/*.status") >= 20 })
	p.signal(syscall.SIGSTOP)
	nap()
	p.signal(syscall.SIGCONT)
	l.checkWakesUp(p, 600)
}

// TestSleepingLaptop is TestSleepingDispatcher with the whole machine asleep: dispatcher, helper,
// supervisors, and jobs.
func TestSleepingLaptop(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLocalLab(t, 4, "lost_after = \"9s\"\n")
	l.writeBusyJobs(600, 2)
	p := l.start(l.tinyArgs()...)
	l.until("some have ended", func() bool { return l.numEnded("run/attempts/*/*.status") >= 20 })
	asleep := map[int]bool{}
	for again := true; again; { // until no new process is found: they start each other
		again = false
		for _, o := range progtest.FindProcesses(l.ownProcess()) {
			if !asleep[o.PID] && syscall.Kill(o.PID, syscall.SIGSTOP) == nil {
				asleep[o.PID], again = true, true
			}
		}
	}
	nap()
	for pid := range asleep {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	l.checkWakesUp(p, 600)
}

// checkWakesUp waits for the end of a run whose dispatcher has slept, and checks that no host was
// given up and that all jobs continued.
func (l *lab) checkWakesUp(p *process, jobs int) {
	l.t.Helper()
	l.writeFile("gate", "")
	e := p.mustSucceed()
	for _, f := range l.journal(l.path("run")) {
		if f.K == "lost" {
			l.t.Errorf("attempt %d.%d was given up: %s", f.J, f.N, f.Why)
		}
	}
	l.checkRun(l.path("run"), jobs, e.stdout)
}
