package hosttest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/internal/platform"
	"dcs-tui/internal/polltest"
)

// Options configure an SSHD. The zero value is valid.
type Options struct {
	// Shell is the absolute path of the login shell, which is run as `SHELL -c COMMAND`, as
	// sshd does; "": the user's own login shell.
	Shell string
	// Noise is printed to standard output by the shell's rc file before the command runs (.bashrc
	// for bash, .tcshrc for tcsh; other shells print it before they start).
	Noise string
	// Env is added to the environment of every command; HOME and SHLVL are set
	// unless they are in it (see SSHD.Home).
	Env map[string]string

	RSA, ECDSA bool // further host keys; there is always an ed25519 key
	// Host keys get certificates; known_hosts holds only the @cert-authority line.
	HostCA     bool
	Passphrase string   // of the client's key; "": none
	Config     []string // further lines of sshd_config, which override ours

	// With is another server whose client key, known_hosts and ssh configuration file are
	// used, as by the hosts of one lab.
	With *SSHD
}

// ErrNoSSHD reports that there is no OpenSSH server on this machine.
var ErrNoSSHD = errors.New("OpenSSH's server (sshd) or ssh-keygen is not installed: apt-get install openssh-server")

// SSHD is a real OpenSSH server of the current user on 127.0.0.1. It is safe for concurrent
// use.
type SSHD struct {
	Dir        string // contains all files of the server
	Port       int
	User       string
	Identity   string // the client's private key file; .pub beside it
	KnownHosts string // the client's known_hosts
	ConfigFile string // an ssh_config for clients; `ssh -F` takes it too

	opts     Options
	sshd     string
	reserved *os.File // keeps the port while the server is stopped; closed when s is no longer used

	mu   sync.Mutex
	proc *process // nil while stopped
}

// process is the server between a Start and a Stop.
type process struct {
	pid  int
	gone <-chan struct{} // closed when it has been reaped
}

// NewSSHD creates keys and configuration in dir and starts the server. It returns when the
// server listens. The caller must call Stop.
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
	if s.reserved, s.Port, err = reservePort(); err != nil {
		return nil, fmt.Errorf("hosttest: %w", err)
	}
	if err = s.writeFiles(); err != nil {
		return nil, err
	}
	if err = s.Start(); err != nil {
		return nil, err
	}
	return s, s.announce()
}

// findSSHD returns the absolute path of sshd. sshd refuses to run by a relative path.
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

// reservePort returns a port of 127.0.0.1 and a socket that is bound to it and does not listen. While
// the socket is open, no other process gets the port, and connections to it are refused unless a
// server with SO_REUSEADDR, as sshd is, listens on it.
func reservePort() (_ *os.File, port int, err error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, 0, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "reserved port")
	err = errors.Join(syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	address, err2 := syscall.Getsockname(fd)
	if err = errors.Join(err, err2); err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("bind a port of 127.0.0.1: %w", err)
	}
	return f, address.(*syscall.SockaddrInet4).Port, nil
}

// Start starts the server again after Stop, on the same port and with the same keys. It has
// no effect on a running server.
func (s *SSHD) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		return nil
	}
	if os.Geteuid() == 0 {
		// If root runs sshd, it refuses to start without its privilege separation directory. Debian
		// creates that directory only when the service starts.
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

// follow copies the server's output to its log until the last of its processes has ended. It
// sends nil on ready when the server listens, or an error if it never does.
func follow(r io.ReadCloser, log io.WriteCloser, ready chan<- error) {
	defer r.Close()
	defer log.Close()
	var output strings.Builder
	listens := false
	for in := bufio.NewScanner(r); in.Scan(); {
		line := in.Text()
		fmt.Fprintln(log, line)
		if listens {
			continue
		}
		output.WriteString(line + "\n")
		if strings.Contains(line, "Server listening on 127.0.0.1") {
			listens = true
			ready <- nil
		}
	}
	if !listens {
		ready <- fmt.Errorf("hosttest: sshd did not start: %s", strings.TrimSpace(output.String()))
	}
}

// Stop kills the server and all its descendants, like a crash of the host. It may be called
// more than once.
func (s *SSHD) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		killTree(s.proc)
		s.proc = nil
	}
}

// Drop kills the processes of all connections and their descendants. The server still accepts
// new connections.
func (s *SSHD) Drop() { s.each(syscall.SIGKILL, false, false) }

