//go:build linux

package labfs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/labfs"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// lab is a set of machines that share a directory over a network file system. Machine 0 is the
// user's. Each machine sees the directory through a mount of its own, at the same path. Written
// data reaches the server at fsync or close.
type lab struct {
	t      *testing.T
	server *labfs.Server
	mounts []*labfs.Mount // by machine
	place  string         // the path of the shared directory on each machine
	// A directory that no fault affects; jobs record there what they really did.
	local string
}

// newLab returns a lab whose machines cache names and attributes for the time stale.
func newLab(t *testing.T, machines int, stale time.Duration) *lab {
	t.Helper()
	l := &lab{t: t, server: labfs.New(t), place: filepath.Join(t.TempDir(), "shared"), local: t.TempDir()}
	for range machines {
		l.mounts = append(l.mounts, l.server.Mount(labfs.Options{Stale: stale, WriteBack: true}))
	}
	for _, dir := range []string{l.place, l.path("ran"), l.path("home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(l.wantNothingLeft)
	t.Cleanup(func() { // heals what the test broke before the end is awaited
		for _, m := range l.mounts {
			m.Resume()
		}
	})
	return l
}

func (l *lab) path(name string) string { return filepath.Join(l.local, name) }

// run returns the path of the run directory on the machines.
func (l *lab) run() string { return filepath.Join(l.place, "run") }

// file writes a local file and returns its path.
func (l *lab) file(name, text string) string {
	l.t.Helper()
	path := l.path(name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// enter returns the command line that runs a command on a machine.
func (l *lab) enter(machine int, dir string) []string {
	exe, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	return []string{exe, wordEnter, fmt.Sprintf("/proc/%d/ns/mnt", os.Getpid()), l.mounts[machine].Dir, l.place, dir}
}

// inventory writes a hosts.toml with machines 1 to n.
func (l *lab) inventory(n, slots int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "[[host]]\nname = \"ws%d\"\nlink = %q\nslots = %d\nyield = false\nnice = 0\nwork_dir = %q\n",
			i, strings.Join(l.enter(i, "/"), " "), slots, l.path("work"+strconv.Itoa(i)))
	}
	return l.file("hosts.toml", b.String())
}

// jobs writes n jobs. Each job first appends its attempt id to a file of its own, and then executes
// rest, where %d is the number of the job.
func (l *lab) jobs(n int, rest string) string {
	var b strings.Builder
	for id := 1; id <= n; id++ {
		fmt.Fprintf(&b, "echo $DCS_ATTEMPT >> %s/$DCS_JOB_ID; %s\n", l.path("ran"),
			strings.ReplaceAll(rest, "%d", strconv.Itoa(id)))
	}
	return l.file("jobs.txt", b.String())
}

// gate returns a command that waits until a local file of that name exists.
func (l *lab) gate(name string) string {
	return fmt.Sprintf("while [ ! -e %s ]; do sleep 0.05; done", l.path(name))
}

func (l *lab) open(gate string) { l.file(gate, "") }

// process is a running instance of the program.
type process struct {
	l    *lab
	cmd  *exec.Cmd
	late atomic.Bool
	out  bytes.Buffer
	err  progtest.Buffer
}

// dcs starts the program on a machine, in the shared directory.
func (l *lab) dcs(machine int, args ...string) *process {
	l.t.Helper()
	return l.startOn(machine, append([]string{program}, args...)...)
}

// start starts a run on the user's machine. more are additional flags.
func (l *lab) start(hosts, file string, more ...string) *process {
	l.t.Helper()
	args := append([]string{"run", "--no-tui", "--json", "--hosts", hosts, "--run-dir", l.run()}, more...)
	return l.dcs(0, append(args, file)...)
}

// startBusy starts a run on machines 1 to hosts, with two slots each, and waits until every slot is
// busy. jobs and more are as for start.
func (l *lab) startBusy(hosts int, jobs string, more ...string) *process {
	l.t.Helper()
	p := l.start(l.inventory(hosts, 2), jobs, more...)
	p.until("every slot is busy", func() bool { return l.numStarted() >= 2*hosts })
	return p
}

// resume takes the run over on a machine, and waits until it is finished.
func (l *lab) resume(machine int) ended {
	l.t.Helper()
	return l.dcs(machine, "resume", "--no-tui", "--json", "--hosts", l.path("hosts.toml"), l.run()).wait()
}

// startOn starts a command on a machine, in the shared directory.
func (l *lab) startOn(machine int, argv ...string) *process {
	l.t.Helper()
	argv = append(l.enter(machine, l.place), argv...)
	p := &process{l: l, cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Env = append(os.Environ(), "HOME="+l.path("home"), "XDG_CONFIG_HOME=", "LC_ALL=C.UTF-8")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	})
	return p
}

// ended is a program that has ended.
type ended struct {
	code     int
	out, err string
}

// wait waits for the end of the program. It fails the test after polltest.Patience.
func (p *process) wait() ended {
	p.l.t.Helper()
	late := time.AfterFunc(polltest.Patience, func() {
		p.late.Store(true)
		p.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines are then listed in its output
		time.AfterFunc(5*time.Second, func() { p.cmd.Process.Kill() })
	})
	err := p.cmd.Wait()
	late.Stop()
	if p.late.Load() {
		p.l.t.Fatalf("it has not ended within %v:\n%s", polltest.Patience, p.err.String())
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		p.l.t.Fatal(err)
	}
	return ended{p.cmd.ProcessState.ExitCode(), p.out.String(), p.err.String()}
}

// exits waits for the end of the program and checks its exit code.
func (p *process) exits(code int) ended {
	p.l.t.Helper()
	e := p.wait()
	if e.code != code {
		p.l.t.Errorf("exit %d, want %d\n%s", e.code, code, e.err)
	}
	return e
}

func (p *process) signal(s os.Signal) {
	p.l.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.l.t.Fatal(err)
	}
}

