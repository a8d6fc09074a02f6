//go:build linux

package labfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts/hosttest"
)

// RequireEnv is the variable that makes a test fail where FUSE cannot be had,
// instead of being left out.
const RequireEnv = "DCS_REQUIRE_FAULTS"

// Server is a file server: a directory in memory, and its clients.
type Server struct {
	// Dir is what the server itself sees: never stale, never failing. Tests look
	// into it and never into a mount.
	Dir string

	t  testing.TB
	fd int // of Dir; handles are opened relative to it
}

// New makes a server, which ends with the test. Where file systems cannot be
// mounted the test is left out, or fails if DCS_REQUIRE_FAULTS=1.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, fd: -1, Dir: filepath.Join(t.TempDir(), "server")}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		leaveOut(t, "no FUSE here: %v", err)
	}
	// A file system of our own: whatever lies under TMPDIR may know no handles.
	if err := unix.Mount("labfs", s.Dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=256m,mode=0700"); err != nil {
		leaveOut(t, "file systems cannot be mounted here (root is needed): %v", err)
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

// leaveOut skips the test, or fails it where it must run.
func leaveOut(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv(RequireEnv) == "1" {
		t.Fatalf(RequireEnv+"=1, but "+format, args...)
	}
	hosttest.LeaveOut(t, format, args...)
}
