package rundir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestErrorsOfOtherSystemsAreTranslated checks that the errors of FreeBSD and macOS for a symbolic link
// and a socket are those on which callers decide.
func TestErrorsOfOtherSystemsAreTranslated(t *testing.T) {
	for from, want := range map[error]error{unix.EMLINK: unix.ELOOP, unix.EOPNOTSUPP: ErrNotRegular,
		unix.EACCES: unix.EACCES} {
		if err := openError("p", &os.PathError{Op: "open", Path: "p", Err: from}); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", from, err, want)
		}
	}
}

// TestOnlyRegularFilesAreOpened checks that what a job may have put in place of a file of the run is
// refused without waiting: a pipe, a directory, a device, a link, and a sparse file of 1 TiB.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	huge, err := os.Create(path("huge"))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{unix.Mkfifo(path("pipe"), 0o600), os.Mkdir(path("dir"), 0o700),
		os.Symlink("/dev/zero", path("device")),
		os.Symlink("/etc/passwd", path("link")), huge.Truncate(1 << 40), huge.Close(), os.WriteFile(path("file"),
			[]byte("text"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"pipe", "dir", "device", "link"} {
		t.Run(name, func(t *testing.T) {
			for _, flag := range []int{os.O_RDONLY, os.O_RDWR, os.O_WRONLY, os.O_WRONLY | os.O_CREATE} {
				if f, err := OS.OpenFile(path(name), flag, 0); err == nil {
					t.Errorf("%s was opened with %#x", name, flag)
					f.Close()
				}
			}
		})
	}
	for _, name := range []string{"pipe", "dir", "device", "link", "huge"} {
		t.Run(name, func(t *testing.T) {
			if b, err := ReadFile(OS, path(name)); err == nil {
				t.Errorf("%s was read: %d bytes", name, len(b))
			}
		})
	}
	if b, err := ReadFile(OS, path("file")); err != nil || string(b) != "text" {
		t.Errorf("a regular file: %q, %v", b, err)
	}
}

// readOnlyDisk refuses every change, as a read-only file system does.
type readOnlyDisk struct{ Disk }

func (d readOnlyDisk) OpenFile(path string, flag int, mode fs.FileMode) (File, error) {
	if flag&os.O_CREATE != 0 {
		return nil, syscall.EROFS
	}
	return d.Disk.OpenFile(path, flag, mode)
}

func (readOnlyDisk) Remove(string) error { return syscall.EROFS }

// TestNothingStaysBehindOnAReadOnlyDisk checks that the error of a file that could not be created does not
// name files that stay behind.
func TestNothingStaysBehindOnAReadOnlyDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "request")
	err := Replace(readOnlyDisk{OS}, path, []byte("x"))
	if !errors.Is(err, syscall.EROFS) || strings.Contains(err.Error(), "behind") {
		t.Errorf("got the error %v, want only %v", err, syscall.EROFS)
	}
}
