//go:build linux

package remote

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// boundTo returns the cores to which a job is bound, and the number of threads that OpenMP would
// use. The job runs until it is released.
func (f *helperProcess) boundTo(id string, slots int) (cores []int, threads string) {
	f.w.t.Helper()
	ready, gate := f.w.fifo("ready-"+id), f.w.fifo("gate-"+id)
	j := job(id, fmt.Sprintf(`echo $OMP_NUM_THREADS $(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status) `+
		`> %s; read x < %s`, ready, gate))
	j.Slots = slots
	f.launch(j)
	threads, list, _ := strings.Cut(f.w.receive(ready), " ")
	cores, err := parseCPUs(list)
	must(f.w.t, err)
	return cores, threads
}

func unionOf(lists ...[]int) map[int]bool {
	all := map[int]bool{}
	for _, list := range lists {
		for _, n := range list {
			all[n] = true
		}
	}
	return all
}

// TestJobsAreBoundToCores checks pin: a job gets as many cores as it has slots, and no other job of
// the same or of another run uses them, unless the machine has too few. OMP_NUM_THREADS is the
// number of cores. Without pin, a job may use all cores.
func TestJobsAreBoundToCores(t *testing.T) {
	var set unix.CPUSet
	must(t, unix.SchedGetaffinity(0, &set))
	n := len(cpusIn(&set))
	w := newWorld(t)
	o := w.open()
	o.Pin = true
	f := w.start(o)
	a, _ := f.boundTo("1.1", 1)
	b, _ := f.boundTo("2.1", 0)
	w2, o2 := w.sameHost(t)
	o2.Pin = true
	g := w2.start(o2)
	c, threads := g.boundTo("1.1", 2)
	if len(a) != 1 || len(b) != 1 || len(c) != min(2, n) || len(unionOf(a, b)) != min(2, n) ||
		len(unionOf(a, b, c)) != min(4, n) {
		t.Errorf("of %d cores, jobs with 1, 1, and 2 slots are bound to %v, %v, and %v", n, a, b, c)
	}
	if want := fmt.Sprint(len(c)); threads != want {
		t.Errorf("OpenMP uses %s threads, want %s", threads, want)
	}
	w2.release("1.1")
	g.succeeds("1.1")
	g.endRun()
	w.release("1.1")
	w.release("2.1")
	f.succeeds("1.1")
	f.succeeds("2.1")
	f.endRun()
	if left, _ := filepath.Glob(o.ShareDir + "/" + coresPrefix + "*"); left != nil {
		t.Errorf("%v is left of runs that have ended", left)
	}

	w3 := newWorld(t)
	h := w3.start(w3.open())
	if all, threads := h.boundTo("1.1", 1); len(all) != n || threads != "1" {
		t.Errorf("without pin, a job is bound to %v and OpenMP uses %s threads", all, threads)
	}
	w3.release("1.1")
	h.succeeds("1.1")
}

// TestOwnNumberOfThreadsIsKept checks that pin does not replace OMP_NUM_THREADS of the user.
func TestOwnNumberOfThreadsIsKept(t *testing.T) {
	env := jobEnv(
		nil, &hosts.LaunchJob{Env: []jobs.EnvVar{{Name: "OMP_NUM_THREADS", Value: "7"}}}, 2, nil, "mark", "/p",
	)
	if !slices.Contains(env, "OMP_NUM_THREADS=7") || slices.Contains(env, "OMP_NUM_THREADS=2") {
		t.Errorf("got %q", env)
	}
}

