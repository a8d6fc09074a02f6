//go:build linux

package remote

import (
	"errors"
	"io/fs"
	"math"

	"golang.org/x/sys/unix"
)

// Every call by which helper and supervisors touch files is made by a function of
// this file; only /proc, the pipes between them and processes are apart. So a test
// can let any single one fail, or let the process die at it.

// fault is set by tests alone. It is asked before each call (an error is then
// given instead of making it) and, with done, when it was made and went well: an
// error then stands for an answer that was lost on its way, as from a file server.
var fault func(op, path string, done bool) error

// call makes one call, again when a signal interrupts it. An error names the file.
func call(op, path string, do func() error) error {
	for {
		var err error
		if fault != nil {
			err = fault(op, path, false)
		}
		if err == nil {
			if err = do(); err == nil && fault != nil {
				err = fault(op, path, true)
			}
		}
		if err == nil {
			return nil
		}
		if err != unix.EINTR {
			return &fs.PathError{Op: op, Path: path, Err: err}
		}
	}
}

// openat opens with close-on-exec. It does not follow a symbolic link in the last
// element of the path, except to a directory: we create no links, and a link of
// somebody else may lead to any file of the user.
func openat(dirfd int, path string, flags int, mode uint32) (int, error) {
	fd, op := -1, "open"
	flags |= unix.O_CLOEXEC
	if flags&unix.O_DIRECTORY == 0 {
		flags |= unix.O_NOFOLLOW
	}
	if flags&unix.O_CREAT != 0 {
		op = "create"
	}
	err := call(op, path, func() (err error) {
		if fd >= 0 {
			unix.Close(fd)
		}
		fd, err = unix.Openat(dirfd, path, flags, mode)
		return err
	})
	if err != nil && fd >= 0 {
		unix.Close(fd)
		fd = -1
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Err == unix.ELOOP && flags&unix.O_NOFOLLOW != 0 {
		failed.Err = linkError{}
	}
	return fd, err
}

// linkError is the error for a symbolic link that is not followed. The text of ELOOP
// says something else.
type linkError struct{}

func (linkError) Error() string { return "it is a symbolic link, which is not followed" }
func (linkError) Unwrap() error { return unix.ELOOP }

// closeFile closes fd, whatever it returns: on a network file system an error
// says that what was written is not there. It is never repeated.
func closeFile(fd int, path string) error {
	var err error
	if fault != nil {
		err = fault("close", path, false)
	}
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err == nil && fault != nil {
		err = fault("close", path, true)
	}
	if err != nil {
		return &fs.PathError{Op: "close", Path: path, Err: err}
	}
	return nil
}

func read(fd int, path string, b []byte) (n int, err error) {
	err = call("read", path, func() (err error) {
		n, err = unix.Read(fd, b)
		return err
	})
	return max(0, n), err
}

func pread(fd int, path string, b []byte, off int64) (n int, err error) {
	err = call("read", path, func() (err error) {
		n, err = unix.Pread(fd, b, off)
		return err
	})
	return max(0, n), err
}

// pwrite writes all of b at off, in as many pieces as it takes.
func pwrite(fd int, path string, b []byte, off int64) error {
	for len(b) > 0 {
		n, piece := 0, b
		if fault != nil && fault("short", path, false) != nil {
			piece = b[:(len(b)+1)/2] // what a file system may do when it is almost full
		}
		err := call("write", path, func() (err error) {
			n, err = unix.Pwrite(fd, piece, off)
			if n == 0 && err == nil {
				err = unix.EIO // a file system that takes nothing and says nothing
			}
			return err
		})
		if err != nil {
			return err
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// fsync is not to be repeated when it has failed: the kernel may have dropped
// what it could not write, and say that all is well the next time.
func fsync(fd int, path string) error {
	return call("fsync", path, func() error { return unix.Fsync(fd) })
}

func renameat(fromdir int, from string, todir int, to string) error {
	return call("rename", from, func() error { return unix.Renameat(fromdir, from, todir, to) })
}

func linkat(from string, dirfd int, to string) error {
	return call("link", to, func() error { return unix.Linkat(unix.AT_FDCWD, from, dirfd, to, 0) })
}

// unlinkat removes a file; with unix.AT_REMOVEDIR an empty directory.
func unlinkat(dirfd int, path string, flags int) error {
	return call("unlink", path, func() error { return unix.Unlinkat(dirfd, path, flags) })
}

func mkdir(path string, mode uint32) error {
	return call("mkdir", path, func() error { return unix.Mkdir(path, mode) })
}

func mkfifo(path string, mode uint32) error {
	return call("mkfifo", path, func() error { return unix.Mkfifo(path, mode) })
}

func chmod(path string, mode uint32) error {
	return call("chmod", path, func() error { return unix.Chmod(path, mode) })
}

// statat looks at a file; with unix.AT_SYMLINK_NOFOLLOW not through a link.
func statat(dirfd int, path string, st *unix.Stat_t, flags int) error {
	return call("stat", path, func() error { return unix.Fstatat(dirfd, path, st, flags) })
}

func fstat(fd int, path string, st *unix.Stat_t) error {
	return call("stat", path, func() error { return unix.Fstat(fd, st) })
}

func statfs(path string, st *unix.Statfs_t) error {
	return call("statfs", path, func() error { return unix.Statfs(path, st) })
}

// rewind makes the next readdir start at the first name.
func rewind(fd int, path string) error {
	return call("seek", path, func() error {
		_, err := unix.Seek(fd, 0, 0)
		return err
	})
}

func readdir(fd int, path string, buf []byte) (n int, err error) {
	err = call("readdir", path, func() (err error) {
		n, err = unix.ReadDirent(fd, buf)
		return err
	})
	return max(0, n), err
}

func mapFile(fd int, path string, bytes int) (mem []byte, err error) {
	err = call("mmap", path, func() (err error) {
		mem, err = unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	})
	return mem, err
}

// lockRange takes an OFD write lock on n bytes of a file from an offset (0: to the end)
// without waiting. It returns EAGAIN if another open file holds a lock there.
func lockRange(fd int, path string, from, n int64) error {
	return call("lock", path, func() error {
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: from, Len: n})
	})
}

// unlockRange releases such a lock, even if other processes have inherited the open
// file.
func unlockRange(fd int, path string, from, n int64) error {
	return call("unlock", path, func() error {
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: from, Len: n})
	})
}

// lockedRange returns one of the ranges that other open files have locked for writing
// within n bytes from an offset (0: to the end); got is 0 if there is none.
func lockedRange(fd int, path string, from, n int64) (at, got int64, err error) {
	// The query is for a read lock, because read locks of others do not conflict with
	// it.
	l := unix.Flock_t{Type: unix.F_RDLCK, Start: from, Len: n}
	err = call("lock", path, func() error { return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &l) })
	if err != nil || l.Type == unix.F_UNLCK {
		return 0, 0, err
	}
	if l.Len == 0 {
		l.Len = math.MaxInt64 - l.Start
	}
	return l.Start, l.Len, nil
}
