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
	"testing"

	"dcs-tui/hosts/hosttest"
	_ "dcs-tui/internal/cli" // the program under test: when it changes, cached results of these tests do not count
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// program is the path of the binary under test, which is built once.
var program string

func TestMain(m *testing.M) {
	become() // run as another process, if this process was started for that
	flag.Parse()
	// These tests mostly wait and compute little, so more of them run in parallel than there are
	// cores.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("4")
	}
	dir, err := os.MkdirTemp("", "dcs-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := 1
	if program, err = progtest.Build(dir); err == nil {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// lab is a set of ssh servers on loopback and a directory that all of them share.
type lab struct {
	t    *testing.T
	dir  string
	sshd []*hosttest.SSHD
	more string // further text for the inventory
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
			o.With = l.sshd[0]
		}
		l.sshd = append(l.sshd, hosttest.StartSSHD(t, o))
	}
	t.Cleanup(l.nothingLeft)
	return l
}

// inventory writes a hosts.toml with all servers, with the given number of slots each.
func (l *lab) inventory(slots int) string {
	var b strings.Builder
	for i, s := range l.sshd {
		fmt.Fprintf(&b, "[[host]]\nname = \"ws%d\"\naddress = \"127.0.0.1\"\nport = %d\nuser = %q\nidentity = %q\n"+
			"slots = %d\nyield = false\nnice = 0\nwork_dir = %q\n\n", i+1, s.Port, s.User, s.Identity, slots, l.work(i))
	}
	return l.file("hosts.toml", b.String()+l.more)
}

func (l *lab) work(i int) string { return filepath.Join(l.sshd[i].Dir, "work") }

func (l *lab) file(name, text string) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

// args returns the flags of a run over the lab's hosts.
func (l *lab) args(slots int, extra ...string) []string {
	return append([]string{"run", "--no-tui", "--ssh-config", l.sshd[0].ConfigFile, "--hosts", l.inventory(slots),
		"--run-dir", l.path("run")}, extra...)
}

// ended is the result of a program that has ended.
type ended struct {
	code     int
	out, err string
}

// do runs the program until it ends.
func (l *lab) do(args ...string) ended {
	l.t.Helper()
	p := l.start(args...)
	return p.wait()
}

// process is a running program.
type process struct {
	l   *lab
	cmd *exec.Cmd
	out progtest.Buffer
	err progtest.Buffer

	ended   chan struct{} // closed after Wait has returned
	waitErr error         // error of Wait
}

func (l *lab) start(args ...string) *process {
	l.t.Helper()
	return l.begin(exec.Command(program, args...))
}

// begin starts a command in the lab's directory.
func (l *lab) begin(cmd *exec.Cmd) *process {
	l.t.Helper()
	p := &process{l: l, cmd: cmd, ended: make(chan struct{})}
	p.cmd.Dir = l.dir
	if cmd.Stdout == nil { // otherwise it is on a terminal, or the test reads it
		cmd.Stdout = &p.out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.err
	}
	if err := p.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		p.waitErr = p.cmd.Wait()
	}()
	l.t.Cleanup(func() {
		p.cmd.Process.Kill() // no effect on a process that has been waited for
		<-p.ended
		if l.t.Failed() {
			text := p.err.String()
			l.t.Logf("%s said at last:\n…%s", strings.Join(cmd.Args, " "), text[max(0, len(text)-1500):])
		}
	})
	return p
}

// wait waits until the program ends. It may be called again.
func (p *process) wait() ended {
	p.l.t.Helper()
	<-p.ended
	var exit *exec.ExitError
	if p.waitErr != nil && !errors.As(p.waitErr, &exit) {
		p.l.t.Fatal(p.waitErr)
	}
	return ended{p.cmd.ProcessState.ExitCode(), p.out.String(), p.err.String()}
}

func (p *process) signal(s os.Signal) {
	p.l.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.l.t.Fatal(err)
	}
}

// until waits until a condition holds.
func (l *lab) until(what string, ok func() bool) {
	l.t.Helper()
	polltest.Until(l.t, what, ok)
}

// count returns the number of files below the lab's directory that match a pattern.
func (l *lab) count(pattern string) int { return len(l.glob(pattern)) }

func (l *lab) glob(pattern string) []string {
	m, err := filepath.Glob(filepath.Join(l.dir, pattern))
	if err != nil {
		l.t.Fatal(err)
	}
	return m
}

// ended returns the number of status files that contain an outcome.
func (l *lab) ended(pattern string) (n int) {
	for _, path := range l.glob(pattern) {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(`"outcome"`)) {
			n++
		}
	}
	return n
}
