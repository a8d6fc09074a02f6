//go:build linux

package remote

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs/rundir"
)

// The helper and the supervisors access files only through the functions of this file,
// except for /proc and the pipes between them. Tests can therefore make any single call
// fail, or let the process die at it.

// fault is set by tests only. It is called before each call, with done false: if it returns
// an error, the call is not made. It is called again after a call that succeeded, with
// done true: an error then simulates a lost reply of a file server.
var fault func(op, path string, done bool) error

// call is rundir.Call with faults.
func call(op, path string, do func() error) error {
	return rundir.Call(op, path, func() error {
		if fault == nil {
			return do()
		}
		err := fault(op, path, false)
		if err == nil {
			if err = do(); err == nil {
				err = fault(op, path, true)
			}
		}
		return err
	})
}

// guarded holds the directories of guard.
var guarded atomic.Pointer[[]string]

// guard makes all later calls on paths below dir follow no symbolic link there. dir is a directory of the
// program. A job, or whoever cleans up, may have put a link into it. dir itself may be behind links,
// because the user has chosen its path.
func guard(dir string) {
	for was := guarded.Load(); ; was = guarded.Load() {
		var all []string
		if was != nil {
			all = *was
		}
		if slices.Contains(all, dir) || guarded.CompareAndSwap(was, new(append(slices.Clip(all), dir))) {
			return
		}
	}
}

// at makes a call on a path that is relative to dirfd. With unix.AT_FDCWD and below a guarded directory, the
// innermost one if there are several, it makes the call as rundir.At does.
func at(dirfd int, path string, do func(dirfd int, name string, noFollow int) error) error {
	root := ""
	if all := guarded.Load(); all != nil && dirfd == unix.AT_FDCWD {
		for _, dir := range *all {
			if len(dir) > len(root) && strings.HasPrefix(path, dir+"/") {
				root = dir
			}
		}
	}
	if root == "" {
		return do(dirfd, path, 0)
	}
	return rundir.At(root, filepath.Clean(path), do)
}

// isAny reports whether err is, or wraps, one of some errors.
func isAny(err error, some ...error) bool {
	return slices.ContainsFunc(some, func(e error) bool { return errors.Is(err, e) })
}

