//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// writeTaggedJobs writes n jobs that each append their attempt id to a file of their own. The files
// show what ran, and how often, independently of the program's records.
func (l *lab) writeTaggedJobs(n int, rest string) string {
	l.mkdir("ran")
	return l.writeFile("jobs.txt", strings.Repeat(fmt.Sprintf("echo $DCS_ATTEMPT >> %s/$DCS_JOB_ID; %s\n",
		l.path("ran"), rest), n))
}

// gateWait is the part of a job that waits until the test creates the file gate.
func (l *lab) gateWait() string {
	return fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", l.path("gate"))
}

// checkAttemptsRanOnce checks that each job ran, and that each attempt id ran once.
func (l *lab) checkAttemptsRanOnce(n int) {
	l.t.Helper()
	progtest.CheckRanOnce(l.t, l.path("ran"), n)
}

// TestJobsOnFourHosts runs real jobs over ssh on four hosts (P1, P2, B3, promises 1, 2, 4).
func TestJobsOnFourHosts(t *testing.T) {
	n := polltest.Scale(100, 1000, 1000)
	l := newLab(t, 4)
	file := l.writeTaggedJobs(n, l.gateWait())
	run := l.start(l.runArgs(4, "--json", file)...)
	l.until("four jobs running on each host", func() bool { return l.numFiles("ran/*") >= 16 })
	l.writeFile("gate", "")
	p := run.mustSucceed()
	ls := l.completeResults(p.stdout)
	if len(ls) != n {
		t.Errorf("got %d results, want %d", len(ls), n)
	}
	for i, x := range ls {
		if x.State != "succeeded" || x.Seq != i+1 {
			t.Errorf("result %d: %+v", i, x)
		}
	}
	if used := l.hostsUsed(p.stdout); len(used) != 4 {
		t.Errorf("hosts used: %v", used)
	}
	l.checkAttemptsRanOnce(n)
	for i := range l.servers {
		if n := strings.Count(l.readFile(l.servers[i].LogFile()), "Accepted publickey"); n > 1 {
			t.Errorf("host %d: %d connections for one run", i+1, n)
		}
	}
}

func (l *lab) readFile(path string) string {
	l.t.Helper()
	b, err := os.ReadFile(path)
	must(l.t, err)
	return string(b)
}

// TestSixtyFourSlotsOnOneHost checks that 64 slots on one sshd with its default limits (10 sessions
// per connection, MaxStartups 10:30:100) lose no job.
func TestSixtyFourSlotsOnOneHost(t *testing.T) {
	polltest.Long(t)
	l := newLab(t, 1)
	l.mustRun(l.runArgs(64, l.writeTaggedJobs(256, "true"))...)
	l.checkAttemptsRanOnce(256)
}

// TestBadHostsAmongGoodOnes checks that an unreachable host, one with a wrong key, and one with a
// changed host key are named in messages and do not affect the others (promise 5).
func TestBadHostsAmongGoodOnes(t *testing.T) {
	l := newLab(t, 1)
	// Its key and host key are unknown to the program.
	stranger := hosttest.StartSSHD(t, hosttest.Options{})
	l.inventoryText = fmt.Sprintf("[[host]]\nname = \"closed\"\naddress = \"127.0.0.1\"\nport = 1\nslots = 2\n\n"+
		"[[host]]\nname = \"stranger\"\naddress = \"127.0.0.1\"\nport = %d\nuser = %q\nidentity = %q\nslots = 2\n",
		stranger.Port, stranger.User, l.servers[0].Identity)
	p := l.start(l.runArgs(2, l.writeTaggedJobs(20, l.gateWait()))...)
	for _, name := range []string{"closed", "stranger"} {
		l.until(name+" is named", func() bool { return strings.Contains(p.stderr.String(), name) })
	}
	l.writeFile("gate", "")
	p.mustSucceed()
	l.checkAttemptsRanOnce(20)
}

// TestAHostComesBack checks that a host that refuses connections costs no job a try and is used
// again when it is back.
func TestAHostComesBack(t *testing.T) {
	l := newLab(t, 2)
	l.servers[1].Stop()
	file := l.writeTaggedJobs(40, l.gateWait())
	p := l.start(l.runArgs(2, "--json", file)...)
	l.until("the good host works", func() bool { return l.numFiles("ran/*") >= 2 })
	must(t, l.servers[1].Start())
	l.until("the other host works too", func() bool { return l.numFiles("ran/*") >= 4 })
	l.writeFile("gate", "")
	e := p.mustSucceed()
	if used := l.hostsUsed(e.stdout); len(used) != 2 {
		t.Errorf("hosts used: %v", used)
	}
	l.checkAttemptsRanOnce(40)
}

// TestHostsWithOtherLoginShells checks login shells on the host: bash with a noisy rc file, dash,
// and tcsh.
func TestHostsWithOtherLoginShells(t *testing.T) {
	l := newLab(t, 3,
		hosttest.Options{Shell: "/bin/bash", Noise: "Welcome to ws1!\nfortune: \"$HOME is where the `heart` is\"\n"},
		hosttest.Options{Shell: "/bin/dash"},
		hosttest.Options{Shell: "/usr/bin/tcsh", Noise: "hello from tcsh\n"})
	file := l.writeTaggedJobs(60, l.gateWait())
	run := l.start(l.runArgs(2, "--json", file)...)
	l.until("two jobs running on each host", func() bool { return l.numFiles("ran/*") >= 6 })
	l.writeFile("gate", "")
	p := run.mustSucceed()
	if used := l.hostsUsed(p.stdout); len(used) != 3 {
		t.Errorf("hosts used: %v\n%s", used, p.stderr)
	}
	l.checkAttemptsRanOnce(60)
}
