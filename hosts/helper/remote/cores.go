//go:build linux

package remote

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// With pin = true, each job is bound to cores of its own. A supervisor that holds cores has a file
// cores-<UID>.<RANDOM> in the shared directory, see share.go, which lists them. The supervisor
// looks for the cores that are used least, writes its file, and looks again. If another one has
// chosen some of these cores in the meantime, it withdraws its choice and tries again later.
//
// Nobody is refused: if there are more slots than cores, jobs share cores.

const (
	coresPrefix = "cores-"
	maxCoreText = 8 << 10 // bytes of a file: a list of 1024 cores has at most 5 KiB
	coreTries   = 16
	corePause   = 5 * time.Millisecond // mean time between two tries
)

var coresMagic = magic{"DCC", &jobs.FormatCores}

// coreFields are the fields of the file. CPUs is a list as in /proc, such as "0-3,8".
type coreFields struct{ CPUs string }

// coreClaim is the choice of a supervisor. It is kept from one job to the next.
type coreClaim struct {
	file    heldFile
	numbers []int // sorted; nil: none
	shared  bool  // other jobs use some of them
	failed  bool  // a failure was reported

	usable, order []int // cores of the session, and as ordered by coreOrder
}

// take chooses n of the cores that this thread may use, or all if there are not that many, for the
// supervisor with this index. The choice is valid even if it cannot be published, unless the cores of
// this session cannot be found.
func (c *coreClaim) take(dir string, index, n int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		c.release()
		return fmt.Errorf("finding the cores of this session: %w", err)
	}
	usable := cpusIn(&set)
	if c.file.fd != 0 && !c.shared && len(c.numbers) == min(n, len(usable)) && isSubset(c.numbers, usable) &&
		c.file.inPlace() == nil {
		return nil
	}
	if !slices.Equal(usable, c.usable) {
		c.usable, c.order = usable, coreOrder("", usable)
	}
	c.release()
	c.numbers = pickCores(c.order, nil, index, n)
	dirfd, err := openShare(dir, true)
	if err != nil {
		return err
	}
	defer closeFile(dirfd, dir)
	for try := 1; ; try++ {
		before, err := coresInUse(dirfd, dir, c.file.path)
		if err != nil {
			c.numbers = pickCores(c.order, nil, index, n)
			return err
		}
		collided, err := c.choose(dirfd, dir, pickCores(c.order, before, index, n), before)
		if err != nil || !collided || try == coreTries {
			return err
		}
		c.release()
		time.Sleep(corePause/2 + time.Duration(mathrand.Int64N(int64(corePause))))
	}
}

// choose publishes the choice of cores and reports whether somebody else has chosen some of them
// since before, when coresInUse was called.
func (c *coreClaim) choose(dirfd int, dir string, cores []int, before map[int]int) (collided bool, err error) {
	c.numbers = cores
	text := appendSealed(nil, coresMagic, coreFields{formatCPUs(cores)})
	if err := c.file.write(dirfd, dir, coresPrefix, text); err != nil {
		return false, err
	}
	after, err := coresInUse(dirfd, dir, c.file.path)
	for _, cpu := range c.numbers {
		c.shared = c.shared || after[cpu] > 0
		collided = collided || after[cpu] > before[cpu]
	}
	return collided, err
}

// release releases the cores. The file stays, and lists none.
func (c *coreClaim) release() {
	if c.file.fd != 0 && len(c.numbers) > 0 {
		text := appendSealed(nil, coresMagic, coreFields{})
		if pwrite(c.file.fd, c.file.path, text, 0) != nil {
			c.file.remove()
		}
	}
	c.numbers, c.shared = nil, false
}

// coresInUse returns how many jobs use each core. The file at the path ours does not count, nor do
// files that cannot be read. Files of another user count as one job on each core, so that a user
// cannot keep others from a core.
func coresInUse(dirfd int, dir, ours string) (used map[int]int, err error) {
	used = map[int]int{}
	type use struct{ user, cpu int }
	seen := map[use]bool{}
	err = eachShared(dirfd, dir, coresPrefix, nil, func(f *sharedFile) {
		held, lerr := f.isLocked(byteRange{0, 1})
		if lerr != nil || strings.HasSuffix(ours, "/"+f.name) {
			return
		}
		f.tend(dirfd, held)
		if !held {
			return
		}
		var fields coreFields
		if _, err := readSealed(f, maxCoreText, coresMagic, &fields); err != nil {
			return
		}
		cpus, _ := parseCPUs(fields.CPUs)
		for _, cpu := range cpus {
			if u := (use{f.owner(), cpu}); u.user == ownUID || !seen[u] {
				seen[u] = true
				used[cpu]++
			}
		}
	}, func(string, error) {})
	return used, err
}

