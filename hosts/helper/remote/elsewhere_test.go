//go:build linux

package remote

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// TestProcessElsewhereIsEnded checks that a process with the cookie of a job that runs outside of the
// tree of the job's supervisor has ended when the job's outcome is reported, and that processes of
// other jobs have not.
func TestProcessElsewhereIsEnded(t *testing.T) {
	w := newWorld(t)
	f := w.startWith(2)
	elsewhere := func(id string) proc {
		_, p := grouped(t, []string{"PATH=/usr/bin:/bin", cookieVar + "=" + cookie(w.run, "melon1", id)}, "sh", "-c",
			"echo up; while :; do sleep 1000; done")
		return p
	}
	f.hold("1.1", "exit")
	f.hold("2.1", "exit")
	first, second := elsewhere("1.1"), elsewhere("2.1")
	isAlive := func(p proc) bool { return holder{0, p.pid, p.start}.isAlive() }
	f.kill("1.1")
	if o := f.exit("1.1"); !o.Stopped || isAlive(first) {
		t.Errorf("1.1 ended with %+v, and its process elsewhere is alive: %t", o, isAlive(first))
	}
	if !isAlive(second) {
		t.Error("a process of another job was ended")
	}
	f.kill("2.1")
	if o := f.exit("2.1"); !o.Stopped || isAlive(second) {
		t.Errorf("2.1 ended with %+v, and its process elsewhere is alive: %t", o, isAlive(second))
	}
	f.endRun()
}

// TestProcessElsewhereHasItsGrace checks that a process elsewhere gets SIGTERM and may handle it,
// although the job itself ignores that signal for the whole grace. A busy machine may need longer than
// the first grace to run the handler.
func TestProcessElsewhereHasItsGrace(t *testing.T) {
	for grace := 0.5; ; grace *= 2 {
		if handlesEndElsewhere(t, grace) {
			return
		}
		if grace > 60 {
			t.Fatal("a process elsewhere could not handle SIGTERM")
		}
	}
}

// handlesEndElsewhere reports whether a process elsewhere has handled SIGTERM within a grace in seconds
// when the kill of a job that ignores it is over.
func handlesEndElsewhere(t *testing.T, grace float64) bool {
	t.Helper()
	w := newWorld(t)
	told, ready := filepath.Join(w.runDir, "told"), w.fifo("ready")
	open := w.open()
	open.GraceSeconds = grace
	f := w.start(open)
	f.launch(job("1.1", "trap '' TERM; echo up > "+ready+"; while :; do sleep 1000; done"))
	w.receive(ready)
	grouped(t, []string{"PATH=/usr/bin:/bin", cookieVar + "=" + cookie(w.run, "melon1", "1.1")}, "sh", "-c",
		"trap 'echo > "+told+"; exit' TERM; echo up; while :; do sleep 1000; done")
	f.kill("1.1")
	f.exit("1.1")
	f.endRun()
	_, err := os.Stat(told)
	return err == nil
}

// TestStuckProcessHidesNoneElsewhere checks that processes elsewhere are ended although a process of
// the job cannot be. A zombie stands for that one, because no signal ends it.
func TestStuckProcessHidesNoneElsewhere(t *testing.T) {
	polltest.Long(t)
	zombie := exec.Command("true")
	must(t, zombie.Start())
	defer zombie.Wait()
	_, elsewhere := grouped(t, []string{"PATH=/usr/bin:/bin"}, "sh", "-c", "echo up; exec sleep 1000")
	isAlive := holder{0, elsewhere.pid, elsewhere.start}.isAlive
	pick := func(all table) (ps []proc) {
		time.Sleep(50 * time.Millisecond) // nothing else waits for a zombie
		pids := []int{zombie.Process.Pid}
		if _, ok := all[1]; ok { // it is no snapshot of descendants
			pids = append(pids, elsewhere.pid)
		}
		for _, pid := range pids {
			if p, ok := readProc(pid); ok && isAlive() {
				ps = append(ps, p)
			}
		}
		return ps
	}
	e := &ending{pick: pick, isElsewhere: func() bool { return true }}
	if left := e.run(0); len(left) > 0 || isAlive() {
		t.Errorf("left %v, and the process elsewhere is alive: %t", left, isAlive())
	}
}

