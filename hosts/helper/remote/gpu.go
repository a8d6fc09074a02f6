//go:build linux

package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// GPUs are shared with other runs and users of the host. Whoever uses a device holds a file
// gpu<DEVICE>.<UID>.<RANDOM> in the shared directory, see share.go. A supervisor first looks whether
// a file of the device is locked, then makes its own, and looks again. If another one is locked, it
// removes its own. If two do that at the same instant, both may fail. They try again at different
// times, because the dispatcher's delays are random.
//
// The first two bytes of each file are the halves of the device. A job with half of a device takes
// the first free half, other jobs take both. A job with another part of a device also locks as many
// bytes from partBytes on as it has thousandths of it, and leaves byte 2 free, which marks such a
// file. A version that knows only halves takes it for the whole device.
//
// The job inherits the descriptor, so the lock lasts as long as the job even if the supervisor is
// killed.

// jobLockFD is the first descriptor of a lock in a job, above those that shell scripts use.
const jobLockFD = 30

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
	return strings.Join(text.Each(list, strconv.Itoa), ",")
}

// halfGPUs are the bytes whose locks are the halves of a device.
var halfGPUs = [2]byteRange{{0, 1}, {1, 1}}

// markByte is free in the file of a job with a part of a device that is not half of it, and locked
// in that of a job with the whole device. partBytes are the bytes that may count thousandths.
var (
	markByte  = byteRange{2, 1}
	partBytes = byteRange{16, int64(jobs.WholeGPU)}
)

// errTaken is the error for a device that others use.
var errTaken = errors.New("in use")

// gpuNeed is what an attempt needs of a device.
type gpuNeed struct {
	halves [2]bool
	share  jobs.GPUs
}

// needsFor returns the needs of which one must be met.
func needsFor(share jobs.GPUs) []gpuNeed {
	if share == jobs.WholeGPU/2 {
		return []gpuNeed{{[2]bool{true, false}, share}, {[2]bool{false, true}, share}}
	}
	return []gpuNeed{{[2]bool{true, true}, share}}
}

// ranges returns the bytes to lock: also whatever others must not lock.
func (n gpuNeed) ranges() []byteRange {
	switch {
	case n.share == jobs.WholeGPU:
		return []byteRange{{}}
	case n.halves == [2]bool{true, false}:
		return []byteRange{halfGPUs[0], {2, 0}}
	case n.halves == [2]bool{false, true}:
		return []byteRange{{1, 0}}
	}
	return []byteRange{{0, 2}, {partBytes.from, int64(n.share)}}
}

