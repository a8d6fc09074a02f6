//go:build linux

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// GPUs are shared with other runs and users of the host. For each device, every user has a file
// gpu<DEVICE>.<UID> in a sticky directory on the host's local disk. Whoever uses the device holds
// an OFD write lock on his own file, and a device is in use if any of its files is locked. A
// supervisor locks its own file first and then looks at the others. If one of them is locked, it
// releases its own. If two users do that at the same instant, both may fail. They try again at
// different times, because the dispatcher's delays are random.
//
// A device has two halves, which are two ranges of each file. A job with half of a device takes
// the first free half, other jobs take both. Programs that do not know halves lock the whole file.
//
// The job inherits the descriptor, so the lock lasts as long as the job even if the supervisor is
// killed.

// jobLockFD is the first descriptor of a lock in a job, above those that shell scripts use.
const jobLockFD = 30

// gpuLock is a device that we have locked.
type gpuLock struct {
	fd   int
	path string
}

// takenError lists the devices of an attempt that others use.
type takenError struct {
	devices []int
	foreign bool // they are used by processes that belong to no job
}

func (e *takenError) Error() string {
	if e.foreign {
		return fmt.Sprintf("processes of no job compute on GPU %s", joinInts(e.devices))
	}
	if len(e.devices) == 1 {
		return fmt.Sprintf("GPU %d is in use by another run or user", e.devices[0])
	}
	return fmt.Sprintf("GPUs %s are in use by other runs or users", joinInts(e.devices))
}

