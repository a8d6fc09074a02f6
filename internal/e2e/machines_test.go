//go:build linux

package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// The role "machine" runs the program as process 1 of another machine: with a host name, a boot id,
// and process numbers of its own. Network and files are shared, as over NFS.
func init() { roles["machine"] = runMachine }

func runMachine(args []string) {
	name, boot, argv := args[0], args[1], args[2:]
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"mounts", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		{"name", func() error { return unix.Sethostname([]byte(name)) }},
		{"proc", func() error { return unix.Mount("proc", "/proc", "proc", 0, "") }},
		{"boot id", func() error { return unix.Mount(boot, "/proc/sys/kernel/random/boot_id", "", unix.MS_BIND, "") }},
		{"program", func() error { return syscall.Exec(argv[0], argv, os.Environ()) }},
	} {
		if err := step.do(); err != nil {
			fmt.Fprintf(os.Stderr, "machine: %s: %v\n", step.what, err)
			os.Exit(99)
		}
	}
}

// startOn starts the program on another machine.
func (l *lab) startOn(name string, args ...string) *process {
	l.t.Helper()
	return l.startCommand(l.machineCommand(name, args...))
}

// machineCommand returns the command that runs the program on another machine.
func (l *lab) machineCommand(name string, args ...string) *exec.Cmd {
	l.t.Helper()
	boot := l.path("boot-" + name)
	if _, err := os.Stat(boot); err != nil {
		var id [16]byte
		rand.Read(id[:])
		x := hex.EncodeToString(id[:])
		l.writeFile("boot-"+name, x[:8]+"-"+x[8:12]+"-"+x[12:16]+"-"+x[16:20]+"-"+x[20:]+"\n")
	}
	cmd := l.roleCommand("machine", append([]string{name, boot, program}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUTS | unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	return cmd
}

// needNamespaces skips a test where namespaces are unavailable.
func needNamespaces(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		hosttest.LeaveOut(t, "takeover between machines needs root (namespaces for names, processes and mounts)")
	}
	l := &lab{t: t, dir: t.TempDir()}
	if e := l.startOn("probe", "--version").wait(); e.code != 0 {
		hosttest.LeaveOut(t, "there can be no other machines here (unshare): exit %d, %s", e.code, e.stderr)
	}
}

// writeBusyJobs writes jobs. The first gated ones run until the gate opens; the others are so short
// that launches are always in transit.
func (l *lab) writeBusyJobs(jobs, gated int) string {
	return l.writeTaggedJobs(jobs, fmt.Sprintf("[ $DCS_JOB_ID -le %d ] && %s; sleep 0.0$((DCS_JOB_ID %% 7))", gated,
		l.gateWait()))
}

func (l *lab) resumeArgs(extra ...string) []string {
	return append([]string{"resume", "--no-tui", "--json", "--ssh-config", l.servers[0].ConfigFile,
		l.path("run")}, extra...)
}

// awaitHost waits until this dispatcher has heard from a host.
func (p *process) awaitHost() {
	p.lab.t.Helper()
	p.lab.until("a host is up", func() bool { return strings.Contains(p.stderr.String(), "is up") })
}

// checkFenced checks that a dispatcher that continues after a takeover stops by itself and reports
// it.
func (p *process) checkFenced(epoch int) outcome {
	p.lab.t.Helper()
	began, shown := time.Now(), strings.Count(p.stdout.String(), "\n")
	e := p.wait()
	p.lab.t.Logf("fenced off by epoch %d within %s of waking up, after %d results more",
		epoch, time.Since(began).Round(time.Millisecond), strings.Count(e.stdout, "\n")-shown)
	if want := fmt.Sprintf("another dispatcher has taken this run over (epoch %d)", epoch); e.code != 4 ||
		!strings.Contains(e.stderr, want) {
		p.lab.t.Errorf("exit %d, want 4 and a line with %q:\n%s", e.code, want, e.stderr)
	}
	return e
}

// TestAnotherMachineTakesOver checks that resume on another machine is refused while the owner
// lives, and takes the run over when the owner has been silent for 30 s. The first dispatcher was
// only stopped. When it continues, it ends no job and changes nothing, although a user told it to
// cancel everything.
func TestAnotherMachineTakesOver(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	needNamespaces(t)
	l := newLab(t, 2)
	const jobs = 1500
	a := l.startOn("oak", l.runArgs(3, "--json", "--on-interrupt", "cancel", l.writeBusyJobs(jobs, 3))...)
	l.until("some have ended", func() bool { return l.numEnded("run/attempts/*/*.status") >= 5 })
	if e := l.startOn("elm", l.resumeArgs()...).wait(); e.code != 2 || !strings.Contains(e.stderr, " on oak ") {
		t.Errorf("while the owner lives: exit %d\n%s", e.code, e.stderr)
	}
	a.signal(syscall.SIGSTOP)
	b := l.startOn("elm", l.resumeArgs()...)
	b.awaitHost()
	if text := b.stderr.String(); !strings.Contains(text, "waiting up to 30 s") || !strings.Contains(text, " on oak ") {
		t.Errorf("what was waited for is not said:\n%s", text)
	}
	a.signal(syscall.SIGINT)
	a.signal(syscall.SIGCONT)
	first := a.checkFenced(2)
	l.writeFile("gate", "")
	second := b.mustSucceed()
	l.checkRun(l.path("run"), jobs, first.stdout, second.stdout)
}

// TestMachinesTakeTheRunFromEachOther forces takeovers back and forth, each time at another moment.
func TestMachinesTakeTheRunFromEachOther(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	needNamespaces(t)
	r := newRand(t)
	l := newLab(t, 2)
	jobs, rounds := polltest.Scale(400, 400, 4000), polltest.Scale(6, 6, 40)
	const gated = 3
	ended := func() int { return l.numEnded("run/attempts/*/*.status") }
	names := [2]string{"oak", "elm"}
	var shown []string
	p := l.startOn(names[0], l.runArgs(3, "--json", "--on-interrupt", "cancel", l.writeBusyJobs(jobs, gated))...)
	l.until("some run", func() bool { return l.numFiles("ran/*") >= 3 })
	for n := range rounds {
		moment := min(ended()+r.IntN(jobs/rounds/2), jobs-gated)
		l.until("a random number of jobs has ended", func() bool { return ended() >= moment })
		p.signal(syscall.SIGSTOP)
		next := l.startOn(names[(n+1)%2], l.resumeArgs("--force")...)
		next.awaitHost()
		if n%2 == 1 {
			p.signal(syscall.SIGINT)
		}
		p.signal(syscall.SIGCONT)
		shown = append(shown, p.checkFenced(n+2).stdout)
		p = next
	}
	l.writeFile("gate", "")
	e := p.mustSucceed()
	l.checkRun(l.path("run"), jobs, append(shown, e.stdout)...)
}

// TestStoppedOnTheSameMachine checks that a stopped dispatcher on the same machine counts as alive.
// resume is refused and explains how to continue, and so is another run in the directory. With
// --force the stopped dispatcher is fenced off.
func TestStoppedOnTheSameMachine(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	p := l.start(l.runArgs(2, "--json", l.writeBusyJobs(40, 1))...)
	l.until("some have ended", func() bool { return l.numEnded("run/attempts/*/*.status") >= 2 })
	p.signal(syscall.SIGSTOP)
	e := l.run(l.resumeArgs()...)
	for _, want := range []string{fmt.Sprint("pid ", p.cmd.Process.Pid), "stopped",
		fmt.Sprint("kill -CONT ", p.cmd.Process.Pid), "--force"} {
		if e.code != 2 || !strings.Contains(e.stderr, want) {
			t.Errorf("exit %d, %q is not said:\n%s", e.code, want, e.stderr)
		}
	}
	e = l.run(l.runArgs(2, l.path("jobs.txt"))...)
	if pid := fmt.Sprint("pid ", p.cmd.Process.Pid); e.code != 2 || !strings.Contains(e.stderr, "in use by") ||
		!strings.Contains(e.stderr, pid) {
		t.Errorf("another run in its directory: exit %d\n%s", e.code, e.stderr)
	}
	q := l.start(l.resumeArgs("--force")...)
	q.awaitHost()
	p.signal(syscall.SIGCONT)
	first := p.checkFenced(2)
	l.writeFile("gate", "")
	e = q.mustSucceed()
	l.checkRun(l.path("run"), 40, first.stdout, e.stdout)
}

// TestFencedDispatcherShowsNothingMore checks that a fenced-off dispatcher prints no results after
// the takeover, as their numbers would be used twice (promise 1). The next dispatcher reaches no
// host, so only the run directory informs the first one, which has results waiting in its sockets.
func TestFencedDispatcherShowsNothingMore(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 1)
	const jobs = 400
	// The last jobs wait, so that no dispatcher finishes before it is stopped.
	list := l.writeTaggedJobs(jobs, "[ $DCS_JOB_ID -gt 300 ] && "+l.gateWait()+"; sleep 0.0$((DCS_JOB_ID % 7))")
	p := l.start(l.runArgs(4, "--json", list)...)
	var shown []string
	for n := range 3 {
		want := 50 * (n + 1)
		l.until("some have ended", func() bool { return l.numEnded("run/attempts/*/*.status") >= want })
		p.signal(syscall.SIGSTOP)
		nowhere := l.writeFile("nowhere.toml", "[[host]]\nname = \"nowhere\"\naddress = \"127.0.0.1\"\nport = 1\n")
		q := l.start(l.resumeArgs("--force", "--hosts", nowhere)...)
		l.until("the run is taken", func() bool { return strings.Contains(q.stderr.String(), "to run") })
		p.signal(syscall.SIGCONT)
		shown = append(shown, p.checkFenced(2*n+2).stdout)
		shown = append(shown, q.kill().stdout)
		p = l.start(l.resumeArgs()...)
		p.awaitHost()
	}
	l.writeFile("gate", "")
	e := p.mustSucceed()
	l.checkRun(l.path("run"), jobs, append(shown, e.stdout)...)
}
