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
// A device has two halves, which are two ranges of each file. A job with half of a device
// takes the first half that nobody uses; others take both halves. Programs that know no
// halves lock the whole file.
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
type takenError struct {
	devices []int
	busy    bool // processes that belong to no job use them
}

func (e *takenError) Error() string {
	if e.busy {
		return fmt.Sprintf("processes of no job compute on GPU %s", joinInts(e.devices))
	}
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

// part is a range of bytes of a file of a device; n is 0 for one without an end.
type part struct{ from, n int64 }

var halfGPUs = []part{{0, 1}, {1, 1}}

// lockGPUs locks all of the devices, or half of each, or none. The error is a *takenError
// if others use some of them.
func lockGPUs(dir string, devices []int, half bool) (locks []gpuLock, err error) {
	parts := []part{{}}
	if half {
		parts = halfGPUs
	}
	devices = slices.Compact(slices.Sorted(slices.Values(devices)))
	taken := &takenError{}
	for _, n := range devices {
		var l gpuLock
		lerr := error(unix.EAGAIN)
		for i := 0; i < len(parts) && errors.Is(lerr, unix.EAGAIN); i++ {
			l, lerr = lockGPU(dir, n, parts[i])
		}
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

// lockGPU locks a part of one device. It returns EAGAIN if somebody else uses it.
func lockGPU(dir string, device int, p part) (gpuLock, error) {
	for range lockTries {
		dirfd, err := openShare(dir, true)
		if err != nil {
			return gpuLock{}, err
		}
		l, err := lockIn(dirfd, dir, device, p)
		closeFile(dirfd, dir)
		if !errors.Is(err, errMoved) {
			return l, err
		}
	}
	return gpuLock{}, fmt.Errorf("the files in %s are being removed again and again", dir)
}

func lockIn(dirfd int, dir string, device int, p part) (gpuLock, error) {
	name, fd, err := openOwnFile(dirfd, dir, lockPrefix(device))
	if err != nil {
		return gpuLock{}, err
	}
	l := gpuLock{fd, dir + "/" + name}
	if err := lockRange(fd, l.path, p.from, p.n); err != nil {
		closeFile(fd, l.path)
		return gpuLock{}, err
	}
	ours, err := inPlace(fd, l.path)
	if err == nil {
		touchFile(fd) // so that cleaners keep the file
		err = lockedByOthers(dirfd, dir, device, p, ours)
	}
	if err != nil {
		unlockGPUs([]gpuLock{l})
		return gpuLock{}, err
	}
	return l, nil
}

func lockPrefix(device int) string { return "gpu" + strconv.Itoa(device) + "." }

// lockedByOthers returns EAGAIN if that part of a file of the device other than ours is
// locked.
func lockedByOthers(dirfd int, dir string, device int, p part, ours *unix.Stat_t) error {
	names, err := shareNames(dirfd, dir, lockPrefix(device))
	if err != nil {
		return err
	}
	for _, n := range names {
		locked, err := isRangeLocked(dirfd, n, ours, p.from, p.n)
		if err != nil {
			return err
		}
		if locked {
			return unix.EAGAIN
		}
	}
	return nil
}

// gpuUse holds devices that are in use, by us or by others.
type gpuUse struct {
	whole []int
	half  []int // one half is free
}

func (u *gpuUse) has(n int) bool { return slices.Contains(u.whole, n) || slices.Contains(u.half, n) }

// lockedGPUs returns the devices whose files are locked.
func lockedGPUs(dir string) (use gpuUse) {
	dirfd, err := openShare(dir, false)
	if err != nil {
		return use
	}
	defer closeFile(dirfd, dir)
	names, _ := shareNames(dirfd, dir, "gpu")
	var halves [jobs.MaxGPUs][2]bool
	for _, name := range names {
		number, _, dot := strings.Cut(name[len("gpu"):], ".")
		n, err := strconv.Atoi(number)
		if !dot || err != nil || n < 0 || n >= jobs.MaxGPUs {
			continue
		}
		for i, p := range halfGPUs {
			if locked, err := isRangeLocked(dirfd, name, nil, p.from, p.n); err == nil && locked {
				halves[n][i] = true
			}
		}
	}
	for n, h := range halves {
		switch {
		case h[0] && h[1]:
			use.whole = append(use.whole, n)
		case h[0] || h[1]:
			use.half = append(use.half, n)
		}
	}
	return use
}
