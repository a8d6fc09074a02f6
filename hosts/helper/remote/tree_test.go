//go:build linux

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// nasty starts, besides the shell, a child in the same session, one in a session
// of its own, and one that was forked twice and has cleared its environment; all
// ignore TERM. It writes into ready when all are there.
func nasty(w *world, ready string) string {
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

func (w *world) hearTimes(fifo string, n int) {
	w.t.Helper()
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	f.SetReadDeadline(time.Now().Add(bound))
	for lines := 0; lines < n; {
		b := make([]byte, 64)
		k, err := f.Read(b)
		if err != nil {
			w.t.Fatalf("%d of %d lines came on %s: %v", lines, n, filepath.Base(fifo), err)
		}
		lines += strings.Count(string(b[:k]), "\n")
	}
}

// survivors returns the nasty job's processes that are alive.
func (w *world) survivors() (alive []string) {
	b, err := os.ReadFile(filepath.Join(w.runDir, "pids"))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var what string
		var pid int
		fmt.Sscan(line, &what, &pid)
		if p, ok := readProc(pid); ok && p.state != 'Z' {
			alive = append(alive, what)
		}
	}
	return alive
}

// E1, promise 4: a timeout ends the whole tree, also what left session, parent
// and environment, and what ignores TERM.
func TestTimeoutEndsTree(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	f := w.start(w.open())
	j := job("1.1", nasty(w, ready))
	j.Timeout = 1500 * time.Millisecond
	f.launch(j)
	w.hearTimes(ready, 3)
	o := f.exit("1.1")
	if !o.TimedOut || o.Stopped || o.Signal != "SIGKILL" {
		t.Errorf("outcome %+v, want timed out by SIGKILL", o)
	}
	if alive := w.survivors(); len(alive) > 0 {
		t.Errorf("alive after the timeout: %v", alive)
	}
	f.bye()
}

// K9, promise 4: so does a kill, also of a stopped process.
func TestKillEndsTree(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", nasty(w, ready)), job("2.1", "echo up > "+ready+"; kill -STOP $$; echo not reached"))
	w.hearTimes(ready, 4)
	f.send(&hosts.Kill{Epoch: 1, Attempts: []jobs.AttemptID{attemptID(t, "1.1"), attemptID(t, "2.1")}, Why: "asked"})
	for _, id := range []string{"1.1", "2.1"} {
		if o := f.exit(id); !o.Stopped || o.TimedOut || o.Signal == "" {
			t.Errorf("%s: outcome %+v, want stopped by a signal", id, o)
		}
		if f := w.status(id); f.State != attempts.Finished || !f.Outcome.Stopped {
			t.Errorf("%s: status %+v: want stopped", id, f)
		}
	}
	if alive := w.survivors(); len(alive) > 0 {
		t.Errorf("alive after the kill: %v", alive)
	}
	f.bye()
}

// Issue 2, point 5: background children do not hold the slot, are reported, and
// end with the run.
func TestLeftChildren(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	open := w.open()
	open.Slots = 1
	f := w.start(open)
	f.launch(job("1.1", "(echo left $$ > /dev/null; echo up > "+ready+"; exec sleep 1000) & exit 0"), job("2.1", "exit 4"))
	w.hearTimes(ready, 1)
	if o := f.exit("1.1"); !o.OK() || o.LeftChildren != 1 {
		t.Errorf("outcome %+v, want success with one child left", o)
	}
	if o := f.exit("2.1"); o.Exit != 4 || o.LeftChildren != 0 {
		t.Errorf("the next job in the slot: %+v, want exit 4 and no child of its own", o)
	}
	f.bye() // nothingLeft looks whether the sleep is gone
}

// keep_children: what jobs left behind survives the run.
func TestKeepChildren(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	stay := w.fifo("stay")
	open := w.open()
	open.KeepChildren = true
	f := w.start(open)
	f.launch(job("1.1", "sh -c 'echo $$ > "+ready+"; read x < "+stay+"; echo done > "+ready+"' & exit 0"))
	child, ok := readProc(atoi(t, w.hear(ready)))
	f.exit("1.1")
	f.bye()
	w.say(stay)
	if got := w.hear(ready); got != "done" {
		t.Errorf("the kept child said %q", got)
	}
	for ok && (holder{0, child.pid, child.start}).alive() {
		waitAny([]proc{child}, bound)
	}
}

// D9, promise 2: when a supervisor is killed its job is ended and proved dead.
func TestSupervisorKilled(t *testing.T) {
	w := newWorld(t)
	ready := w.fifo("ready")
	f := w.start(w.open())
	f.launch(job("1.1", "echo $PPID > "+ready+"; setsid sleep 1000"))
	pid := atoi(t, w.hear(ready))
	f.mayDie = true
	p, _ := os.FindProcess(pid)
	p.Kill()
	if a := f.probed("1.1"); a.Answer != hosts.Dead {
		t.Errorf("answer %v (%s), want dead", a.Answer, a.Why)
	}
	if a := f.probe("1.1"); a.Answer != hosts.Dead {
		t.Errorf("asked again: %v, want dead", a.Answer)
	}
	f.launch(job("2.1", "exit 5"))
	if o := f.exit("2.1"); o.Exit != 5 {
		t.Errorf("the job after it: %+v", o)
	}
	f.bye()
}
