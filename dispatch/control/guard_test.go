package control

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// Owner only: the directory is 0700 and the socket 0600, whatever the umask; names
// cannot be guessed and fit; nothing is left behind.
func TestClosedToOthers(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	s := serving(t, newFake())
	for path, want := range map[string]os.FileMode{s.Address(): 0o600, filepath.Dir(s.Address()): 0o700} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if s.Address() == serving(t, newFake()).Address() {
		t.Error("the same name twice")
	}
	s.Close()
	if _, err := os.Lstat(s.Address()); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// A directory that somebody else could have prepared is refused by both sides, with
// the reason, and nothing is put there.
func TestPreparedDirectories(t *testing.T) {
	for _, c := range []struct {
		name, want string
		prepare    func(dir string) error
	}{
		{"a symlink", "no directory", func(dir string) error { return os.Symlink(t.TempDir(), dir) }},
		{"a file", "no directory", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }},
		{"open to others", "open to others", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)) }},
		{"another user's", "not yours", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 12345, 12345)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			base, err := os.MkdirTemp("", "dcs")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(base)
			dir := dirOf(base, os.Geteuid())
			if err := c.prepare(dir); err != nil {
				t.Skip(err) // only root can give a directory away
			}
			s, err := Listen(Options{Base: base})
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) > 0 {
				t.Errorf("%v was put there", entries)
			}
			if c.name == "another user's" {
				return // root may look at anybody's
			}
			if _, err := Dial(t.Context(), filepath.Join(dir, "x.sock"), "", ""); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the client: %v", err)
			}
		})
	}
}

// Another user who gets at the socket all the same is refused by his uid.
func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be two users")
	}
	s := serving(t, newFake())
	for path, mode := range map[string]os.FileMode{s.Address(): 0o777, filepath.Dir(s.Address()): 0o755, s.opt.Base: 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(s.opt.Base, "knock") // where go put the test, others may not read
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, b, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{"TEST_KNOCK=" + s.Address()}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "user 12345 is at the other end") {
		t.Errorf("%s, %v", out, err)
	}
	if s.Attached() != 0 {
		t.Error("attached")
	}
}

// knock is another user's program: it says what it is told.
func knock(address string) int {
	conn, err := net.Dial("unix", address)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	h, err := readHello(bufio.NewReader(conn))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(h.Refused)
	return 0
}

