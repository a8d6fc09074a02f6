package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
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
	Lstat(path string) (fs.FileInfo, error) // like Stat, but never follows a symbolic link
	Rename(from, to string) error           // within a directory; not to the name of a directory
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
	if err := install(d, tmp, path, WriteNew(d, tmp, content)); err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(path))
}

// install renames tmp to path. If err is not nil, or after another error, it removes tmp.
func install(d Disk, tmp, path string, err error) error {
	if err == nil {
		err = d.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, RemoveIfThere(d, tmp))
	}
	return nil
}

// RemoveIfThere removes a file that may have been created. A read-only file system refuses to remove also
// what does not exist.
func RemoveIfThere(d Disk, path string) error {
	err := d.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, statErr := d.Lstat(path); errors.Is(statErr, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("and the file %s stays behind: %w", path, err)
}

// IsFull reports whether err means that a file system or a quota is full.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// freesFiles is the advice for when no more files can be created.
const freesFiles = "`dcs-tui runs pack` and `runs prune` free some, and --pack-files saves some"

var statfs = unix.Statfs // replaced in tests

// ExplainFull adds to the error of a full file system or quota what is used up, and what frees it. dir is
// on it. It asks the file system, because the error of the kernel is the same for bytes and for files,
// and `df -h` shows only bytes. Other errors stay as they are.
func ExplainFull(err error, dir string) error {
	var st unix.Statfs_t
	why := ""
	switch {
	case errors.Is(err, syscall.EDQUOT):
		why = "a quota of bytes or files is used up, see `quota -s`; if it is of files, " + freesFiles
	case !errors.Is(err, syscall.ENOSPC) || statfs(dir, &st) != nil:
		return err
	case st.Files > 0 && st.Ffree == 0:
		why = "no inode is free of " + strconv.FormatUint(st.Files, 10) + ", see `df -i`; " + freesFiles
	case st.Bavail == 0:
		why = "no byte is free; `dcs-tui runs prune` removes old runs"
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", err, why)
}
