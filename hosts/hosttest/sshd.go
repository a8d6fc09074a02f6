package hosttest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dcs-tui/hosts"
)

// Options say what kind of ssh server is wanted. The zero value is good.
type Options struct {
	// Shell, when set, stands for the login shell of the far side: an absolute
	// path, run as `SHELL -c COMMAND` the way sshd runs a login shell. When "",
	// the user's own login shell is used.
	Shell string
	// Noise is printed on standard output by the shell's rc file before the
	// command runs (bash: .bashrc, tcsh: .tcshrc; other shells: before they start).
	Noise string
	// Env is added to the environment of every command; HOME and SHLVL are set
	// unless they are in it (see SSHD.Home).
	Env map[string]string

	RSA, ECDSA  bool     // further host keys; ed25519 is always there
	HostCA      bool     // host keys get certificates; known_hosts holds only the @cert-authority line
	Passphrase  string   // of the client's key; "" leaves it in clear
	MaxStartups string   // sshd's word, "" its default (10:30:100)
	Config      []string // further lines of sshd_config; they win over ours

	// With makes this server share the other's client key, known_hosts and ssh
	// configuration file, as the hosts of one lab do.
	With *SSHD
}

// ErrNoSSHD reports that there is no OpenSSH server on this machine.
var ErrNoSSHD = errors.New("OpenSSH's server (sshd) or ssh-keygen is not installed: apt-get install openssh-server")

// SSHD is a real OpenSSH server of the current user on 127.0.0.1. Its methods
// may be called from any goroutine.
type SSHD struct {
	Dir        string // everything of this server is below it
	Port       int
	User       string
	Identity   string // the client's private key file; .pub beside it
	KnownHosts string // the client's known_hosts
	ConfigFile string // an ssh_config for clients; `ssh -F` takes it too

	opts Options
	sshd string

	mu   sync.Mutex
	proc *process // nil while stopped
}

// process is one life of the server.
type process struct {
	pid  int
	gone <-chan struct{} // closed when it has been reaped
}

// NewSSHD makes keys and configuration in dir and starts the server. It
// returns when the server listens. The caller must call Stop.
func NewSSHD(dir string, opts Options) (*SSHD, error) {
	sshd, err := findSSHD()
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("hosttest: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("hosttest: %w", err)
	}
	s := &SSHD{Dir: dir, User: me.Username, opts: opts, sshd: sshd}
	if err := s.writeKeys(); err != nil {
		return nil, err
	}
	// A free port found by listening on it can be taken by somebody else before
	// sshd has it; then the next one is tried.
	for range 10 {
		if s.Port, err = freePort(); err != nil {
			return nil, fmt.Errorf("hosttest: %w", err)
		}
		if err = s.writeFiles(); err != nil {
			return nil, err
		}
		if err = s.Start(); err == nil {
			return s, s.announce()
		}
		if !strings.Contains(err.Error(), "Address already in use") {
			break
		}
	}
	return nil, err
}

// findSSHD returns the absolute path that sshd insists on.
func findSSHD() (string, error) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		return "", ErrNoSSHD
	}
	for _, p := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd", "/usr/bin/sshd"} {
		if st, err := os.Stat(p); err == nil && st.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	if p, err := exec.LookPath("sshd"); err == nil {
		return filepath.Abs(p)
	}
	return "", ErrNoSSHD
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Start starts the server again, on the same port and with the same keys,
// after Stop. A running server is left alone.
func (s *SSHD) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return nil
	}
	if os.Geteuid() == 0 {
		// sshd run by root refuses to start without its privilege separation
		// directory, which Debian makes only when the service starts.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return fmt.Errorf("hosttest: %w", err)
		}
	}
	log, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("hosttest: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		log.Close()
		return fmt.Errorf("hosttest: %w", err)
	}
	cmd := exec.Command(s.sshd, "-D", "-e", "-f", filepath.Join(s.Dir, "sshd_config"))
	cmd.Stderr = w
	cmd.Dir = s.Dir
	cmd.Env = cleanEnv()
	ready := make(chan error, 1)
	go follow(r, log, ready)
	gone, err := startTied(cmd)
	w.Close()
	if err != nil {
		return fmt.Errorf("hosttest: starting %s: %w", s.sshd, err)
	}
	p := &process{cmd.Process.Pid, gone}
	if err := <-ready; err != nil {
		killTree(p)
		return err
	}
	s.proc = p
	return nil
}

// startTied starts a child that does not outlive this process, as a test that is killed.
// The signal for that is tied to the thread that starts the child, so the thread is kept.
// gone is closed when the child has been reaped.
func startTied(cmd *exec.Cmd) (gone <-chan struct{}, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Process.Wait()
		}
	}()
	return ended, <-started
}

// follow copies the server's words to its log until the last of its processes
// has ended, and says on ready when it listens or that it never will.
func follow(r io.ReadCloser, log io.WriteCloser, ready chan<- error) {
	defer r.Close()
	defer log.Close()
	var said strings.Builder
	told := false
	for in := bufio.NewScanner(r); in.Scan(); {
		line := in.Text()
		fmt.Fprintln(log, line)
		if told {
			continue
		}
		said.WriteString(line + "\n")
		if strings.Contains(line, "Server listening on 127.0.0.1") {
			told = true
			ready <- nil
		}
	}
	if !told {
		ready <- fmt.Errorf("hosttest: sshd did not start: %s", strings.TrimSpace(said.String()))
	}
}

