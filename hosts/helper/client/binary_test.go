package client

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts"
)

// The program that is sent stays the one that was hashed when its file is
// deleted or replaced, and it is compressed once for all who send it together.
func TestBinaryOutlivesItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dcs-tui-linux-arm64")
	want := bytes.Repeat([]byte("program"), 10000)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := loadBinary(path, path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.file.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r, n, err := b.plain()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) || n != int64(len(want)) {
		t.Errorf("%d bytes of %d, %v", len(got), n, err)
	}
	one, n, err := b.gzipped()
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := b.gzipped()
	if err != nil || one.(*held).buf != two.(*held).buf {
		t.Errorf("compressed twice, %v", err)
	}
	for _, r := range []io.Reader{one, two} {
		packed, err := io.ReadAll(r)
		if err != nil || int64(len(packed)) != n {
			t.Fatalf("%d bytes, announced %d, %v", len(packed), n, err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes unpacked, %v", len(got), err)
		}
	}
	if len(b.hash) != 64 {
		t.Errorf("hash %q", b.hash)
	}
}

// A host of another kind is refused with the command that builds for it; when
// such a program lies beside ours, it is sent.
func TestOtherMachines(t *testing.T) {
	for _, c := range []struct{ uname, want string }{
		{"Linux aarch64", "GOOS=linux GOARCH=arm64 go build -o "},
		{"Linux armv7l", "GOARCH=arm go build"},
		{"Linux vax", "Go names no such architecture"},
		{"Darwin arm64", "only Linux hosts can be used"},
	} {
		t.Run(c.uname, func(t *testing.T) {
			f := newFar(t)
			dir, beside := t.TempDir(), t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "uname"), []byte("#!/bin/sh\necho "+c.uname), 0o700); err != nil {
				t.Fatal(err)
			}
			f.env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			conn := f.connector()
			conn.binaries.dir = func() (string, error) { return beside, nil }
			_, err := f.connect(conn)
			if err == nil || hosts.ClassOf(err) != hosts.Misconfigured || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "the host is "+c.uname) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if c.uname != "Linux aarch64" {
				return
			}
			if !strings.Contains(err.Error(), filepath.Join(beside, "dcs-tui-linux-arm64")) {
				t.Errorf("%v does not say where it would be looked for", err)
			}
			self, err := os.ReadFile("/proc/self/exe")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(beside, "dcs-tui-linux-arm64"), append(self, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
			f.mustServe(conn)
			own, _ := ownBinary()
			list, _ := os.ReadDir(filepath.Join(f.base, "bin"))
			for _, e := range list {
				if e.Name() == "dcs-tui-"+own.hash && len(list) == 1 {
					t.Errorf("our own program was sent: %v", list)
				}
			}
		})
	}
}

// BenchmarkConnect is what a connection costs when the helper is there: bootstrap
// and hello over a local process, without the price of the link.
func BenchmarkConnect(b *testing.B) {
	f := &far{t: b, home: b.TempDir(), base: filepath.Join(b.TempDir(), "base"), shell: `exec "$@"`}
	c := f.connector()
	connect := func() {
		w, err := f.connect(c)
		if err != nil {
			b.Fatal(err)
		}
		w.Close()
	}
	connect()
	for b.Loop() {
		connect()
	}
}
