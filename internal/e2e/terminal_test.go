//go:build linux

package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
	"dcs-tui/internal/ptytest"
)

// onTerminal starts the program on a terminal of its own, as the child of a shell that ends with
// its terminal. screen collects the output.
func (l *lab) onTerminal(args ...string) (p *process, screen *progtest.Buffer, hangUp func()) {
	l.t.Helper()
	person, tty := ptytest.OpenForTest(l.t)
	cmd := exec.Command("/bin/sh", append([]string{"-c", `"$@" & wait $!`, "sh", program}, args...)...)
	cmd.Env = append(os.Environ(), "TERM=xterm", "LANG=C.UTF-8")
	ptytest.Attach(cmd, tty)
	p = l.startCommand(cmd)
	tty.Close()
	screen = new(progtest.Buffer)
	go io.Copy(screen, person) // until the person hangs up, or the program ends
	return p, screen, func() { person.Close() }
}

// dispatcherLog returns the log of a dispatcher without a terminal.
func (l *lab) dispatcherLog() string {
	b, _ := os.ReadFile(l.path("run/dispatcher.log"))
	return string(b)
}

// dispatcherPID returns the pid of the run's owner from status, or 0 if there is none.
func (l *lab) dispatcherPID() int {
	l.t.Helper()
	e := l.run("status", l.path("run"))
	_, rest, _ := strings.Cut(e.stdout, "(pid ")
	pid := 0
	fmt.Sscanf(rest, "%d", &pid)
	return pid
}

// TestTerminalHangsUp closes the terminal before the hosts are reached or while jobs run, once and
// repeatedly, also with a dispatcher that Ctrl-Z has stopped. The dispatcher continues without the
// terminal, and so does the queue. status names the dispatcher, and its output goes to
// dispatcher.log.
func TestTerminalHangsUp(t *testing.T) {
	polltest.Long(t)
	for name, when := range map[string]struct{ connecting, stopped bool }{
		"while jobs run": {}, "while connecting": {connecting: true}, "after Ctrl-Z": {stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 1)
			file := l.writeBusyJobs(60, 1)
			if when.connecting {
				l.servers[0].Pause()
			}
			shell, screen, hangUp := l.onTerminal(l.runArgs(2, file)...)
			if when.connecting {
				l.until("it has begun", func() bool {
					words := strings.Join(strings.Fields(screen.String()), " ") // lines break at the terminal's width
					return strings.Contains(words, "kept in") && l.dispatcherPID() > 0
				})
			} else {
				l.until("jobs run", func() bool { return l.numFiles("ran/*") >= 3 })
			}
			pid := l.dispatcherPID()
			if when.stopped {
				syscall.Kill(pid, syscall.SIGSTOP)
			}
			hangUp()
			if when.stopped {
				// In a shell, the kernel does that for the foreground, and a user for other jobs.
				syscall.Kill(pid, syscall.SIGCONT)
			}
			l.until("it says that the terminal is gone",
				func() bool { return strings.Contains(l.dispatcherLog(), "the terminal is gone") })
			shell.wait()
			l.servers[0].Resume()
			l.until("the queue goes on", func() bool { return l.numFiles("ran/*") >= 50 })
			if now := l.dispatcherPID(); now != pid {
				t.Errorf("status names %d, and it was %d", now, pid)
			}
			if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
				t.Error(err)
			}
			if e := l.run(l.resumeArgs()...); e.code != 2 || !strings.Contains(e.stderr, fmt.Sprint("pid ", pid)) {
				t.Errorf("resume beside it: exit %d\n%s", e.code, e.stderr)
			}
			l.writeFile("gate", "")
			l.until("the run is over", func() bool { return l.dispatcherPID() == 0 })
			l.checkRun(l.path("run"), 60)
			if text := l.dispatcherLog(); !strings.Contains(text, "all jobs succeeded") ||
				strings.Count(text, "the terminal is gone") != 1 {
				t.Errorf("dispatcher.log:\n%s", text)
			}
		})
	}
}

// TestSIGTERMStopsDispatching checks that SIGTERM stops dispatching, and that running jobs continue
// and are adopted.
func TestSIGTERMStopsDispatching(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2)
	jobs := polltest.Scale(80, 300, 300)
	p := l.start(l.runArgs(3, "--json", l.writeBusyJobs(jobs, 3))...)
	l.until("the long ones run, and some have ended", func() bool {
		return l.numRunning(3) == 3 && l.numEnded("run/attempts/*/*.status") >= 20
	})
	p.signal(syscall.SIGTERM)
	first := p.wait()
	if first.code != 4 || !strings.Contains(first.stderr, "dcs-tui resume") {
		t.Errorf("exit %d\n%s", first.code, first.stderr)
	}
	if n := l.numRunning(3); n != 3 {
		t.Errorf("%d of the 3 long jobs still run", n)
	}
	p = l.start(l.resumeArgs()...)
	p.awaitHost()
	l.writeFile("gate", "")
	second := p.wait()
	if second.code != 0 {
		t.Errorf("exit %d\n%s", second.code, second.stderr)
	}
	l.checkRun(l.path("run"), jobs, first.stdout, second.stdout)
}

// numRunning returns how many of the first n jobs have begun and have no sentinel.
func (l *lab) numRunning(n int) int {
	running := 0
	for id := 1; id <= n; id++ {
		running += l.numFiles(fmt.Sprintf("ran/%d", id)) - l.numEnded(fmt.Sprintf("run/attempts/000/%d.*.status", id))
	}
	return running
}

// TestResumePrintsWhatTheReaderMissed checks `--json | head -1`: the reader leaves, dispatching
// stops, and `resume --json` prints everything that could not be written (promise 1). Data in the
// pipe when the reader left counts as delivered.
func TestResumePrintsWhatTheReaderMissed(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	jobs := polltest.Scale(80, 200, 200)
	r, w, err := os.Pipe()
	must(t, err)
	// Most jobs end after the reader has left: the pipe could hold the results of all.
	const before = 3
	list := l.writeTaggedJobs(jobs, fmt.Sprintf("[ $DCS_JOB_ID -le %d ] || %s", before, l.gateWait()))
	cmd := exec.Command(program, l.runArgs(3, "--json", list)...)
	cmd.Stdout = w
	p := l.startCommand(cmd)
	w.Close()
	line, err := bufio.NewReaderSize(r, 16).ReadString('\n')
	must(t, err)
	r.Close()
	l.writeFile("gate", "")
	e := p.wait()
	if e.code != 4 || !strings.Contains(e.stderr, "dcs-tui resume") {
		t.Errorf("exit %d\n%s", e.code, e.stderr)
	}
	again := l.run(l.resumeArgs()...)
	if again.code != 0 {
		t.Errorf("exit %d\n%s", again.code, again.stderr)
	}
	l.checkRun(l.path("run"), jobs)
	later := l.completeResults(again.stdout)
	for i, r := range later {
		if want := jobs - len(later) + 1 + i; r.Seq != want {
			t.Fatalf("result %d comes again where %d should", r.Seq, want)
		}
	}
	if first := l.completeResults(line); len(first) != 1 || first[0].Seq != 1 || len(later) < jobs-before {
		t.Errorf("first %+v, then %d results", first, len(later))
	}
}
