//go:build linux

package remote

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

// escapingProcesses returns a command that starts three processes besides its shell: a child in the
// same session, a child in a session of its own, and one that was forked twice and has cleared its
// environment. All ignore TERM. The command writes to ready when all processes run.
func escapingProcesses(w *world, ready string) string {
	prog := filepath.Join(w.runDir, "nasty.sh")
	write(w.t, prog, `trap '' TERM HUP INT
case $1 in
leaf) echo "$2 $$" >> `+w.runDir+`/pids; echo up > `+ready+`; while :; do sleep 1000; done;;
esac
sh $0 leaf plain &
setsid sh $0 leaf session &
( setsid env -i PATH="$PATH" sh $0 leaf clean & )
while :; do sleep 1000; done
`)
	return "exec sh " + prog
}

// TestChildrenLeftBehindHoldNoSlot checks that background children of a job do not hold the slot,
// are reported, and end with the run.
func TestChildrenLeftBehindHoldNoSlot(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	f := w.startWith(1)
	f.launch(job("1.1", "(echo left $$ > /dev/null; echo up > "+ready+"; exec sleep 1000) & exit 0"),
		job("2.1", "exit 4"))
	w.receiveLines(ready, 1)
	if o := f.exit("1.1"); !o.OK() || o.LeftChildren != 1 {
		t.Errorf("outcome %+v, want success with one child left", o)
	}
	if o := f.exit("2.1"); o.Exit != 4 || o.LeftChildren != 0 {
		t.Errorf("the next job in the slot: %+v, want exit 4 and no child of its own", o)
	}
	f.endRun() // nothingLeft checks that the sleep is gone
}

// TestKeptChildrenSurviveTheRun checks that, with keep_children, processes that jobs left behind
// survive the run.
func TestKeptChildrenSurviveTheRun(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	stay := w.fifo("stay")
	open := w.open()
	open.KeepChildren = true
	f := w.start(open)
	f.launch(job("1.1", "sh -c 'echo $$ > "+ready+"; read x < "+stay+"; echo done > "+ready+"' & exit 0"))
	child, ok := readProc(atoi(t, w.receive(ready)))
	f.exit("1.1")
	f.endRun()
	w.say(stay)
	if got := w.receive(ready); got != "done" {
		t.Errorf("the kept child said %q", got)
	}
	polltest.Until(t, "the child has ended",
		func() bool { return !ok || !(holder{0, child.pid, child.start}).isAlive() })
}

// grouped starts a process in a process group of its own that ends with the test.
func grouped(t *testing.T, env []string, argv ...string) (*exec.Cmd, proc) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env, c.SysProcAttr = env, &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { // not yet waited for, so its pid and group cannot have been reused
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		c.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p, ok := readProc(c.Process.Pid)
	if !ok {
		t.Fatal("it is not there")
	}
	return c, p
}

// TestGroupNumberAloneMustBeCertain checks that a process that is found only by the number of its
// process group is ended if, and only if, the number certainly still belongs to the job (promise
// 4).
func TestGroupNumberAloneMustBeCertain(t *testing.T) {
	_, p := grouped(t, []string{"PATH=" + os.Getenv("PATH"), "A=1"}, "sh", "-c",
		"echo up; read x; while :; do sleep 1000; done")
	bare, q := grouped(t, nil, "sh", "-c",
		// During an exec, the environment looks empty, too.
		"env -i sleep 1000 & until test \"$(tr '\\0' ' ' < /proc/$!/cmdline)\" = 'sleep 1000 '; do :; "+
			"done; echo $!; exit")
	for s := q.state; s != 'Z'; { // the shell has exited, or is about to, and stays a zombie
		now, _ := readProc(bare.Process.Pid)
		s = now.state
	}
	var child proc
	for _, r := range scan(nil) {
		if r.group == q.pid && r.pid != q.pid {
			child = r
		}
	}
	orphaned := scan(nil)
	delete(orphaned, q.pid) // simulates a shell that somebody has already waited for
	reused := scan(nil)
	other := reused[q.pid]
	other.start += 5
	reused[q.pid] = other
	none := func(string) bool { return false }
	for _, c := range []struct {
		name  string
		t     table
		g     pgroup
		p     proc
		taken bool
	}{
		{"the shell is there", scan(nil), pgroup{p.pid, p.start, p.start}, p, true},
		{"its number is another's", scan(nil), pgroup{p.pid, p.start - 5, p.start - 5}, p, false},
		{"the shell was never seen, and this one shows an environment", scan(nil), pgroup{p.pid, 0, 1}, p, false},
		{"the shell is a zombie", scan(nil), pgroup{q.pid, q.start, q.start}, child, true},
		{"the shell has gone, no environment", orphaned, pgroup{q.pid, q.start, q.start}, child, true},
		{"the shell was never seen, no environment", orphaned, pgroup{q.pid, 0, q.start}, child, true},
		{"older than the shell", orphaned, pgroup{q.pid, q.start + 1000, q.start + 1000}, child, false},
		{"another has the number now", reused, pgroup{q.pid, q.start, q.start}, child, false},
		{"no group", scan(nil), pgroup{}, child, false},
	} {
		got := withCookie(none, c.g, nil, nil)(c.t)
		if has := slices.ContainsFunc(got, func(r proc) bool { return r.pid == c.p.pid }); has != c.taken {
			t.Errorf("%s: chosen %v, want %v (%s)", c.name, has, c.taken, strings.TrimSpace(listProcs(got)))
		}
	}
}

