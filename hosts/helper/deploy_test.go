package helper

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
)

// connectVia connects with the given kind of link and work_dir.
func (f *shellHost) connectVia(c *Connector, link, workDir string) (hosts.Worker, error) {
	return c.Connect(f.t.Context(), &hosts.Host{Name: "melon4", Link: link, WorkDir: workDir},
		&hosts.Open{Run: "r1", Host: "melon4"})
}

// runsFrom connects, hangs up, and returns the directory from which the helper ran.
func (f *shellHost) runsFrom(c *Connector, link, workDir string) string {
	f.t.Helper()
	w, err := f.connectVia(c, link, workDir)
	must(f.t, err)
	dir := w.Hello().Dir
	w.Send(hosts.Bye{})
	for range w.Reports() {
	}
	w.Close()
	return dir
}

// tools creates a PATH with only the named programs.
func (f *shellHost) tools(names ...string) string {
	f.t.Helper()
	dir := f.t.TempDir()
	for _, n := range names {
		path, err := exec.LookPath(n)
		must(f.t, err)
		must(f.t, os.Symlink(path, filepath.Join(dir, n)))
	}
	return dir
}

// TestWhatHostsNeed checks that hosts without gzip get the plain file and that other hosts get a
// compressed one. A host needs only the programs listed here. An old timeout, which takes a number
// for the program to run, is not used. The bootstrap leaves no spool: that of a run is made and removed
// by its helpers.
func TestWhatHostsNeed(t *testing.T) {
	need := []string{"sh", "env", "uname", "id", "mkdir", "chmod", "wc", "rm", "find", "head", "cat", "dd", "mv"}
	for _, name := range []string{"plain", "gzip", "old timeout"} {
		t.Run(name, func(t *testing.T) {
			f := newShellHost(t)
			dir := f.tools(need...)
			switch name {
			case "gzip":
				dir += ":" + f.tools("gzip")
			case "old timeout":
				file(t, filepath.Join(dir, "timeout"), "#!/bin/sh\nexec \"$@\"\n")
			}
			f.env = []string{"PATH=" + dir}
			sent := &counter{}
			f.wrap = func(s hosts.Stream) hosts.Stream { return tapped{s, sent} }
			if place := f.runsFrom(f.connector(), "ssh", ""); place != f.base {
				t.Errorf("runs from %s", place)
			}
			if left, _ := os.ReadDir(filepath.Join(f.base, "runs")); len(left) > 0 {
				t.Errorf("the bootstrap has left %v", left)
			}
			own, _ := ownBinary()
			if packed := sent.n < own.size; packed != (name == "gzip") {
				t.Errorf("%d bytes sent of a binary of %d", sent.n, own.size)
			}
		})
	}
}

// counter counts the bytes that are written and damages one of them.
type counter struct {
	n     int64
	spoil int64         // 0: none
	kept  *bytes.Buffer // receives what is written, unless it is nil
}

// tapped is a stream whose standard input goes through a counter.
type tapped struct {
	hosts.Stream
	c *counter
}

func (s tapped) Stdin() io.WriteCloser { return tap{s.Stream.Stdin(), s.c} }

type tap struct {
	io.WriteCloser
	c *counter
}

func (t tap) Write(p []byte) (int, error) {
	if at := t.c.spoil - t.c.n; t.c.spoil > 0 && at >= 0 && at < int64(len(p)) {
		p = append([]byte(nil), p...)
		p[at] ^= 0x40
	}
	t.c.n += int64(len(p))
	if t.c.kept != nil {
		t.c.kept.Write(p)
	}
	return t.WriteCloser.Write(p)
}

// TestDamagedUploadIsDetected checks that a host detects a byte that was damaged on the way.
// Nothing runs, and nothing is left.
func TestDamagedUploadIsDetected(t *testing.T) {
	polltest.Long(t)
	own, err := ownBinary()
	must(t, err)
	for name, at := range map[string]int64{"header": 300, "code": own.size / 2, "end": own.size} {
		t.Run(name, func(t *testing.T) {
			f := newShellHost(t)
			f.wrap = func(s hosts.Stream) hosts.Stream { return tapped{s, &counter{spoil: at}} }
			_, err := f.connectVia(f.connector(), "local", "/dev/null/work")
			if err == nil || hosts.ClassOf(err) != hosts.Broken || !strings.Contains(err.Error(), "arrived damaged") {
				t.Errorf("got %v", err)
			}
			if list, _ := os.ReadDir(filepath.Join(f.base, "bin")); len(list) != 0 {
				t.Errorf("left behind: %v", list)
			}
		})
	}
}

// TestPlaceIsStable checks the order of locations, so that a host keeps its spool: first the
// location that holds the spool of this run, then one that already has the binary, then the others.
func TestPlaceIsStable(t *testing.T) {
	f := newShellHost(t)
	conn := f.connector()
	work := filepath.Join(f.home, "work")
	if err := os.WriteFile(f.base, nil, 0o600); err != nil { // unusable at first
		t.Fatal(err)
	}
	if dir := f.runsFrom(conn, "local", work); dir != work {
		t.Fatalf("runs from %s", dir)
	}
	os.Remove(f.base)
	if dir := f.runsFrom(conn, "local", work); dir != work {
		t.Errorf("the binary is in %s, but it runs from %s", work, dir)
	}
	must(t, os.MkdirAll(filepath.Join(f.base, "runs", "r1", "melon4"), 0o700))
	if dir := f.runsFrom(conn, "local", work); dir != f.base {
		t.Errorf("the spool is in %s, but it runs from %s", f.base, dir)
	}
}

