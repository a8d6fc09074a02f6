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
)

// TestTwoResumesAtOnce starts two resumes at the same time. One continues the run, and the other is
// refused with the name of the first.
func TestTwoResumesAtOnce(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := tiny(t)
	l.busy(4, 2)
	p := l.start(l.tinyArgs()...)
	l.until("both long jobs run", func() bool { return l.running(2) == 2 })
	var shown []string
	for range pick(20, 200) {
		shown = append(shown, p.kill().out)
		a, b := l.start(l.tinyAgain()...), l.start(l.tinyAgain()...)
		loser := b
		select {
		case <-a.ended:
			p, loser = b, a
		case <-b.ended:
			p = a
		}
		if e := loser.wait(); e.code != 2 || !strings.Contains(e.err, fmt.Sprintf("pid %d,", p.cmd.Process.Pid)) {
			t.Fatalf("the one that lost: exit %d, the other is %d\n%s", e.code, p.cmd.Process.Pid, e.err)
		}
		p.working()
	}
	l.file("gate", "")
	l.accounted(l.path("run"), 4, append(shown, p.wait().out)...)
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
			file := l.tagged(40, "setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 0.2; done' & sleep 1000")
			p := l.start(l.args(2, "--on-interrupt", "cancel", file)...)
			l.until("jobs run", func() bool { return l.count("ran/*") == 4 })
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
					return strings.Contains(c.err.String(), fmt.Sprint("kill -CONT ", p.cmd.Process.Pid))
				})
				p.signal(syscall.SIGCONT)
			}
			if e := c.wait(); e.code != 0 {
				t.Errorf("cancel: exit %d\n%s", e.code, e.err)
			}
			if how != "dead" {
				if how == "stopped by force" {
					p.signal(syscall.SIGCONT)
				}
				if e := p.wait(); e.code != want {
					t.Errorf("the dispatcher: exit %d, want %d\n%s", e.code, want, e.err)
				}
			}
			l.allCanceled(40, 4)
			if e := l.do(cancel...); e.code != 0 || !strings.Contains(e.err, "nothing to cancel") {
				t.Errorf("cancel again: exit %d\n%s", e.code, e.err)
			}
			if e := l.do(l.again()...); e.code == 0 || strings.Contains(e.out, "succeeded") {
				t.Errorf("resume after cancel: exit %d\n%s%s", e.code, e.out, e.err)
			}
		})
	}
}

// allCanceled checks that n jobs are canceled, and that started of them had started.
func (l *lab) allCanceled(n, started int) {
	l.t.Helper()
	rs := l.whole(l.do("results", "--json", l.path("run")).out)
	for _, r := range rs {
		if r.State != "canceled" {
			l.t.Errorf("job %d: %s", r.Job, r.State)
		}
	}
	if ran := l.count("ran/*"); len(rs) != n || ran != started {
		l.t.Errorf("%d results of %d jobs; %d have started, want %d", len(rs), n, ran, started)
	}
}

// TestResumeOfAFinishedRun checks that resuming a finished run prints nothing unnecessary: nothing
// runs, no acknowledged result is printed again, and no host is contacted. The jobs file is not
// read again.
func TestResumeOfAFinishedRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	first := l.succeed(l.args(2, "--json", l.tagged(10, "true"))...)
	l.file("jobs.txt", "false\nfalse\n")
	l.sshd[0].Stop()
	e := l.do(l.again()...)
	if e.code != 0 || e.out != "" {
		t.Errorf("exit %d\n%s%s", e.code, e.out, e.err)
	}
	l.accounted(l.path("run"), 10, first.out, e.out)
}

// TestJobsFileChanged checks that a killed dispatcher is resumed (X1), and that a change of the jobs
// file in the meantime does not change the run.
func TestJobsFileChanged(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	p := l.start(l.args(2, "--json", l.busy(30, 1))...)
	l.until("some have ended", func() bool { return l.ended("run/attempts/*/*.status") >= 3 })
	first := p.kill()
	l.file("jobs.txt", "false\n")
	l.file("gate", "")
	e := l.succeed(l.again()...)
	l.accounted(l.path("run"), 30, first.out, e.out)
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
				p := l.start(l.args(3, "--json", l.busy(60, 6))...)
				l.until("six jobs run", func() bool { return l.running(6) == 6 })
				first := p.kill()
				if ended {
					l.file("gate", "")
					l.until("they have ended", func() bool { return l.running(6) == 0 })
				}
				text := l.read(l.path("hosts.toml"))
				at := strings.LastIndex(text, "[[host]]")
				if renamed {
					text = text[:at] + strings.Replace(text[at:], `"ws2"`, `"other"`, 1)
				} else {
					text = text[:at]
				}
				q := l.start(l.again("--hosts", l.file("fewer.toml", text))...)
				q.working()
				if long && !ended { // longer than the lost_after of an unknown host
					time.Sleep(75 * time.Second)
				}
				l.file("gate", "")
				e := q.succeeds()
				l.accounted(l.path("run"), 60, first.out, e.out)
			})
		}
	}
}

// TestHalfMadeRunDirectory checks the directory that a killed `run` leaves: every command that
// reports that it is not a run also explains what to do, and no command contradicts that.
func TestHalfMadeRunDirectory(t *testing.T) {
	t.Parallel()
	l := tiny(t)
	must(t, os.MkdirAll(l.path("dcs-runs/half/journal"), 0o700))
	l.file("dcs-runs/half/nonce", strings.Repeat("ab", 16)+"\n")
	for _, args := range [][]string{
		{"resume", "half"}, {"status", filepath.Join("dcs-runs", "half")}, {"cancel", "--yes", "half"},
		{"run", "--no-tui", "--name", "half", "jobs.txt"}, {"run", "--no-tui", "--run-dir", "dcs-runs/half", "jobs.txt"},
	} {
		e := l.do(args...)
		if e.code != 2 || !strings.Contains(e.err, "its creation was interrupted") || !strings.Contains(e.err, "remove") ||
			strings.Contains(e.err, "resume") {
			t.Errorf("%v: exit %d\n%s", args, e.code, e.err)
		}
	}
}
