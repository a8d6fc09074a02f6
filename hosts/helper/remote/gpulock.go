//go:build linux

package remote

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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
// supervisor is killed.

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

func lockIn(dirfd int, dir string, device int) (gpuLock, error) {
	name, fd, err := openOwnFile(dirfd, dir, lockPrefix(device))
	if err != nil {
		return gpuLock{}, err
	}
	l := gpuLock{fd, dir + "/" + name}
	if err := lockFile(fd, l.path); err != nil {
		closeFile(fd, l.path)
		return gpuLock{}, err
	}
	ours, err := inPlace(fd, l.path)
	if err == nil {
		touchFile(fd) // so that cleaners keep the file
		err = lockedByOthers(dirfd, dir, device, ours)
	}
	if err != nil {
		unlockGPUs([]gpuLock{l})
		return gpuLock{}, err
	}
	return l, nil
}

func lockPrefix(device int) string { return "gpu" + strconv.Itoa(device) + "." }

// lockedByOthers returns EAGAIN if a file of the device other than ours is locked.
func lockedByOthers(dirfd int, dir string, device int, ours *unix.Stat_t) error {
	names, err := shareNames(dirfd, dir, lockPrefix(device))
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

// lockedGPUs returns the devices that are in use, by us or by others.
func lockedGPUs(dir string) (devices []int) {
	dirfd, err := openShare(dir, false)
	if err != nil {
		return nil
	}
	defer closeFile(dirfd, dir)
	names, _ := shareNames(dirfd, dir, "gpu")
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
