//go:build linux

package labfs_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/labfs"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// TestNothingIsLaunchedIfTheRunDirectoryFails checks a run whose dispatcher can no longer write the
// run directory. Nothing is launched, one line gives the reason, and running jobs are kept. The run
// continues by itself when the directory works again.
func TestNothingIsLaunchedIfTheRunDirectoryFails(t *testing.T) {
	polltest.Long(t)
	for name, c := range map[string]failure{
		"hung": {(*labfs.Mount).Hang, (*labfs.Mount).Resume, "run directory"},
		"full": {func(m *labfs.Mount) { m.SetFull(true) }, func(m *labfs.Mount) { m.SetFull(false) },
			"no space left"},
		"read-only": {func(m *labfs.Mount) { m.SetReadOnly(true) }, func(m *labfs.Mount) { m.SetReadOnly(false) },
			"read-only"},
		"stale":  failAll(syscall.ESTALE, "stale"),
		"quota":  failAll(syscall.EDQUOT, "quota"),
		"errors": failAll(syscall.EIO, "input/output error"),
	} {
		t.Run(name, func(t *testing.T) {
			if name != "hung" && name != "full" {
				polltest.Long(t)
			}
			t.Parallel()
			l := newLab(t, 3, time.Second)
			const n = 80
			p := l.startBusy(2, l.jobs(n, l.gate("gate")))
			c.fail(l.mounts[0])
			l.open("gate")
			p.says("nothing is launched")
			if text := strings.ToLower(p.err.String()); !strings.Contains(text, c.says) {
				t.Errorf("%q is not said:\n%s", c.says, text)
			}
			// The jobs that the hosts already have end, and no others start.
			at, since := l.numStarted(), time.Now()
			p.until("a second without a new start", func() bool {
				if now := l.numStarted(); now != at {
					at, since = now, time.Now()
				}
				return time.Since(since) > time.Second
			})
			if at == n {
				t.Errorf("every job was launched though no launch could be recorded")
			}
			c.heal(l.mounts[0])
			e := p.wait()
			l.wantSucceededAtOnce(n, e)
			e.wantAtMost(t, "nothing is launched", 2)
		})
	}
}

// failure is a failure of the dispatcher's directory.
type failure struct {
	fail, heal func(*labfs.Mount)
	says       string // a part of the line that reports the failure
}

// failAll makes every change of the run's files fail.
func failAll(errno syscall.Errno, says string) failure {
	var in *labfs.Injected
	return failure{
		func(m *labfs.Mount) {
			in = m.Fail(labfs.Fault{Ops: labfs.Any &^ (labfs.Lookup | labfs.Getattr | labfs.List | labfs.Statfs),
				Errno: errno})
		},
		func(*labfs.Mount) { in.Stop() },
		says,
	}
}

// TestRemovedRunDirectoryIsReported checks that a run whose directory is removed reports it in one
// clear line, and that a person can end it.
func TestRemovedRunDirectoryIsReported(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, time.Second)
	p := l.startBusy(1, l.jobs(20, l.gate("gate")))
	// In one step: the dispatcher reports the first fault that it finds, and a half-removed
	// directory is a different fault.
	l.startOn(1, "/bin/mv", "run", "trash").wait()
	p.says("nothing is launched")
	if text := p.err.String(); !strings.Contains(text, "removed") {
		t.Errorf("it is not said what is wrong:\n%s", text)
	}
	l.startOn(1, "/bin/rm", "-rf", "trash").wait()
	l.open("gate")
	p.signal(syscall.SIGTERM)
	p.exits(4).wantAtMost(t, "nothing is launched", 2)
}

// TestDispatcherSpeaksWhileItsDirectoryHangs checks that a dispatcher whose run directory hangs
// still reports the events of hosts and obeys a person who ends it. The running jobs are adopted
// afterwards.
func TestDispatcherSpeaksWhileItsDirectoryHangs(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 3, time.Second)
	const n = 20
	p := l.startBusy(2, l.jobs(n, "[ %d -gt 1 ] || { "+l.gate("first")+"; exit; }; "+l.gate("gate")))
	l.mounts[0].Hang()
	l.open("first") // the end of its job must be recorded
	p.says("nothing is launched")
	for i, helper := range p.helpers() { // the report about the second must not wait for the first one's log
		said := strings.Count(p.err.String(), "\n")
		syscall.Kill(helper.PID, syscall.SIGKILL)
		p.until(fmt.Sprintf("what happened to host %d is said", i+1),
			func() bool { return strings.Count(p.err.String(), "\n") > said })
	}
	p.signal(syscall.SIGTERM)
	p.says("dispatching stops")
	p.signal(syscall.SIGTERM) // the second signal makes it exit immediately
	first := p.exits(4)
	l.mounts[0].Resume()
	l.open("gate")
	l.wantSucceededAtOnce(n, first, l.resume(0))
}

// TestIdleDispatcherSaysThatItsDirectoryHangs checks a run in which nothing happens for hours
// because every slot is busy. It must still report that its directory hangs, and that it answers
// again.
func TestIdleDispatcherSaysThatItsDirectoryHangs(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 2, time.Second)
	p := l.startBusy(1, l.jobs(4, l.gate("gate")))
	l.mounts[0].Hang()
	p.says("nothing is launched")
	l.mounts[0].Resume()
	p.says("the run continues")
	l.open("gate")
	p.exits(0)
}

// helpers returns the helpers whose links the program's process holds. It reads nothing in /proc
// that waits for a program that is being started, because that program may hang while it closes its
// files.
func (p *process) helpers() []progtest.Process {
	ours := fmt.Sprintf("\nPPid:\t%d\n", p.cmd.Process.Pid)
	list := progtest.FindProcesses(func(h progtest.Process) bool {
		status, _ := os.ReadFile(h.Dir + "/status")
		return strings.HasSuffix(h.Args, "\x00__host\x00") && strings.Contains(string(status), ours)
	})
	if len(list) == 0 {
		p.l.t.Fatal("no helper was found")
	}
	return list
}
