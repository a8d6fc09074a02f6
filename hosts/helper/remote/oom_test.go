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

	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
)

// Promise 6: jobs are offered to the kernel before their supervisor and others'
// programs, and so is what they start.
func TestJobsGoFirstWhenMemoryRunsOut(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	// The supervisor's is set back when the shell runs already.
	f.launch(job("1.1", "until [ $(cat /proc/$$/oom_score_adj) != $(cat /proc/$PPID/oom_score_adj) ]; do :; done; cat /proc/$PPID/oom_score_adj /proc/self/oom_score_adj"))
	if o := f.exit("1.1"); !o.OK() {
		t.Fatalf("%+v", o)
	}
	var super, job int
	if _, err := fmt.Sscan(w.content("1.1", jobs.FileOut), &super, &job); err != nil {
		t.Fatal(err)
	}
	own := atoi(t, string(procFile(os.Getpid(), "oom_score_adj")))
	if super != own || job != min(own+oomShare, maxOOM) {
		t.Errorf("ours is %d: the supervisor has %d, the job %d", own, super, job)
	}
	f.bye()
}

// memoryGroup makes a control group in which little memory is to be had, below our
// own. in puts a process into it.
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
		t.Cleanup(func() { // what was in it may take a moment to go
			for until := uptime() + bound; os.Remove(dir) != nil; waitAny(nil, bound) {
				if uptime() > until {
					t.Errorf("%s cannot be removed", dir)
					return
				}
			}
		})
		for file, n := range limits {
			if e := put(file, n); e != nil && file != "memory.swap.max" {
				err = e
			}
		}
	}
	if err != nil {
		hosttest.LeaveOut(t, "not allowed to make a control group with little memory (%v): what becomes of jobs when it runs out", err)
	}
	return func(pid int) {
		if err := put("cgroup.procs", int64(pid)); err != nil {
			t.Fatal(err)
		}
	}
}

// X8: a job that the kernel ends for its memory has exactly SIGKILL; supervisor,
// helper and the program of a colleague, though larger, are spared, and the next
// job runs.
func TestOutOfMemory(t *testing.T) {
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
	// The colleague's: it keeps what it was given until it hears of no more.
	gate := w.fifo("gate")
	colleague := exec.Command("sh", "-c", "read x; { head -c 90000000 /dev/zero; echo full > "+ready+"; read x < "+gate+"; } | tail -c 90000000 | wc -c")
	start, err := colleague.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	colleague.Stdout = &said
	if err := colleague.Start(); err != nil {
		t.Fatal(err)
	}
	in(colleague.Process.Pid)
	fmt.Fprintln(start, "go")
	w.hear(ready)
	f.launch(job("1.1", "exec tail /dev/zero"))
	if o := f.exit("1.1"); o.Signal != "SIGKILL" || o.Memory != jobs.OutOfMemory || o.OK() || o.Stopped || o.TimedOut {
		t.Errorf("%+v, want SIGKILL and that memory ran out", o)
	}
	f.launch(job("2.1", "tail /dev/zero; exit $(($? - 100))"))
	if o := f.exit("2.1"); o.Exit != 37 {
		t.Errorf("one whose child was ended: %+v, want exit 37", o)
	}
	f.launch(job("3.1", "exit 3"))
	if o := f.exit("3.1"); o.Exit != 3 {
		t.Errorf("the next one: %+v", o)
	}
	w.say(gate)
	if err := colleague.Wait(); err != nil || strings.TrimSpace(said.String()) != "90000000" {
		t.Errorf("the colleague's program said %q, %v", said.String(), err)
	}
	f.bye()
}