// pickCores returns n of the cores, sorted, or all if there are not that many: those that are used
// least, and of these the first from the one on that belongs to the supervisor with this index. So
// the supervisors of a run choose different cores at once.
func pickCores(order []int, used map[int]int, index, n int) []int {
	at := max(0, index-1) % len(order)
	list := slices.Concat(order[at:], order[:at])
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(used[a], used[b]) })
	list = list[:min(max(n, 1), len(list))]
	slices.Sort(list)
	return list
}

// coreOrder orders the processors of the machine below root: the first threads of all cores come
// before the second ones, because two threads of a core slow each other down.
func coreOrder(root string, cpus []int) []int {
	rank := map[int]int{}
	for _, n := range cpus {
		b, _ := os.ReadFile(fmt.Sprintf("%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", root, n))
		siblings, _ := parseCPUs(string(bytes.TrimSpace(b)))
		rank[n] = max(0, slices.Index(siblings, n))
	}
	order := slices.Clone(cpus)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	return order
}

// bindThread binds the calling thread, which must be locked to its goroutine, to the cores. A
// process that it starts inherits that. The returned function undoes it.
func bindThread(cpus []int) (undo func(), err error) {
	var before, set unix.CPUSet
	if len(cpus) == 0 {
		return func() {}, nil
	}
	for _, n := range cpus {
		set.Set(n)
	}
	if err = unix.SchedGetaffinity(0, &before); err == nil {
		err = unix.SchedSetaffinity(0, &set)
	}
	if err != nil {
		return func() {}, err
	}
	return func() { unix.SchedSetaffinity(0, &before) }, nil
}

// takeCores chooses the cores of a job if the host binds jobs to cores.
func (s *slot) takeCores(a *attempt, slots int) {
	if !s.config.Pin {
		return
	}
	if err := s.cores.take(s.config.ShareDir, s.holder.Slot, max(1, slots)); err != nil {
		s.reportPinProblem(a, fmt.Errorf("pin: cores cannot be divided between runs, so jobs may share cores: %w", err))
	}
	a.cores = s.cores.numbers
}

// reportPinProblem reports, once, why jobs may share cores or are not bound.
func (s *slot) reportPinProblem(a *attempt, err error) {
	if !s.cores.failed {
		s.cores.failed = true
		s.report(&report{Kind: repTrouble, Attempt: a.id, Why: err.Error()})
	}
}

// cpusIn returns the sorted numbers in a set.
func cpusIn(set *unix.CPUSet) (list []int) {
	for n := range maxCPUs {
		if set.IsSet(n) {
			list = append(list, n)
		}
	}
	return list
}

// maxCPUs is the number of processors that a unix.CPUSet can have.
const maxCPUs = 1024

// isSubset reports whether all is a superset of part.
func isSubset(part, all []int) bool {
	return !slices.ContainsFunc(part, func(n int) bool { return !slices.Contains(all, n) })
}

// formatCPUs writes sorted numbers as the kernel does: "0-3,8".
func formatCPUs(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(list[i]))
		if j > i {
			b.WriteString("-" + strconv.Itoa(list[j]))
		}
		i = j + 1
	}
	return b.String()
}

var errCPUList = errors.New("not a list of processors")

// parseCPUs parses what formatCPUs writes.
func parseCPUs(s string) (list []int, err error) {
	if s == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err1 := strconv.Atoi(first)
		to := from
		var err2 error
		if isRange {
			to, err2 = strconv.Atoi(last)
		}
		if err1 != nil || err2 != nil || from < 0 || to < from || to >= maxCPUs {
			return nil, errCPUList
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
		if len(list) > maxCPUs {
			return nil, errCPUList
		}
	}
	return list, nil
}
