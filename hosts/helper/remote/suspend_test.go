//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
)

func (w *world) machine() machine {
	return machine{w.t.(*testing.T), filepath.Join(filepath.Dir(w.base), "machine")}
}

// suspend asks that jobs are suspended on the world's machine, or takes that back.
func (w *world) suspend(on bool) {
	w.t.Helper()
	if on {
		w.machine().file("var/tmp/"+suspendFile, "")
	} else if err := os.Remove(w.machine().path("var/tmp/" + suspendFile)); err != nil {
		w.t.Fatal(err)
	}
}

// tree returns the processes that wrote their ids into pids.
func (w *world) tree(n int) (pids []int) {
	w.t.Helper()
	polltest.Until(w.t, bound, "the tree is there", func() bool {
		b, _ := os.ReadFile(filepath.Join(w.runDir, "pids"))
		pids = nil
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
		return len(pids) == n
	})
	return pids
}

func (w *world) until(what string, pids []int, stopped bool) {
	w.t.Helper()
	polltest.Until(w.t, bound, what, func() bool {
		for _, pid := range pids {
			if p, ok := readProc(pid); ok && p.state != 'Z' && (p.state == 'T') != stopped {
				return false
			}
		}
		return true
	})
}

// processes returns those of the program on the world's machine with that word.
func (w *world) processes(word string) (list []proc) {
	for pid, p := range scan(nil) {
		cmd := string(procFile(pid, "cmdline"))
		if strings.Contains(cmd, "\x00"+word+"\x00"+w.spool().dir) && p.state != 'Z' {
			list = append(list, p)
		}
	}
	return list
}

func (w *world) kill(word string) {
	w.t.Helper()
	list := w.processes(word)
	if len(list) == 0 {
		w.t.Fatalf("there is no %s", word)
	}
	signalAll(list, unix.SIGKILL)
}

// T4: the whole tree of a job is suspended, also what left session, parent, and environment.
// Its timeout is counted without that time, which the outcome reports.
func TestSuspend(t *testing.T) {
	t.Setenv(beatEnv, "100ms")
	w := newWorld(t)
	ready := w.fifo("ready")
	f := w.start(w.open())
	j := job("1.1", "echo $$ >> pids; "+nasty(w, ready))
	j.Timeout = 2 * time.Second
	f.launch(j)
	w.hearTimes(ready, 3)
	pids := w.tree(4)
	w.suspend(true)
	w.until("the tree is suspended", pids, true)
	await(f, func(b *hosts.Beat) bool {
		return b.Owner == hosts.Owner{Who: "/var/tmp/.dcs-suspend is there", Suspend: true} && b.Suspended > 3*time.Second
	})
	if p := f.probe("1.1"); p.Answer != hosts.IsRunning {
		t.Errorf("%+v while it is suspended", p)
	}
	w.suspend(false)
	w.until("the tree goes on", pids, false)
	if o := f.exit("1.1"); !o.TimedOut || o.Suspended < 3*time.Second || o.Elapsed() < j.Timeout-time.Second/10 {
		t.Errorf("%+v", o)
	}
	if b := await(f, func(b *hosts.Beat) bool { return b.Owner.Who == "" }); b.Suspended < 3*time.Second {
		t.Errorf("%+v", b)
	}
	f.bye()
}

// A job that is suspended can be killed, and its handler of TERM runs.
func TestKillSuspended(t *testing.T) {
	t.Setenv(beatEnv, "100ms")
	w := newWorld(t)
	o := w.open()
	o.GraceSeconds = 60
	f := w.start(o)
	f.launch(job("1.1", `trap 'sleep 0.3; echo saved > mark; exit 3' TERM; echo $$ > pids; while :; do sleep 0.05; done`))
	pids := w.tree(1)
	w.suspend(true)
	w.until("the job is suspended", pids, true)
	f.send(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "1.1")}})
	if o := f.exit("1.1"); !o.Stopped || o.Exit != 3 {
		t.Errorf("%+v", o)
	}
	if _, err := os.Stat(filepath.Join(w.runDir, "mark")); err != nil {
		t.Error(err)
	}
	f.bye()
}

// No tree stays suspended after the death of what suspends it.
func TestNothingStaysSuspended(t *testing.T) {
	for _, c := range []struct {
		name  string
		death func(w *world, f *far)
		ends  bool // the tree is ended
	}{
		{"dispatcher", func(w *world, f *far) { f.in.Close(); f.wait() }, false},
		{"helper", func(w *world, f *far) { f.kill9() }, false},
		{"supervisor and helper", func(w *world, f *far) {
			f.cmd.Process.Signal(unix.SIGSTOP)
			w.kill(wordSlot)
			f.kill9()
		}, false},
		{"supervisor", func(w *world, f *far) { f.mayDie = true; w.kill(wordSlot) }, true},
		{"helper and suspender", func(w *world, f *far) {
			f.cmd.Process.Signal(unix.SIGSTOP)
			w.kill(wordSuspend)
			f.kill9()
		}, false},
		{"all", func(w *world, f *far) {
			f.cmd.Process.Signal(unix.SIGSTOP)
			w.kill(wordSuspend)
			w.kill(wordSlot)
			f.kill9()
		}, true},
		{"helper stopped", func(w *world, f *far) { f.cmd.Process.Signal(unix.SIGSTOP) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := w.start(w.open())
			f.launch(job("1.1", "echo $$ >> pids; setsid sh -c 'echo $$ >> pids; while :; do sleep 0.1; done' & while :; do sleep 0.1; done"))
			pids := w.tree(2)
			if c.name == "all" {
				pids = pids[:1] // the kernel sees to the process group
			}
			w.suspend(true)
			w.until("the tree is suspended", pids, true)
			c.death(w, f)
			w.until("the tree goes on", pids, false)
			if c.ends {
				polltest.Until(t, bound, "the tree has ended", func() bool {
					p, ok := readProc(pids[0])
					return !ok || p.state == 'Z'
				})
			}
			if c.name == "helper stopped" {
				f.cmd.Process.Signal(unix.SIGCONT)
				f.kill9()
			}
			if c.name != "supervisor" {
				w.suspend(false)
				polltest.Until(t, bound, "the suspender has left", func() bool { return len(w.processes(wordSuspend)) == 0 })
				f = w.start(w.open())
				f.mayDie = true
			}
			f.send(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "1.1")}})
			f.bye()
		})
	}
}

// A suspender that is killed is replaced, and what it had suspended goes on in the end.
func TestSuspenderReplaced(t *testing.T) {
	t.Setenv(beatEnv, "100ms")
	w := newWorld(t)
	f := w.start(w.open())
	f.launch(job("1.1", "echo $$ > pids; while :; do sleep 0.1; done"))
	pids := w.tree(1)
	w.suspend(true)
	w.until("the job is suspended", pids, true)
	first := w.processes(wordSuspend)[0]
	w.kill(wordSuspend)
	polltest.Until(t, bound, "another suspender is there", func() bool {
		list := w.processes(wordSuspend)
		return len(list) == 1 && list[0].pid != first.pid
	})
	w.suspend(false)
	w.until("the job goes on", pids, false)
	f.send(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "1.1")}})
	f.exit("1.1")
	f.bye()
}
