//go:build linux

package remote

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

// pidsBox is a control group below our own whose processes are limited.
type pidsBox struct {
	t   *testing.T
	dir string
}

func newPidsBox(t *testing.T) pidsBox {
	t.Helper()
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	groups, err := os.ReadFile("/proc/self/cgroup")
	b := pidsBox{t, ""}
	if dirs := controlGroupDirs(string(mounts), string(groups), "pids"); len(dirs) > 0 {
		b.dir = filepath.Join(dirs[0], fmt.Sprintf("dcs-test-%d-%d", os.Getpid(), uptime()))
		err = errors.Join(err, os.Mkdir(b.dir, 0o700))
	} else {
		err = errors.Join(err, errors.New("no pids controller"))
	}
	if err == nil {
		t.Cleanup(func() { // the processes in the group may take a moment to end
			if !polltest.Within(polltest.Patience, func() bool { return os.Remove(b.dir) == nil }) {
				t.Errorf("%s cannot be removed", b.dir)
			}
		})
		_, err = os.Stat(filepath.Join(b.dir, "pids.max"))
	}
	if err != nil {
		hosttest.LeaveOut(t,
			"not allowed to make a control group with few processes (%v): what becomes of jobs at that limit", err)
	}
	return b
}

func (b pidsBox) put(file, text string) {
	b.t.Helper()
	must(b.t, os.WriteFile(filepath.Join(b.dir, file), []byte(text), 0o600))
}

// enter moves a process into the group.
func (b pidsBox) enter(pid int) { b.put("cgroup.procs", strconv.Itoa(pid)) }

func (b pidsBox) current() int {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "pids.current"))
	must(b.t, err)
	return atoi(b.t, string(text))
}

// limit sets the limit; -1: none. It returns what an outcome says if it was reached.
func (b pidsBox) limit(n int) jobs.ProcessLimit {
	b.t.Helper()
	text := strconv.Itoa(n)
	if n < 0 {
		text = "max"
	}
	b.put("pids.max", text)
	return jobs.ProcessLimit{Kind: jobs.LimitPids, Max: int64(n), Path: b.dir}
}

// startIn starts a helper whose supervisors and jobs are in the box.
func (w *world) startIn(b pidsBox, slots int) *helperProcess {
	w.t.Helper()
	f := w.startProcess()
	b.enter(f.cmd.Process.Pid)
	o := w.open()
	o.Slots = slots
	f.send(o)
	f.hello = await(f, func(h *hosts.Hello) bool { return true })
	f.ping(3600e9)
	w.t.Cleanup(func() {
		if !f.ended && !w.t.Failed() {
			f.endRun()
		}
	})
	return f
}

// TestJobAtPidsMax checks that the outcome of a job that cannot fork names pids.max of the control
// group, also in its sentinel, and that an attempt whose shell cannot be started is refused with
// it. A job that fails by itself has no limit in its outcome, and jobs run when there is space
// again (promise 5: the host is at fault).
func TestJobAtPidsMax(t *testing.T) {
	w := newWorld(t)
	box := newPidsBox(t)
	gate := w.fifo("gate")
	f := w.startIn(box, 1)
	f.launch(job("1.1", "exit 3"))
	if o := f.exit("1.1"); o.Exit != 3 || o.ProcessLimit.IsSet() {
		t.Errorf("below the limit: %+v", o)
	}
	f.launch(job("2.1", "read x < "+gate+"; sleep 0; exit 4"))
	f.started("2.1")
	limit := box.limit(1) // a limit below the present number takes effect when the next one is started
	w.say(gate)
	kept := limit
	kept.Path = ""
	// The helper may read the sentinel before the report.
	if o := f.exit("2.1"); o.OK() || o.ProcessLimit != limit && o.ProcessLimit != kept {
		t.Errorf("at the limit: %+v, want %v", o, limit)
	}
	if s := w.status("2.1"); s.Outcome.ProcessLimit != kept {
		t.Errorf("sentinel: %+v", s)
	}
	limit = box.limit(1)
	f.launch(job("3.1", "exit 5"))
	if m := f.refused("3.1"); m.Limit != limit || !strings.Contains(m.Why, limit.Text()) {
		t.Errorf("refused with %+v, want %v", m, limit)
	}
	box.limit(-1)
	f.launch(job("4.1", "sleep 0; exit 6"))
	if o := f.exit("4.1"); o.Exit != 6 || o.ProcessLimit.IsSet() {
		t.Errorf("without a limit: %+v", o)
	}
}

