//go:build linux

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/account"
)

// capacity is what the session of this helper may use of the machine. The limits of control groups
// apply to all jobs together.
type capacity struct {
	cores, machineCores int // cores is at least 1
	memory              memInfo
	limits              []hosts.CapacityLimit
}

// jobProcesses is the number of processes and threads of a job for which hosts check mentions a
// limit that does not allow so many to each slot. Nothing else depends on it.
const jobProcesses = 32

// usualFiles is the usual limit of open files. hosts check mentions a lower one.
const usualFiles = 1024

// measureCapacity finds what the session may use. slots returns the number of slots for a number of
// cores.
func measureCapacity(slots func(cores int) int) capacity {
	c := capacity{cores: runtime.NumCPU(), machineCores: machineCores(), memory: readMachineMemory()}
	if c.cores < c.machineCores {
		c.addLimit(hosts.CapacityOfCPUs, float64(c.cores), float64(c.machineCores))
	}
	groups := openControlGroups()
	if quota := groups.cpuQuota(); quota < float64(c.cores) {
		c.cores = max(1, int(quota))
		c.addLimit(hosts.CapacityOfCPUTime, quota, float64(c.machineCores))
	}
	if limit, left := memoryLimit(groups.dirs("memory"), c.memory.total); limit < c.memory.total {
		c.addLimit(hosts.CapacityOfMemory, float64(limit), float64(c.memory.total))
		c.memory = c.memory.within(limit, left)
	}
	needed := float64(slots(c.cores) * jobProcesses)
	if limit := groups.processLimit(); limit < needed {
		c.addLimit(hosts.CapacityOfProcesses, limit, 0)
	}
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &r) == nil && isUserLimited() && float64(r.Cur) < needed {
		c.addLimit(hosts.CapacityOfUserProcesses, float64(r.Cur), 0)
	}
	// The Go runtime has raised the soft limit to the hard one, and jobs get the soft limit back.
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil && r.Max < usualFiles {
		c.addLimit(hosts.CapacityOfFiles, float64(r.Max), 0)
	}
	return c
}

func (c *capacity) addLimit(kind hosts.CapacityKind, value, of float64) {
	c.limits = append(c.limits, hosts.CapacityLimit{Kind: kind, Value: value, Of: of})
}

// hidesProcesses reports whether we do not see processes of other users: /proc is mounted with
// hidepid, or process 1 is not visible, as in some containers.
func (s site) hidesProcesses() bool {
	if _, err := os.Stat(s.root + "/proc/self"); err != nil {
		return false // there is nothing to compare with
	}
	_, err := os.ReadFile(s.root + "/proc/1/stat")
	return err != nil
}

// machineCores returns the number of cores of the machine, including those that this session may not
// use.
var machineCores = sync.OnceValue(func() int {
	stat, _ := os.ReadFile("/proc/stat")
	return max(countCPUs(stat), runtime.NumCPU())
})

// countCPUs returns the number of processors in the text of /proc/stat.
func countCPUs(stat []byte) (n int) {
	for line := range bytes.Lines(stat) {
		if rest, isCPU := bytes.CutPrefix(line, []byte("cpu")); isCPU && len(rest) > 0 && rest[0] != ' ' {
			n++
		}
	}
	return n
}

// controlGroups finds the directories of this process's control groups.
type controlGroups struct{ mounts, groups string }

func openControlGroups() controlGroups {
	return controlGroups{string(readProcFile("/proc/self/mountinfo")), string(readProcFile("/proc/self/cgroup"))}
}

// dirs returns the directories with a controller, from the group of the process to the outermost
// that is visible.
func (g controlGroups) dirs(controller string) []string {
	return controlGroupDirs(g.mounts, g.groups, controller)
}

// cpuQuota returns the smallest quota of CPU time of the groups, in cores, or infinity.
func (g controlGroups) cpuQuota() float64 {
	quota := math.Inf(1)
	for _, dir := range g.dirs("cpu") {
		b, err := os.ReadFile(filepath.Join(dir, "cpu.max")) // "max 100000" or "50000 100000"
		words := strings.Fields(string(b))
		if err != nil { // version 1, where no quota is -1
			us, _ := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
			period, _ := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
			words = append(strings.Fields(string(us)), strings.Fields(string(period))...)
		}
		if len(words) != 2 {
			continue
		}
		n, err1 := strconv.ParseFloat(words[0], 64)
		period, err2 := strconv.ParseFloat(words[1], 64)
		if err1 == nil && err2 == nil && n > 0 && period > 0 {
			quota = min(quota, n/period)
		}
	}
	return quota
}

