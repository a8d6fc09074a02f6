//go:build linux

package labfs_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/labfs"
	"dcs-tui/internal/polltest"
)

// long is a cache time that exceeds the duration of every test.
const long = 10 * time.Minute

// runShell runs a shell script with $a and $b as the mounts and returns its output. The shell is a
// process of its own, because the process that serves a mount must not use it.
func runShell(t *testing.T, script string, mounts ...*labfs.Mount) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	for i, m := range mounts {
		cmd.Env = append(cmd.Env, string(rune('a'+i))+"="+m.Dir)
	}
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		text = strings.TrimSpace(text + "\n" + err.Error())
	}
	return text
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// expectPart checks a part of an output.
func expectPart(t *testing.T, what, got, part string) {
	t.Helper()
	if !strings.Contains(got, part) {
		t.Errorf("%s: %q, want %q in it", what, got, part)
	}
}

// TestNamesAndAttributesAreStale checks that a name that was looked up before it existed stays
// invisible until its directory is listed, and that attributes are cached until the file is opened.
func TestNamesAndAttributesAreStale(t *testing.T) {
	s := labfs.New(t)
	a, b := s.Mount(labfs.Options{Stale: long}), s.Mount(labfs.Options{Stale: long})
	expect(t, "before", runShell(t, "test -e $a/x || echo none", a), "none")
	runShell(t, "echo hello > $b/x", a, b)
	expect(t, "polled", runShell(t, "test -e $a/x || echo none; cat $a/x 2>&1 | grep -o 'No such'", a), "none\nNo such")
	expect(t, "listed", runShell(t, "ls $a; cat $a/x", a), "x\nhello")
	expect(t, "size", runShell(t, "stat -c %s $a/x", a), "6")
	runShell(t, "echo world >> $b/x", a, b)
	expect(t, "size kept", runShell(t, "stat -c %s $a/x", a), "6")
	expect(t, "opened", runShell(t, "wc -c < $a/x; stat -c %s $a/x", a), "12\n12")
	runShell(t, "rm $b/x", a, b)
	expect(t, "removed name kept", runShell(t, "stat -c %s $a/x", a), "12")
	expect(t, "listed again", runShell(t, "ls $a; test -e $a/x || echo none", a), "none")
}

// TestRenamedFileIsOpenedByItsHandle checks that a name that another client has renamed is opened
// by its handle, and that a name that it has replaced shows the old file until the directory is
// listed.
func TestRenamedFileIsOpenedByItsHandle(t *testing.T) {
	s := labfs.New(t)
	a, b := s.Mount(labfs.Options{Stale: long}), s.Mount(labfs.Options{Stale: long})
	runShell(t, "echo one > $a/x; echo two > $b/y; stat $a/x $a/y", a, b)
	runShell(t, "mv $b/x $b/z; mv $b/y $b/w", a, b)
	expect(t, "old name", runShell(t, "cat $a/x", a), "one")
	expect(t, "listed", runShell(t, "ls $a; cat $a/z $a/w", a), "w\nz\none\ntwo")
}

// TestWritesReachOthersAtClose checks close-to-open consistency: other clients see written data
// after fsync or close.
func TestWritesReachOthersAtClose(t *testing.T) {
	s := labfs.New(t)
	a, b := s.Mount(labfs.Options{WriteBack: true}), s.Mount(labfs.Options{})
	got := runShell(t, `p=$(mktemp -u); mkfifo $p; cat $p > $a/x & exec 6> $p; echo hello >&6
		until [ "$(cat $a/x)" = hello ]; do sleep 0.01; done
		echo "$(wc -c < $b/x) $(cat $a/x)"; exec 6>&-; wait; cat $b/x; rm $p`, a, b)
	expect(t, "before and after close", got, "0 hello\nhello")
	got = runShell(t, `dd if=/dev/zero of=$a/y bs=10 count=1 conv=fsync 2>/dev/null; wc -c < $b/y`, a, b)
	expect(t, "after fsync", got, "10")
}

