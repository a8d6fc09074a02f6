//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// startTraced starts the program under the tracer (see trace).
func (l *lab) startTraced(at, more int, what, words string, args ...string) *process {
	l.t.Helper()
	return l.startCommand(l.roleCommand("trace",
		append([]string{fmt.Sprint(at), fmt.Sprint(more), what, words, l.path("calls"), program}, args...)...))
}

// tracerPaths joins files of the lab into the word list of the tracer.
func (l *lab) tracerPaths(names []string) string {
	var words []string
	for _, name := range names {
		words = append(words, l.path(name))
	}
	return strings.Join(words, ":")
}

// needTracing skips a test where processes cannot be traced.
func needTracing(t *testing.T) {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir()}
	if e := l.startTraced(0, 0, "kill", l.dir, "--version").wait(); e.code == 99 {
		hosttest.LeaveOut(t, "processes cannot be traced here (ptrace): %s", e.stderr)
	}
}

// tracedCall describes the call at which the tracer acted.
func (l *lab) tracedCall(n int) string {
	lines := strings.Split(strings.TrimSpace(l.readFile(l.path("calls"))), "\n")
	if n > len(lines) {
		return fmt.Sprintf("only %d calls", len(lines))
	}
	return "at call " + lines[n-1]
}

// finish resumes a run whose dispatcher died, or creates it again if it was not a run yet, until it
// has ended. shown are the outputs of its dispatchers so far.
func (l *lab) finish(shown ...string) {
	l.t.Helper()
	e := l.run(l.tinyResumeArgs()...)
	if e.code == 2 && !canResume(e) {
		if l.numFiles("ran/*") > 0 {
			l.t.Fatalf("jobs have run in what is not a run yet:\n%s", e.stderr)
		}
		must(l.t, os.RemoveAll(l.path("run")))
		e = l.run(l.tinyArgs()...)
	}
	if e.code != 0 {
		l.t.Fatalf("exit %d\n%s", e.code, e.stderr)
	}
	l.checkRun(l.path("run"), 4, append(shown, e.stdout)...)
}

// eachCall calls one for n = first, first+step, … in subtests until one reports that there is no
// n-th call.
func eachCall(t *testing.T, step int, one func(l *lab, n int) (more bool)) {
	t.Helper()
	const workers = 4
	first := 1 + rand.IntN(step) // a different sample each time; the subtest's name contains it
	for w := range workers {
		t.Run(fmt.Sprintf("from%d", first+w*step), func(t *testing.T) {
			t.Parallel()
			for n := first + w*step; ; n += workers * step {
				more := true
				if !t.Run(fmt.Sprint(n), func(t *testing.T) { more = one(newTinyLab(t), n) }) || !more {
					return
				}
			}
		})
	}
}

// TestDeathAtEachCall kills the dispatcher at each system call that changes a file of the run
// directory, from its creation to the end.
func TestDeathAtEachCall(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	needTracing(t)
	for what, files := range map[string][]string{
		"kill": {"run"},
		"torn": {"run/journal", "run/jobs.jsonl", "run/.owner"}, // after half of each write
	} {
		t.Run(what, func(t *testing.T) {
			eachCall(t, polltest.Scale(4, 4, 1), func(l *lab, n int) bool {
				e := l.startTraced(n, 1, what, l.tracerPaths(files), l.tinyArgs()...).wait()
				if e.code == 0 {
					l.checkRun(l.path("run"), 4, e.stdout)
					return false
				}
				if e.code != 128+int(syscall.SIGKILL) {
					l.t.Fatalf("exit %d\n%s", e.code, e.stderr)
				}
				l.t.Log(l.tracedCall(n))
				l.finish(e.stdout)
				return true
			})
		})
	}
}