// memoryLimit returns the smallest limit of control groups, in bytes, and how much of it is left, apart
// from caches of files. Limits above the memory of the machine (0: unknown) do not count. Without a
// limit both are the largest int64.
func memoryLimit(dirs []string, machine int64) (limit, left int64) {
	limit, left = math.MaxInt64, math.MaxInt64
	for _, dir := range dirs {
		names := []string{"memory.max", "memory.current", "inactive_file"}
		var buf [32]byte
		k, err := procStart(filepath.Join(dir, names[0]), buf[:])
		if err != nil {
			names = []string{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
			k, _ = procStart(filepath.Join(dir, names[0]), buf[:])
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(buf[:k])), 10, 64)
		if err != nil || n <= 0 || n >= machine && machine > 0 { // "max", or as good as that
			continue
		}
		used := readProcFile(filepath.Join(dir, names[1]))
		stat := readProcFile(filepath.Join(dir, "memory.stat"))
		var caches int64
		for line := range bytes.Lines(stat) {
			if rest, found := bytes.CutPrefix(line, []byte(names[2]+" ")); found {
				caches = int64(parseNumber(bytes.TrimSpace(rest)))
			}
		}
		limit = min(limit, n)
		left = min(left, max(0, n-int64(parseNumber(bytes.TrimSpace(used)))+caches))
	}
	return limit, left
}

// processLimit returns the smallest pids.max of the groups, or infinity.
func (g controlGroups) processLimit() float64 {
	limit := math.Inf(1)
	for _, dir := range g.dirs("pids") {
		b, _ := os.ReadFile(filepath.Join(dir, "pids.max"))
		if n, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64); err == nil {
			limit = min(limit, n)
		}
	}
	return limit
}

// within returns the memory of the machine within the limit of control groups, of which so much is
// left.
func (m memInfo) within(limit, left int64) memInfo {
	if limit >= m.total && m.total > 0 {
		return m
	}
	m.total = limit
	if m.available < 0 || left < m.available {
		m.available = left
	}
	return m
}

// userLimits is what the administrators of this host allow our user.
type userLimits struct{ hosts.UserLimits }

// maxTrustedFile is the maximum size, in bytes, of a file in which root limits or weights users.
const maxTrustedFile = 64 << 10

// userLimits reads hosts.UserLimitsFile. The file counts only if it belongs to root and nobody else
// can write it. problem is "" or a line about a file that does not count, or not in all parts.
func (s site) userLimits() (allowed userLimits, problem string) {
	text, err := readTrusted(s.root+hosts.UserLimitsFile, s.adminUID, maxTrustedFile)
	if isMissing(err) {
		return allowed, ""
	}
	if err != nil {
		return allowed, fmt.Sprintf("%s is ignored: %v", hosts.UserLimitsFile, err)
	}
	user := account.Current()
	var problems []string
	allowed.UserLimits, problems = hosts.ParseUserLimits(text, user.Name, strconv.Itoa(user.UID))
	if len(problems) > 0 {
		problem = fmt.Sprintf("%s: %s", hosts.UserLimitsFile, strings.Join(problems, "; "))
	}
	return allowed, problem
}

func (l userLimits) whyClosed() string { return "it is closed by its administrators: " + l.Closed }

// checkOpen returns an error if a check should report that the host is closed. A run is served
// nevertheless, because its jobs may be running here: nothing is started for it, see currentOwner.
func (l userLimits) checkOpen(o *hosts.Open) error {
	if o.Check && l.Closed != "" {
		return errors.New(l.whyClosed())
	}
	return nil
}

// apply reduces what the hello offers to what is allowed.
func (l userLimits) apply(hello *hosts.Hello) {
	hello.MaxSlots = l.Slots
	if l.Slots > 0 && l.Slots < hello.Slots {
		hello.Limits = append(hello.Limits,
			hosts.CapacityLimit{Kind: hosts.CapacityOfSlots, Value: float64(l.Slots), Of: float64(hello.Slots)})
		hello.Slots = l.Slots
	}
	if l.Memory > 0 && l.Memory < hello.MemBytes {
		hello.Limits = append(hello.Limits, hosts.CapacityLimit{Kind: hosts.CapacityOfReservations,
			Value: float64(l.Memory), Of: float64(hello.MemBytes)})
		hello.MemBytes = l.Memory
	}
}

// memoryWithin returns the smaller one of a number of bytes and the limit.
func (l userLimits) memoryWithin(bytes int64) int64 {
	if l.Memory > 0 {
		return min(bytes, l.Memory)
	}
	return bytes
}

// slotBound returns how many slots the run with index me may use because of the limit, which holds
// for all runs of its user together.
func (l userLimits) slotBound(claims []hosts.SlotClaim, me int, offset float64) int {
	if l.Slots == 0 {
		return math.MaxInt
	}
	own := slices.DeleteFunc(slices.Clone(claims), func(c hosts.SlotClaim) bool { return c.User != claims[me].User })
	return hosts.SlotBound(l.Slots, nil, own, slices.Index(own, claims[me]), offset)
}

// memoryOfOthers returns how many bytes of what is allowed, or else of total, the run with index me
// must leave to other runs.
func (l userLimits) memoryOfOthers(total int64, claims []hosts.SlotClaim, me int) int64 {
	held := hosts.HeldMemory(total, claims, me)
	if l.Memory == 0 || l.Memory >= total {
		return held
	}
	var own int64 // of other runs of the user
	for i, c := range claims {
		if i != me && c.User == claims[me].User {
			own += min(max(c.Memory, 0), total)
		}
	}
	// The others take first what is not allowed to us.
	return min(max(own, held-(total-l.Memory)), l.Memory)
}