// TestFullServerRefusesAtClose checks that a full server may accept a write and refuse it at close,
// and that writes over reserved bytes succeed.
func TestFullServerRefusesAtClose(t *testing.T) {
	s := labfs.New(t)
	a, w := s.Mount(labfs.Options{}), s.Mount(labfs.Options{WriteBack: true})
	runShell(t, "echo hello > $a/x; echo hello > $a/y", a)
	a.SetFull(true)
	w.SetFull(true)
	for _, m := range []*labfs.Mount{a, w} {
		expect(t, "create", runShell(t, "echo x > $a/new", m), "/bin/sh: 1: cannot create "+m.Dir+
			"/new: No space left on device\nexit status 2")
		expect(t, "over", runShell(t, "printf HE 1<> $a/x; cat $a/x", m), "HEllo")
		expectPart(t, "append", runShell(t,
			"dd if=/dev/zero of=$a/y bs=100 count=1 oflag=append conv=notrunc 2>&1 | head -1", m), "No space left")
		expect(t, "size", runShell(t, "wc -c < $a/y", m), "6")
		expect(t, "room", runShell(t, "stat -f -c %a $a", m), "0")
	}
	expect(t, "says ok, then refuses", runShell(t,
		`dd if=/dev/zero of=$a/y bs=100 count=1 oflag=append conv=notrunc 2>&1 | grep -o 'closing.*'`, w),
		"closing output file '"+w.Dir+"/y': No space left on device")
	a.SetFull(false)
	expect(t, "room again", runShell(t, "echo x > $a/new; cat $a/new", a), "x")
}

// TestReadOnlyMountRefusesChanges checks that a read-only mount refuses every change and no read.
func TestReadOnlyMountRefusesChanges(t *testing.T) {
	s := labfs.New(t)
	a := s.Mount(labfs.Options{})
	runShell(t, "echo hello > $a/x", a)
	a.SetReadOnly(true)
	for _, c := range []string{"echo x >> $a/x", "echo x > $a/y", "mkdir $a/d", "rm -f $a/x", "mv $a/x $a/y",
		"ln $a/x $a/y"} {
		expectPart(t, c, runShell(t, c, a), "Read-only file system")
	}
	expect(t, "reading", runShell(t, "cat $a/x", a), "hello")
}

// TestCallWithALostReplyIsCarriedOut checks that a call whose reply is lost is carried out although
// its answer is an error.
func TestCallWithALostReplyIsCarriedOut(t *testing.T) {
	for _, c := range []struct {
		op           labfs.Op
		script, says string
		left         string // names that the server has afterwards
	}{
		{labfs.Create, "set -C; echo x > $a/new", "cannot create", "new\nold"},
		{labfs.Mkdir, "mkdir $a/new", "File exists", "new\nold"},
		{labfs.Link, "ln $a/old $a/new", "File exists", "new\nold"},
		{labfs.Rename, "mv $a/old $a/new", "No such file", "new"},
		{labfs.Unlink, "unlink $a/old", "No such file", ""},
	} {
		s := labfs.New(t)
		a := s.Mount(labfs.Options{Stale: long})
		runShell(t, "echo hello > $a/old; test -e $a/new", a)
		a.LoseReplies(c.op, "", 1)
		expectPart(t, c.script, runShell(t, c.script, a), c.says)
		expect(t, "after "+c.script, runShell(t, "ls "+s.Dir), c.left)
	}
}

