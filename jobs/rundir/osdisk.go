package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/platform"
)

// OS is the real Disk. It opens only regular files, follows no symbolic link at the end of a path of a
// file, and does not wait for a pipe: a job, or root on a host that shares the directory, may have put
// one there.
var OS = WithCalls("", Call)

// Within returns the real disk for the run directory dir. It follows no symbolic link below dir, so
// that nothing is read, written, or removed elsewhere: the error is a *LinkError. It follows those
// that lead to dir, which the user has chosen. It reaches dir by its path each time, as a file server
// may have another directory there.
func Within(dir string) Disk { return WithCalls(dir, Call) }

// A Caller makes the system calls of a disk, as Call does. Tests let it fail instead.
type Caller func(op, path string, do func() error) error

// WithCalls is Within, or OS if dir is "", with another Caller than Call.
func WithCalls(dir string, call Caller) Disk {
	return WithPacks(osDisk{run: dir, call: call})
}

// Call makes one call of the system, and repeats it when a signal interrupts it. Errors name the file.
func Call(op, path string, do func() error) error {
	for {
		err := do()
		no, ok := err.(syscall.Errno)
		switch {
		case !ok:
			return err
		case no != unix.EINTR:
			return &fs.PathError{Op: op, Path: path, Err: no}
		}
	}
}

// within returns Within(dir) for OS, and any other disk unchanged.
func within(d Disk, dir string) Disk {
	if d == OS {
		return Within(dir)
	}
	return d
}

// OpenFile opens a file of the run directory as Within does, on the real disk. It has mode 0600 if it is
// created.
func (r *Run) OpenFile(flag int, elem ...string) (*os.File, error) {
	return osDisk{run: r.Dir, call: Call}.open(r.Path(elem...), flag, 0o600)
}

// AppendFlags are the flags of OpenFile for a log.
const AppendFlags = os.O_CREATE | os.O_APPEND | os.O_WRONLY

// LinkError reports a symbolic link below a run directory. It wraps ELOOP.
type LinkError struct{ Path string }

// Error names the link and what the user can do.
func (e *LinkError) Error() string {
	return e.Path + " is a symbolic link, and dcs-tui follows none in a run directory: put the file or directory " +
		"itself in its place (the run directory as a whole may be a link, such as to a larger disk)"
}

// Unwrap returns ELOOP.
func (e *LinkError) Unwrap() error { return unix.ELOOP }

// CheckLinks returns a *LinkError if a directory in the run directory is a symbolic link. A dispatcher
// calls it first, because hosts that share the run directory would write to where the link leads.
func (r *Run) CheckLinks() error {
	for _, name := range []string{JournalDir, AttemptsDir, HostsDir, RequestsDir} {
		info, err := r.Disk.Lstat(r.Path(name))
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return &LinkError{r.Path(name)}
		}
	}
	return nil
}

// ErrNotRegular is the error of OS for a pipe, a directory, or a device. It follows the path.
var ErrNotRegular = errors.New("is not a regular file")

// osDisk is the disk of the operating system.
type osDisk struct {
	run  string // the run directory below which no link is followed; "": none
	call Caller
	held string // see HoldDir; "": none
	fd   int    // of held
}

// HoldDir keeps a directory of a run open until release is called. With the disk that it returns, an
// operation on a file in dir does not open dir and those above it again, so it makes a third of the system
// calls. Only disks of Within can do so, if dir exists; HoldDir returns others unchanged.
func HoldDir(d Disk, dir string) (held Disk, release func()) {
	disk, ok := d.(osDisk)
	if !ok || disk.run == "" {
		return d, func() {}
	}
	dir = filepath.Clean(dir)
	err := disk.at("open", dir, func(above int, name string, noFollow int) (err error) {
		disk.fd, err = openDir(above, name, platform.SearchOnly|noFollow)
		return err
	})
	if err != nil {
		return d, func() {}
	}
	disk.held = dir
	return disk, func() { _ = unix.Close(disk.fd) } // only opened
}

// at is At below d.run, with f as one of the calls of d.
func (d osDisk) at(op, path string, f func(dir int, name string, noFollow int) error) error {
	path = filepath.Clean(path)
	dir, name := filepath.Split(path)
	err := d.call(op, path, func() error {
		if d.held != "" && dir == d.held+"/" {
			err := f(d.fd, name, unix.O_NOFOLLOW)
			if err != unix.ESTALE && !isLink(err, d.fd, name) {
				return err
			}
		}
		return At(d.run, path, f)
	})
	return ExplainFull(err, filepath.Dir(path))
}