// TestControlGroupsAreFound checks that the control groups of a process are found with both
// versions of control groups, and in a container that sees only its own.
func TestControlGroupsAreFound(t *testing.T) {
	const v1 = "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
		"31 25 0:27 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n" +
		"32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ name, mounts, groups, want string }{
		{
			"version 1",
			v1,
			"8:pids:/a/b\n1:cpu:/x\n0::/y\n",
			"/sys/fs/cgroup/pids/a/b /sys/fs/cgroup/pids/a /sys/fs/cgroup/pids",
		},
		{"version 1, at the root", v1, "8:pids:/\n", "/sys/fs/cgroup/pids"},
		{"version 2", "30 25 0:26 / /sys/fs/cg\\040roup rw - cgroup2 cgroup2 rw\n", "0::/user.slice/s.scope\n",
			"/sys/fs/cg roup/user.slice/s.scope /sys/fs/cg roup/user.slice /sys/fs/cg roup"},
		{
			"a container with version 1",
			"30 25 0:26 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n",
			"8:pids:/docker/abc/x\n",
			"/sys/fs/cgroup/pids/x /sys/fs/cgroup/pids",
		},
		{
			"outside of the namespace",
			"30 25 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
			"0::/../../x\n",
			"/sys/fs/cgroup",
		},
		{"none", "", "", ""},
		{"no pids", "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "1:cpu:/x\n", ""},
	} {
		if got := strings.Join(controlGroupDirs(c.mounts, c.groups, "pids"), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLimitIsThatOfTheRightGroup checks which control group is named: with exact counts the one
// that refused, otherwise the one above that is the nearest to its limit.
func TestLimitIsThatOfTheRightGroup(t *testing.T) {
	root := t.TempDir()
	group := func(name, current, most string) string {
		dir := filepath.Join(root, name)
		must(t, os.MkdirAll(dir, 0o700))
		write(t, filepath.Join(dir, "pids.current"), current+"\n")
		write(t, filepath.Join(dir, "pids.max"), most+"\n")
		return dir
	}
	outer, mid, inner := group("o", "90", "100"), group("o/m", "49", "50"), group("o/m/i", "5", "max")
	for _, exact := range []bool{true, false} {
		l := processLimits{groups: []pidsGroup{{dir: inner}, {dir: mid, exact: exact}, {dir: outer, exact: exact}}}
		first := 0
		if exact {
			first = 1
		}
		want := jobs.ProcessLimit{Kind: jobs.LimitPids, Max: 50, Path: mid}
		if got := l.limitFrom(first); got != want {
			t.Errorf("exact %v: %+v, want %+v", exact, got, want)
		}
		if n, got := l.available(1); n != 1 || got != want {
			t.Errorf("available: %d, %+v", n, got)
		}
	}
}

// TestUserTasksAreCounted checks that the count of a user's processes includes threads, and that
// the limits of the system are known.
func TestUserTasksAreCounted(t *testing.T) {
	threads, err := os.ReadDir("/proc/self/task")
	must(t, err)
	n, all := numUserTasks(os.Getuid()), numTasks()
	if n < int64(len(threads)) || all < n/2 || n < 3 {
		t.Errorf("%d processes and threads of our user, %d in all, %d threads of this one", n, all, len(threads))
	}
	if l := countLimits(1); !slices.ContainsFunc(l, func(c countLimit) bool {
		return c.kind == jobs.LimitSystem && c.max > 100
	}) {
		t.Errorf("limits %+v", l)
	}
	if near := nearLimit(math.MaxInt64); near > 64 {
		t.Errorf("near is %d", near)
	}
}

// TestNoRoomForSupervisors checks that a host whose limit leaves no room for the supervisors of all
// slots gives back what it cannot start, with the limit and the number of slots that remain, and
// without a message of the Go runtime. What has started runs to its end (promise 5).
func TestNoRoomForSupervisors(t *testing.T) {
	w := newWorld(t)
	box := newPidsBox(t)
	f := w.startIn(box, 4)
	f.launch(job("9.1", ""))
	f.succeeds("9.1") // the warm supervisor has all its threads
	limit := box.limit(box.current() + slotTasks + 2)
	var ids []string
	gate := w.fifo("gate")
	for n := 1; n <= 4; n++ {
		id := fmt.Sprintf("%d.1", n)
		ids = append(ids, id)
		f.launch(job(id, "read x < "+gate+"; exit 3"))
	}
	m := await(f, func(m *hosts.Refused) bool { return true })
	if m.Limit != limit || m.Slots < 1 || m.Slots > 3 || !strings.Contains(m.Why, limit.Text()) {
		t.Errorf("refused with %+v, want %v", m, limit)
	}
	refused := map[string]bool{}
	for _, id := range m.Attempts {
		refused[id.String()] = true
	}
	for _, id := range ids {
		if !refused[id] {
			w.say(gate)
		}
	}
	for _, id := range ids {
		if refused[id] {
			f.answers(id, hosts.NeverStarted)
		} else if p := f.settled(id); p.Answer == hosts.HasExited && p.Outcome.Exit != 3 {
			t.Errorf("%s: %+v", id, p)
		}
	}
	for _, m := range f.pending {
		if trouble, ok := m.(*hosts.Trouble); ok {
			t.Errorf("trouble %q", trouble.Text)
		}
	}
	box.limit(-1)
}

// TestSupervisorCreatesItsThreadsAtTheStart checks that a supervisor needs no further thread to end jobs
// that have timed out: at a limit of the host, it would die when it has a job.
func TestSupervisorCreatesItsThreadsAtTheStart(t *testing.T) {
	f := newWorld(t).startWith(1)
	numThreads := func(id string) string {
		f.launch(job(id, "ls /proc/$PPID/task | wc -l"))
		f.succeeds(id)
		return f.w.content(id, jobs.FileOut)
	}
	before := numThreads("1.1")
	for n := 2; n < 12; n++ {
		id := fmt.Sprintf("%d.1", n)
		long := job(id, "sleep 1000 & sleep 1000 & sleep 1000")
		long.Timeout = 50 * time.Millisecond
		f.launch(long)
		f.exit(id)
	}
	if after := numThreads("12.1"); after != before {
		t.Errorf("%s threads at the start, later %s", before, after)
	}
}

// TestThreadsOfSupervisorsAreCountedOnce checks that a supervisor that has all its threads is not
// looked at again: with many slots, each start would otherwise look at all of them.
func TestThreadsOfSupervisorsAreCountedOnce(t *testing.T) {
	reserveThreads(supervisorThreads)
	const gone = 1<<22 + 1 // larger than any pid
	h := &helper{supervisors: map[int]*supervisor{os.Getpid(): {}, gone: {}}}
	if n := h.missingThreadsLocked(); n != supervisorThreads {
		t.Errorf("%d threads are missing, want those of the one without threads", n)
	}
	h.supervisors = map[int]*supervisor{gone: h.supervisors[os.Getpid()]}
	if n := h.missingThreadsLocked(); n != 0 {
		t.Errorf("one with all its threads was looked at again: %d are missing", n)
	}
}

// TestHelperWithoutRoom checks that a helper that finds no room for its threads says which limit
// leaves none, as an error that may pass.
func TestHelperWithoutRoom(t *testing.T) {
	w := newWorld(t)
	box := newPidsBox(t)
	limit := box.limit(helperThreads - 1)
	enter := "echo $$ > " + box.dir + "/cgroup.procs && exec \"$@\""
	cmd := exec.Command("sh", "-c", enter, "sh", filepath.Join(w.base, "bin", "dcs-tui-test"), wordHost)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	must(t, errors.Join(err1, err2, cmd.Start(), wire.NewWriter(in).Write(w.open())))
	m, err := wire.NewReader(out).Read()
	must(t, errors.Join(err, cmd.Wait()))
	h, _ := m.(*hosts.Hello)
	if h == nil || !h.Passing || !strings.Contains(h.Error, limit.Text()) {
		t.Errorf("hello %+v, want an error that may pass about %s", h, limit.Text())
	}
}
