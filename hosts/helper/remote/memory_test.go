//go:build linux

package remote

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

const keepMemory = "{ head -c 100000000 /dev/zero; echo full > %s; sleep 1000; } | tail -c 100000000"

func memJob(id, command string, limit int64) hosts.LaunchJob {
	j := job(id, command)
	j.Mem = limit
	return j
}

// TestJobAboveItsMemoryIsEnded checks that a job that uses more memory than it asked for is ended
// with all of its processes, and that its outcome reports what it used (T3). A job that asked for
// no memory, or that uses less, is not ended.
func TestJobAboveItsMemoryIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ready, gate := w.fifo("ready"), w.fifo("gate")
	o := w.open()
	o.Slots = 3
	f := w.start(o)
	f.launch(memJob("1.1", "trap 'exit 0' TERM; setsid "+fmt.Sprintf("sh -c '"+keepMemory+"'", "/dev/null")+" & wait",
		40<<20))
	if o := f.exit("1.1"); o.Memory != jobs.MemoryLimit || o.OK() || o.Stopped || o.TimedOut ||
		o.MaxRSSBytes < 40<<20 || o.LeftChildren != 0 {
		t.Errorf("%+v; want the memory limit with a peak over 40M and nothing left", o)
	}
	f.launch(memJob("2.1",
		fmt.Sprintf("%s & read x < %s; kill $!; kill -9 $$", fmt.Sprintf(keepMemory, ready), gate), 0))
	f.launch(memJob("3.1", "sleep 1; exit 3", 40<<20))
	w.receive(ready)
	if o := f.exit("3.1"); o.Exit != 3 || o.Memory != 0 {
		t.Errorf("one that uses little: %+v", o)
	}
	w.say(gate)
	if o := f.exit("2.1"); o.Signal != "SIGKILL" || o.Memory != 0 {
		t.Errorf("one without a limit: %+v", o)
	}
}

// TestSharedMemoryCountsOnce checks that pages that processes share count once, and that the
// processes that an earlier job left do not count.
func TestSharedMemoryCountsOnce(t *testing.T) {
	polltest.Long(t)
	sh := func(script string) (pid int) {
		cmd := exec.Command("/bin/sh", "-c", script)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		must(t, err)
		t.Cleanup(func() {
			endAll(func(t table) []proc {
				return t.pickEndable(append(t.descendants(cmd.Process.Pid), cmd.Process.Pid), nil)
			}, 0)
			cmd.Wait()
		})
		out.Read(make([]byte, 1))
		return cmd.Process.Pid
	}
	const text = "x=$(head -c 20000000 /dev/zero | tr '\\0' x); "
	sh(text + "for i in 1 2 3 4; do { sleep 1000; : $x; } & done; echo; wait")
	left := sh(text + "echo; sleep 1000; : $x")
	p, _ := readProc(left)
	w := &watch{slot: &slot{holder: holder{PID: os.Getpid()}}}
	rss := w.memoryOf(&current{leftBehind: map[int]uint64{left: p.start}, memoryLimit: 1 << 40})
	pss := w.memoryOf(&current{leftBehind: map[int]uint64{left: p.start}, memoryLimit: 1})
	if rss < 60<<20 || pss > 50<<20 || pss < 15<<20 {
		t.Errorf("resident %d, proportional %d; want over 60M and about 20M", rss, pss)
	}
}

// TestMemoryIsSummedOftenOnABusyHost checks that only the CPU time of a sum delays the next one.
// The supervisor has a low priority, so a sum can take long on a busy host. The test sleeps in real
// time, because the kernel measures CPU time. Other goroutines may use some of it, so one of
// several short pauses is enough: each would be at least 10 s if time without a core counted.
func TestMemoryIsSummedOftenOnABusyHost(t *testing.T) {
	shortest := time.Hour
	for range 20 {
		shortest = min(shortest, memoryPause(func() { time.Sleep(50 * time.Millisecond) }))
		if shortest <= 5*time.Second {
			break
		}
	}
	if shortest > 5*time.Second {
		t.Errorf("the pause after a sum that waited 50 ms for a core is %v, want about %v", shortest, memoryInterval)
	}
	busy := func() {
		for until := cpuTime() + 10*time.Millisecond; cpuTime() < until; {
		}
	}
	if pause := memoryPause(busy); pause < 2*time.Second {
		t.Errorf("the pause after a sum that took 10 ms of CPU time is %v, want at least 2 s", pause)
	}
}

