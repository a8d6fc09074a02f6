//go:build linux

package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Operations on whole files, made of the calls in calls.go.

// maxFile bounds what readFile reads. The largest of our files is a specification of a job.
const maxFile = 64 << 20

// readFile reads a whole regular file. It neither waits at a pipe nor reads more than maxFile: another
// user may have put something in the place of the file.
func readFile(path string) ([]byte, error) {
	fd, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer closeFile(fd, path)
	b := make([]byte, 0, 1024)
	for {
		n, err := read(fd, path, b[len(b):cap(b)])
		if err != nil || n == 0 {
			return b, err
		}
		b = slices.Grow(b[:len(b)+n], 512)
		if len(b) > maxFile {
			return nil, &fs.PathError{Op: "read", Path: path, Err: unix.EFBIG}
		}
	}
}

// readInto reads a file from its beginning until buf is full or the file ends.
func readInto(dirfd int, path string, buf []byte) (int, error) {
	fd, err := openat(dirfd, path, unix.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer closeFile(fd, path)
	return preadAll(fd, path, buf)
}

// preadAll reads an open file from its beginning until buf is full or the file ends.
func preadAll(fd int, path string, buf []byte) (n int, err error) {
	for n < len(buf) {
		k, err := pread(fd, path, buf[n:], int64(n))
		if err != nil || k == 0 {
			return n, err
		}
		n += k
	}
	return n, nil
}

// writeAndClose writes b at the beginning of fd and closes it in any case. NFS reports write errors
// at close.
func writeAndClose(fd int, path string, b []byte) error {
	err := pwrite(fd, path, b, 0)
	return cmp.Or(err, closeFile(fd, path))
}

// openOwn opens a file for writing that only the program writes, and creates it if it is missing. It removes a
// pipe, a link, or the like that somebody has put in its place.
func openOwn(path string, flags int) (int, error) {
	flags |= unix.O_WRONLY | unix.O_CREAT
	fd, err := openat(unix.AT_FDCWD, path, flags, 0o600)
	if isNotPlain(err) && remove(path) == nil {
		fd, err = openat(unix.AT_FDCWD, path, flags|unix.O_EXCL, 0o600)
	}
	return fd, err
}

// writeFile writes a file in place. A reader may see an incomplete file.
func writeFile(path string, b []byte) error {
	fd, err := openOwn(path, unix.O_TRUNC)
	if err != nil {
		return err
	}
	return writeAndClose(fd, path, b)
}

func remove(path string) error { return unlinkat(unix.AT_FDCWD, path, 0) }

func rename(from, to string) error { return renameat(unix.AT_FDCWD, from, unix.AT_FDCWD, to) }

// stat follows symbolic links.
func stat(path string) (st unix.Stat_t, err error) {
	return st, statat(unix.AT_FDCWD, path, &st, 0)
}

func openDir(path string) (int, error) {
	return openat(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// openDirBelow opens a directory below dir. It follows no symbolic link below dir.
func openDirBelow(dir string, names ...string) (int, error) {
	fd, err := openDir(dir)
	for _, name := range names {
		if err != nil {
			break
		}
		above := fd
		fd, err = openat(above, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		closeFile(above, dir)
	}
	return fd, err
}

// listNames returns all names in a directory.
func listNames(dir string) ([]string, error) {
	fd, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer closeFile(fd, dir)
	return remainingNames(fd, dir)
}

// remainingNames returns the remaining names of an open directory.
func remainingNames(fd int, dir string) ([]string, error) {
	var names []string
	buf := make([]byte, 8<<10)
	for {
		n, err := readdir(fd, dir, buf)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// makeDirs creates a directory with mode 0700, and its missing parents.
func makeDirs(dir string) error {
	err := mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := makeDirs(filepath.Dir(dir)); err != nil {
			return err
		}
		err = mkdir(dir, 0o700)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := stat(dir)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = &fs.PathError{Op: "mkdir", Path: dir, Err: unix.ENOTDIR}
	}
	return err
}

// removeTree removes a directory and everything below it, but nothing behind a symbolic link. It
// continues after an error and returns the first one. Missing files are no error.
func removeTree(dir string) error {
	var names []string
	fd, err := openat(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err == nil {
		names, err = remainingNames(fd, dir)
		closeFile(fd, dir)
	}
	for _, n := range names {
		path := filepath.Join(dir, n)
		e := remove(path)
		if errors.Is(e, unix.EISDIR) {
			e = removeTree(path)
		}
		if err == nil && !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	if err == nil {
		err = unlinkat(unix.AT_FDCWD, dir, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// A job can change the files of its attempt as well as we can. It may have put a pipe, a
// link, or an endless file in their place. So check the type of these files when opening
// them, and limit what is read.

// openPlain opens a regular file for reading.
func openPlain(path string) (int, error) { return openat(unix.AT_FDCWD, path, unix.O_RDONLY, 0) }

// openPlainAt is openPlain for a path below an open directory. It also returns the file's status.
func openPlainAt(dirfd int, path string) (fd int, st unix.Stat_t, err error) {
	if fd, err = openat(dirfd, path, unix.O_RDONLY, 0); err != nil {
		return -1, st, err
	}
	if err = fstat(fd, path, &st); err != nil {
		closeFile(fd, path)
		return -1, st, err
	}
	return fd, st, nil
}

// readPlain reads at most n bytes of a regular file. It returns no bytes for a file of any
// other type.
func readPlain(path string, n int) ([]byte, error) {
	fd, err := openPlain(path)
	if isNotPlain(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closeFile(fd, path)
	b := make([]byte, n)
	n, err = preadAll(fd, path, b)
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

// readTrusted reads a file of at most limit bytes that belongs to uid and that nobody else can write.
func readTrusted(path string, uid, limit int) ([]byte, error) {
	fd, st, err := openPlainAt(unix.AT_FDCWD, path)
	if err != nil {
		return nil, err
	}
	defer closeFile(fd, path)
	if int(st.Uid) != uid || st.Mode&0o022 != 0 {
		return nil, errors.New("it must belong to root, and others must not be able to write it")
	}
	if st.Size > int64(limit) {
		return nil, fmt.Errorf("it has %d bytes", st.Size)
	}
	b := make([]byte, limit)
	n, err := preadAll(fd, path, b)
	return b[:n], err
}

// tempNames names the temporary files of a process beside the shards:
// .new.HOST.SLOT.PID.START.COUNT. If the process dies, the next helper of the host knows by
// the name that it may remove them.
type tempNames struct {
	dir    string // attempts/
	host   string
	holder holder
}

const tempPrefix = ".new."

var tempCount atomic.Int64

// path returns a name that has not been used before.
func (t tempNames) path() string {
	return filepath.Join(t.dir, tempPrefix+t.host+"."+t.holder.String()+"."+strconv.FormatInt(tempCount.Add(1), 10))
}

// removeDead removes the temporary files of dead processes of this host.
func (t tempNames) removeDead() error {
	names, err := listNames(t.dir)
	for _, n := range names {
		rest, ok := strings.CutPrefix(n, tempPrefix+t.host+".")
		i := strings.LastIndexByte(rest, '.')
		if !ok || i < 0 {
			continue
		}
		if by, ok := parseHolder(rest[:i]); ok && !by.isAlive() {
			if e := remove(filepath.Join(t.dir, n)); e != nil && err == nil && !errors.Is(e, fs.ErrNotExist) {
				err = e
			}
		}
	}
	return err
}

// createTemp creates a temporary file.
func createTemp(path string) (int, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
	fd, err := openat(unix.AT_FDCWD, path, flags, 0o600)
	if err != nil {
		remove(path) // nobody else uses the name, so we may just have created the file
	}
	if errors.Is(err, fs.ErrExist) { // the reply of the file server was lost
		fd, err = openat(unix.AT_FDCWD, path, flags, 0o600)
	}
	return fd, err
}

// writeTemp writes, fsyncs, and closes a temporary file. It leaves none after an error.
func writeTemp(path string, b []byte) error {
	fd, err := createTemp(path)
	if err != nil {
		return err
	}
	if err = pwrite(fd, path, b, 0); err == nil {
		err = fsync(fd, path)
	}
	if err = cmp.Or(err, closeFile(fd, path)); err != nil {
		retryUnlessMissing(func() error { return remove(path) })
	}
	return err
}

// replace replaces the file path atomically, through the file temp on the same file system. An error
// names path, so that it reads the same when it is met again.
func replace(temp, path string, b []byte) error {
	if err := writeTemp(temp, b); err != nil {
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			failed.Path = path
		}
		return err
	}
	err := rename(temp, path)
	if err != nil {
		retryUnlessMissing(func() error { return remove(temp) })
	}
	return err
}

// retryPauses are the delays between the tries of retryUnlessMissing.
var retryPauses = []time.Duration{10 * time.Millisecond, 100 * time.Millisecond}

// retryUnlessMissing calls f up to three times until it succeeds or returns fs.ErrNotExist.
func retryUnlessMissing(f func() error) (err error) {
	for _, p := range retryPauses {
		if err = f(); err == nil || errors.Is(err, fs.ErrNotExist) {
			return err
		}
		time.Sleep(p)
	}
	return f()
}

// localTypes are local file systems: on these, close and rename do not report late errors,
// and written blocks stay reserved. All others are treated like NFS.
var localTypes = map[int64]bool{
	unix.EXT4_SUPER_MAGIC:      true,
	unix.XFS_SUPER_MAGIC:       true,
	unix.BTRFS_SUPER_MAGIC:     true,
	unix.TMPFS_MAGIC:           true,
	unix.OVERLAYFS_SUPER_MAGIC: true,
	unix.F2FS_SUPER_MAGIC:      true,
	0x2fc12fc1:                 true, // ZFS
	0xca451a4e:                 true, // bcachefs
}

// onNetwork reports whether dir is on a file system that is not known to be local.
func onNetwork(dir string) bool {
	var st unix.Statfs_t
	return statfs(dir, &st) != nil || !localTypes[int64(st.Type)]
}