// TestCutCopyIsReplaced checks that a file of the right name but another size, as a crash leaves
// it, is replaced. Files that interrupted senders left long ago are removed, and so are versions
// that nobody has used for a month. Files in use stay.
func TestCutCopyIsReplaced(t *testing.T) {
	f := newShellHost(t)
	own, err := ownBinary()
	must(t, err)
	bin := filepath.Join(f.base, "bin")
	must(t, os.MkdirAll(bin, 0o700))
	must(t, os.WriteFile(filepath.Join(bin, "dcs-tui-of-today"), nil, 0o700))
	for _, name := range []string{"dcs-tui-" + own.id, ".new-0123", "dcs-tui-of-last-year"} {
		file(t, filepath.Join(bin, name), "#!/bin/sh\n")
		must(t, os.Chtimes(filepath.Join(bin, name), time.Unix(0, 0), time.Unix(0, 0)))
	}
	conn := f.connector()
	f.mustServe(conn)
	if list, _ := os.ReadDir(bin); len(list) != 2 {
		t.Errorf("in bin: %v", list)
	}
}

// TestConcurrentDeploysDoNotDisturbEachOther checks that several dispatchers that send at the same
// time do not disturb each other.
func TestConcurrentDeploysDoNotDisturbEachOther(t *testing.T) {
	polltest.Long(t)
	f := newShellHost(t)
	var wg sync.WaitGroup
	for range 4 {
		c := f.connector()
		wg.Go(func() { f.mustServe(c) })
	}
	wg.Wait()
	if list, _ := os.ReadDir(filepath.Join(f.base, "bin")); len(list) != 1 {
		t.Errorf("in bin: %v", list)
	}
}

// TestWorkDirWithLineBreak checks that a work_dir that contains a line break is refused on this
// side, and that the error names the host.
func TestWorkDirWithLineBreak(t *testing.T) {
	f := newShellHost(t)
	_, err := f.connectVia(f.connector(), "local", "/a\n/b")
	var e *hosts.Error
	if !errors.As(err, &e) || e.Class != hosts.Misconfigured || e.Host != "melon4" ||
		!strings.Contains(err.Error(), "work_dir") {
		t.Errorf("got %v", err)
	}
}

// TestBinaryOutlivesItsName checks that the program that is sent is the one that was hashed, even
// if its file is deleted or replaced.
func TestBinaryOutlivesItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dcs-tui-linux-arm64")
	want := bytes.Repeat([]byte("program"), 10000)
	must(t, os.WriteFile(path, want, 0o600))
	b, err := loadBinary(path, path)
	must(t, err)
	defer b.close()
	must(t, os.Remove(path))
	r, err := b.content()
	must(t, err)
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), b.size, err)
	}
	packed, err := b.packed()
	must(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes unpacked, %v", len(got), err)
	}
	if len(b.id) != 64 {
		t.Errorf("id %q", b.id)
	}
}

// TestOtherMachineIsRefusedWithABuildCommand checks that a host with another operating system or
// architecture is refused with the command that builds for it. If such a program lies beside ours,
// it is sent.
func TestOtherMachineIsRefusedWithABuildCommand(t *testing.T) {
	for _, c := range []struct{ uname, want string }{
		{"Linux aarch64", "use a release or `make build`: such a dcs-tui has the programs for linux/amd64 and " +
			"linux/arm64; or build one from the same sources: CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -o "},
		{"Linux armv7l", "GOARCH=arm go build"},
		{"Linux vax", "dcs-tui does not know this architecture"},
		{"Darwin arm64", "only Linux hosts can be used"},
	} {
		t.Run(c.uname, func(t *testing.T) {
			f := newShellHost(t)
			dir, beside := t.TempDir(), t.TempDir()
			file(t, filepath.Join(dir, "uname"), "#!/bin/sh\necho "+c.uname)
			f.env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			conn := f.connector()
			conn.binaries.dir = func() (string, error) { return beside, nil }
			_, err := f.connect(conn)
			if err == nil || hosts.ClassOf(err) != hosts.Misconfigured || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "the host is "+c.uname) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if c.uname != "Linux aarch64" {
				return
			}
			if !strings.Contains(err.Error(), filepath.Join(beside, "dcs-tui-linux-arm64")) {
				t.Errorf("%v does not say where it would be looked for", err)
			}
			self, err := os.ReadFile("/proc/self/exe")
			must(t, err)
			must(t, os.WriteFile(filepath.Join(beside, "dcs-tui-linux-arm64"), append(self, '\n'), 0o600))
			f.mustServe(conn)
			own, _ := ownBinary()
			list, _ := os.ReadDir(filepath.Join(f.base, "bin"))
			for _, e := range list {
				if e.Name() == "dcs-tui-"+own.id && len(list) == 1 {
					t.Errorf("our own program was sent: %v", list)
				}
			}
		})
	}
}