// TestFailAffectsTheNamedCalls checks that Fail affects the calls that it names, as often as
// requested, and that a failed close loses the data that was not stored yet.
func TestFailAffectsTheNamedCalls(t *testing.T) {
	s := labfs.New(t)
	a := s.Mount(labfs.Options{WriteBack: true})
	f := a.Fail(labfs.Fault{Ops: labfs.Create, Name: "*.exit", Errno: syscall.EDQUOT, Count: 2})
	expect(t, "others", runShell(t, "echo x > $a/1.out; cat $a/1.out", a), "x")
	for range 2 {
		expectPart(t, "the first two", runShell(t, "echo x > $a/1.exit", a), "quota exceeded")
	}
	expect(t, "the third", runShell(t, "echo x > $a/1.exit; cat $a/1.exit", a), "x")
	if f.NumFailed() != 2 {
		t.Errorf("%d hits", f.NumFailed())
	}
	a.Fail(labfs.Fault{Ops: labfs.Flush, Name: "*.log", Errno: syscall.EIO, Count: 1})
	expectPart(t, "close", runShell(t, "dd if=/dev/zero of=$a/a.log bs=7 count=1 2>&1", a), "Input/output error")
	expect(t, "stored", runShell(t, "wc -c < $a/a.log", a), "0")
	all := a.Fail(labfs.Fault{Ops: labfs.Any, Errno: syscall.ESTALE})
	expectPart(t, "stale", runShell(t, "cat $a/1.exit", a), "Stale file handle")
	all.Stop()
	expect(t, "healed", runShell(t, "cat $a/1.exit", a), "x")
}

// TestEveryCallOnAHungMountHangs checks that every call on a hung mount hangs, that only a fatal
// signal interrupts it, that the mount works again after Resume, and that the test can end whatever
// hangs.
func TestEveryCallOnAHungMountHangs(t *testing.T) {
	var abandoned chan error
	t.Cleanup(func() { <-abandoned }) // after the mounts have ended while hung
	s := labfs.New(t)
	a, b := s.Mount(labfs.Options{}), s.Mount(labfs.Options{})
	runShell(t, "echo hello > $a/x", a)
	a.Hang()
	start := func(script string) (*exec.Cmd, *strings.Builder, chan error) {
		var out strings.Builder
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Env = []string{"a=" + a.Dir, "PATH=" + os.Getenv("PATH")}
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		return cmd, &out, done
	}
	healed, out, done := start("trap 'echo signal' TERM; read x < $a/x; echo $x")
	killed, _, dead := start("exec cat $a/x")
	polltest.Until(t, "two calls hang", func() bool { return a.NumWaiting() == 2 })
	expect(t, "the other client", runShell(t, "cat $a/x", b), "hello")
	healed.Process.Signal(syscall.SIGTERM)
	killed.Process.Kill()
	<-dead
	select {
	case err := <-done:
		t.Errorf("a signal that it catches ended a process that hangs: %v", err)
	default:
	}
	a.Resume()
	<-done
	expect(t, "the call that hung", out.String(), "signal\nhello\n")
	a.Hang()
	_, _, last := start("exec cat $a/x")
	polltest.Until(t, "a call hangs", func() bool { return a.NumWaiting() == 1 })
	abandoned = last
}

// TestTheDeviceIsNotInherited checks that children do not inherit the FUSE device. A child that
// outlived a crashed test would otherwise keep its mounts, and everything that hangs in them,
// forever.
func TestTheDeviceIsNotInherited(t *testing.T) {
	s := labfs.New(t)
	a := s.Mount(labfs.Options{})
	expect(t, "devices", runShell(t, "ls -l /proc/self/fd | grep fuse || echo none", a), "none")
}

// TestHangWhileAProgramStarts checks a program that is started while a written file of its parent
// hangs. The program is delayed when it closes the file. It does not delay the server, and
// continues when the server answers.
func TestHangWhileAProgramStarts(t *testing.T) {
	s := labfs.New(t)
	a := s.Mount(labfs.Options{WriteBack: true})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envHeld+"="+filepath.Join(a.Dir, "x"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "ready\n" {
		t.Fatalf("the child: got %q, %v; want \"ready\"", line, err)
	}
	a.Hang()
	io.WriteString(in, "go\n")
	polltest.Until(t, "a call hangs", func() bool { return a.NumWaiting() > 0 })
	// Meanwhile the server checks several times whether the caller is dying. It reports no check.
	time.Sleep(200 * time.Millisecond)
	a.Resume()
	rest, err := io.ReadAll(out)
	if err != nil || string(rest) != "started\n" {
		t.Errorf("the child: got %q, %v; want \"started\"", rest, err)
	}
}
