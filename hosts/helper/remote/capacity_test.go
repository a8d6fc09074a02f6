//go:build linux

package remote

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"dcs-tui/hosts"
)

// TestLimitsOfControlGroups checks that the smallest limit of all groups of a process counts, with both
// versions of control groups, and that caches of files count as memory that is left.
func TestLimitsOfControlGroups(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name    string
		groups  string
		version int
		machine int64 // memory
		files   map[string]string

		quota       float64
		limit, left int64
		processes   float64
	}{
		{"version 2", "0::/a/b\n", 2, 0, map[string]string{
			"cpu.max":          "max 100000\n",
			"a/cpu.max":        "50000 100000\n",
			"a/b/cpu.max":      "400000 100000\n",
			"a/memory.max":     "536870912\n",
			"a/memory.current": "209715200\n",
			"a/memory.stat":    "anon 1\ninactive_file 104857600\n",
			"a/b/memory.max":   "max\n",
			"a/b/pids.max":     "100\n",
			"a/pids.max":       "max\n",
		}, 0.5, 512 * mib, 412 * mib, 100},
		{"version 1", "1:cpu:/a\n2:memory:/a\n3:pids:/a\n", 1, 1 << 40, map[string]string{
			"cpu/a/cpu.cfs_quota_us": "250000\n", "cpu/a/cpu.cfs_period_us": "100000\n", "cpu/cpu.cfs_quota_us": "-1\n",
			"cpu/cpu.cfs_period_us": "100000\n", "memory/a/memory.limit_in_bytes": "1048576\n",
			"memory/a/memory.usage_in_bytes": "2097152\n", "memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 2.5, mib, 0, math.Inf(1)},
		{"without limits", "0::/\n", 2, 0, nil, math.Inf(1), math.MaxInt64, math.MaxInt64, math.Inf(1)},
		{"the machine has less", "0::/\n", 2, 1 << 30, map[string]string{
			"memory.max": "1073741824\n", "memory.current": "1\n",
		}, math.Inf(1), math.MaxInt64, math.MaxInt64, math.Inf(1)},
		{"nonsense", "0::/\n", 2, 0, map[string]string{"cpu.max": "0 0", "memory.max": "-7", "pids.max": "?"},
			math.Inf(1), math.MaxInt64, math.MaxInt64, math.Inf(1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
				must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			g := controlGroups{groups: c.groups, mounts: "30 25 0:26 / " + dir + " rw - cgroup2 cgroup2 rw\n"}
			if c.version == 1 {
				g.mounts = ""
				for _, controller := range []string{"cpu", "memory", "pids"} {
					g.mounts += "30 25 0:26 / " + dir + "/" + controller + " rw - cgroup cgroup rw," + controller + "\n"
				}
			}
			limit, left := memoryLimit(g.dirs("memory"), c.machine)
			if g.cpuQuota() != c.quota || limit != c.limit || left != c.left || g.processLimit() != c.processes {
				t.Errorf("got %v cores, %d bytes with %d left, %v processes; want %v, %d, %d, %v",
					g.cpuQuota(), limit, left, g.processLimit(), c.quota, c.limit, c.left, c.processes)
			}
		})
	}
}

// TestMemoryWithinControlGroups checks that memory is bounded by the limit and by what is left of it.
func TestMemoryWithinControlGroups(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "memory.max"), []byte("1000\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "memory.current"), []byte("400\n"), 0o600))
	g := controlGroups{groups: "0::/\n", mounts: "30 25 0:26 / " + dir + " rw - cgroup2 cgroup2 rw\n"}
	for machine, want := range map[memInfo]memInfo{
		{total: 5000, available: 3000}: {total: 1000, available: 600},
		{total: 5000, available: 100}:  {total: 1000, available: 100},
		{total: 5000, available: -1}:   {total: 1000, available: 600},
		{total: 800, available: 700}:   {total: 800, available: 700},
	} {
		if got := machine.within(memoryLimit(g.dirs("memory"), machine.total)); got != want {
			t.Errorf("%+v: got %+v, want %+v", machine, got, want)
		}
	}
}

// TestCountCPUs checks that each processor of /proc/stat counts once, and their sum does not.
func TestCountCPUs(t *testing.T) {
	if n := countCPUs([]byte("cpu  1 2\ncpu0 1 2\ncpu1 1 2\nintr 5\n")); n != 2 {
		t.Errorf("got %d, want 2", n)
	}
}

// TestCapacityLimitsAreDescribed checks that each limit names its number, and that an unknown kind
// of a later version has a text, too.
func TestCapacityLimitsAreDescribed(t *testing.T) {
	for _, c := range []struct {
		limit hosts.CapacityLimit
		want  string
	}{
		{
			hosts.CapacityLimit{Kind: hosts.CapacityOfCPUs, Value: 4, Of: 16},
			"4 of 16 cores may be used (cpuset or taskset)",
		},
		{
			hosts.CapacityLimit{Kind: hosts.CapacityOfCPUTime, Value: 0.5, Of: 2},
			"a control group limits CPU time to 0.5 of 2 cores",
		},
		{
			hosts.CapacityLimit{Kind: hosts.CapacityOfMemory, Value: 512 << 20, Of: 24 << 30},
			"a control group limits memory to 512 MiB of 24 GiB",
		},
		{
			hosts.CapacityLimit{Kind: hosts.CapacityOfUserProcesses, Value: 100},
			"100 processes and threads per user (ulimit -u)",
		},
		{
			hosts.CapacityLimit{Kind: hosts.CapacityOfSlots, Value: 8, Of: 63},
			"its administrators allow you 8 slots of 63 (/etc/dcs-tui/limits.toml)",
		},
		{
			hosts.CapacityLimit{Kind: hosts.CapacityOfReservations, Value: 64 << 30, Of: 256 << 30},
			"its administrators allow your jobs 64 GiB of 256 GiB of memory (/etc/dcs-tui/limits.toml)",
		},
		{
			hosts.CapacityLimit{Kind: hosts.CapacityOfProcessList},
			"processes of other users are hidden (/proc is mounted with hidepid), " +
				"so their programs on GPUs, and owners at consoles without logind, are not noticed",
		},
		{hosts.CapacityLimit{Kind: 99, Value: 1}, "a limit of kind 99: 1"},
	} {
		if got := c.limit.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestHiddenProcesses checks when processes of other users count as hidden: files of the first process
// cannot be read, or it has no directory, but there is a /proc.
func TestHiddenProcesses(t *testing.T) {
	m := machine{t, t.TempDir()}
	s := site{root: m.root}
	if s.hidesProcesses() {
		t.Error("a machine without /proc hides processes")
	}
	m.file("proc/self/stat", "2 (sh) S")
	if !s.hidesProcesses() {
		t.Error("a machine without a first process hides none")
	}
	m.file("proc/1/stat", "1 (init) S")
	if s.hidesProcesses() {
		t.Error("a machine that shows the first process hides processes")
	}
}
