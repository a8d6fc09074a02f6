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
func init() { roles["machine"] = machine }

func machine(args []string) {
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

// on starts the program on another machine.
func (l *lab) on(name string, args ...string) *process {
	l.t.Helper()
	return l.begin(l.machine(name, args...))
}

// machine returns the command that runs the program on another machine.
func (l *lab) machine(name string, args ...string) *exec.Cmd {
	l.t.Helper()
	boot := l.path("boot-" + name)
	if _, err := os.Stat(boot); err != nil {
		var id [16]byte
		rand.Read(id[:])
		x := hex.EncodeToString(id[:])
		l.file("boot-"+name, x[:8]+"-"+x[8:12]+"-"+x[12:16]+"-"+x[16:20]+"-"+x[20:]+"\n")
	}
	cmd := l.role("machine", append([]string{name, boot, program}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUTS | unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	return cmd
}

// mayUnshare skips a test where namespaces are unavailable.
func mayUnshare(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		hosttest.LeaveOut(t, "takeover between machines needs root (namespaces for names, processes and mounts)")
	}
	l := &lab{t: t, dir: t.TempDir()}
	if e := l.on("probe", "--version").wait(); e.code != 0 {
		hosttest.LeaveOut(t, "there can be no other machines here (unshare): exit %d, %s", e.code, e.err)
	}
}

// busy writes jobs. The first gated ones run until the gate opens; the others are so short that
// launches are always in transit.
func (l *lab) busy(jobs, gated int) string {
	return l.tagged(jobs, fmt.Sprintf("[ $DCS_JOB_ID -le %d ] && %s; sleep 0.0$((DCS_JOB_ID %% 7))", gated, l.untilGate()))
}

func (l *lab) again(extra ...string) []string {
	return append([]string{"resume", "--no-tui", "--json", "--ssh-config", l.sshd[0].ConfigFile, l.path("run")}, extra...)
}

// working waits until this dispatcher has heard from a host.
func (p *process) working() {
	p.l.t.Helper()
	p.l.until("a host is up", func() bool { return strings.Contains(p.err.String(), "is up") })
}

// fencedOff checks that a dispatcher that continues after a takeover stops by itself and reports
// it.
func (p *process) fencedOff(epoch int) ended {
	p.l.t.Helper()
	began, shown := time.Now(), strings.Count(p.out.String(), "\n")
	e := p.wait()
	p.l.t.Logf("fenced off by epoch %d within %s of waking up, after %d results more",
		epoch, time.Since(began).Round(time.Millisecond), strings.Count(e.out, "\n")-shown)
	if want := fmt.Sprintf("another dispatcher has taken this run over (epoch %d)", epoch); e.code != 4 || !strings.Contains(e.err, want) {
		p.l.t.Errorf("exit %d, want 4 and a line with %q:\n%s", e.code, want, e.err)
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
	mayUnshare(t)
	l := newLab(t, 2)
	const jobs = 1500
	a := l.on("oak", l.args(3, "--json", "--on-interrupt", "cancel", l.busy(jobs, 3))...)
	l.until("some have ended", func() bool { return l.ended("run/attempts/*/*.status") >= 5 })
	if e := l.on("elm", l.again()...).wait(); e.code != 2 || !strings.Contains(e.err, " on oak ") {
		t.Errorf("while the owner lives: exit %d\n%s", e.code, e.err)
	}
	a.signal(syscall.SIGSTOP)
	b := l.on("elm", l.again()...)
	b.working()
	if text := b.err.String(); !strings.Contains(text, "waiting up to 30 s") || !strings.Contains(text, " on oak ") {
		t.Errorf("what was waited for is not said:\n%s", text)
	}
	a.signal(syscall.SIGINT)
	a.signal(syscall.SIGCONT)
	first := a.fencedOff(2)
	l.file("gate", "")
	second := b.succeeds()
	l.accounted(l.path("run"), jobs, first.out, second.out)
}

// TestMachinesTakeTheRunFromEachOther forces takeovers back and forth, each time at another moment.
func TestMachinesTakeTheRunFromEachOther(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	mayUnshare(t)
	r := seed(t)
	l := newLab(t, 2)
	jobs, rounds := pick(400, 4000), pick(6, 40)
	names := [2]string{"oak", "elm"}
	var shown []string
	p := l.on(names[0], l.args(3, "--json", "--on-interrupt", "cancel", l.busy(jobs, 3))...)
	l.until("some run", func() bool { return l.count("ran/*") >= 3 })
	for n := range rounds {
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond) // the moment is what is tested
		p.signal(syscall.SIGSTOP)
		next := l.on(names[(n+1)%2], l.again("--force")...)
		next.working()
		if n%2 == 1 {
			p.signal(syscall.SIGINT)
		}
		p.signal(syscall.SIGCONT)
		shown = append(shown, p.fencedOff(n+2).out)
		p = next
	}
	l.file("gate", "")
	e := p.succeeds()
	l.accounted(l.path("run"), jobs, append(shown, e.out)...)
}

// TestStoppedOnTheSameMachine checks that a stopped dispatcher on the same machine counts as alive.
// resume is refused and explains how to continue, and so is another run in the directory. With --force the stopped dispatcher is fenced
// off.
func TestStoppedOnTheSameMachine(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	p := l.start(l.args(2, "--json", l.busy(40, 1))...)
	l.until("some have ended", func() bool { return l.ended("run/attempts/*/*.status") >= 2 })
	p.signal(syscall.SIGSTOP)
	e := l.do(l.again()...)
	for _, want := range []string{fmt.Sprint("pid ", p.cmd.Process.Pid), "stopped", fmt.Sprint("kill -CONT ", p.cmd.Process.Pid), "--force"} {
		if e.code != 2 || !strings.Contains(e.err, want) {
			t.Errorf("exit %d, %q is not said:\n%s", e.code, want, e.err)
		}
	}
	e = l.do(l.args(2, l.path("jobs.txt"))...)
	if pid := fmt.Sprint("pid ", p.cmd.Process.Pid); e.code != 2 || !strings.Contains(e.err, "in use by") || !strings.Contains(e.err, pid) {
		t.Errorf("another run in its directory: exit %d\n%s", e.code, e.err)
	}
	q := l.start(l.again("--force")...)
	q.working()
	p.signal(syscall.SIGCONT)
	first := p.fencedOff(2)
	l.file("gate", "")
	e = q.succeeds()
	l.accounted(l.path("run"), 40, first.out, e.out)
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
	list := l.tagged(jobs, "[ $DCS_JOB_ID -gt 300 ] && "+l.untilGate()+"; sleep 0.0$((DCS_JOB_ID % 7))")
	p := l.start(l.args(4, "--json", list)...)
	var shown []string
	for n := range 3 {
		want := 50 * (n + 1)
		l.until("some have ended", func() bool { return l.ended("run/attempts/*/*.status") >= want })
		p.signal(syscall.SIGSTOP)
		nowhere := l.file("nowhere.toml", "[[host]]\nname = \"nowhere\"\naddress = \"127.0.0.1\"\nport = 1\n")
		q := l.start(l.again("--force", "--hosts", nowhere)...)
		l.until("the run is taken", func() bool { return strings.Contains(q.err.String(), "to run") })
		p.signal(syscall.SIGCONT)
		shown = append(shown, p.fencedOff(2*n+2).out)
		shown = append(shown, q.kill().out)
		p = l.start(l.again()...)
		p.working()
	}
	l.file("gate", "")
	e := p.succeeds()
	l.accounted(l.path("run"), jobs, append(shown, e.out)...)
}
