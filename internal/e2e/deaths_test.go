//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/hosts/helper"
	"dcs-tui/internal/polltest"
)

// newRand returns the random source of a test. DCS_SEED repeats an earlier one.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if text := os.Getenv("DCS_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("DCS_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// killAfter runs the program for d and then sends SIGKILL. died is false if the program had already
// ended.
func (p *process) killAfter(d time.Duration) (e outcome, died bool) {
	p.lab.t.Helper()
	timer := time.AfterFunc(d, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	e = p.wait()
	return e, e.code == -1
}

// randomDelay returns a random delay before the kill: often short, while the run is created and its
// jobs are read, and sometimes long.
func randomDelay(r *rand.Rand) time.Duration {
	ms := []int{10, 60, 250, 1200}
	k := r.IntN(len(ms) - 1)
	return time.Duration(ms[k]+r.IntN(ms[k+1]-ms[k])) * time.Millisecond
}

// canResume reports whether a killed `run` left a run that resume can continue. If not, resume must
// describe the problem and what to remove.
func canResume(e outcome) bool {
	return !strings.Contains(e.stderr, "not a whole run") && !strings.Contains(e.stderr, "there is no run") &&
		!strings.Contains(e.stderr, "was cut off while") && !strings.Contains(e.stderr, "is not a run yet")
}

// killRepeatedly runs the program again and again, until a dispatcher ends by itself, and kills the
// n-th one after after(n). It returns the output of each.
func (l *lab) killRepeatedly(first, again []string, after func(n int) time.Duration) (shown []string) {
	l.t.Helper()
	args := first
	for n := 0; ; n++ {
		e, died := l.start(args...).killAfter(after(n))
		shown = append(shown, e.stdout)
		switch {
		case died:
			args = again // if it is not a run, resume reports that
		case e.code == 0:
			return shown
		case e.code != 2 || canResume(e) || l.numFiles("ran/*") > 0:
			l.t.Fatalf("%v: exit %d after %d jobs\n%s", args, e.code, l.numFiles("ran/*"), e.stderr)
		default:
			must(l.t, os.RemoveAll(l.path("run")))
			args = first
		}
	}
}

// TestDeathsAtAnyInstant kills the dispatcher at random times, from the creation of the run
// directory to the end on the hosts, and resumes the run each time.
func TestDeathsAtAnyInstant(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	l := newLab(t, 3)
	jobs, deaths, lateDeaths := polltest.Scale(100, 200, 2000), polltest.Scale(8, 25, 300), polltest.Scale(4, 8, 40)
	var b strings.Builder
	twice := map[int]bool{}
	for i := range jobs {
		rest := fmt.Sprintf("sleep 0.0%d", r.IntN(10))
		switch {
		case i%40 == 5: // runs all the time
			rest = l.gateWait()
		case i%10 == 7:
			rest = fmt.Sprintf("sleep %.1f", r.Float64())
		case i%10 == 3: // fails once
			rest += "; [ $(wc -l < " + l.path("ran") + "/$DCS_JOB_ID) = 2 ]"
			twice[i+1] = true
		}
		fmt.Fprintf(&b, "echo $DCS_ATTEMPT >> %s/$DCS_JOB_ID; %s\n", l.path("ran"), rest)
	}
	l.mkdir("ran")
	file := l.writeFile("jobs.txt", b.String())
	shown := l.killRepeatedly(l.runArgs(4, "--json", file), l.resumeArgs(), func(n int) time.Duration {
		switch {
		case n < deaths:
			return randomDelay(r)
		case n == deaths:
			l.writeFile("gate", "")
		case n >= deaths+lateDeaths:
			return time.Minute
		}
		return time.Duration(30+r.IntN(600)) * time.Millisecond
	})
	t.Logf("%d dispatchers", len(shown))
	l.checkRunTwice(twice, l.path("run"), jobs, shown...)
}

// TestDeathsWhileDeploying kills the dispatcher repeatedly while it sends the program to the hosts.
// Each dispatcher has another version, so that all versions run on the hosts.
func TestDeathsWhileDeploying(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	r := newRand(t)
	l := newLab(t, 2)
	const jobs = 60
	file := l.writeBusyJobs(jobs, 2)
	args := l.runArgs(2, "--json", file)
	var shown []string
	for n := range polltest.Scale(6, 6, 30) {
		p := l.startCommand(exec.Command(l.newVersion(n), args...))
		after := time.Duration(100+r.IntN(500)) * time.Millisecond
		if n == 0 { // the run exists
			l.until("the run is taken", func() bool { return l.numFiles("run/journal/*") > 0 && l.dispatcherPID() > 0 })
		}
		e, _ := p.killAfter(after)
		shown = append(shown, e.stdout)
		args = l.resumeArgs()
	}
	l.writeFile("gate", "")
	e := l.mustRun(args...)
	t.Log(e.stderr)
	l.checkRun(l.path("run"), jobs, append(shown, e.stdout)...)
}

// newVersion creates a program that differs from the others in its content and, because that is
// part of its name on hosts, in its size.
func (l *lab) newVersion(n int) string {
	l.t.Helper()
	b, err := os.ReadFile(program)
	must(l.t, err)
	b = fmt.Appendf(b, "%s%*s", l.dir, n+1, "")
	path := l.path(fmt.Sprintf("dcs-tui-%d", n))
	// A child of another test that inherits the open file would make it busy.
	syscall.ForkLock.RLock()
	err = os.WriteFile(path, b, 0o700)
	syscall.ForkLock.RUnlock()
	must(l.t, err)
	name, err := helper.NameOnHosts(path)
	must(l.t, err)
	l.t.Cleanup(func() { // hosts keep the file for a month
		for _, place := range []string{"/var/tmp", "/tmp"} {
			os.Remove(fmt.Sprintf("%s/dcs-%d/bin/%s", place, os.Getuid(), name))
		}
	})
	return path
}

// TestDeathsWhileReading checks promise 1 for jobs from standard input: those stored when the
// dispatcher died run once, and the run reports that its input was cut off.
func TestDeathsWhileReading(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	r := newRand(t)
	for n := range polltest.Scale(3, 3, 40) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := newLab(t, 1)
			l.mkdir("ran")
			input, feed, err := os.Pipe()
			must(t, err)
			defer feed.Close()
			cmd := exec.Command(program, l.runArgs(3, "--json", "-")...)
			cmd.Stdin = input
			p := l.startCommand(cmd)
			input.Close()
			jobsFile := func() string { b, _ := os.ReadFile(l.path("run/jobs.jsonl")); return string(b) }
			go func() { // sends few jobs ahead of those stored, so that they are not too many
				for sent := 1; ; sent++ {
					if _, err := fmt.Fprintf(feed, "echo $DCS_ATTEMPT >> %s/$DCS_JOB_ID\n", l.path("ran")); err != nil {
						return
					}
					if sent%10 == 0 {
						polltest.Within(polltest.Patience, func() bool {
							return strings.Count(jobsFile(), "DCS_ATTEMPT") >= sent || t.Context().Err() != nil
						})
					}
				}
			}()
			l.until("jobs have come", func() bool { return len(jobsFile()) > 500 })
			first, _ := p.killAfter(time.Duration(r.IntN(500)) * time.Millisecond)
			e := l.run(l.resumeArgs()...)
			text := jobsFile()
			whole := text[:strings.LastIndexByte(text, '\n')+1] // the kill may have cut off the last line
			stored := strings.Count(whole, "DCS_ATTEMPT")
			if e.code != 0 || !strings.Contains(e.stderr, "input was not read to its end") {
				t.Fatalf("exit %d\n%s", e.code, e.stderr)
			}
			t.Logf("%d jobs were stored, and %q", stored, text[len(whole):])
			l.checkRun(l.path("run"), stored, first.stdout, e.stdout)
		})
	}
}

// mkdir creates a directory in the lab's directory.
func (l *lab) mkdir(name string) {
	l.t.Helper()
	must(l.t, os.MkdirAll(l.path(name), 0o700))
}