// Sockets of killed dispatchers are removed by the next one; those in use, young ones
// and what is no socket of ours stay.
func TestStaleSockets(t *testing.T) {
	live := serving(t, newFake())
	dir := filepath.Dir(live.Address())
	dead := func(name string) string {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
		return filepath.Join(dir, name)
	}
	old, young := dead("old.sock"), dead("young.sock")
	file := filepath.Join(dir, "file.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-2 * staleAge)
	for _, path := range []string{old, file, live.Address()} {
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
	next, err := Listen(Options{Base: live.opt.Base, Open: live.opt.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	for path, want := range map[string]bool{old: false, young: true, file: true, live.Address(): true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
	dial(t, live)
}

// Another version says which program to use; another run's socket is no dispatcher of
// this one; what is no dcs-tui is named so.
func TestHellos(t *testing.T) {
	s := serving(t, newFake())
	if c := dial(t, s); c.Hello().Epoch != 3 || c.Hello().PID != os.Getpid() || c.Hello().Path == "" {
		t.Errorf("%+v", c.Hello())
	}
	if _, err := Dial(t.Context(), s.Address(), "run2", "v1"); !errors.Is(err, runview.ErrGone) {
		t.Error(err)
	}
	for answer, want := range map[string]string{
		`{"dcs":7,"program":"v9","path":"/opt/dcs-tui","refused":"another version of dcs-tui"}` + "\n": "use /opt/dcs-tui to look at the run",
		"SSH-2.0-OpenSSH\n":                 "is no dcs-tui",
		"{}\n":                              "is no dcs-tui",
		strings.Repeat("x", maxHello):       "is no dcs-tui",
		`{"dcs":1,"refused":"full"}` + "\n": "full",
		"":                                  "gone",
	} {
		ours, theirs := net.Pipe()
		go func() {
			bufio.NewReader(theirs).ReadString('\n')
			io.WriteString(theirs, answer)
			theirs.Close()
		}()
		if _, err := NewClient(t.Context(), ours, "", "v1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", answer, err)
		}
	}
	// An older screen is told as well.
	conn, err := net.Dial("unix", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	(&Hello{V: 99, Program: "v99"}).write(conn)
	if h, err := readHello(bufio.NewReader(conn)); err != nil || h.Refused == "" || h.Program != "v1" || h.V != Version {
		t.Errorf("%+v, %v", h, err)
	}
}

// A dispatcher that takes the connection and says nothing is deaf, not gone, within a
// time: stopped by Ctrl-Z, say. So is one that stops answering; the connection is
// closed then.
func TestDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		if _, err := NewClient(t.Context(), ours, "", "v1"); !errors.Is(err, ErrDeaf) {
			t.Error(err)
		}
		theirs.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		go func() {
			r := bufio.NewReader(theirs)
			readHello(r)
			(&Hello{V: Version}).write(theirs)
			io.Copy(io.Discard, r)
		}()
		c, err := NewClient(t.Context(), ours, "", "v1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Look(ctx, runview.Ask{Wait: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		begun := time.Now()
		if _, err := c.Look(t.Context(), runview.Ask{Wait: time.Minute}); !errors.Is(err, ErrDeaf) || time.Since(begun) > lookWithin {
			t.Error(err, time.Since(begun)) // the call taken back was not answered either
		}
		c.Close()
		theirs.Close()
	})
}

// A client that asks without end and never reads holds up nobody but itself, and is cut
// off in the end; so is one whose message is longer than it may be.
func TestStuckClient(t *testing.T) {
	f := newFake()
	f.picture.Over = strings.Repeat("x", 1<<20) // a picture fills the socket
	s := serving(t, f)
	conn, err := net.Dial("unix", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	(&Hello{V: Version}).write(conn)
	enc := gob.NewEncoder(conn)
	sent := 0
	for conn.SetWriteDeadline(time.Now().Add(300*time.Millisecond)) == nil && enc.Encode(&request{ID: uint64(sent + 1), Op: opLook}) == nil {
		sent++
	}
	if sent < maxCalls {
		t.Errorf("only %d requests were taken", sent)
	}
	c := dial(t, s)
	for range 100 {
		if _, err := c.Weigh(t.Context(), jobs.One(1)); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	n := len(s.conns)
	s.mu.Unlock()
	if n != 2 {
		t.Errorf("%d connections", n)
	}

	long, err := net.Dial("unix", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	(&Hello{V: Version}).write(long)
	r := bufio.NewReader(long)
	if _, err := readHello(r); err != nil {
		t.Fatal(err)
	}
	go io.Copy(long, io.MultiReader(strings.NewReader("\xfc\x3f\xff\xff\xff"), zeroes{})) // gob: a message of a gigabyte
	long.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it may send what it likes")
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Garbage after the hello ends that connection and nothing else.
func TestGarbage(t *testing.T) {
	s := serving(t, newFake())
	for _, text := range []string{"\x00", "GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff", strings.Repeat("\x01", 1000)} {
		conn, err := net.Dial("unix", s.Address())
		if err != nil {
			t.Fatal(err)
		}
		(&Hello{V: Version}).write(conn)
		io.WriteString(conn, text)
		conn.(*net.UnixConn).CloseWrite()
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: the connection stays", text)
		}
		conn.Close()
	}
	if _, err := dial(t, s).Look(t.Context(), runview.Ask{}); err != nil {
		t.Error(err)
	}
}

// No more than so many are served at once; the next is told why.
func TestTooMany(t *testing.T) {
	s := serving(t, newFake())
	for range maxScreens {
		dial(t, s)
	}
	if _, err := Dial(t.Context(), s.Address(), "run1", "v1"); err == nil || !strings.Contains(err.Error(), "attached already") {
		t.Error(err)
	}
}
