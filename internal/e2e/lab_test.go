//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/hosts/hosttest"
	_ "dcs-tui/internal/cli" // the program under test: when it changes, cached results of these tests do not count
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// program is the path of the binary under test, which is built once.
var program string

func TestMain(m *testing.M) {
	runRole() // run as another process, if this process was started for that
	flag.Parse()
	// These tests mostly wait and compute little, so more of them run in parallel than there are
	// cores.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("4")
	}
	os.Exit(progtest.Main(m, &program))
}

var must = polltest.Must

// lab is a set of ssh servers on loopback and a directory that all of them share.
type lab struct {
	t             *testing.T
	dir           string
	servers       []*hosttest.SSHD
	inventoryText string // further text for the inventory
}

func newLab(t *testing.T, n int, opts ...hosttest.Options) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir()}
	for i := range n {
		var o hosttest.Options
		if i < len(opts) {
			o = opts[i]
		}
		if i > 0 {
			o.With = l.servers[0]
		}
		l.servers = append(l.servers, hosttest.StartSSHD(t, o))
	}
	t.Cleanup(l.checkNothingLeft)
	return l
}

// inventory writes a hosts.toml with all servers, with the given number of slots each.
func (l *lab) inventory(slots int) string {
	text := ""
	for i, s := range l.servers {
		text += s.Entry(fmt.Sprintf("ws%d", i+1), slots)
	}
	return l.writeFile("hosts.toml", text+l.inventoryText)
}

func (l *lab) workDir(i int) string { return l.servers[i].WorkDir() }

func (l *lab) writeFile(name, text string) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	must(l.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

// repoPath returns the path of a file of the repository.
func (l *lab) repoPath(name string) string {
	l.t.Helper()
	path, err := filepath.Abs(filepath.Join("../..", name))
	must(l.t, err)
	return path
}

// newLocalLab returns a lab without ssh: this machine over the local link. options are further
// lines of its entry in the inventory.
func newLocalLab(t *testing.T, slots int, options string) *lab {
	l := &lab{t: t, dir: t.TempDir()}
	t.Cleanup(l.checkNothingLeft)
	l.writeFile("hosts.toml", fmt.Sprintf("[[host]]\nname = \"here\"\nlink = \"local\"\nslots = %d\nyield = false\n"+
		"nice = 0\nwork_dir = %q\n%s",
		slots, l.path("work"), options))
	return l
}

// newTinyLab returns a local lab with four jobs.
func newTinyLab(t *testing.T) *lab {
	l := newLocalLab(t, 2, "")
	l.writeTaggedJobs(4, "true")
	return l
}

func (l *lab) tinyArgs() []string {
	return []string{"run", "--no-tui", "--json", "--hosts", l.path("hosts.toml"), "--run-dir", l.path("run"),
		l.path("jobs.txt")}
}

func (l *lab) tinyResumeArgs() []string {
	return []string{"resume", "--no-tui", "--json", l.path("run")}
}

// checkFiles checks the contents of files of the lab.
func (l *lab) checkFiles(files map[string]string) {
	l.t.Helper()
	for file, want := range files {
		if got := l.readFile(l.path(file)); got != want {
			l.t.Errorf("%s holds %q, want %q", file, got, want)
		}
	}
}

// runArgs returns the flags of a run over the lab's hosts.
func (l *lab) runArgs(slots int, extra ...string) []string {
	return append([]string{"run", "--no-tui", "--ssh-config", l.servers[0].ConfigFile, "--hosts", l.inventory(slots),
		"--run-dir", l.path("run")}, extra...)
}

// outcome is the result of a program that has ended.
type outcome struct {
	code           int
	stdout, stderr string
}

// run runs the program until it ends.
func (l *lab) run(args ...string) outcome {
	l.t.Helper()
	return l.start(args...).wait()
}

// mustRun runs the program until it ends, and ends the test if it fails.
func (l *lab) mustRun(args ...string) outcome {
	l.t.Helper()
	return l.start(args...).mustSucceed()
}

// process is a running program.
type process struct {
	lab    *lab
	cmd    *exec.Cmd
	stdout progtest.Buffer
	stderr progtest.Buffer

	ended   chan struct{} // closed after Wait has returned
	waitErr error         // error of Wait
}

func (l *lab) start(args ...string) *process {
	l.t.Helper()
	return l.startCommand(exec.Command(program, args...))
}

// startCommand starts a command in the lab's directory.
func (l *lab) startCommand(cmd *exec.Cmd) *process {
	l.t.Helper()
	p := &process{lab: l, cmd: cmd, ended: make(chan struct{})}
	p.cmd.Dir = l.dir
	if cmd.Stdout == nil { // otherwise it is on a terminal, or the test reads it
		cmd.Stdout = &p.stdout
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.stderr
	}
	must(l.t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		p.waitErr = p.cmd.Wait()
	}()
	l.t.Cleanup(func() {
		p.cmd.Process.Kill() // no effect on a process that has been waited for
		<-p.ended
		if l.t.Failed() {
			text := p.stderr.String()
			l.t.Logf("%s said at last:\n…%s", strings.Join(cmd.Args, " "), text[max(0, len(text)-1500):])
		}
	})
	return p
}

// wait waits until the program ends. It may be called again.
func (p *process) wait() outcome {
	p.lab.t.Helper()
	<-p.ended
	var exit *exec.ExitError
	if p.waitErr != nil && !errors.As(p.waitErr, &exit) {
		p.lab.t.Fatal(p.waitErr)
	}
	return outcome{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

// mustSucceed waits until the program ends, and ends the test if it has failed.
func (p *process) mustSucceed() outcome {
	p.lab.t.Helper()
	e := p.wait()
	if e.code != 0 {
		p.lab.t.Fatalf("exit %d\n%s\n%s", e.code, e.stdout, e.stderr)
	}
	return e
}

// kill kills the program.
func (p *process) kill() outcome {
	p.lab.t.Helper()
	p.signal(syscall.SIGKILL)
	return p.wait()
}

func (p *process) signal(s os.Signal) {
	p.lab.t.Helper()
	must(p.lab.t, p.cmd.Process.Signal(s))
}

// until waits until a condition holds.
func (l *lab) until(what string, ok func() bool) {
	l.t.Helper()
	polltest.Until(l.t, what, ok)
}

// numFiles returns the number of files below the lab's directory that match a pattern.
func (l *lab) numFiles(pattern string) int { return len(l.glob(pattern)) }

func (l *lab) glob(pattern string) []string {
	m, err := filepath.Glob(filepath.Join(l.dir, pattern))
	must(l.t, err)
	return m
}

// numEnded returns the number of status files that contain an outcome.
func (l *lab) numEnded(pattern string) (n int) {
	for _, path := range l.glob(pattern) {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(`"outcome"`)) {
			n++
		}
	}
	return n
}