func joinInts(list []int) string {
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// byteRange is a range of bytes of a file of a device; n is 0 for all bytes.
type byteRange struct{ from, n int64 }

var halfGPUs = []byteRange{{0, 1}, {1, 1}}

// lockGPUs locks all of the devices, or half of each, or none. It returns a *takenError if others
// use some of them.
func lockGPUs(dir string, devices []int, half bool) (locks []gpuLock, err error) {
	parts := []byteRange{{}}
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

// unlockGPUs releases the devices, even if processes that the job has left behind still have the
// descriptors.
func unlockGPUs(locks []gpuLock) {
	for _, l := range locks {
		unlockRange(l.fd, l.path, 0, 0)
		closeFile(l.fd, l.path)
	}
}

// lockGPU locks a part of one device. It returns EAGAIN if somebody else uses it.
func lockGPU(dir string, device int, p byteRange) (gpuLock, error) {
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

func lockIn(dirfd int, dir string, device int, p byteRange) (gpuLock, error) {
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

// lockedByOthers returns EAGAIN if that part of a file of the device other than ours is locked.
func lockedByOthers(dirfd int, dir string, device int, p byteRange, ours *unix.Stat_t) error {
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

// gpuUse holds the devices that are in use by us or others.
type gpuUse struct {
	whole []int
	half  []int // one half is in use
}

func (u *gpuUse) has(n int) bool { return slices.Contains(u.whole, n) || slices.Contains(u.half, n) }

// gpuFiles returns the files of devices in the shared directory, with the numbers of the devices.
func gpuFiles(dirfd int, dir string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		names, _ := shareNames(dirfd, dir, "gpu")
		for _, name := range names {
			number, _, dot := strings.Cut(name[len("gpu"):], ".")
			n, err := strconv.Atoi(number)
			if dot && err == nil && n >= 0 && n < jobs.MaxGPUs && !yield(name, n) {
				return
			}
		}
	}
}

// lockedGPUs returns the devices whose files are locked.
func lockedGPUs(dir string) (use gpuUse) {
	dirfd, err := openShare(dir, false)
	if err != nil {
		return use
	}
	defer closeFile(dirfd, dir)
	var halves [jobs.MaxGPUs][2]bool
	for name, n := range gpuFiles(dirfd, dir) {
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

// A device is not used while a process computes on it that belongs to no job. A supervisor asks the
// vendor's tool before a job with GPUs starts, and keeps the answer in the spool for the others.
// The helper asks again only while such processes are known.

// gpuFresh is the maximum age of an answer when a job starts. The helper asks again when an answer
// is three times as old. Tests shorten it.
var gpuFresh = 10 * time.Second

const (
	gpuTimeout = 5 * time.Second // of a tool
	gpuSilence = 5 * time.Minute // after which a tool that did not answer is asked again
)

const fileGPUs = "gpus" // boot clock in ns at which the answer expires, then numbers of devices

var devDir = "/dev" // tests replace it

// findGPUs returns the numbers of this host's devices as the NVIDIA tool counts them or, without
// it, of their files in /dev. A container may have only some.
func findGPUs() (numbers []int) {
	out, _ := runTool("nvidia-smi", "--query-gpu=index", "--format=csv,noheader")
	for line := range strings.Lines(out) {
		numbers = appendGPU(numbers, strings.TrimSpace(line))
	}
	if len(numbers) == 0 {
		entries, _ := os.ReadDir(devDir)
		for _, e := range entries {
			if digits, ok := strings.CutPrefix(e.Name(), "nvidia"); ok {
				numbers = appendGPU(numbers, digits)
			}
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

func appendGPU(numbers []int, digits string) []int {
	if n, err := strconv.Atoi(digits); err == nil && n >= 0 && n < jobs.MaxGPUs {
		return append(numbers, n)
	}
	return numbers
}

// runTool returns what a program prints within gpuTimeout. It does not wait for a program that
// hangs in the kernel.
func runTool(name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	type answer struct {
		out []byte
		err error
	}
	got := make(chan answer, 1)
	ctx, cancel := context.WithTimeout(context.Background(), gpuTimeout)
	go func() {
		defer cancel()
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		if errors.Is(err, unix.ECHILD) {
			err = nil // reap has collected the child
		}
		got <- answer{out, err}
	}()
	select {
	case a := <-got:
		return string(a.out), a.err
	case <-time.After(gpuTimeout + 2*time.Second):
		return "", context.DeadlineExceeded
	}
}

// gpuProcs returns the processes that compute on each device, by its number.
func gpuProcs() (map[int][]int, error) {
	procs := map[int][]int{}
	if out, err := runTool("rocm-smi", "--showpidgpus"); err == nil {
		parseROCm(out, procs)
	}
	index, err := runTool("nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader")
	if _, missing := errors.AsType[*exec.Error](err); missing {
		return procs, nil
	}
	if err != nil {
		return procs, err
	}
	apps, err := runTool("nvidia-smi", "--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader")
	if err == nil {
		parseNVIDIA(index, apps, procs)
	}
	return procs, err
}

// parseNVIDIA reads lines "0, GPU-8a6f…" and "GPU-8a6f…, 4711".
func parseNVIDIA(index, apps string, procs map[int][]int) {
	numbers := map[string]int{}
	for line := range strings.Lines(index) {
		number, uuid, _ := strings.Cut(strings.TrimSpace(line), ", ")
		if n := appendGPU(nil, number); n != nil {
			numbers[uuid] = n[0]
		}
	}
	for line := range strings.Lines(apps) {
		uuid, text, _ := strings.Cut(strings.TrimSpace(line), ", ")
		n, ok := numbers[uuid]
		if pid, err := strconv.Atoi(text); ok && err == nil {
			procs[n] = append(procs[n], pid)
		}
	}
}

// parseROCm reads lines "PID 4711 is using 2 DRM device(s):", each followed by the numbers
// of the devices.
func parseROCm(out string, procs map[int][]int) {
	pid := 0
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "PID" {
			pid, _ = strconv.Atoi(words[1])
			continue
		}
		for _, w := range words {
			if n := appendGPU(nil, strings.TrimSuffix(w, ",")); n != nil && pid > 0 {
				procs[n[0]] = append(procs[n[0]], pid)
			}
		}
	}
}

// queryBusyGPUs returns the devices on which processes compute that belong to no job, and keeps the
// answer in the spool. In a container the tool may name processes that we do not see. These belong
// to the job that has locked the device, if there is one.
func queryBusyGPUs(s spool, shareDir string) (busy []int) {
	before := lockedGPUs(shareDir)
	procs, err := gpuProcs()
	after := lockedGPUs(shareDir)
	keep := gpuFresh
	if err != nil {
		keep = gpuSilence
	}
	for n, pids := range procs {
		held := before.has(n) || after.has(n)
		if slices.ContainsFunc(pids, func(pid int) bool { return !belongsToJob(pid, held) }) {
			busy = append(busy, n)
		}
	}
	slices.Sort(busy)
	b := strconv.AppendInt(nil, int64(uptime()+keep), 10)
	for _, n := range busy {
		b = strconv.AppendInt(append(b, ' '), int64(n), 10)
	}
	path := s.path(fileGPUs)
	temp := path + "." + strconv.Itoa(os.Getpid())
	if writeFile(temp, b) == nil {
		rename(temp, path)
	}
	return busy
}

// cachedGPUs returns the last answer and the time at which it expires.
func cachedGPUs(s spool) (busy []int, until time.Duration) {
	b, _ := readFile(s.path(fileGPUs))
	for i, w := range bytes.Fields(b) {
		if i == 0 {
			until = time.Duration(parseNumber(w))
		} else {
			busy = appendGPU(busy, string(w))
		}
	}
	if until > uptime()+gpuSilence { // of another boot
		until = 0
	}
	return busy, until
}

// maxAncestors bounds the search for a supervisor above a process.
const maxAncestors = 64

// belongsToJob reports whether a process belongs to a job of any run and user, or is a server for
// such processes. unseen is the answer for a process that is not in /proc.
func belongsToJob(pid int, unseen bool) bool {
	if _, ok := readProc(pid); !ok {
		return unseen
	}
	if mark := cookieOf(pid); mark != "" {
		return true
	}
	for range maxAncestors {
		p, ok := readProc(pid)
		if !ok || pid <= 1 {
			break
		}
		switch strings.TrimSpace(string(procFile(pid, "comm"))) {
		case supervisorComm, "nvidia-cuda-mps":
			return true
		}
		pid = p.ppid
	}
	return false
}

// busyGPUs returns those devices on which processes compute that belong to no job.
func (s *slot) busyGPUs(devices []int) []int {
	busy, until := cachedGPUs(s.spool)
	if uptime() > until {
		busy = queryBusyGPUs(s.spool, s.config.ShareDir)
	}
	return slices.DeleteFunc(busy, func(n int) bool { return !slices.Contains(devices, n) })
}

// takeGPUs locks the devices of a job. It returns a *takenError if others use some.
func (s *slot) takeGPUs(a *attempt, job *hosts.LaunchJob) (err error) {
	if len(job.GPUs) == 0 {
		return nil
	}
	// Ask before locking: until then, nothing of ours computes on the devices.
	if busy := s.busyGPUs(job.GPUs); len(busy) > 0 {
		return &takenError{busy, true}
	}
	a.gpus, err = lockGPUs(s.config.ShareDir, job.GPUs, job.HalfGPU)
	return err
}

// watchGPUs updates the devices in use, for heartbeats.
func (h *helper) watchGPUs() {
	use := lockedGPUs(h.config.ShareDir)
	busy, until := cachedGPUs(h.spool)
	use.whole = union(use.whole, busy)
	h.mu.Lock()
	h.gpus = use
	h.mu.Unlock()
	if len(busy) > 0 && uptime() > until+2*gpuFresh {
		h.gpuQuery.tryRun(0, func() { queryBusyGPUs(h.spool, h.config.ShareDir) })
	}
}
