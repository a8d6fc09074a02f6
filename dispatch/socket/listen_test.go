package socket

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestOnlyTheOwnerCanConnect checks that only the owner can connect: the directory has mode 0700
// and the socket 0600, whatever the umask is. Names are random, and Close removes the socket.
func TestOnlyTheOwnerCanConnect(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	s := startServer(t, &fakeHandler{})
	for path, want := range map[string]os.FileMode{s.Address(): 0o600, filepath.Dir(s.Address()): 0o700} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v; want mode %v", path, info.Mode(), err, want)
		}
	}
	if s.Address() == startServer(t, &fakeHandler{}).Address() {
		t.Error("two servers have the same address")
	}
	s.Close()
	if _, err := os.Lstat(s.Address()); !os.IsNotExist(err) {
		t.Errorf("after Close: got %v, want no socket", err)
	}
}

// TestDirectoryOfAnotherUserIsRefused checks that both sides refuse a directory that another user
// could have prepared, and that Listen creates nothing in it.
func TestDirectoryOfAnotherUserIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		prepare    func(dir string) error
	}{
		{"symlink", "not a directory", func(dir string) error { return os.Symlink(t.TempDir(), dir) }},
		{"file", "not a directory", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }},
		{"open to others", "open to others",
			func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)) }},
		{"of another user", "belongs to user 12345",
			func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 12345, 12345)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := shortDir(t)
			dir := socketDir(base, os.Geteuid())
			if err := c.prepare(dir); err != nil {
				t.Skip(err) // only root can change the owner
			}
			s, err := Listen(Options{Base: base})
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Listen: got %v, want %q", err, c.want)
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("%v was put there", entries)
			}
			if c.name == "of another user" {
				return // root may connect to the sockets of others
			}
			if _, err := Dial(t.Context(), filepath.Join(dir, "x.sock"), ""); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("Dial: got %v, want %q", err, c.want)
			}
		})
	}
}

// TestAnotherUserIsRefused checks that another user who can nevertheless reach the socket is
// refused.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	s := startServer(t, &fakeHandler{})
	for path, mode := range map[string]os.FileMode{s.Address(): 0o777, filepath.Dir(s.Address()): 0o755,
		s.opts.Base: 0o755} {
		must(t, os.Chmod(path, mode))
	}
	// Others may not read the directory of the test binary.
	program := filepath.Join(s.opts.Base, "connect")
	b, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, errors.Join(os.WriteFile(program, b, 0o755), os.Chmod(program, 0o755))) // whatever the umask is
	cmd := exec.Command(program)
	cmd.Env = []string{"TEST_CONNECT=" + s.Address()}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := cmd.CombinedOutput()
	if want := "the other end of the socket belongs to user 12345"; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("got %s, %v; want %q", out, err, want)
	}
}

// connect runs as the program of another user and prints the first line of the server.
func connect(address string) int {
	conn, err := net.Dial("unix", address)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(line)
	return 0
}

// TestSocketsOfKilledDispatchersAreRemoved checks that the next dispatcher removes the sockets of
// killed dispatchers. Sockets in use, recent ones, and other files stay.
func TestSocketsOfKilledDispatchersAreRemoved(t *testing.T) {
	live := startServer(t, &fakeHandler{})
	dir := filepath.Dir(live.Address())
	dead := func(name string) string {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		must(t, err)
		l.SetUnlinkOnClose(false)
		l.Close()
		return filepath.Join(dir, name)
	}
	old, young := dead("old.sock"), dead("young.sock")
	file := filepath.Join(dir, "file.sock")
	must(t, os.WriteFile(file, nil, 0o600))
	past := time.Now().Add(-2 * minStaleAge)
	for _, path := range []string{old, file, live.Address()} {
		must(t, os.Chtimes(path, past, past))
	}
	next, err := Listen(Options{Base: live.opts.Base})
	must(t, err)
	defer next.Close()
	for path, want := range map[string]bool{old: false, young: true, file: true, live.Address(): true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: got %v, want it to exist: %v", filepath.Base(path), err, want)
		}
	}
	dial(t, live)
}
