//go:build linux

package labfs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"
)

// object is a file or directory of the server: its handle, and its attributes at the time of the
// lookup.
type object struct {
	handle unix.FileHandle
	stat   syscall.Stat_t
}

// lookUp looks up a name in an open directory; "." means the directory itself.
func lookUp(dir int, name string) (o object, errno syscall.Errno) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return o, fs.ToErrno(err)
	}
	defer unix.Close(fd)
	return objectOf(fd)
}

// objectOf returns the object on which fd is open.
func objectOf(fd int) (o object, errno syscall.Errno) {
	if err := syscall.Fstat(fd, &o.stat); err != nil {
		return o, fs.ToErrno(err)
	}
	var err error
	o.handle, _, err = unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	return o, fs.ToErrno(err)
}

// openHandle opens the object of a handle. It returns ESTALE if the server no longer has the
// object.
func (s *Server) openHandle(h unix.FileHandle, flags int) (int, syscall.Errno) {
	fd, err := unix.OpenByHandleAt(s.fd, h, flags|unix.O_CLOEXEC)
	return fd, fs.ToErrno(err)
}
