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

	"dcs-tui/jobs"
)

// GPUs are shared with other runs and other users of the host. For each device, every
// user has a file gpu<DEVICE>.<UID> in a sticky directory on the host's local disk.
// Whoever uses the device holds an OFD write lock on his own file. A device is taken if
// any of its files is locked. A supervisor first locks its own file, then looks at the
// others, and gives way if one of them is locked. If two users do that at the same
// instant, both may give way. They try again at different times, because the
// dispatcher's delays are random.
//
// The job inherits the descriptor, so the lock lasts as long as the job even if the
// supervisor is killed. Nobody can write-lock a file that he cannot open for writing,
// and F_OFD_GETLK needs only a file that is open for reading.

// defaultShareDir is the directory of these files on hosts without share_dir.
const defaultShareDir = "/var/tmp/dcs-share"

// jobLockFD is the first descriptor of the locks that a job inherits. It is above those
// that shell scripts choose for themselves.
const jobLockFD = 30

// gpuLock is a device that we have locked.
type gpuLock struct {
	fd   int
	path string
}

// takenError lists the devices of an attempt that others use.
type takenError struct{ devices []int }

func (e *takenError) Error() string {
	if len(e.devices) == 1 {
		return fmt.Sprintf("GPU %d is in use by another run or user", e.devices[0])
	}
	return fmt.Sprintf("GPUs %s are in use by other runs or users", joinInts(e.devices))
}

func joinInts(list []int) string {
	var b []byte
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(b)
}

// lockGPUs locks all of the devices or none. The error is a *takenError if others use
// some of them.
func lockGPUs(dir string, devices []int) (locks []gpuLock, err error) {
	devices = slices.Compact(slices.Sorted(slices.Values(devices)))
	taken := &takenError{}
	for _, n := range devices {
		l, lerr := lockGPU(dir, n)
		switch {
		case lerr == nil:
			locks = append(locks, l)
		case errors.Is(lerr, unix.EAGAIN):
			taken.devices = append(taken.devices, n)
		case err == nil:
			err = fmt.Errorf("locking GPU %d: %w (share_dir in hosts.toml names another directory)", n, lerr)
		}
	}
	if len(taken.devices) > 0 {
		err = taken
	}
	if err != nil {
		unlockGPUs(locks)
		return nil, err
	}
	return locks, nil
}

// unlockGPUs releases the devices, even if processes that a job has left behind still
// have the descriptors: the job is over when its shell has exited.
func unlockGPUs(locks []gpuLock) {
	for _, l := range locks {
		unlockFile(l.fd, l.path)
		closeFile(l.fd, l.path)
	}
}

// lockTries is how often lockGPU opens the file again if it was removed meanwhile.
const lockTries = 5

// lockGPU locks one device. It returns EAGAIN if somebody else uses it.
func lockGPU(dir string, device int) (gpuLock, error) {
	for range lockTries {
		dirfd, err := openShare(dir, true)
		if err != nil {
			return gpuLock{}, err
		}
		l, err := lockIn(dirfd, dir, device)
		closeFile(dirfd, dir)
		if !errors.Is(err, errMoved) {
			return l, err
		}
	}
	return gpuLock{}, fmt.Errorf("the files in %s are being removed again and again", dir)
}

var errMoved = errors.New("the file was removed while it was being locked")

func lockIn(dirfd int, dir string, device int) (gpuLock, error) {
	name, fd, err := openOwnLock(dirfd, dir, device)
	if err != nil {
		return gpuLock{}, err
	}
	l := gpuLock{fd, dir + "/" + name}
	if err := lockFile(fd, l.path); err != nil {
		closeFile(fd, l.path)
		return gpuLock{}, err
	}
	// The path must still lead to the locked file: cleaners of temporary directories,
	// and owners, may remove files and directories at any time.
	var ours, there unix.Stat_t
	err = fstat(fd, l.path, &ours)
	if err == nil {
		err = statat(unix.AT_FDCWD, l.path, &there, unix.AT_SYMLINK_NOFOLLOW)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && (ours.Ino != there.Ino || ours.Dev != there.Dev):
		err = errMoved
	case err == nil:
		touchFile(fd) // so that cleaners keep the file
		err = lockedByOthers(dirfd, dir, device, &ours)
	}
	if err != nil {
		unlockGPUs([]gpuLock{l})
		return gpuLock{}, err
	}
	return l, nil
}

