//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// TestTwoResumesAtOnce starts two resumes at the same time. One continues the run, and the other is
// refused with the name of the first.
func TestTwoResumesAtOnce(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newTinyLab(t)
	l.writeBusyJobs(4, 2)
	p := l.start(l.tinyArgs()...)
	l.until("both long jobs run", func() bool { return l.numRunning(2) == 2 })
	var shown []string
	for range polltest.Scale(20, 20, 200) {
		shown = append(shown, p.kill().stdout)
		a, b := l.start(l.tinyResumeArgs()...), l.start(l.tinyResumeArgs()...)
		loser := b
		select {
		case <-a.ended:
			p, loser = b, a
		case <-b.ended:
			p = a
		}
		if e := loser.wait(); e.code != 2 || !strings.Contains(e.stderr, fmt.Sprintf("pid %d,", p.cmd.Process.Pid)) {
			t.Fatalf("the one that lost: exit %d, the other is %d\n%s", e.code, p.cmd.Process.Pid, e.stderr)
		}
		p.awaitHost()
	}
	l.writeFile("gate", "")
	l.checkRun(l.path("run"), 4, append(shown, p.wait().stdout)...)
}

// TestCancelWhateverTheDispatcher checks that cancel ends every job's process tree, including
// processes that left the session, whether the dispatcher is alive, stopped, or dead, or cancels
// already because of Ctrl-C (promise 4). A second cancel is harmless.
func TestCancelWhateverTheDispatcher(t *testing.T) {
	polltest.Long(t)
	for _, how := range []string{"alive", "interrupted", "stopped", "stopped by force", "dead"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 2)
			file := l.writeTaggedJobs(40, "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 0.2; done' & sleep 1000")
			p := l.start(l.runArgs(2, "--on-interrupt", "cancel", file)...)
			l.until("jobs run", func() bool { return l.numFiles("ran/*") == 4 })
			want := 130 // exit code of the dispatcher
			cancel := []string{"cancel", "--yes", l.path("run")}
			switch how {
			case "interrupted":
				p.signal(os.Interrupt)
			case "stopped":
				p.signal(syscall.SIGSTOP)
			case "stopped by force":
				p.signal(syscall.SIGSTOP)
				cancel, want = append(cancel, "--force"), 4
			case "dead":
				p.kill()
			}
			c := l.start(cancel...)
			if how == "stopped" {
				l.until("it says how to go on", func() bool {
					return strings.Contains(c.stderr.String(), fmt.Sprint("kill -CONT ", p.cmd.Process.Pid))
				})
				p.signal(syscall.SIGCONT)
			}
			if e := c.wait(); e.code != 0 {
				t.Errorf("cancel: exit %d\n%s", e.code, e.stderr)
			}
			if how != "dead" {
				if how == "stopped by force" {
					p.signal(syscall.SIGCONT)
				}
				if e := p.wait(); e.code != want {
					t.Errorf("the dispatcher: exit %d, want %d\n%s", e.code, want, e.stderr)
				}
			}
			l.checkCanceled(40, 4)
			if e := l.run(cancel...); e.code != 0 || !strings.Contains(e.stderr, "nothing to cancel") {
				t.Errorf("cancel again: exit %d\n%s", e.code, e.stderr)
			}
			if e := l.run(l.resumeArgs()...); e.code == 0 || strings.Contains(e.stdout, "succeeded") {
				t.Errorf("resume after cancel: exit %d\n%s%s", e.code, e.stdout, e.stderr)
			}
		})
	}
}

// checkCanceled checks that n jobs are canceled, and that started of them had started.
func (l *lab) checkCanceled(n, started int) {
	l.t.Helper()
	rs := l.completeResults(l.run("results", "--json", l.path("run")).stdout)
	for _, r := range rs {
		if r.State != "canceled" {
			l.t.Errorf("job %d: %s", r.Job, r.State)
		}
	}
	if ran := l.numFiles("ran/*"); len(rs) != n || ran != started {
		l.t.Errorf("%d results of %d jobs; %d have started, want %d", len(rs), n, ran, started)
	}
}