// TestDeathAtEachCallOfResume kills the dispatcher of a resume in the same way. The first
// dispatcher was killed in the middle, with running jobs and with jobs whose ends are not recorded.
func TestDeathAtEachCallOfResume(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	needTracing(t)
	eachCall(t, polltest.Scale(16, 6, 1), func(l *lab, n int) bool {
		l.writeTaggedJobs(4, "[ $DCS_JOB_ID = 1 ] || "+l.gateWait())
		p := l.start(l.tinyArgs()...)
		l.until("a job has ended and two run", func() bool { return l.numFiles("ran/*") >= 3 })
		first := p.kill()
		l.writeFile("gate", "")
		e := l.startTraced(n, 1, "kill", l.path("run"), l.tinyResumeArgs()...).wait()
		if e.code == 0 {
			l.checkRun(l.path("run"), 4, first.stdout, e.stdout)
			return false
		}
		if e.code != 128+int(syscall.SIGKILL) {
			l.t.Fatalf("exit %d\n%s", e.code, e.stderr)
		}
		l.t.Log(l.tracedCall(n))
		l.finish(first.stdout, e.stdout)
		return true
	})
}

// TestDeathAtEachCallOfCancel kills, in the same way, a `cancel` that has taken over a run whose
// dispatcher is dead. After another cancel, every job is canceled and no process remains.
func TestDeathAtEachCallOfCancel(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	needTracing(t)
	eachCall(t, polltest.Scale(8, 8, 1), func(l *lab, n int) bool {
		l.writeTaggedJobs(4, "exec sleep 1000")
		p := l.start(l.tinyArgs()...)
		l.until("two run", func() bool { return l.numRunning(4) == 2 })
		p.kill()
		l.mustRun("submit", l.path("run"), l.writeFile("more.txt", "touch "+l.path("ran")+"/5\n")) // canceled, too
		cancel := []string{"cancel", "--yes", l.path("run")}
		e := l.startTraced(n, 1, "kill", l.path("run"), cancel...).wait()
		died := e.code == 128+int(syscall.SIGKILL)
		if died {
			l.t.Log(l.tracedCall(n))
			e = l.run(cancel...)
		}
		if e.code != 0 {
			l.t.Fatalf("exit %d\n%s", e.code, e.stderr)
		}
		l.checkCanceled(5, 2)
		return died
	})
}

// TestErrorAtEachJournalCall makes one call or five consecutive calls on the journal or the owner
// file, or one call on any file of the run directory, fail with a disk error. The run continues by
// itself, or stops with a message that names the reason, and resume continues it. Nothing runs
// twice.
func TestErrorAtEachJournalCall(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	needTracing(t)
	journal := []string{"run/journal", "run/owner", "run/.owner"}
	for _, c := range []struct {
		name  string
		errno syscall.Errno
		calls int
		files []string
	}{
		{"full disk", syscall.ENOSPC, 1, journal}, {"quota", syscall.EDQUOT, 5, journal},
		{"EIO", syscall.EIO, 1, journal}, {"stale", syscall.ESTALE, 5, journal},
		{"anywhere", syscall.ENOSPC, 1, []string{"run"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachCall(t, polltest.Scale(8, 8, 1), func(l *lab, n int) bool {
				e := l.startTraced(n, c.calls, fmt.Sprint(int(c.errno)), l.tracerPaths(c.files), l.tinyArgs()...).wait()
				made := strings.Count(l.readFile(l.path("calls")), "\n")
				l.t.Log(l.tracedCall(n))
				switch {
				case e.code == 0 && !strings.Contains(e.stderr, "could not be written to the end"):
					l.checkRun(l.path("run"), 4, e.stdout)
				case !strings.Contains(e.stderr, c.errno.Error()):
					l.t.Errorf("exit %d without a word about %q:\n%s", e.code, c.errno.Error(), e.stderr)
				default:
					l.t.Logf("exit %d\n%s", e.code, e.stderr)
					l.finish(e.stdout)
				}
				return made >= n
			})
		})
	}
}