// lockGPUs locks a share of each of the devices, or nothing. It returns a *takenError if others use
// too much of some of them.
func lockGPUs(dir string, devices []int, share jobs.GPUs) (locks []heldFile, err error) {
	needs := needsFor(share)
	devices = slices.Compact(slices.Sorted(slices.Values(devices)))
	taken := &takenError{}
	for _, n := range devices {
		var l heldFile
		lerr := errTaken
		for i := 0; i < len(needs) && errors.Is(lerr, errTaken); i++ {
			l, lerr = lockGPU(dir, n, needs[i])
		}
		switch {
		case lerr == nil:
			locks = append(locks, l)
		case errors.Is(lerr, errTaken):
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
func unlockGPUs(locks []heldFile) {
	for i := range locks {
		locks[i].remove()
	}
}

// lockGPU locks what is needed of one device. It returns errTaken if others use too much of it.
func lockGPU(dir string, device int, need gpuNeed) (l heldFile, err error) {
	for range holdTries {
		dirfd, err := openShare(dir, true)
		if err != nil {
			return l, err
		}
		l, err = lockIn(dirfd, dir, device, need)
		closeFile(dirfd, dir)
		if !errors.Is(err, errMoved) {
			return l, err
		}
	}
	return l, fmt.Errorf("the files in %s are being removed again and again", dir)
}

func lockIn(dirfd int, dir string, device int, need gpuNeed) (heldFile, error) {
	// Looking first avoids most collisions, in which both would give way.
	if err := lockedByOthers(dirfd, dir, device, need, nil); err != nil {
		return heldFile{}, err
	}
	l, err := holdFile(dirfd, dir, lockPrefix(device), nil, need.ranges()...)
	if err != nil {
		return heldFile{}, err
	}
	if err := lockedByOthers(dirfd, dir, device, need, &l); err != nil {
		l.remove()
		return heldFile{}, err
	}
	return l, nil
}

// gpuPrefix and the number of a device begin the name of the file of a GPU in use.
const gpuPrefix = "gpu"

func lockPrefix(device int) string { return gpuPrefix + strconv.Itoa(device) + "." }

// lockedByOthers returns errTaken if the files other than ours (nil: none) leave too little of the
// device, or if one of them is for the same half.
func lockedByOthers(dirfd int, dir string, device int, need gpuNeed, ours *heldFile) error {
	used, sameHalf := jobs.GPUs(0), false
	err := eachGPU(dirfd, dir, lockPrefix(device), func(g *gpuClaim) {
		if ours == nil || !strings.HasSuffix(ours.path, "/"+g.name) {
			used = min(used+g.share, jobs.WholeGPU)
			sameHalf = sameHalf || g.share == jobs.WholeGPU/2 && g.halves == need.halves
		}
	})
	if err == nil && (sameHalf || used+need.share > jobs.WholeGPU) {
		return errTaken
	}
	return err
}

// gpuClaim is a file whose locks show that a user uses a device, or a part of it.
type gpuClaim struct {
	name   string
	device int
	user   int
	halves [2]bool
	share  jobs.GPUs
}

// shareOf returns the part of the device that the locks of a file mean.
func (g *gpuClaim) shareOf(f *sharedFile) (jobs.GPUs, error) {
	switch {
	case g.halves == [2]bool{}:
		return 0, nil
	case g.halves != [2]bool{true, true}:
		return jobs.WholeGPU / 2, nil
	}
	if isWhole, err := f.isLocked(markByte); err != nil || isWhole {
		return jobs.WholeGPU, err
	}
	from, n, err := lockedRange(f.fd, f.name, partBytes.from, partBytes.n)
	if n <= 0 || from != partBytes.from || n > partBytes.n {
		return jobs.WholeGPU, err
	}
	return jobs.GPUs(n), err
}

// eachGPU calls look for each locked file of a device whose name begins with prefix.
func eachGPU(dirfd int, dir, prefix string, look func(*gpuClaim)) error {
	return eachShared(dirfd, dir, prefix, nil, func(f *sharedFile) {
		number, rest, dot := strings.Cut(strings.TrimPrefix(f.name, gpuPrefix), ".")
		n, err := strconv.Atoi(number)
		if !dot || err != nil || n < 0 || n >= jobs.MaxGPUs {
			return
		}
		g := &gpuClaim{name: f.name, device: n, user: f.owner()}
		for i, half := range halfGPUs {
			if g.halves[i], err = f.isLocked(half); err != nil {
				return
			}
		}
		if g.share, err = g.shareOf(f); err != nil {
			return
		}
		held := g.share > 0
		// A file that was made by a version before DSH2 has no random part and is locked again.
		if strings.Contains(rest, ".") {
			f.tend(dirfd, held)
		}
		if held {
			look(g)
		}
	}, func(string, error) {})
}

// gpuUse holds the devices that are in use by us or others.
type gpuUse struct {
	whole []int
	parts []hosts.GPUPart // a part is in use
}

func (u *gpuUse) has(n int) bool {
	return slices.Contains(u.whole, n) || slices.ContainsFunc(u.parts, func(p hosts.GPUPart) bool { return p.GPU == n })
}

// lockedGPUs returns the devices whose files are locked.
func lockedGPUs(dir string) (use gpuUse) {
	dirfd, err := openShare(dir, false)
	if err != nil {
		return use
	}
	defer closeFile(dirfd, dir)
	var used [jobs.MaxGPUs]jobs.GPUs
	eachGPU(dirfd, dir, gpuPrefix, func(g *gpuClaim) { used[g.device] = min(used[g.device]+g.share, jobs.WholeGPU) })
	for n, share := range used {
		switch {
		case share == jobs.WholeGPU:
			use.whole = append(use.whole, n)
		case share > 0:
			use.parts = append(use.parts, hosts.GPUPart{GPU: n, Used: share})
		}
	}
	return use
}

// gpuUsers returns the devices in use, by user.
func gpuUsers(dirfd int, dir string) map[int][]int {
	users := map[int][]int{}
	eachGPU(dirfd, dir, gpuPrefix, func(g *gpuClaim) {
		if !slices.Contains(users[g.user], g.device) {
			users[g.user] = append(users[g.user], g.device)
		}
	})
	for _, devices := range users {
		slices.Sort(devices)
	}
	return users
}

// A device is not used while a process computes on it that belongs to no job. A supervisor asks the
// vendor's tool before a job with GPUs starts, and keeps the answer in the spool for the others.
// The helper asks again only while such processes are known.

// gpuFresh is the maximum age of an answer when a job starts. The helper asks again when an answer
// is three times as old. Tests shorten it.
var gpuFresh = 10 * time.Second

var gpuTimeout = 5 * time.Second // of a tool; tests lengthen it

const gpuSilence = 5 * time.Minute // after which a tool that did not answer is asked again

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
	a.gpus, err = lockGPUs(s.config.ShareDir, job.GPUs, cmp.Or(job.GPUShare, jobs.WholeGPU))
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