// TestResumeOfAFinishedRun checks that resuming a finished run prints nothing unnecessary: nothing
// runs, no acknowledged result is printed again, and no host is contacted. The jobs file is not
// read again.
func TestResumeOfAFinishedRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	first := l.mustRun(l.runArgs(2, "--json", l.writeTaggedJobs(10, "true"))...)
	l.writeFile("jobs.txt", "false\nfalse\n")
	l.servers[0].Stop()
	e := l.run(l.resumeArgs()...)
	if e.code != 0 || e.stdout != "" {
		t.Errorf("exit %d\n%s%s", e.code, e.stdout, e.stderr)
	}
	l.checkRun(l.path("run"), 10, first.stdout, e.stdout)
}

// TestChangedJobsFileDoesNotChangeTheRun checks that a killed dispatcher is resumed (X1), and that
// a change of the jobs file in the meantime does not change the run.
func TestChangedJobsFileDoesNotChangeTheRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	p := l.start(l.runArgs(2, "--json", l.writeBusyJobs(30, 1))...)
	l.until("some have ended", func() bool { return l.numEnded("run/attempts/*/*.status") >= 3 })
	first := p.kill()
	l.writeFile("jobs.txt", "false\n")
	l.writeFile("gate", "")
	e := l.mustRun(l.resumeArgs()...)
	l.checkRun(l.path("run"), 30, first.stdout, e.stdout)
}

// TestResumeWithoutAHost resumes a run after a host with attempts was removed from the inventory or
// renamed. Ended attempts count, through the shared directory. Running attempts are awaited while
// their supervisor shows that it lives. None runs again (X2).
func TestResumeWithoutAHost(t *testing.T) {
	polltest.Long(t)
	for name, ended := range map[string]bool{"its jobs have ended": true, "its jobs still run": false} {
		for _, renamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, renamed %v", name, renamed), func(t *testing.T) {
				t.Parallel()
				l := newLab(t, 2)
				p := l.start(l.runArgs(3, "--json", l.writeBusyJobs(60, 6))...)
				l.until("six jobs run", func() bool { return l.numRunning(6) == 6 })
				first := p.kill()
				if ended {
					l.writeFile("gate", "")
					l.until("they have ended", func() bool { return l.numRunning(6) == 0 })
				}
				text := l.readFile(l.path("hosts.toml"))
				at := strings.LastIndex(text, "[[host]]")
				if renamed {
					text = text[:at] + strings.Replace(text[at:], `"ws2"`, `"other"`, 1)
				} else {
					text = text[:at]
				}
				q := l.start(l.resumeArgs("--hosts", l.writeFile("fewer.toml", text))...)
				q.awaitHost()
				if !ended { // in the long form, longer than the lost_after of an unknown host
					progtest.AwaitRunning(t, l.path("run"), polltest.Scale(0, 0, 75*time.Second))
				}
				l.writeFile("gate", "")
				e := q.mustSucceed()
				l.checkRun(l.path("run"), 60, first.stdout, e.stdout)
			})
		}
	}
}

// TestHalfMadeRunDirectory checks the directory that a killed `run` leaves: every command that
// reports that it is not a run also explains what to do, and no command contradicts that.
func TestHalfMadeRunDirectory(t *testing.T) {
	t.Parallel()
	l := newTinyLab(t)
	must(t, os.MkdirAll(l.path("dcs-runs/half/journal"), 0o700))
	l.writeFile("dcs-runs/half/nonce", strings.Repeat("ab", 16)+"\n")
	for _, args := range [][]string{
		{"resume", "half"}, {"status", filepath.Join("dcs-runs", "half")}, {"cancel", "--yes", "half"},
		{"run", "--no-tui", "--name", "half", "jobs.txt"}, {"run", "--no-tui", "--run-dir", "dcs-runs/half",
			"jobs.txt"},
	} {
		e := l.run(args...)
		if e.code != 2 || !strings.Contains(e.stderr, "its creation was interrupted") ||
			!strings.Contains(e.stderr, "remove") ||
			strings.Contains(e.stderr, "resume") {
			t.Errorf("%v: exit %d\n%s", args, e.code, e.stderr)
		}
	}
}