// Stop kills the server and everything that runs below it, as a crash of the
// host would. It may be called more than once.
func (s *SSHD) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		killTree(s.proc)
		s.proc = nil
	}
}

// Drop kills every connection's server processes and what runs below them, and
// leaves the listener: the next connection is welcome.
func (s *SSHD) Drop() { s.each(syscall.SIGKILL, false, false) }

// Pause stops (SIGSTOP) the server and its connections' processes, so that the
// network seems dead while the commands below continue.
func (s *SSHD) Pause() { s.each(syscall.SIGSTOP, true, true) }

// Freeze stops the commands as well, as a host that hangs.
func (s *SSHD) Freeze() { s.each(syscall.SIGSTOP, true, false) }

// Resume undoes Pause and Freeze.
func (s *SSHD) Resume() { s.each(syscall.SIGCONT, true, false) }

// each sends a signal to the processes of the server: the listener if self is
// set, and of those below it all or only sshd's own.
func (s *SSHD) each(sig syscall.Signal, self, ownOnly bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return
	}
	if self {
		syscall.Kill(s.proc.pid, sig)
	}
	for _, p := range below(s.proc.pid) {
		if !ownOnly || strings.HasPrefix(p.name, "sshd") {
			syscall.Kill(p.pid, sig)
		}
	}
}

// Addr is where the server listens, "127.0.0.1:PORT".
func (s *SSHD) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// LogFile is where the server's own words go.
func (s *SSHD) LogFile() string { return filepath.Join(s.Dir, "sshd.log") }

// Host returns an inventory entry for this server: two slots, a work directory
// of its own, and yield off, since many test hosts share one machine.
func (s *SSHD) Host(name string) *hosts.Host {
	return &hosts.Host{
		Name: name, Addresses: []string{"127.0.0.1"}, Port: s.Port, User: s.User, Identity: s.Identity,
		Slots: hosts.SlotRule{Fixed: 2}, Weight: 1, Link: "ssh",
		WorkDir: filepath.Join(s.Dir, "work-"+name), File: "hosttest", Line: 1,
	}
}

// RequireEnv, set to 1, turns a missing sshd from a skipped test into a failure.
const RequireEnv = "DCS_REQUIRE_SSHD"

// StartSSHD gives a test a real OpenSSH server that ends with the test. Where
// none is installed the test is skipped loudly, or fails when RequireEnv is 1.
func StartSSHD(t testing.TB, opts Options) *SSHD {
	t.Helper()
	s, err := NewSSHD(t.TempDir(), opts)
	if errors.Is(err, ErrNoSSHD) {
		if os.Getenv(RequireEnv) == "1" {
			t.Fatalf("%s=1, but %v", RequireEnv, err)
		}
		LeaveOut(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			if log, err := os.ReadFile(s.LogFile()); err == nil {
				t.Logf("sshd on port %d said:\n%s", s.Port, log)
			}
		}
	})
	return s
}

// proc is one process below a server.
type proc struct {
	pid, parent int
	name        string
}

// below lists the living descendants of pid, parents before children. pid must
// be a child of ours that has not been reaped, so its number cannot be reused.
func below(pid int) []proc {
	children := map[int][]proc{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readProc(n); ok {
				children[p.parent] = append(children[p.parent], p)
			}
		}
	}
	var list []proc
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			list = append(list, c)
			queue = append(queue, c.pid)
		}
	}
	return list
}

// readProc reads name and parent of a process that is no zombie.
func readProc(pid int) (proc, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return proc{}, false
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 2 || f[0] == "Z" || f[0] == "X" {
		return proc{}, false
	}
	parent, err := strconv.Atoi(f[1])
	return proc{pid: pid, parent: parent, name: string(b[open+1 : end])}, err == nil
}

// killTree ends a server with everything below it and waits for the server.
// The listener is stopped first, so that nothing new appears in the meantime.
func killTree(p *process) {
	syscall.Kill(p.pid, syscall.SIGSTOP)
	for range 100 {
		list := below(p.pid)
		if len(list) == 0 {
			break
		}
		for _, c := range list {
			syscall.Kill(c.pid, syscall.SIGSTOP)
		}
		// Leaves first: a child whose parent is dead is nobody's descendant.
		for i := len(list) - 1; i >= 0; i-- {
			syscall.Kill(list[i].pid, syscall.SIGKILL)
		}
	}
	syscall.Kill(p.pid, syscall.SIGKILL)
	<-p.gone
}

// LeaveOut skips a test and says so where it is seen: `go test ./...` hides what
// a passing package prints, so the line goes to the standard error of the go
// command itself, once a package and reason.
func LeaveOut(t testing.TB, format string, args ...any) {
	t.Helper()
	text := "LEFT OUT, NOT TESTED: " + fmt.Sprintf(format, args...)
	announce(text)
	t.Skip(text)
}

var announced sync.Map // text: true

func announce(text string) {
	if _, known := announced.LoadOrStore(text, true); known {
		return
	}
	parent := filepath.Join("/proc", fmt.Sprint(os.Getppid()))
	if name, err := os.ReadFile(filepath.Join(parent, "comm")); err != nil || strings.TrimSpace(string(name)) != "go" {
		return // not under the go command: its reader sees the skip itself
	}
	f, err := os.OpenFile(filepath.Join(parent, "fd/2"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer f.Close()
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")
	fmt.Fprintf(f, "%s: some tests were %s\n", name, strings.Replace(text, "LEFT OUT, NOT TESTED", "left out, not tested", 1))
}