func lockPrefix(device int) string { return "gpu" + strconv.Itoa(device) + "." }

// openOwnLock opens our file for a device, and creates it if there is none. If somebody
// else has put something under its usual name, our file has another name.
func openOwnLock(dirfd int, dir string, device int) (name string, fd int, err error) {
	names, err := lockNames(dirfd, dir, device)
	if err != nil {
		return "", -1, err
	}
	const flags = unix.O_RDWR | unix.O_NONBLOCK
	for _, n := range names {
		// Without O_CREAT, because fs.protected_regular forbids it for files of others.
		fd, err := openat(dirfd, n, flags, 0)
		if err != nil {
			continue
		}
		if isOwnLock(fd, n) {
			return n, fd, nil
		}
		closeFile(fd, n)
	}
	name = lockPrefix(device) + strconv.Itoa(os.Getuid())
	if slices.Contains(names, name) {
		name += "." + rand.Text()[:8]
	}
	err = withoutUmask(func() (err error) {
		fd, err = openat(dirfd, name, flags|unix.O_CREAT|unix.O_EXCL, 0o644)
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		err = errMoved // another of our supervisors created it first
	}
	return name, fd, err
}

// isOwnLock reports whether an open file is a regular file that only we can write and
// that has no other name. Such a file was created by openOwnLock.
func isOwnLock(fd int, name string) bool {
	var st unix.Stat_t
	return fstat(fd, name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG &&
		int(st.Uid) == os.Getuid() && st.Nlink == 1 && st.Mode&0o022 == 0
}

// lockedByOthers returns EAGAIN if a file of the device other than ours is locked.
func lockedByOthers(dirfd int, dir string, device int, ours *unix.Stat_t) error {
	names, err := lockNames(dirfd, dir, device)
	if err != nil {
		return err
	}
	for _, n := range names {
		locked, err := isLocked(dirfd, n, ours)
		if err != nil {
			return err
		}
		if locked {
			return unix.EAGAIN
		}
	}
	return nil
}

// isLocked reports whether somebody holds a write lock on a regular file other than
// ours (nil: on any file). Anything else, and a file that we cannot open, holds no
// lock.
func isLocked(dirfd int, name string, ours *unix.Stat_t) (bool, error) {
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
	return writeLocked(fd, name)
}

// lockNames lists the files of a device in a fixed order.
func lockNames(dirfd int, dir string, device int) ([]string, error) {
	if err := rewind(dirfd, dir); err != nil {
		return nil, err
	}
	names, err := listOpen(dirfd, dir)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, lockPrefix(device)) })
	slices.Sort(names)
	return names, nil
}

// lockedGPUs returns the devices that are in use, by us or by others.
func lockedGPUs(dir string) (devices []int) {
	dirfd, err := openShare(dir, false)
	if err != nil {
		return nil
	}
	defer closeFile(dirfd, dir)
	names, _ := listOpen(dirfd, dir)
	for _, name := range names {
		number, ok := strings.CutPrefix(name, "gpu")
		number, _, dot := strings.Cut(number, ".")
		n, err := strconv.Atoi(number)
		if !ok || !dot || err != nil || n < 0 || n >= jobs.MaxGPUs || slices.Contains(devices, n) {
			continue
		}
		if locked, err := isLocked(dirfd, name, nil); err == nil && locked {
			devices = append(devices, n)
		}
	}
	slices.Sort(devices)
	return devices
}

// openShare opens the shared directory, and creates it if create is set. It refuses a
// directory in which others may remove our files.
func openShare(dir string, create bool) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
	fd, err := openat(unix.AT_FDCWD, dir, flags, 0)
	if create && errors.Is(err, fs.ErrNotExist) {
		err = withoutUmask(func() error { return mkdir(dir, 0o1777) })
		if err == nil || errors.Is(err, fs.ErrExist) {
			fd, err = openat(unix.AT_FDCWD, dir, flags, 0)
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

// withoutUmask calls f with the umask 0, so that files get exactly the mode that they
// are given: others must be able to read them from the first instant. Only the
// goroutine that starts jobs calls it, so no job inherits this umask.
func withoutUmask(f func() error) error {
	defer unix.Umask(unix.Umask(0))
	return f()
}

// touchFile sets the times of a file to now. Errors are ignored.
func touchFile(fd int) {
	tv := unix.NsecToTimeval(time.Now().UnixNano())
	unix.Futimes(fd, []unix.Timeval{tv, tv})
}
