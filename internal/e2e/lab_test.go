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
	"time"

	"dcs-tui/hosts/hosttest"
	_ "dcs-tui/internal/cli" // the program under test: when it changes, cached results of these tests do not count
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// program is the binary under test, built once.
var program string

func TestMain(m *testing.M) {
	become() // the part of another process, if this one was started for that
	flag.Parse()
	// These tests wait much and compute little: more at once than there are cores.
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

// lab is some ssh servers on loopback and a directory that all of them see.
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

// inventory writes a hosts.toml of every server with that many slots each.
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

// args gives the flags of a run over the lab's hosts.
func (l *lab) args(slots int, extra ...string) []string {
	return append([]string{"run", "--no-tui", "--ssh-config", l.sshd[0].ConfigFile, "--hosts", l.inventory(slots),
		"--run-dir", l.path("run")}, extra...)
}

// ended is a program that has run to its end.
type ended struct {
	code     int
	out, err string
}

// do runs the program to its end.
func (l *lab) do(args ...string) ended {
	l.t.Helper()
	p := l.start(args...)
	return p.wait()
}

// process is the program while it runs.
type process struct {
	l   *lab
	cmd *exec.Cmd
	out progtest.Buffer
	err progtest.Buffer

	ended   chan struct{} // closed when it has been waited for
	waitErr error         // as Wait gave it
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
	if cmd.Stdout == nil { // else it is on a terminal, or read by the test
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
		p.cmd.Process.Kill() // no effect on one that has been waited for
		<-p.ended
		if l.t.Failed() {
			text := p.err.String()
			l.t.Logf("%s said at last:\n…%s", strings.Join(cmd.Args, " "), text[max(0, len(text)-1500):])
		}
	})
	return p
}

// wait waits for the program's end; it may be called again.
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

// until waits for a condition on the world; four minutes of waiting are a failure.
func (l *lab) until(what string, ok func() bool) {
	l.t.Helper()
	polltest.Until(l.t, 4*time.Minute, what, ok)
}

// count returns how many files match a pattern below the lab's directory.
func (l *lab) count(pattern string) int { return len(l.glob(pattern)) }

func (l *lab) glob(pattern string) []string {
	m, err := filepath.Glob(filepath.Join(l.dir, pattern))
	if err != nil {
		l.t.Fatal(err)
	}
	return m
}

// ended counts the status files that hold an outcome.
func (l *lab) ended(pattern string) (n int) {
	for _, path := range l.glob(pattern) {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(`"outcome"`)) {
			n++
		}
	}
	return n
}
