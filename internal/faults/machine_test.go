//go:build linux

package faults

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"dcs-tui/internal/labfs"
)

// namespaces is a set of namespaces: its first process, and the process that keeps it.
type namespaces struct {
	init int // its pid, as seen by this test
	gone chan struct{}
	stop func()
}

// newNamespaces creates a set of namespaces with a script as its pid 1. The script must print
// "ready" and keep running. below is the enclosing space, nil for this machine's own.
func newNamespaces(below *namespaces, boottime string, script string) (*namespaces, error) {
	args := []string{"unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc",
		"--propagation", "private"}
	if boottime != "" {
		args = append(args, "--time", "--boottime", boottime)
	}
	args = append(args, "/bin/sh", "-c", script)
	if below != nil {
		args = append(below.prefix(), args...)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var words strings.Builder
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/root"}
	cmd.Stdout, cmd.Stderr = w, &words
	// All processes end with this test, even if it is killed. Linux ties Pdeathsig to the thread
	// that starts the child, so that thread must live as long.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	s := &namespaces{gone: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.gone)
		err := cmd.Start()
		w.Close()
		started <- err
		if err == nil {
			cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	in := bufio.NewReader(r)
	line, _ := in.ReadString('\n')
	if line != "ready\n" {
		cmd.Process.Kill()
		<-s.gone
		return nil, fmt.Errorf("a machine did not start: %s%s", line, words.String())
	}
	pid := cmd.Process.Pid
	for s.init = pid; !isInit(s.init) || s.init == pid; {
		next := childrenOf(s.init)
		if len(next) == 0 {
			cmd.Process.Kill()
			return nil, errors.New("the first process of a machine is not to be found")
		}
		s.init = next[0]
	}
	s.stop = sync.OnceFunc(func() {
		syscall.Kill(s.init, syscall.SIGKILL)
		<-s.gone
	})
	return s, nil
}

// prefix returns the command prefix that enters all namespaces of a space.
func (s *namespaces) prefix() []string {
	return []string{"nsenter", "-t", strconv.Itoa(s.init), "-a"}
}

// path returns the path by which this test reaches a file of the space.
func (s *namespaces) path(name string) string {
	return filepath.Join("/proc", strconv.Itoa(s.init), "root", name)
}

// run runs a command in the space until it ends.
func (s *namespaces) run(args ...string) error { return runCommand(append(s.prefix(), args...)...) }

// inNet runs a program of this machine in the space's network namespace.
func (s *namespaces) inNet(args ...string) error {
	return runCommand(append([]string{"nsenter", "-t", strconv.Itoa(s.init), "-n"}, args...)...)
}

func runCommand(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// stay is the rest of the script of a machine's pid 1: it only reaps processes.
const stay = "echo ready; exec >/dev/null 2>&1; while :; do sleep 3600 & wait; done"

// machine is one computer of the lab: a host or a desk.
type machine struct {
	lab  *lab
	name string
	ip   string
	sshd bool

	instance string // the name of its current instance; "": none, or an ordinary machine

	mount *labfs.Mount // its own view of the shared directory; nil: the directory itself

	mu      sync.Mutex // held while the machine starts or ends
	boots   int
	waiters []*os.Process              // processes outside that wait for a command in it
	running atomic.Pointer[namespaces] // nil while the machine has no power
}

// onHub returns the path of a file of the machine's own directories as the hub sees it.
func (m *machine) onHub(path string) string {
	if rest, ok := strings.CutPrefix(path, homeDir); ok {
		return "/srv/" + m.name + homeDir + rest
	}
	return path
}

// boot starts the machine with a new boot id and a clock that starts again.
func (m *machine) boot() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running.Load() != nil {
		return nil
	}
	m.boots++
	up, err := uptime()
	if err != nil {
		return err
	}
	shared := ":"
	if m.mount != nil {
		shared = "mount --bind " + m.mount.Dir + " /srv/shared"
	}
	script := fmt.Sprintf(`set -e
%[3]s
mount -t tmpfs run /run; mkdir /run/sshd
mount --bind /srv/%[1]s/tmp /tmp
mount --bind /srv/%[1]s/vartmp /var/tmp
mount --bind /srv/%[1]s/root /root
echo %[2]s >/srv/%[1]s/boot_id
mount --bind /srv/%[1]s/boot_id /proc/sys/kernel/random/boot_id
hostname %[1]s
find /tmp -mindepth 1 -delete
`+stay, m.name, newBootID(), shared)
	s, err := newNamespaces(m.lab.hub, strconv.Itoa(20+m.boots-up), script)
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.running.Store(s)
	pid := strconv.Itoa(s.init)
	hub := m.lab.hub
	hub.inNet("ip", "link", "del", m.name) // of its previous boot, if the kernel has not removed it yet
	for _, step := range [][]string{
		{"ip", "link", "add", m.name, "type", "veth", "peer", "name", "eth0", "address", m.mac(), "netns", pid},
		{"ip", "link", "set", m.name, "master", "br0", "up"},
	} {
		if err := hub.inNet(step...); err != nil {
			return err
		}
	}
	for _, step := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "addr", "add", m.ip + "/24", "dev", "eth0"},
		{"ip", "link", "set", "eth0", "up"},
	} {
		if err := s.inNet(step...); err != nil {
			return err
		}
	}
	return m.startSSHD()
}

// mac returns the address of its network card. A machine keeps it across boots because others cache
// it.
func (m *machine) mac() string {
	n, _ := strconv.Atoi(m.ip[strings.LastIndexByte(m.ip, '.')+1:])
	return fmt.Sprintf("02:00:00:4d:00:%02x", n)
}

// startSSHD starts the ssh server again if its listener is gone.
func (m *machine) startSSHD() error {
	if !m.sshd || len(m.find(isListener)) > 0 {
		return nil
	}
	s := m.running.Load()
	if s == nil {
		return nil
	}
	return s.run("/usr/sbin/sshd", "-f", "/srv/keys/sshd_config", "-E", "/srv/"+m.name+"/sshd.log")
}

// powerOff kills every process at once. If cut is set, the link is cut first, so that no peer is
// notified.
func (m *machine) powerOff(cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.running.Load()
	if s == nil {
		return
	}
	if cut {
		m.lab.hub.inNet("ip", "link", "set", m.name, "down")
	}
	m.running.Store(nil)
	syscall.Kill(s.init, syscall.SIGKILL)
	// The processes that wait for a command here may be stopped themselves, and the machine is gone
	// only after they have noticed its end.
	for _, w := range m.waiters {
		w.Signal(syscall.SIGCONT)
	}
	m.waiters = nil
	s.stop()
}

// setLink connects or disconnects the cable. Nobody is notified: packets are lost. A machine
// without power has no cable.
func (m *machine) setLink(up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	if m.running.Load() == nil {
		return nil
	}
	return m.lab.hub.inNet("ip", "link", "set", m.name, state)
}

// setBlackhole drops all packets at the switch while the cable stays connected.
func (m *machine) setBlackhole(on bool) error {
	if m.running.Load() == nil {
		return nil
	}
	if on {
		return m.lab.hub.inNet("ip", "link", "set", m.name, "nomaster")
	}
	return m.lab.hub.inNet("ip", "link", "set", m.name, "master", "br0")
}

// uptime returns the uptime of this machine in whole seconds.
func uptime() (int, error) {
	b, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	whole, _, _ := strings.Cut(string(b), ".")
	return strconv.Atoi(whole)
}

func newBootID() string {
	b := make([]byte, 16)
	rand.Read(b)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