// TestPickCores checks that a job gets the cores that are used least, that supervisors prefer
// different cores, and that a job never gets more than there are.
func TestPickCores(t *testing.T) {
	order := []int{0, 2, 4, 1, 3, 5}
	for name, c := range map[string]struct {
		used     map[int]int
		index, n int
		want     []int
	}{
		"first supervisor":    {nil, 1, 1, []int{0}},
		"third supervisor":    {nil, 3, 1, []int{4}},
		"more than cores":     {nil, 8, 1, []int{2}},
		"others are avoided":  {map[int]int{0: 1, 2: 1}, 1, 2, []int{1, 4}},
		"the least used":      {map[int]int{0: 2, 1: 2, 2: 2, 3: 1, 4: 2, 5: 2}, 1, 1, []int{3}},
		"too many":            {nil, 2, 9, []int{0, 1, 2, 3, 4, 5}},
		"a job without slots": {nil, 2, 0, []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pickCores(order, c.used, c.index, c.n); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestCoresChosenAtTheSameTime checks that a supervisor notices that another one has chosen the
// same core since it looked, and that it then chooses another one. What is released can be chosen
// again.
func TestCoresChosenAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, os.ModeSticky|0o777))
	dirfd, err := openShare(dir, false)
	must(t, err)
	defer closeFile(dirfd, dir)
	var a, b coreClaim
	defer a.file.remove()
	defer b.file.remove()
	before, err := coresInUse(dirfd, dir, "")
	must(t, err)
	if collided, err := a.choose(dirfd, dir, []int{1, 2}, before); collided || err != nil {
		t.Fatal(collided, err)
	}
	if collided, err := b.choose(dirfd, dir, []int{2, 3}, before); !collided || err != nil {
		t.Errorf("a collision was not noticed: %v", err)
	}
	b.release()
	used, err := coresInUse(dirfd, dir, "")
	must(t, err)
	if want := map[int]int{1: 1, 2: 1}; !maps.Equal(used, want) {
		t.Errorf("in use: %v, want %v", used, want)
	}
	if collided, err := b.choose(dirfd, dir, pickCores([]int{1, 2, 3}, used, 1, 1), used); collided || b.shared ||
		err != nil {
		t.Errorf("collided: %t, shared: %t, %v", collided, b.shared, err)
	}
	if !slices.Equal(b.numbers, []int{3}) {
		t.Errorf("got %v, want 3", b.numbers)
	}
}

// TestFilesThatListNoCores checks that files without a valid list, and those without a lock, do not
// count, and that a file in which somebody lists impossible cores does no harm.
func TestFilesThatListNoCores(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, os.ModeSticky|0o777))
	dirfd, err := openShare(dir, false)
	must(t, err)
	defer closeFile(dirfd, dir)
	for _, text := range []string{"", "1-3", "\xff", "DCC1"} {
		file, err := holdFile(dirfd, dir, coresPrefix, []byte(text), byteRange{})
		must(t, err)
		defer file.remove()
	}
	for _, list := range []string{"0-99999999", "5-2", "-1", "1,,2", "x"} {
		file, err := holdFile(dirfd, dir, coresPrefix, appendSealed(nil, coresMagic, coreFields{list}), byteRange{})
		must(t, err)
		defer file.remove()
	}
	path := filepath.Join(dir, coresPrefix+"1.DEAD")
	must(t, os.WriteFile(path, appendSealed(nil, coresMagic, coreFields{"0"}), 0o644))
	must(t, os.Chmod(path, 0o644)) // whatever our umask is
	used, err := coresInUse(dirfd, dir, "")
	if err != nil || len(used) > 0 {
		t.Errorf("in use: %v, %v", used, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file of a process that is gone was not removed: %v", err)
	}
}

// TestSecondThreadsAreUsedLast checks that the first threads of all cores come first.
func TestSecondThreadsAreUsedLast(t *testing.T) {
	root := t.TempDir()
	for n, siblings := range []string{"0-1", "0-1", "2,4", "3,5", "2,4", "3,5"} {
		dir := filepath.Join(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology", n))
		must(t, os.MkdirAll(dir, 0o700))
		write(t, filepath.Join(dir, "thread_siblings_list"), siblings+"\n")
	}
	if got, want := coreOrder(root, []int{0, 1, 2, 3, 4, 5}), []int{0, 2, 3, 1, 4, 5}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := coreOrder(t.TempDir(), []int{3, 7}), []int{3, 7}; !slices.Equal(got, want) {
		t.Errorf("without topology: got %v, want %v", got, want)
	}
}

// TestListsOfCPUs checks the texts of lists of processors.
func TestListsOfCPUs(t *testing.T) {
	for text, list := range map[string][]int{"": nil, "0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "1,3,5-6": {1, 3, 5, 6}} {
		got, err := parseCPUs(text)
		if err != nil || !slices.Equal(got, list) || formatCPUs(list) != text {
			t.Errorf("%q is %v (%v), and %v is %q", text, got, err, list, formatCPUs(list))
		}
	}
}
