//go:build linux

package remote

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Runs and users of a host share it through files in a sticky directory on its local
// disk. A file says something only while its owner holds an OFD write lock on it: nobody
// can write-lock a file that he cannot open for writing, and F_OFD_GETLK needs only a
// file that is open for reading. So a held lock proves that the holder lives, the owner
// of the file proves whose it is, and nothing can go stale.

// defaultShareDir is the shared directory of hosts without share_dir.
const defaultShareDir = "/var/tmp/dcs-share"

// lockTries is how often we open the file again if it was removed meanwhile.
const lockTries = 5

var errMoved = errors.New("the file was removed while it was being opened")

// openOwnFile opens our file PREFIX<UID>, and creates it if there is none. If somebody
// else has put something under that name, our file has another name.
func openOwnFile(dirfd int, dir, prefix string) (name string, fd int, err error) {
	const flags = unix.O_RDWR | unix.O_NONBLOCK
	usual := prefix + strconv.Itoa(os.Getuid())
	open := func(name string) bool {
		// Without O_CREAT, because fs.protected_regular forbids it for files of others.
		if fd, err = openat(dirfd, name, flags, 0); err != nil {
			return false
		}
		if isOwnFile(fd, name) {
			unix.Fchmod(fd, 0o644) // others may have to read it
			return true
		}
		closeFile(fd, name)
		err = fs.ErrExist
		return false
	}
	if open(usual) {
		return usual, fd, nil
	}
	if name = usual; !errors.Is(err, fs.ErrNotExist) {
		names, err := shareNames(dirfd, dir, prefix)
		if err != nil {
			return "", -1, err
		}
		if i := slices.IndexFunc(names, open); i >= 0 {
			return names[i], fd, nil
		}
		name += "." + rand.Text()[:8]
	}
	fd, err = openat(dirfd, name, flags|unix.O_CREAT|unix.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		err = errMoved // another of our processes created it first
	}
	if err == nil {
		unix.Fchmod(fd, 0o644) // whatever the umask is
	}
	return name, fd, err
}

// isOwnFile reports whether an open file is a regular file that only we can write and
// that has no other name. Such a file was created by openOwnFile.
func isOwnFile(fd int, name string) bool {
	var st unix.Stat_t
	return fstat(fd, name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG &&
		int(st.Uid) == os.Getuid() && st.Nlink == 1 && st.Mode&0o022 == 0
}

// inPlace returns the state of an open file, or errMoved if its path does not lead to it
// any more: cleaners of temporary directories, and owners, may remove files and
// directories at any time.
func inPlace(fd int, path string) (*unix.Stat_t, error) {
	var ours, there unix.Stat_t
	err := fstat(fd, path, &ours)
	if err == nil {
		err = statat(unix.AT_FDCWD, path, &there, unix.AT_SYMLINK_NOFOLLOW)
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && (ours.Ino != there.Ino || ours.Dev != there.Dev) {
		err = errMoved
	}
	return &ours, err
}

// isLocked reports whether somebody holds a write lock on a regular file other than
// ours (nil: on any file). Anything else, and a file that we cannot open, holds no
// lock.
func isLocked(dirfd int, name string, ours *unix.Stat_t) (bool, error) {
	return isRangeLocked(dirfd, name, ours, 0, 0)
}

// isRangeLocked is isLocked for n bytes of the file from an offset; 0: to the end.
func isRangeLocked(dirfd int, name string, ours *unix.Stat_t, from, n int64) (bool, error) {
	fd, err := openat(dirfd, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	for _, harmless := range []error{fs.ErrNotExist, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ENXIO, unix.ENODEV, unix.EAGAIN} {
		if errors.Is(err, harmless) {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	defer closeFile(fd, name)
	var st unix.Stat_t
	if err := fstat(fd, name, &st); err != nil {
		return false, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || ours != nil && st.Ino == ours.Ino && st.Dev == ours.Dev {
		return false, nil
	}
	_, n, err = lockedRange(fd, name, from, n)
	return n > 0, err
}

// maxShareNames bounds the files of a prefix that are looked at, because any user can
// create files there.
const maxShareNames = 4096

// shareNames lists the files whose names begin with prefix, in a fixed order.
func shareNames(dirfd int, dir, prefix string) (names []string, err error) {
	if err := rewind(dirfd, dir); err != nil {
		return nil, err
	}
	buf := make([]byte, 8<<10)
	for n := 1; n > 0 && len(names) < maxShareNames; {
		if n, err = readdir(dirfd, dir, buf); err != nil {
			return nil, err
		}
		var some []string
		_, _, some = unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range some {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// openShare opens the shared directory, and creates it if create is set. It refuses a
// directory in which others may remove our files.
func openShare(dir string, create bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
	fd, err := openat(unix.AT_FDCWD, dir, flags, 0)
	if create && errors.Is(err, fs.ErrNotExist) {
		made := mkdir(dir, 0o1777)
		if err = made; err == nil || errors.Is(err, fs.ErrExist) {
			fd, err = openat(unix.AT_FDCWD, dir, flags, 0)
		}
		if made == nil && err == nil {
			unix.Fchmod(fd, 0o1777) // whatever the umask is
		}
	}
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = fstat(fd, dir, &st); err == nil && st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		err = fmt.Errorf("others may remove files from %s; set its sticky bit (chmod +t)", dir)
	}
	if err != nil {
		closeFile(fd, dir)
		return -1, err
	}
	return fd, nil
}

// touchFile sets the times of a file to now. Errors are ignored.
func touchFile(fd int) {
	tv := unix.NsecToTimeval(time.Now().UnixNano())
	unix.Futimes(fd, []unix.Timeval{tv, tv})
}
