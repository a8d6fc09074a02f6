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
	"dcs-tui/internal/progtest"
)

// TestDispatchersDirectoryFails checks a run whose dispatcher can no longer write the run
// directory. Nothing is launched, one line gives the reason, and running jobs are kept. The run
// continues by itself when the directory works again.
func TestDispatchersDirectoryFails(t *testing.T) {
	for name, c := range map[string]struct {
		fail, heal func(*labfs.Mount)
		says       string // a part of the line that reports the failure
	}{
		"wedged":    {(*labfs.Mount).Wedge, (*labfs.Mount).Unwedge, "run directory"},
		"full":      {func(m *labfs.Mount) { m.Full(true) }, func(m *labfs.Mount) { m.Full(false) }, "no space left"},
		"read-only": {func(m *labfs.Mount) { m.ReadOnly(true) }, func(m *labfs.Mount) { m.ReadOnly(false) }, "read-only"},
		"stale":     failAll(syscall.ESTALE, "stale"),
		"quota":     failAll(syscall.EDQUOT, "quota"),
		"errors":    failAll(syscall.EIO, "input/output error"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 3, labfs.Options{Stale: time.Second, WriteBack: true})
			const n = 80
			file := l.jobs(n, l.gate("gate"))
			p := l.dcs(0, "run", "--no-tui", "--json", "--hosts", l.inventory(2, 2, ""), "--run-dir", l.run(), file)
			l.until("every slot is busy", func() bool { return l.ran() >= 4 }, p.err.String)
			c.fail(l.mounts[0])
			l.open("gate")
			p.says("nothing is launched")
			if text := strings.ToLower(p.err.String()); !strings.Contains(text, c.says) {
				t.Errorf("%q is not said:\n%s", c.says, text)
			}
			// The jobs that the hosts already have end, and no others start.
			at, since := l.ran(), time.Now()
			l.until("a second without a new start", func() bool {
				if now := l.ran(); now != at {
					at, since = now, time.Now()
				}
				return time.Since(since) > time.Second
			})
			if at == n {
				t.Errorf("every job was launched though no launch could be recorded")
			}
			c.heal(l.mounts[0])
			e := p.wait()
			if e.code != 0 {
				t.Fatalf("exit %d\n%s", e.code, e.err)
			}
			l.counted(n, "succeeded", e)
			if got := l.ranOnce(n); got != n {
				t.Errorf("%d attempts for %d jobs\n%s", got, n, e.err)
			}
			if k := strings.Count(e.err, "nothing is launched"); k > 2 {
				t.Errorf("said %d times:\n%s", k, e.err)
			}
		})
	}
}

// failAll makes every change of the run's files fail.
func failAll(errno syscall.Errno, says string) struct {
	fail, heal func(*labfs.Mount)
	says       string
} {
	var in *labfs.Injected
	return struct {
		fail, heal func(*labfs.Mount)
		says       string
	}{
		func(m *labfs.Mount) {
			in = m.Fail(labfs.Fault{Ops: labfs.Any &^ (labfs.Lookup | labfs.Getattr | labfs.List | labfs.Statfs), Errno: errno})
		},
		func(*labfs.Mount) { in.Stop() },
		says,
	}
}

// TestRemovedRunDirectory checks that a run whose directory is removed reports it in one clear
// line, and that a person can end it.
func TestRemovedRunDirectory(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, labfs.Options{Stale: time.Second, WriteBack: true})
	file := l.jobs(20, l.gate("gate"))
	p := l.dcs(0, "run", "--no-tui", "--hosts", l.inventory(1, 2, ""), "--run-dir", l.run(), file)
	l.until("the slots are busy", func() bool { return l.ran() >= 2 }, p.err.String)
	// In one step: the dispatcher reports the first fault that it finds, and a half-removed
	// directory is a different fault.
	l.on(1, "/bin/mv", "run", "trash").wait()
	p.says("nothing is launched")
	if text := p.err.String(); !strings.Contains(text, "removed") {
		t.Errorf("it is not said what is wrong:\n%s", text)
	}
	l.on(1, "/bin/rm", "-rf", "trash").wait()
	l.open("gate")
	p.signal(syscall.SIGTERM)
	e := p.wait()
	if e.code != 4 {
		t.Errorf("exit %d\n%s", e.code, e.err)
	}
	if k := strings.Count(e.err, "nothing is launched"); k > 2 {
		t.Errorf("said %d times:\n%s", k, e.err)
	}
}