// TestSearchIsShared checks that supervisors that wait at the same time share one search, that a
// search that began too early, or in another boot, is not used, and that one whose process has died
// delays nobody for long.
func TestSearchIsShared(t *testing.T) {
	c := &control{mem: make([]byte, controlBytes)}
	var searches atomic.Int32
	share := func(after time.Duration, waiters int, found bool) {
		t.Helper()
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() {
				if got := c.shareSearch(after, func() bool { searches.Add(1); return found }); got != found {
					t.Errorf("found %t, want %t", got, found)
				}
			})
		}
		all.Wait()
	}
	began := uptime()
	for i, waiters := range []int{100, 1, 100} {
		share(began, waiters, i == 2)
		if n := searches.Load(); n != int32(i+1) {
			t.Fatalf("%d searches in round %d, want one more in each", n, i+1)
		}
		began = uptime() + 1
	}
	c.word(ctlSearching).Store(int64(uptime() + time.Millisecond)) // its process has died
	share(uptime(), 1, false)
	c.word(ctlSearching).Store(1 << 62) // damaged
	share(uptime(), 1, false)
	c.word(ctlSearched).Store(int64(uptime()+time.Hour) << 1) // before a reboot, it found nothing
	share(uptime(), 1, true)
	if n := searches.Load(); n != 6 {
		t.Errorf("%d searches, want 6", n)
	}
	if _, known := c.searchedSince(0); !known {
		t.Error("the result of an earlier boot was not replaced")
	}
}

// readsOf returns how often a process has called read.
func readsOf(t *testing.T, pid int) int {
	t.Helper()
	_, after, ok := bytes.Cut(procFile(pid, "io"), []byte("syscr: "))
	if !ok {
		t.Skip("the kernel does not count reads")
	}
	return int(parseNumber(after))
}

// TestEndedJobReadsNoOtherProcesses checks that a supervisor whose job ends while another process
// searches reads little more than the files of its own processes. The test takes the part of the one
// that searches, so that it does not matter which supervisors wait at the same time.
func TestEndedJobReadsNoOtherProcesses(t *testing.T) {
	if !listsChildren() {
		t.Skip("the kernel does not list children")
	}
	const slots = 24
	w := newWorld(t)
	ready := w.fifo("ready")
	f := w.startWith(slots)
	var list []hosts.LaunchJob
	var ids []jobs.AttemptID
	for i := range slots {
		id := fmt.Sprintf("%d.1", i+1)
		list = append(list, job(id, "setsid sleep 1000 & echo up > "+ready+"; sleep 1000"))
		ids = append(ids, attemptID(t, id))
	}
	f.launch(list...)
	w.receiveLines(ready, slots)
	c := w.control()
	before := map[int]int{}
	for i := range slots {
		pid := int(c.serving(i + 1).Load())
		before[pid] = readsOf(t, pid)
	}
	foundNothing := func() {
		now := uptime()
		c.word(ctlSearching).Store(int64(now + searchLease/2))
		c.recordSearch(now, false)
	}
	foundNothing()
	f.send(&hosts.Kill{Epoch: 1, Attempts: ids, Why: "asked"})
	polltest.Until(t, "all jobs have ended", func() bool {
		foundNothing()
		return !slices.ContainsFunc(ids, func(id jobs.AttemptID) bool {
			return w.status(id.String()).State != attempts.Finished
		})
	})
	c.word(ctlSearching).Store(0)
	for _, id := range ids {
		f.exit(id.String())
	}
	var reads []int
	for pid, n := range before {
		reads = append(reads, readsOf(t, pid)-n)
	}
	slices.Sort(reads)
	t.Log("reads by each supervisor:", reads)
	if median := reads[slots/2]; median > 250 {
		t.Errorf("half of the supervisors have read %d times or more, want at most 250", median)
	}
	f.endRun()
}

// TestAKillOfEndedAttemptsSearchesOnce checks that a kill of many attempts that no supervisor holds
// reads the files of all processes about as often as one of a single attempt. Each attempt is answered,
// and what it left behind is ended.
func TestAKillOfEndedAttemptsSearchesOnce(t *testing.T) {
	w := newWorld(t, heartbeatEnv+"=1h") // each heartbeat reads files, and a busy machine needs time for more
	f := w.startWith(1)
	pid := f.cmd.Process.Pid
	readsFor := func(first, n int) int {
		var ids []jobs.AttemptID
		for i := range n {
			id := fmt.Sprintf("%d.1", first+i)
			w.sentinel(id, "melon1", jobs.Outcome{Exit: 3})
			ids = append(ids, attemptID(t, id))
		}
		before := readsOf(t, pid)
		f.send(&hosts.Kill{Epoch: 1, Attempts: ids, Why: "asked"})
		for _, id := range ids {
			f.exits(id.String(), 3)
		}
		return readsOf(t, pid) - before
	}
	const many = 40
	one := max(readsFor(1, 1), readsFor(2, 1))
	// Each needs some files of its own, but few compared with a search.
	if all := readsFor(10, many); all > one*many/4 {
		t.Errorf("%d reads for %d attempts, and %d for one", all, many, one)
	}
	var left []proc
	for _, id := range []string{"60.1", "61.1", "62.1"} {
		_, p := grouped(t, []string{"PATH=/usr/bin:/bin", cookieVar + "=" + cookie(w.run, "melon1", id)}, "sh", "-c",
			"echo; sleep 1000")
		left = append(left, p)
	}
	readsFor(60, len(left))
	for _, p := range left {
		if now, ok := readProc(p.pid); ok && isEndable(now) {
			t.Errorf("process %d of an ended attempt still runs", p.pid)
		}
	}
}