// Pause stops (SIGSTOP) the server and the processes of its connections, like a dead network:
// the commands continue.
func (s *SSHD) Pause() { s.each(syscall.SIGSTOP, true, true) }

// Freeze stops the commands as well, like a host that hangs.
func (s *SSHD) Freeze() { s.each(syscall.SIGSTOP, true, false) }

// Resume undoes Pause and Freeze.
func (s *SSHD) Resume() { s.each(syscall.SIGCONT, true, false) }

// each sends a signal to the descendants of the server, with ownOnly only to those of sshd
// itself, and with self also to the server.
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

// Addr returns the address of the server, "127.0.0.1:PORT".
func (s *SSHD) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// LogFile returns the path of the server's log.
func (s *SSHD) LogFile() string { return filepath.Join(s.Dir, "sshd.log") }

// WorkDir returns the directory for the files of runs on the server, which does not exist yet.
func (s *SSHD) WorkDir() string { return filepath.Join(s.Dir, "work") }

// Entry returns the entry of the server in a hosts.toml. Its load does not matter to runs.
func (s *SSHD) Entry(name string, slots int) string {
	return fmt.Sprintf("[[host]]\nname = %q\naddress = \"127.0.0.1\"\nport = %d\nuser = %q\nidentity = %q\n"+
		"slots = %d\nyield = false\nnice = 0\nwork_dir = %q\n\n", name, s.Port, s.User, s.Identity, slots, s.WorkDir())
}

// Host returns an inventory entry for this server with two slots, a work directory of its
// own, and without yield, because many test hosts share one machine.
func (s *SSHD) Host(name string) *hosts.Host {
	return &hosts.Host{
		Name: name, Addresses: []string{"127.0.0.1"}, Port: s.Port, User: s.User, Identity: s.Identity,
		Slots: hosts.SlotRule{Fixed: 2}, Weight: 1, Link: "ssh",
		WorkDir: filepath.Join(s.Dir, "work-"+name), File: "hosttest", Line: 1,
	}
}

// RequireEnv, set to 1, turns a missing sshd from a skipped test into a failure.
const RequireEnv = "DCS_REQUIRE_SSHD"

// StartSSHD starts a real OpenSSH server that ends with the test. If none is installed, the
// test is skipped with LeaveOut, or fails if RequireEnv is 1. It is also skipped if the shell is
// not installed.
func StartSSHD(t testing.TB, opts Options) *SSHD {
	t.Helper()
	if _, err := os.Stat(opts.Shell); err != nil && opts.Shell != "" {
		LeaveOut(t, "%v", err)
	}
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

// below lists the living descendants of pid, parents before children. pid must be a child of this
// process that has not been reaped, so that its number cannot be reused.
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

// readProc returns the name and parent of a process. It returns false for a zombie.
func readProc(pid int) (proc, bool) {
	p, err := platform.FindProcess(pid)
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return proc{pid: pid, parent: p.Parent, name: strings.TrimSpace(string(name))}, err == nil && !p.Ended
}

// killTree kills a server with all its descendants and waits until they are gone. It stops them
// first, so that they start no further processes.
func killTree(p *process) {
	syscall.Kill(p.pid, syscall.SIGSTOP)
	var killed []proc
	for range 100 {
		list := below(p.pid)
		if len(list) == 0 {
			break
		}
		for _, c := range list {
			syscall.Kill(c.pid, syscall.SIGSTOP)
		}
		// Leaves first, because a child whose parent is dead is no longer a descendant.
		for i := len(list) - 1; i >= 0; i-- {
			syscall.Kill(list[i].pid, syscall.SIGKILL)
		}
		killed = append(killed, list...)
	}
	syscall.Kill(p.pid, syscall.SIGKILL)
	<-p.gone
	polltest.Within(polltest.Patience, func() bool {
		return !slices.ContainsFunc(killed, func(p proc) bool {
			now, ok := readProc(p.pid)
			return ok && now.name == p.name
		})
	})
}

// LeaveOut skips a test. `go test ./...` hides the output of a passing package, so it prints
// the reason on the standard error of the go command itself, once per package and reason.
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
	fmt.Fprintf(f, "%s: some tests were %s\n", name,
		strings.Replace(text, "LEFT OUT, NOT TESTED", "left out, not tested", 1))
}