// isMissing reports whether there is nothing at a path.
func isMissing(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// openat opens a regular file or, with unix.O_DIRECTORY, a directory, with close-on-exec. It neither waits
// at a pipe that somebody has put there, nor follows a symbolic link in the last element of the path,
// except to a directory: we create no links, and a link of somebody else may lead to any file of the user.
func openat(dirfd int, path string, flags int, mode uint32) (int, error) {
	return openKind(unix.S_IFREG, dirfd, path, flags, mode)
}

// openFIFO opens a named pipe for reading and writing, so that it needs no other end and never ends.
func openFIFO(path string) (int, error) {
	return openKind(unix.S_IFIFO, unix.AT_FDCWD, path, unix.O_RDWR|unix.O_NONBLOCK, 0)
}

// openKind opens a file of one type, or a directory with unix.O_DIRECTORY. It returns errNotPlain for one of
// another type.
func openKind(kind uint32, dirfd int, path string, flags int, mode uint32) (int, error) {
	fd, op := -1, "open"
	flags |= unix.O_CLOEXEC
	if flags&unix.O_DIRECTORY == 0 {
		flags |= unix.O_NOFOLLOW
	}
	if flags&unix.O_CREAT != 0 {
		op = "create"
	}
	err := call(op, path, func() error {
		if fd >= 0 {
			unix.Close(fd)
		}
		return at(dirfd, path, func(dirfd int, name string, noFollow int) (err error) {
			fd, err = openOnce(kind, dirfd, name, flags|noFollow, mode)
			return err
		})
	})
	if err != nil && fd >= 0 {
		unix.Close(fd)
		fd = -1
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Err == unix.ELOOP && flags&unix.O_NOFOLLOW != 0 {
		failed.Err = linkError{}
	}
	if err == errNotPlain {
		err = &fs.PathError{Op: op, Path: path, Err: err}
	}
	return fd, err
}

// openOnce opens a file without waiting, and gives it the flags that were asked for. It may return a file with
// an error.
func openOnce(kind uint32, dirfd int, name string, flags int, mode uint32) (int, error) {
	if flags&(unix.O_DIRECTORY|unix.O_EXCL) != 0 {
		return unix.Openat(dirfd, name, flags, mode)
	}
	fd, err := rundir.OpenNoWait(dirfd, name, flags, mode)
	if err == unix.ENXIO { // a socket, or a pipe that nobody reads
		err = errNotPlain
	}
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT != kind {
		err = errNotPlain
	}
	if err == nil && flags&unix.O_NONBLOCK == 0 {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&unix.O_APPEND)
	}
	return fd, err
}

var errNotPlain = errors.New("not an ordinary file")

// isNotPlain reports whether something was not opened because it is no regular file.
func isNotPlain(err error) bool { return errors.Is(err, errNotPlain) || errors.Is(err, unix.ELOOP) }

// linkError is the error for a symbolic link that is not followed. It has a clearer text
// than ELOOP.
type linkError struct{}

func (linkError) Error() string { return "it is a symbolic link, which is not followed" }
func (linkError) Unwrap() error { return unix.ELOOP }

// closeFile closes fd in any case and never repeats the call. An error may mean that
// written data was lost: network file systems report that at close.
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
	// A close that is interrupted has released the descriptor, and what was written stays (close(2)).
	if err != nil && err != unix.EINTR {
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

// pwrite writes all of b at off. It may need several calls.
func pwrite(fd int, path string, b []byte, off int64) error {
	for len(b) > 0 {
		n, piece := 0, b
		if fault != nil && fault("short", path, false) != nil {
			piece = b[:(len(b)+1)/2] // a nearly full file system may accept only a part
		}
		err := call("write", path, func() (err error) {
			n, err = unix.Pwrite(fd, piece, off)
			if n == 0 && err == nil {
				err = unix.EIO // nothing was written, and no error was reported
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

// fsync must not be repeated after an error: the kernel may have dropped the data and
// report success the next time.
func fsync(fd int, path string) error {
	return call("fsync", path, func() error { return unix.Fsync(fd) })
}

func renameat(fromdir int, from string, todir int, to string) error {
	return call("rename", from, func() error {
		return at(fromdir, from, func(fromdir int, from string, _ int) error {
			return at(todir, to, func(todir int, to string, _ int) error {
				return unix.Renameat(fromdir, from, todir, to)
			})
		})
	})
}

func linkat(from string, dirfd int, to string) error {
	return call("link", to, func() error {
		return at(unix.AT_FDCWD, from, func(fromdir int, from string, _ int) error {
			return unix.Linkat(fromdir, from, dirfd, to, 0)
		})
	})
}

// unlinkat removes a file or, with unix.AT_REMOVEDIR, an empty directory.
func unlinkat(dirfd int, path string, flags int) error {
	return call("unlink", path, func() error {
		return at(dirfd, path, func(dirfd int, name string, _ int) error { return unix.Unlinkat(dirfd, name, flags) })
	})
}

func mkdir(path string, mode uint32) error {
	return call("mkdir", path, func() error {
		return at(unix.AT_FDCWD, path, func(dirfd int, name string, _ int) error {
			return unix.Mkdirat(dirfd, name, mode)
		})
	})
}

func mkfifo(path string, mode uint32) error {
	return call("mkfifo", path, func() error {
		return at(unix.AT_FDCWD, path, func(dirfd int, name string, _ int) error {
			return unix.Mknodat(dirfd, name, unix.S_IFIFO|mode, 0)
		})
	})
}

func fchmod(fd int, path string, mode uint32) error {
	return call("chmod", path, func() error { return unix.Fchmod(fd, mode) })
}

// statat follows symbolic links unless flags contain unix.AT_SYMLINK_NOFOLLOW.
func statat(dirfd int, path string, st *unix.Stat_t, flags int) error {
	return call("stat", path, func() error { return unix.Fstatat(dirfd, path, st, flags) })
}

func fstat(fd int, path string, st *unix.Stat_t) error {
	return call("stat", path, func() error { return unix.Fstat(fd, st) })
}

func statfs(path string, st *unix.Statfs_t) error {
	return call("statfs", path, func() error { return unix.Statfs(path, st) })
}

// rewind makes the next readdir start with the first name.
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

func mapFile(fd int, path string, bytes, share int) (mem []byte, err error) {
	err = call("mmap", path, func() (err error) {
		mem, err = unix.Mmap(fd, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, share)
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

// unlockRange releases such a lock, even if other processes have inherited the descriptor.
func unlockRange(fd int, path string, from, n int64) error {
	return call("unlock", path, func() error {
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: from, Len: n})
	})
}

// lockedRange returns one range that another open file has locked for writing, within n
// bytes from an offset (0: to the end). got is 0 if there is none.
func lockedRange(fd int, path string, from, n int64) (at, got int64, err error) {
	// Ask for a read lock, because it does not conflict with the read locks of others.
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
