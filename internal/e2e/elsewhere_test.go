//go:build linux

package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/polltest"
)

// The role "mounted" is a machine that also has a directory under another name. Arguments: source,
// name, then the arguments of machine.
func init() {
	roles["mounted"] = func(args []string) {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err == nil {
			err = unix.Mount(args[0], args[1], "", unix.MS_BIND, "")
			if err != nil {
				fmt.Fprintln(os.Stderr, "mounted: ", err)
				os.Exit(99)
			}
		}
		runMachine(args[2:])
	}
}

// TestResumeUnderAnotherName takes a run over on a machine that has the run directory mounted under
// another name, which the hosts do not know. It checks that the hosts keep their attempts and
// report why they cannot be used. Resumed under its first name, the run adopts what runs and counts
// what has ended, and nothing runs twice (promise 2).
func TestResumeUnderAnotherName(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	needNamespaces(t)
	l := newLab(t, 2)
	const jobs = 60
	p := l.start(l.runArgs(3, "--json", l.writeBusyJobs(jobs, 4))...)
	l.until("some have ended", func() bool { return l.numEnded("run/attempts/*/*.status") >= 12 })
	p.signal(syscall.SIGSTOP) // more jobs end without its knowledge
	l.until("the long ones run alone", func() bool {
		return l.numFiles("run/attempts/*/*.status") == l.numEnded("run/attempts/*/*.status")+4
	})
	first := p.kill()
	alt := t.TempDir()
	args := l.resumeArgs("--force")
	for i := range args {
		if args[i] == l.path("run") {
			args[i] = alt + "/run"
		}
	}
	q := l.startMounted(l.dir, alt, args...)
	l.until("both hosts have refused", func() bool {
		return strings.Count(q.stderr.String(), "cannot be seen there now") >= 2
	})
	q.signal(syscall.SIGTERM)
	second := q.wait()
	if second.code != 4 {
		t.Errorf("exit %d\n%s", second.code, second.stderr)
	}
	l.writeFile("gate", "")
	e := l.mustRun(l.resumeArgs()...)
	l.checkRun(l.path("run"), jobs, first.stdout, second.stdout, e.stdout)
}

// startMounted starts the program on another machine that also has a directory under another name.
func (l *lab) startMounted(from, to string, args ...string) *process {
	l.t.Helper()
	cmd := l.machineCommand("elm", args...)
	cmd.Args = append([]string{cmd.Args[0], from, to}, cmd.Args[1:]...)
	cmd.Env = append(cmd.Env, roleVar+"=mounted")
	return l.startCommand(cmd)
}
