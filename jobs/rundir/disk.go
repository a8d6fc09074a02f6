package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/platform"
)

// Disk holds the file operations of run directories and journals. Tests replace it to make any
// of them fail (full disk, quota, stale handle, short write).
type Disk interface {
	Mkdir(path string, perm fs.FileMode) error
	OpenFile(path string, flag int, perm fs.FileMode) (File, error)
	// Names lists a directory. On NFS a name that another machine created may be invisible
	// until the directory is listed, so only listed names may be opened.
	Names(dir string) ([]string, error)
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error) // like Stat, but does not follow a symbolic link
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(dir string) error // makes creations and renames in dir durable
}

// File is an open file. All offsets are explicit, so that a failed write can be repeated at the
// same offset.
type File interface {
	io.ReaderAt
	io.WriterAt
	Size() (int64, error)
	Truncate(size int64) error
	Sync() error // data and size; on NFS also the errors of earlier writes
	Close() error
}

// OS is the real Disk. It opens only regular files, follows no symbolic link at the end of a path, and
// does not wait for a pipe: a job, or root on a host that shares the directory, may have put one there.
var OS = WithPacks(osDisk{})

// OwnFile are the flags with which a file of the run directory is opened: a job may have put a link or
// a pipe in its place.
const OwnFile = unix.O_NOFOLLOW | unix.O_NONBLOCK

// OpenLog opens a file of the run directory for appending.
func (r *Run) OpenLog(elem ...string) (*os.File, error) {
	return os.OpenFile(r.Path(elem...), os.O_CREATE|os.O_APPEND|os.O_WRONLY|OwnFile, 0o600)
}

// ErrNotRegular is the error of OS for a pipe, a directory, or a device. It follows the path.
var ErrNotRegular = errors.New("is not a regular file")

type osDisk struct{}

func (osDisk) Mkdir(path string, perm fs.FileMode) error { return os.Mkdir(path, perm) }
func (osDisk) Stat(path string) (fs.FileInfo, error)     { return os.Stat(path) }
func (osDisk) Lstat(path string) (fs.FileInfo, error)    { return os.Lstat(path) }
func (osDisk) Rename(from, to string) error              { return os.Rename(from, to) }
func (osDisk) Remove(path string) error                  { return os.Remove(path) }

func (osDisk) OpenFile(path string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOCTTY|OwnFile, perm)
	if err != nil {
		return nil, openError(path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

// openError returns the error of Linux for an error of os.OpenFile.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, unix.EMLINK): // FreeBSD: a symbolic link that is not followed
		return &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	case errors.Is(err, unix.EOPNOTSUPP): // macOS and FreeBSD: a socket
		return fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	return err
}

func (osDisk) Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (osDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil // this file system does not support it, and does not need it
	}
	return errors.Join(err, d.Close())
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Sync() error { return platform.SyncData(f.File) }

// Close ignores EINTR: the descriptor is closed and must not be closed twice, and the data was
// synced before.
func (f osFile) Close() error {
	if err := f.File.Close(); !errors.Is(err, unix.EINTR) {
		return err
	}
	return nil
}

// maxWhole bounds the files that are read as a whole, in bytes. A job may have replaced one by a sparse
// file of any size.
const maxWhole = 256 << 20

// ReadFile reads a whole file, of at most maxWhole bytes.
func ReadFile(d Disk, path string) ([]byte, error) {
	b, size, err := ReadPart(d, path, 0, maxWhole)
	if err == nil && size > maxWhole {
		err = fmt.Errorf("%s has %d bytes, more than %d", path, size, maxWhole)
	}
	return b, err
}

// ReadPart reads at most limit bytes of a file from offset on, and returns its size. A
// negative offset counts from the end.
func ReadPart(d Disk, path string, offset, limit int64) (b []byte, size int64, err error) {
	f, err := d.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if size, err = f.Size(); err != nil {
		return nil, 0, err
	}
	if offset < 0 {
		offset = max(0, size+offset)
	}
	b = make([]byte, max(0, min(limit, size-offset)))
	n, err := f.ReadAt(b, offset)
	if errors.Is(err, io.EOF) { // it was truncated meanwhile
		err = nil
	}
	return b[:n], size, err
}

// SyncFile makes the content of a file durable, whoever wrote it.
func SyncFile(d Disk, path string) error {
	f, err := d.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteNew creates a file (O_EXCL, 0600) with this content, durably. It changes nothing if the
// error is fs.ErrExist. After another error the file may exist.
func WriteNew(d Disk, path string, content []byte) error {
	return write(d, path, os.O_EXCL, content)
}

// Overwrite creates a file (0600) with this content, or replaces its content in place, durably.
// After a crash or an error, it may have any part of the new content.
func Overwrite(d Disk, path string, content []byte) error {
	return write(d, path, os.O_TRUNC, content)
}

func write(d Disk, path string, flag int, content []byte) error {
	f, err := d.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	// On NFS, Close may be the first call to report a full disk.
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(path))
}

// Replace replaces a file durably and atomically: after a crash, as for readers, it has the old
// content or the new.
func Replace(d Disk, path string, content []byte) error {
	return replace(d, path, content, rand.Text()[:12])
}

// replace is Replace with a temporary file whose name ends in token.
func replace(d Disk, path string, content []byte, token string) error {
	dir, base := filepath.Split(path)
	tmp := filepath.Join(dir, "."+base+"."+token)
	if err := WriteNew(d, tmp, content); err != nil {
		return errors.Join(err, removeIfThere(d, tmp))
	}
	if err := d.Rename(tmp, path); err != nil {
		return errors.Join(err, removeIfThere(d, tmp))
	}
	return d.SyncDir(filepath.Dir(path))
}

func removeIfThere(d Disk, path string) error {
	if err := d.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("and the file %s stays behind: %w", path, err)
	}
	return nil
}
