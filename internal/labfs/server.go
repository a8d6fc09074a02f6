//go:build linux

package labfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts/hosttest"
)

// RequireEnv names the variable that makes a test fail, instead of being skipped, where FUSE does
// not work.
const RequireEnv = "DCS_REQUIRE_FAULTS"

// Server is a file server: a directory in memory, and its clients.
type Server struct {
	// Dir is the server's own view, which is never stale and never fails. Tests must inspect it and
	// not a mount.
	Dir string

	t  testing.TB
	fd int // open on Dir; handles are opened relative to it
}

// New creates a server that ends with the test. Where file systems cannot be mounted, it skips the
// test, or fails it if DCS_REQUIRE_FAULTS=1.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, fd: -1, Dir: filepath.Join(t.TempDir(), "server")}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		skipOrFail(t, "no FUSE here: %v", err)
	}
	// A file system of its own, because the one of TMPDIR may not support handles.
	if err := unix.Mount("labfs", s.Dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=256m,mode=0700"); err != nil {
		skipOrFail(t, "file systems cannot be mounted here (root is needed): %v", err)
	}
	t.Cleanup(s.close)
	var err error
	if s.fd, err = unix.Open(s.Dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) close() {
	unix.Close(s.fd)
	if err := unix.Unmount(s.Dir, unix.MNT_DETACH); err != nil {
		s.t.Errorf("unmounting %s: %v", s.Dir, err)
	}
}

// skipOrFail skips the test, or fails it if RequireEnv is set.
func skipOrFail(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(RequireEnv) == "1" {
		t.Fatalf(RequireEnv+"=1, but "+format, args...)
	}
	hosttest.LeaveOut(t, format, args...)
}