// TestDispatcherSpeaksWhileItsDirectoryHangs checks that a dispatcher whose run directory hangs
// still reports the events of hosts and obeys a person who ends it. The running jobs are adopted
// afterwards.
func TestDispatcherSpeaksWhileItsDirectoryHangs(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, labfs.Options{Stale: time.Second, WriteBack: true})
	const n = 20
	hosts := l.inventory(2, 2, "")
	p := l.dcs(0, "run", "--no-tui", "--json", "--hosts", hosts, "--run-dir", l.run(), l.jobs(n, "[ %d -gt 1 ] || { "+l.gate("first")+"; exit; }; "+l.gate("gate")))
	l.until("every slot is busy", func() bool { return l.ran() >= 4 }, p.err.String)
	l.mounts[0].Wedge()
	l.open("first") // the end of its job must be recorded
	p.says("nothing is launched")
	for i, helper := range p.helpers() { // the report about the second must not wait for the first one's log
		said := strings.Count(p.err.String(), "\n")
		syscall.Kill(helper.PID, syscall.SIGKILL)
		l.until(fmt.Sprintf("what happened to host %d is said", i+1), func() bool { return strings.Count(p.err.String(), "\n") > said }, p.err.String)
	}
	p.signal(syscall.SIGTERM)
	p.says("dispatching stops")
	p.signal(syscall.SIGTERM) // the second signal makes it exit immediately
	first := p.wait()
	if first.code != 4 {
		t.Errorf("exit %d\n%s", first.code, first.err)
	}
	l.mounts[0].Unwedge()
	l.open("gate")
	second := l.dcs(0, "resume", "--no-tui", "--json", "--hosts", hosts, l.run()).wait()
	if second.code != 0 {
		t.Fatalf("resume: exit %d\n%s", second.code, second.err)
	}
	l.counted(n, "succeeded", first, second)
	if got := l.ranOnce(n); got != n {
		t.Errorf("%d attempts for %d jobs\n%s\n%s", got, n, first.err, second.err)
	}
}

// TestIdleDispatcherSaysThatItsDirectoryHangs checks a run in which nothing happens for hours
// because every slot is busy. It must still report that its directory hangs, and that it answers
// again.
func TestIdleDispatcherSaysThatItsDirectoryHangs(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, labfs.Options{Stale: time.Second, WriteBack: true})
	p := l.dcs(0, "run", "--no-tui", "--json", "--hosts", l.inventory(1, 2, ""), "--run-dir", l.run(), l.jobs(4, l.gate("gate")))
	l.until("every slot is busy", func() bool { return l.ran() >= 2 }, p.err.String)
	l.mounts[0].Wedge()
	p.says("nothing is launched")
	l.mounts[0].Unwedge()
	p.says("the run continues")
	l.open("gate")
	if e := p.wait(); e.code != 0 {
		t.Errorf("exit %d\n%s", e.code, e.err)
	}
}

// helpers returns the helpers whose links the program's process holds. It reads nothing in /proc
// that waits for a program that is being started, because that program may hang while it closes its
// files.
func (p *process) helpers() []progtest.Process {
	ours := fmt.Sprintf("\nPPid:\t%d\n", p.cmd.Process.Pid)
	list := progtest.Processes(func(h progtest.Process) bool {
		status, _ := os.ReadFile(h.Dir + "/status")
		return strings.HasSuffix(h.Args, "\x00__host\x00") && strings.Contains(string(status), ours)
	})
	if len(list) == 0 {
		p.l.t.Fatal("no helper was found")
	}
	return list
}