// TestStartOfTheShellIsRead checks that the start time of the shell is taken from /proc while the
// shell is the supervisor's child.
func TestStartOfTheShellIsRead(t *testing.T) {
	_, p := grouped(t, os.Environ(), "sh", "-c", "echo up; read x; sleep 1000")
	self, _ := readProc(os.Getpid())
	me := holder{1, self.pid, self.start}
	if g := groupOf(p.pid, me); g != (pgroup{p.pid, p.start, p.start}) {
		t.Errorf("our child: %+v", g)
	}
	if g := groupOf(p.pid, holder{1, 1 << 22, 7}); g != (pgroup{p.pid, 0, 7}) {
		t.Errorf("another's child: %+v", g)
	}
}

// TestHungProcessHidesNoOther checks that a process whose files in /proc hang does not keep anybody
// from seeing the others (promise 5). It is left out until its files respond, and is not read in
// the meantime.
func TestHungProcessHidesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hung{pids: map[int]bool{}}
		free := make(chan struct{})
		asked := map[int]int{}
		see := func(want ...int) {
			t.Helper()
			var got []int
			h.each([]int{1, 3, 4, 13, 16}, func(pid int) func() {
				h.mu.Lock()
				asked[pid]++
				h.mu.Unlock()
				if pid%10 == 3 {
					<-free
				}
				return func() { got = append(got, pid) }
			})
			if !slices.Equal(got, want) {
				t.Errorf("seen %v, want %v", got, want)
			}
		}
		see(1, 4, 16)
		see(1, 4, 16)
		if asked[3] != 1 || asked[13] != 1 || asked[1] != 2 {
			t.Errorf("asked %v", asked)
		}
		close(free)
		synctest.Wait()
		see(1, 3, 4, 13, 16)
		if len(h.pids) > 0 {
			t.Errorf("said to hang: %v", h.pids)
		}
	})
}

// TestOnlyHungProcessesThatExistAreAwaited checks that only hung processes that exist are awaited
// before the answer is that nothing of a job is left.
func TestOnlyHungProcessesThatExistAreAwaited(t *testing.T) {
	h := hung{pids: map[int]bool{}}
	if !h.waitUntilNone() {
		t.Error("nothing hangs and it was waited for")
	}
	h.set(1<<22+1, true) // there is no such process
	if len(h.ownProcs()) > 0 {
		t.Error("what is no more hangs")
	}
}

// TestChaserIsSure checks that a look at our children does not answer that nothing is left if a
// child has ended since they were listed (promise 4). Such a child has left its own children to us.
func TestChaserIsSure(t *testing.T) {
	start := func(end bool) int {
		cmd := exec.Command("sleep", "1000")
		must(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		if end {
			cmd.Process.Kill()
			unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		}
		return cmd.Process.Pid
	}
	alive, zombie, gone := start(false), start(true), 1<<22+1
	c := &chaser{dead: map[int]bool{}}
	for _, look := range []struct {
		name string
		pids []int
		mine bool
		out  int
		sure bool
	}{
		{"none", nil, true, 0, true},
		{"a stranger", []int{alive}, false, 0, true},
		{"one of ours", []int{alive}, true, 1, true},
		{"one that has gone", []int{alive, gone}, false, 0, false},
		{"one that has just ended", []int{alive, zombie}, false, 0, false},
		{"one that had ended before", []int{alive, zombie}, false, 0, true},
	} {
		c.mine = func(proc) bool { return look.mine }
		out, sure := c.ownChildren(look.pids)
		if len(out) != look.out || sure != look.sure {
			t.Errorf("%s: got %d of ours, sure %t; want %d, %t", look.name, len(out), sure, look.out, look.sure)
		}
	}
}

// TestEndedJobGoesNoFurther checks that a job that is ended does not run the rest of its command
// line: its shell is ended before the command that the shell waits for, at any depth.
func TestEndedJobGoesNoFurther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ready := w.fifo("ready")
	f := w.startWith(12)
	var list []hosts.LaunchJob
	var ids []jobs.AttemptID
	for i := range 12 {
		id := fmt.Sprintf("%d.1", i+1)
		mark := filepath.Join(w.base, "went-on-"+id)
		list = append(list, job(id,
			fmt.Sprintf("sh -c '(echo up > %s; sleep 1000); touch %s'; touch %s", ready, mark, mark)))
		ids = append(ids, attemptID(t, id))
	}
	f.launch(list...)
	w.receiveLines(ready, 12)
	f.send(&hosts.Kill{Epoch: 1, Attempts: ids, Why: "asked"})
	for _, id := range ids {
		if o := f.exit(id.String()); o.Signal != "SIGTERM" || !o.Stopped {
			t.Errorf("%s: %+v", id, o)
		}
	}
	if marks, _ := filepath.Glob(filepath.Join(w.base, "went-on-*")); len(marks) > 0 {
		t.Errorf("%d of 12 jobs went on after they had been ended", len(marks))
	}
}

// TestParentsComeBeforeChildren checks that parents come before their children for any order of the
// snapshot, and that a cycle of reused pids does not cause an endless loop.
func TestParentsComeBeforeChildren(t *testing.T) {
	got := parentsFirst([]proc{{pid: 5, ppid: 4}, {pid: 9, ppid: 1}, {pid: 4, ppid: 3}, {pid: 3, ppid: 1},
		{pid: 7, ppid: 8}, {pid: 8, ppid: 7}})
	at := func(pid int) int { return slices.IndexFunc(got, func(p proc) bool { return p.pid == pid }) }
	if len(got) != 6 || at(3) > at(4) || at(4) > at(5) {
		t.Errorf("got %+v, want 6 processes, 3 before 4 before 5", got)
	}
}