// At calls f with a path that is relative to an open directory or to AT_FDCWD. Only its last part may be
// a link that must not be followed: f makes one system call, with noFollow, which is O_NOFOLLOW below
// root and otherwise 0. The path must be clean. At follows no symbolic link below root: the error is a
// *LinkError. Other errors are those of f or of a system call.
func At(root, path string, f func(dir int, name string, noFollow int) error) error {
	rel, below := strings.CutPrefix(path, root+"/")
	if !below || root == "" {
		return f(unix.AT_FDCWD, path, 0)
	}
	err := walk(root, rel, platform.SearchOnly, f)
	if err == unix.ESTALE && platform.SearchOnly != 0 {
		err = walk(root, rel, 0, f) // an NFS client asks its server when a directory is opened for reading
	}
	return err
}

// walk is At for a path relative to root. search is the flag with which directories are opened.
func walk(root, rel string, search int, f func(dir int, name string, noFollow int) error) error {
	first, rest, more := strings.Cut(rel, "/")
	dir, name := unix.AT_FDCWD, root+"/"+first
	for {
		var next int
		var err error
		if more {
			next, err = openDir(dir, name, search|unix.O_NOFOLLOW)
		} else {
			err = f(dir, name, unix.O_NOFOLLOW)
		}
		if err != nil && isLink(err, dir, name) {
			err = &LinkError{filepath.Join(root, strings.TrimSuffix(rel, "/"+rest))}
		}
		if dir != unix.AT_FDCWD {
			_ = unix.Close(dir) // only opened
		}
		if err != nil || !more {
			return err
		}
		dir = next
		name, rest, more = strings.Cut(rest, "/")
	}
}

func openDir(dir int, name string, flag int) (int, error) {
	return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|flag, 0)
}

// isLink reports whether err is that of a call that does not follow a symbolic link, and name is one.
func isLink(err error, dir int, name string) bool {
	var st unix.Stat_t
	return slices.Contains([]error{unix.ELOOP, unix.ENOTDIR, unix.EMLINK}, err) &&
		unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// open opens a regular file.
func (d osDisk) open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	fd := -1
	err := d.at("open", path, func(dir int, name string, _ int) (err error) {
		fd, err = OpenNoWait(dir, name, flag|unix.O_CLOEXEC|unix.O_NOFOLLOW, uint32(perm.Perm()))
		return err
	})
	if err != nil {
		return nil, openError(path, err)
	}
	var st unix.Stat_t
	err = d.call("stat", path, func() error { return unix.Fstat(fd, &st) })
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err == nil { // without O_NONBLOCK, with which os.NewFile would treat it as a pipe
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flag&unix.O_APPEND)
	}
	if err != nil {
		_ = unix.Close(fd) // nothing was written
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// OpenNoWait opens a file without waiting for the other end of a pipe. If another process has a lease
// on the file, as a file server has for its clients, it waits until the kernel has ended it: at most 45 s.
func OpenNoWait(dir int, name string, flag int, mode uint32) (int, error) {
	fd, err := unix.Openat(dir, name, flag|unix.O_NONBLOCK|unix.O_NOCTTY, mode)
	if err == unix.EAGAIN { // never for a pipe
		fd, err = unix.Openat(dir, name, flag, mode)
	}
	return fd, err
}

// openError returns the error of Linux for an error of openat.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, unix.EMLINK): // FreeBSD: a symbolic link that is not followed
		return &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	case errors.Is(err, unix.EOPNOTSUPP): // macOS and FreeBSD: a socket
		return fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	return err
}

// openDir opens a directory for reading.
func (d osDisk) openDir(path string) (f *os.File, err error) {
	err = d.at("open", path, func(dir int, name string, noFollow int) error {
		fd, err := openDir(dir, name, noFollow)
		if err == nil {
			f = os.NewFile(uintptr(fd), path)
		}
		return err
	})
	return f, err
}

func (d osDisk) OpenFile(path string, flag int, perm fs.FileMode) (File, error) {
	f, err := d.open(path, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f, d.call}, nil
}

func (d osDisk) Names(dir string) ([]string, error) {
	f, err := d.openDir(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened only for reading
	var names []string
	err = d.call("readdir", dir, func() (err error) {
		names, err = f.Readdirnames(-1)
		return err
	})
	slices.Sort(names)
	return names, err
}

func (d osDisk) SyncDir(dir string) error {
	f, err := d.openDir(dir)
	if err != nil {
		return err
	}
	err = d.call("fsync", dir, f.Sync)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil // this file system does not support it, and does not need it
	}
	return errors.Join(err, f.Close())
}

