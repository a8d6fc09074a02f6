package rundir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A read takes only its piece, and what is no file is refused at once.
func TestReadPiece(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<30); err != nil { // a hole: it takes no space
		t.Fatal(err)
	}
	for _, c := range []struct {
		offset int64
		limit  int
		want   string
	}{{0, 4, "0123"}, {8, 4, "89\x00\x00"}, {1 << 30, 4, ""}, {1 << 40, 4, ""}, {-1 << 40, 2, "01"}, {-2, 9, "\x00\x00"}} {
		data, size, err := readPiece(path, c.offset, c.limit)
		if err != nil || size != 1<<30 || string(data) != c.want {
			t.Errorf("%d, %d: %q of %d, %v", c.offset, c.limit, data, size, err)
		}
	}
	if _, _, err := readPiece(dir, 0, 10); err == nil {
		t.Error("a directory was read")
	}
	pipe := filepath.Join(dir, "pipe") // as a job may put there
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readPiece(pipe, 0, 10); err == nil {
		t.Error("a pipe was read")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if data, _, err := readPiece(link, 0, 10); err == nil {
		t.Errorf("%q was read behind a link", data)
	}
	if _, _, err := readPiece(filepath.Join(dir, "none"), 0, 10); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A file system that hangs keeps nobody: who waits for a place leaves with its context.
func TestFileReaderIsLeft(t *testing.T) {
	r := NewFileReader()
	for range maxReads {
		r.places <- struct{}{} // reads that hang
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Read(ctx, "any", 0, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-r.places // one of them is over
	if data, size, err := r.Read(t.Context(), path, 1, 3); err != nil || string(data) != "ell" || size != 5 {
		t.Errorf("%q of %d, %v", data, size, err)
	}
}