// replacePrograms puts programs in front of PATH.
func replacePrograms(t *testing.T, programs map[string]string) {
	dir := t.TempDir()
	for name, script := range programs {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestCauseOfAKernelKill checks the reported cause when the kernel ends a job. If the user's
// systemd offers scopes, the kernel enforces the job's limit, so a job that the kernel ended
// exceeded its limit. Otherwise, the machine had no memory left. The test replaces the user's
// systemd and the kernel's counter.
func TestCauseOfAKernelKill(t *testing.T) {
	for _, c := range []struct {
		name, linger string
		limit        int64
		killed       string // what the kernel's counter becomes
		scope        bool
		want         jobs.MemoryEnd
	}{
		{"in a scope", "yes", 1 << 30, "8", true, jobs.MemoryLimit},
		{"without a limit", "yes", 0, "8", false, jobs.OutOfMemory},
		{"without scopes", "no", 1 << 30, "8", false, jobs.OutOfMemory},
		{"killed by somebody", "yes", 1 << 30, "7", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			count := filepath.Join(dir, "vmstat")
			write(t, count, "nr_free_pages 1\noom_kill 7\nnuma_hit 2\n")
			replacePrograms(t, map[string]string{
				"loginctl": `[ "$*" = "show-user --property=Linger --value $(id -u)" ] && echo ` + c.linger,
				"systemd-run": `echo "$*" >> ` + dir + `/asked
limit=0
while [ "$1" != -- ]; do case $1 in MemoryMax=*) limit=${1#*=};; esac; shift; done
shift
case "$*" in *memory.max*) echo $limit; exit;; esac
exec "$@"`,
			})
			w := newWorld(t, vmstatEnv+"="+count)
			f := w.start(w.open())
			f.launch(memJob("1.1", "sed 's/kill 7/kill "+c.killed+"/' "+count+" > "+count+".new && mv "+count+".new "+
				count+"; kill -9 $$", c.limit))
			if o := f.exit("1.1"); o.Memory != c.want || o.Signal != "SIGKILL" || c.want == jobs.MemoryLimit &&
				o.MaxRSSBytes < c.limit {
				t.Errorf("%+v; want %v", o, c.want)
			}
			asked, _ := os.ReadFile(dir + "/asked")
			if got := strings.Contains(string(asked), fmt.Sprintf("MemoryMax=%d -p", c.limit)); got != c.scope {
				t.Errorf("systemd-run was asked for:\n%s", asked)
			}
		})
	}
}

// TestJobsGoFirstWhenMemoryRunsOut checks that the kernel ends jobs and their processes before
// their supervisor and before other users' programs (promise 6).
func TestJobsGoFirstWhenMemoryRunsOut(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	// The supervisor's own oom_score_adj is reset after the shell has started. Ours may be the maximum.
	own := atoi(t, string(procFile(os.Getpid(), "oom_score_adj")))
	f.launch(job("1.1", fmt.Sprintf("until [ $(cat /proc/$PPID/oom_score_adj) = %d ]; do :; done; "+
		"cat /proc/$PPID/oom_score_adj /proc/self/oom_score_adj", own)))
	f.succeeds("1.1")
	var super, job int
	if _, err := fmt.Sscan(w.content("1.1", jobs.FileOut), &super, &job); err != nil {
		t.Fatal(err)
	}
	if super != own || job != min(own+oomShare, maxOOM) {
		t.Errorf("ours is %d: the supervisor has %d, the job %d", own, super, job)
	}
}

// memoryGroup creates a control group below our own that is limited to the given number of bytes.
// in moves a process into it.
func memoryGroup(t *testing.T, bytes int64) (in func(pid int)) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		hosttest.LeaveOut(t, "no control groups (%v): what becomes of jobs when memory runs out", err)
	}
	name := fmt.Sprintf("dcs-test-%d-%d", os.Getpid(), uptime())
	var dir string
	var limits map[string]int64
	for line := range strings.Lines(string(own)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) != 3:
		case part[1] == "memory":
			dir = filepath.Join("/sys/fs/cgroup/memory", part[2], name)
			limits = map[string]int64{"memory.limit_in_bytes": bytes}
		case part[1] == "" && dir == "":
			dir = filepath.Join("/sys/fs/cgroup", part[2], name)
			limits = map[string]int64{"memory.max": bytes, "memory.swap.max": 0}
		}
	}
	put := func(file string, n int64) error {
		return os.WriteFile(filepath.Join(dir, file), strconv.AppendInt(nil, n, 10), 0o600)
	}
	if err = os.Mkdir(dir, 0o700); err == nil {
		t.Cleanup(func() { // the processes in the group may take a moment to end
			if !polltest.Within(polltest.Patience, func() bool { return os.Remove(dir) == nil }) {
				t.Errorf("%s cannot be removed", dir)
			}
		})
		for file, n := range limits {
			if e := put(file, n); e != nil && file != "memory.swap.max" {
				err = e
			}
		}
	}
	if err != nil {
		hosttest.LeaveOut(t,
			"not allowed to make a control group with little memory (%v): what becomes of jobs when it runs out", err)
	}
	return func(pid int) {
		must(t, put("cgroup.procs", int64(pid)))
	}
}

