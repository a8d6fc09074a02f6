package regular_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"dcs-tui/internal/regular"
)

// TestAnErrorOfTheDiskIsNotAnotherKindOfFile checks that an open file whose state cannot be read, as on a
// file server that lost it, is not reported as a pipe or a device.
func TestAnErrorOfTheDiskIsNotAnotherKindOfFile(t *testing.T) {
	closed := func(path string, flags int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(path, flags, mode)
		if err == nil {
			err = f.Close()
		}
		return f, err
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := regular.Read(closed, path, 5); !errors.Is(err, os.ErrClosed) || errors.Is(err, regular.ErrKind) {
		t.Errorf("%v, want the error of the disk", err)
	}
}

// TestOnlyRegularFilesOfBoundedSizeAreRead checks that a pipe without a writer, a device, and a directory
// are refused at once, and that a file may have as many bytes as the limit, but not more.
func TestOnlyRegularFilesOfBoundedSizeAreRead(t *testing.T) {
	dir := t.TempDir()
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "file")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("12345"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		limit int64
		want  error
	}{
		{pipe, 5, regular.ErrKind}, {os.DevNull, 5, regular.ErrKind}, {dir, 5, regular.ErrKind},
		{file, 4, regular.ErrSize}, {file, 5, nil}, {file, 6, nil},
		{filepath.Join(dir, "missing"), 5, os.ErrNotExist},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			b, err := regular.Read(os.OpenFile, c.path, c.limit)
			if !errors.Is(err, c.want) || (err == nil) != (string(b) == "12345") {
				t.Errorf("%s, at most %d bytes: %q, %v; want %v", c.path, c.limit, b, err, c.want)
			}
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("reading %s blocks", c.path)
		}
	}
}