func (d osDisk) Mkdir(path string, perm fs.FileMode) error {
	return d.at("mkdir", path, func(dir int, name string, _ int) error {
		return unix.Mkdirat(dir, name, uint32(perm.Perm()))
	})
}

func (d osDisk) Remove(path string) error {
	return d.at("remove", path, func(dir int, name string, _ int) error {
		err := unix.Unlinkat(dir, name, 0)
		if err == unix.EISDIR || err == unix.EPERM { // a directory, on Linux and elsewhere
			if e := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); e != unix.ENOTDIR {
				err = e
			}
		}
		return err
	})
}

func (d osDisk) Rename(from, to string) error {
	if filepath.Dir(from) != filepath.Dir(to) {
		return &fs.PathError{Op: "rename", Path: to, Err: unix.EXDEV}
	}
	return d.at("rename", to, func(dir int, name string, _ int) error {
		var old, over unix.Stat_t
		oldName := filepath.Join(filepath.Dir(name), filepath.Base(from))
		if err := unix.Fstatat(dir, oldName, &old, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		err := unix.Fstatat(dir, name, &over, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && over.Mode&unix.S_IFMT == unix.S_IFDIR {
			return unix.EEXIST // like package os
		}
		return unix.Renameat(dir, oldName, dir, name)
	})
}

func (d osDisk) Stat(path string) (fs.FileInfo, error)  { return d.stat(path, 0) }
func (d osDisk) Lstat(path string) (fs.FileInfo, error) { return d.stat(path, unix.O_NOFOLLOW) }

func (d osDisk) stat(path string, flag int) (fs.FileInfo, error) {
	info := fileInfo{name: filepath.Base(path)}
	err := d.at("stat", path, func(dir int, name string, noFollow int) error {
		if flag|noFollow != 0 {
			return unix.Fstatat(dir, name, &info.st, unix.AT_SYMLINK_NOFOLLOW)
		}
		return unix.Fstatat(dir, name, &info.st, 0)
	})
	if err != nil {
		return nil, err
	}
	info.sys = syscall.Stat_t{Dev: info.st.Dev, Ino: info.st.Ino, Mode: info.st.Mode, Nlink: info.st.Nlink,
		Uid: info.st.Uid, Gid: info.st.Gid, Size: info.st.Size}
	return &info, nil
}

// fileInfo is an fs.FileInfo without the setuid bits and the like.
type fileInfo struct {
	name string
	st   unix.Stat_t
	sys  syscall.Stat_t // what identifies the file, and its owner
}

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return i.st.Size }
func (i *fileInfo) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }
func (i *fileInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i *fileInfo) Sys() any           { return &i.sys }

func (i *fileInfo) Mode() fs.FileMode {
	mode := fs.FileMode(i.st.Mode) & fs.ModePerm
	if i.st.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	switch i.st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return mode
	case unix.S_IFDIR:
		return mode | fs.ModeDir
	case unix.S_IFLNK:
		return mode | fs.ModeSymlink
	case unix.S_IFIFO:
		return mode | fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return mode | fs.ModeSocket
	}
	return mode | fs.ModeDevice
}

type osFile struct {
	*os.File
	call Caller
}

// do makes a call on the file.
func (f osFile) do(op string, call func() error) error {
	return ExplainFull(f.call(op, f.Name(), call), filepath.Dir(f.Name()))
}

func (f osFile) Size() (size int64, err error) {
	err = f.do("stat", func() error {
		info, err := f.Stat()
		if err == nil {
			size = info.Size()
		}
		return err
	})
	return size, err
}

func (f osFile) ReadAt(b []byte, at int64) (n int, err error) {
	err = f.do("read", func() (err error) {
		n, err = f.File.ReadAt(b, at)
		return err
	})
	return n, err
}

func (f osFile) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.do("write", func() (err error) {
		n, err = f.File.WriteAt(b, at)
		return err
	})
	return n, err
}

func (f osFile) Sync() error { return f.do("fsync", func() error { return platform.SyncData(f.File) }) }

// Close ignores EINTR: the descriptor is closed and must not be closed twice, and the data was
// synced before.
func (f osFile) Close() error {
	if err := f.do("close", f.File.Close); !errors.Is(err, unix.EINTR) {
		return err
	}
	return nil
}