// says waits until the program has printed a text.
func (p *process) says(text string) {
	p.l.t.Helper()
	p.until("the program says "+strconv.Quote(text), func() bool { return strings.Contains(p.err.String(), text) })
}

// until waits for a condition while the program runs.
func (p *process) until(what string, ok func() bool) {
	p.l.t.Helper()
	polltest.Until(p.l.t, what, ok, p.err.String)
}

// numStarted returns the number of jobs that have started.
func (l *lab) numStarted() int {
	names, err := os.ReadDir(l.path("ran"))
	if err != nil {
		l.t.Fatal(err)
	}
	return len(names)
}

// wantEachRanOnce checks that each of n jobs ran, and that each attempt id ran once (promise 2). It
// returns the number of attempts.
func (l *lab) wantEachRanOnce(n int) (attempts int) {
	l.t.Helper()
	return progtest.CheckRanOnce(l.t, l.path("ran"), n)
}

// line is one object of --json.
type line struct {
	Job      int
	State    string
	Host     string
	Seq      int
	Round    int
	Exit     *int
	Attempts int
	Stdout   string
}

// wantAtMost checks that the program has not printed a text more often than maxTimes.
func (e ended) wantAtMost(t *testing.T, text string, maxTimes int) {
	t.Helper()
	if n := strings.Count(e.err, text); n > maxTimes {
		t.Errorf("%q was printed %d times:\n%s", text, n, e.err)
	}
}

func (e ended) lines(t *testing.T) []line {
	t.Helper()
	var ls []line
	for text := range strings.Lines(e.out) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		ls = append(ls, l)
	}
	return ls
}

// wantSucceeded checks that the last of one or more dispatchers exited with 0, and that each of the
// jobs 1 to n has exactly one result in their outputs, a success (promise 1). A repeated result has
// the same number. It returns wantEachRanOnce(n).
func (l *lab) wantSucceeded(n int, all ...ended) (attempts int) {
	l.t.Helper()
	if last := all[len(all)-1]; last.code != 0 {
		l.t.Fatalf("exit %d\n%s", last.code, last.err)
	}
	seqs := map[int]int{}
	for _, e := range all {
		for _, x := range e.lines(l.t) {
			if was, ok := seqs[x.Job]; ok && was != x.Seq {
				l.t.Errorf("job %d has two results, %d and %d", x.Job, was, x.Seq)
			}
			seqs[x.Job] = x.Seq
			if x.State != "succeeded" {
				l.t.Errorf("job %d: %+v", x.Job, x)
			}
		}
	}
	if len(seqs) != n {
		l.t.Errorf("%d results of %d jobs", len(seqs), n)
	}
	return l.wantEachRanOnce(n)
}

// wantSucceededAtOnce checks like wantSucceeded, and that each job needed one attempt.
func (l *lab) wantSucceededAtOnce(n int, all ...ended) {
	l.t.Helper()
	if got := l.wantSucceeded(n, all...); got != n {
		l.t.Errorf("%d attempts for %d jobs\n%s", got, n, all[len(all)-1].err)
	}
}

// wantNothingLeft fails the test if a process of the lab's run is still alive (promise 4). Every
// spool and every job refers to the lab's local directory. Helpers exit after their dispatcher, which
// takes 30 s if their link was cut.
func (l *lab) wantNothingLeft() {
	l.t.Helper()
	progtest.CheckNothingLeft(l.t, 2*time.Minute, func(p progtest.Process) bool { return p.RefersTo(l.local) })
}