// TestKernelEndsJobsForTheirMemory checks that a job that the kernel ends for its memory has the
// outcome SIGKILL (X8). The supervisor, the helper, and a larger program of another user survive,
// and the next job runs.
//
// The kernel may choose a second process when the first has just freed its memory. So that this is
// none of the colleague's, another job has many small ones: each counts as if it held half of the
// limit.
func TestKernelEndsJobsForTheirMemory(t *testing.T) {
	polltest.Long(t)
	w := newWorld(t)
	ready := w.fifo("ready")
	in := memoryGroup(t, 160<<20)
	f := w.start(w.open())
	in(f.cmd.Process.Pid)
	for _, p := range scan(nil) {
		if p.ppid == f.cmd.Process.Pid {
			in(p.pid)
		}
	}
	// The other user's programs keep their memory until they read a line.
	type program struct {
		cmd         *exec.Cmd
		gate, bytes string
		said        strings.Builder
	}
	var programs []*program
	for _, bytes := range []string{"70000000", "40000000"} {
		p := &program{gate: w.fifo("gate" + bytes), bytes: bytes}
		p.cmd = exec.Command("sh", "-c", "read x; { head -c "+bytes+" /dev/zero; echo full > "+ready+
			"; read x < "+p.gate+"; } | tail -c "+bytes+" | wc -c")
		start, err := p.cmd.StdinPipe()
		must(t, err)
		p.cmd.Stdout = &p.said
		must(t, p.cmd.Start())
		in(p.cmd.Process.Pid)
		fmt.Fprintln(start, "go")
		w.receive(ready)
		programs = append(programs, p)
	}
	never := w.fifo("never")
	f.launch(job("4.1", "for i in $(seq 20); do read x < "+never+" & done; echo > "+ready+"; wait"))
	w.receive(ready)
	f.launch(job("1.1", "exec tail /dev/zero"))
	if o := f.exit("1.1"); o.Signal != "SIGKILL" || o.Memory != jobs.OutOfMemory || o.OK() || o.Stopped || o.TimedOut {
		t.Errorf("%+v, want SIGKILL and that memory ran out", o)
	}
	f.launch(job("2.1", "tail /dev/zero; exit $(($? - 100))"))
	if o := f.exit("2.1"); o.Exit != 37 && o.Signal != "SIGKILL" { // the kernel may choose the shell, too
		t.Errorf("%+v, want exit code 37", o)
	}
	f.launch(job("3.1", "exit 3"))
	f.exits("3.1", 3)
	for _, p := range programs {
		w.say(p.gate)
		if err := p.cmd.Wait(); err != nil || strings.TrimSpace(p.said.String()) != p.bytes {
			t.Errorf("a program of the colleague said %q, %v, want %s", p.said.String(), err, p.bytes)
		}
	}
}
