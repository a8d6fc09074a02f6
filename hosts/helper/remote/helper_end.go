//go:build linux

package remote

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// kill ends attempts. It does not wait for their ends.
func (h *helper) kill(m *hosts.Kill) {
	if h.isFenced(m.Epoch, m.Attempts) {
		return
	}
	if m.Warn {
		for _, id := range m.Attempts {
			go h.warnAttempt(id)
		}
		return
	}
	var gone, others []jobs.AttemptID
	h.mu.Lock()
	for _, id := range m.Attempts {
		if h.takeBackLocked(id) {
			gone = append(gone, id)
		} else {
			others = append(others, id)
		}
	}
	h.mu.Unlock()
	h.sendWithdrawn(gone, m.Why)
	go h.endAttempts(others)
}

// endAttempts ends attempts that are not waiting in the spool, and returns when all have ended. Those
// that no supervisor holds share their searches for processes, of which each reads all of /proc.
func (h *helper) endAttempts(ids []jobs.AttemptID) {
	var all sync.WaitGroup
	defer all.Wait()
	var notHeld []jobs.AttemptID
	for _, id := range ids {
		if r, by := h.heldBy(id); r != nil {
			all.Go(func() { h.endHeld(id, r, by) })
		} else {
			notHeld = append(notHeld, id)
		}
	}
	if len(notHeld) > 0 {
		h.endNotHeld(notHeld)
	}
}

// endNotHeld ends what attempts have left behind that have ended or never started, and reports their
// fates.
func (h *helper) endNotHeld(ids []jobs.AttemptID) {
	if left := h.endProcesses(ids, pgroup{}); len(left) > 0 {
		for _, id := range ids { // some of the processes may belong to any of them
			h.reportAttemptTrouble(id, "%s could not be ended: these processes cannot be killed: %s", id,
				listProcs(left))
		}
	}
	h.sendResults(h.findFates(ids, pgroup{}, true))
}

// endHeld ends an attempt that a supervisor holds.
func (h *helper) endHeld(id jobs.AttemptID, r *heldAttempt, by holder) {
	// The supervisor ends the tree: only it knows all of the tree, and it records the request
	// in the sentinel. The request must exist before the signal. If it cannot be written, we
	// end what we see of the tree.
	patience := h.config.Grace + 12*time.Second // more than the supervisor's own tries take
	if err := retryUnlessMissing(func() error {
		return writeFile(h.spool.path(dirStop, id.String()), nil)
	}); err != nil {
		h.reportAttemptTrouble(id, "spool: %v", err)
		patience = 0
	}
	h.wakeSupervisor(by)
	select {
	case <-r.ended:
		retryUnlessMissing(func() error { return remove(h.spool.path(dirStop, id.String())) })
		return
	case <-time.After(patience):
	}
	h.mu.Lock()
	group := r.group
	h.mu.Unlock()
	if left := endAll(h.attemptProcs(id, by, group), h.config.Grace); len(left) > 0 {
		h.reportAttemptTrouble(id, "%s could not be ended: these processes cannot be killed: %s", id, listProcs(left))
	}
}

// warnAttempt sends the warning signal to a running attempt.
func (h *helper) warnAttempt(id jobs.AttemptID) {
	if r, by := h.heldBy(id); r != nil && h.config.Signal > 0 {
		h.mu.Lock()
		group := r.group
		h.mu.Unlock()
		sendWarning(h.attemptProcs(id, by, group)(scan(nil)), h.config.Signal)
	}
}

// sendWarning sends a signal to those of ps that have a handler for it. It would end others, such as
// the shell around a program that writes checkpoints.
func sendWarning(ps []proc, signal int) {
	ready := slices.DeleteFunc(ps, func(p proc) bool { return !handlesSignal(p.pid, signal) })
	signalAll(ready, unix.Signal(signal))
}

// handlesSignal reports whether a process has a handler for a signal (proc(5), SigCgt).
func handlesSignal(pid, signal int) bool {
	for line := range strings.Lines(string(procFile(pid, "status"))) {
		if mask, ok := strings.CutPrefix(line, "SigCgt:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && set&(1<<(signal-1)) != 0
		}
	}
	return false
}

// attemptProcs chooses the processes of an attempt that a living supervisor holds: every process
// below the supervisor without the cookie of another attempt, unless children that earlier
// jobs left behind are to be kept.
func (h *helper) attemptProcs(id jobs.AttemptID, by holder, job pgroup) chooser {
	mine := cookie(h.config.Run, h.config.Host, id.String())
	return jobTree(mine, job, nil, func(p proc) bool {
		if p.ppid != by.PID || !by.isAlive() {
			return false
		}
		mark := cookieOf(p.pid)
		return mark == mine || mark == "" && !h.open.KeepChildren
	})
}

// heldBy returns the run of an attempt and its living supervisor, or nil. It looks into
// taken/, because the report of the start may not have arrived yet.
func (h *helper) heldBy(id jobs.AttemptID) (*heldAttempt, holder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[id] == nil {
		h.reconcileTakenLocked()
	}
	if r := h.running[id]; r != nil {
		return r, r.holder
	}
	return nil, holder{}
}

// wakeSupervisor makes a supervisor look into stop/, even if it has been stopped.
func (h *helper) wakeSupervisor(by holder) {
	if p, ok := readProc(by.PID); ok && p.start == by.Start {
		signalAll([]proc{p}, unix.SIGUSR1, unix.SIGCONT)
	}
}

// When a supervisor is killed, the helper that started it becomes the parent of its
// children, because the helper is a subreaper, too. This finds processes without a cookie.

// adoptOrphans makes this process a subreaper. If it has children already, which a login
// shell may have started, orphans of jobs cannot be told from their descendants, and
// ownsAllChildren stays false.
func (h *helper) adoptOrphans() {
	isReaper := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
	h.ownsAllChildren = isReaper && hasNoChildren()
}

// isOrphan reports whether a process is an orphan of a dead supervisor and has no cookie.
func (h *helper) isOrphan(p proc) bool {
	if !h.ownsAllChildren || h.open.KeepChildren || p.ppid != os.Getpid() || !isEndable(p) {
		return false
	}
	if mark := cookieOf(p.pid); mark != "" {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.supervisors[p.pid] == nil && p.pid != h.suspenderPID
}

// orphanTrees chooses the orphans and everything below them.
func (h *helper) orphanTrees(t table) []proc {
	var roots []int
	for pid, p := range t {
		if h.isOrphan(p) {
			roots = append(roots, pid)
		}
	}
	return t.pickEndable(append(t.descendants(roots...), roots...), nil)
}

// leaveTimeout is the time that supervisors have to leave at the end of a run.
var leaveTimeout = 2 * time.Second // tests lengthen it

// filesTimeout is how long the end of a run waits for a hung file system.
const filesTimeout = 10 * time.Second

// endLimit bounds the duration of endRun.
func (h *helper) endLimit() time.Duration {
	return 2*h.config.Grace + 90*time.Second + hosts.MaxPackTime
}

// endRun cleans this host up. Afterwards no process of the run is alive, except for children
// that are to be kept, and the spool is removed. Outputs and sentinels stay. It waits for
// the link never, and for file systems within limits. With pack, it packs outputs and sentinels.
// Each step may take long, so a successor may begin during any of them. Then the next one is not begun.
func (h *helper) endRun(pack bool) {
	onlyOwn := false // all supervisors alive were started by this helper
	for _, step := range []func(){
		func() { onlyOwn = h.endJobs() },
		func() { h.dismissSupervisors(onlyOwn) },
		func() { h.endPacks(pack) },
		h.removeSpool,
	} {
		if h.isShutOut() {
			h.reportTrouble("another helper has taken over on this host; it must end the run")
			return
		}
		step()
	}
}

// endJobs ends all jobs, earlier helpers, and what jobs have left behind. It reports whether all
// supervisors that are alive were started by this helper.
func (h *helper) endJobs() bool {
	h.takeBackAll("the run is over")
	h.mu.Lock()
	h.closing = true
	h.reconcileTakenLocked()
	busy := slices.Collect(maps.Keys(h.running))
	h.mu.Unlock()
	h.endSuspender()
	// Attempts that still run are copies that lost the race, and jobs that were given up.
	withTimeout(h.config.Grace+30*time.Second, func() { h.endAttempts(busy) })
	// End them before scanning the processes: one that wakes up may start supervisors.
	older := h.endOlder(0)
	if len(older) > 0 {
		h.reportTrouble("an earlier helper of this run could not be ended: %s", listProcs(older))
	}
	var onlyOwn atomic.Bool
	withTimeout(h.config.Grace+20*time.Second, func() { onlyOwn.Store(h.endChildren() && len(older) == 0) })
	return onlyOwn.Load()
}

// dismissSupervisors makes all supervisors leave, and ends what they leave behind.
func (h *helper) dismissSupervisors(onlyOwn bool) {
	if !h.dismissOwn() || !onlyOwn {
		h.dismissAll()
	}
	// We are now the parent of what the supervisors could not end.
	if !hasNoChildren() {
		if left := endChasing(h.orphanTrees, h.isOrphan, 0); len(left) > 0 {
			h.reportTrouble("these processes of the run could not be ended: %s", listProcs(left))
		}
	}
	withTimeout(filesTimeout, h.removeClaims)
	withTimeout(filesTimeout, func() { placeKeptFiles(h.spool, &h.config, h.holder()) })
}

// dismissOwn makes the supervisors that this helper has started leave. It reports whether they have.
func (h *helper) dismissOwn() bool {
	h.control.word(ctlLimit).Store(0)
	h.control.word(ctlEnd).Store(1)
	h.mu.Lock()
	h.wakePipe.close()
	h.mu.Unlock()
	return h.awaitOwn()
}

// removeUnusedSpool removes the spool when a helper leaves that has created it and was never sent
// anything but pings. If a run ends while it connects to a host, no dispatcher knows the helper that
// starts there, so nobody else would remove its spool.
func (h *helper) removeUnusedSpool() {
	if !h.madeSpool || h.wasAsked.Load() || h.ending.Load() || h.open.Check || h.isShutOut() {
		return
	}
	h.mu.Lock()
	h.closing = true // no further supervisor is started
	busy := len(h.running)+len(h.waiting) > 0
	h.mu.Unlock()
	if busy {
		return
	}
	if !h.dismissOwn() || h.isShutOut() {
		return
	}
	// Supervisors of a spool that was deleted keep outcomes in this one.
	if slices.ContainsFunc(slices.Collect(maps.Values(scan(nil))), h.spool.isSupervisor) {
		return
	}
	if names, err := h.spool.list(dirDone); err != nil || len(names) > 0 {
		return
	}
	withTimeout(filesTimeout, func() { _ = h.spool.remove() }) // without a dispatcher nobody can be told
}

// hasEnded reports whether the run has ended on this host. Only the helper that removes its
// traces is left.
func (h *helper) hasEnded() bool { return h.control.word(ctlEnd).Load() != 0 }

// endChildren ends what jobs have left behind: all processes with a cookie of this run and
// host, everything below our supervisors, and orphans. It reports whether it scanned the
// processes and saw no supervisor of another helper.
func (h *helper) endChildren() (onlyOwn bool) {
	if h.open.KeepChildren {
		return false
	}
	left := endChasing(func(t table) []proc {
		h.mu.Lock()
		own := maps.Clone(h.supervisors)
		h.mu.Unlock()
		members, supervisors := h.spool.trees(t, cookie(h.config.Run, h.config.Host, ""))
		onlyOwn = true
		for pid := range supervisors {
			onlyOwn = onlyOwn && own[pid] != nil
		}
		return append(members, h.orphanTrees(t)...)
	}, h.isOrphan, h.config.Grace)
	if len(left) > 0 {
		h.reportTrouble("these processes of the run could not be ended: %s", listProcs(left))
	}
	return onlyOwn
}

// isSupervisor reports whether a process is a supervisor of this spool, of any helper. Each supervisor leads a
// session.
func (s spool) isSupervisor(p proc) bool {
	return p.group == p.pid && isOurs(p.pid, wordSlot+"\x00"+s.dir)
}

// dismissAll waits for all supervisors of the spool to leave, and kills those that do not.
func (h *helper) dismissAll() {
	all := func() (left []proc, none bool) {
		for _, p := range scan(nil) {
			if isEndable(p) && h.spool.isSupervisor(p) {
				left = append(left, p)
			}
		}
		return left, len(left) == 0
	}
	if awaitLeave(all) {
		return
	}
	for range killRounds {
		left, none := all()
		if none {
			return
		}
		signalAll(left, unix.SIGKILL)
		waitAny(left, 100*time.Millisecond)
	}
}

// awaitOwn waits for the supervisors that this helper has started to leave, and reports
// whether all did. It does not scan all processes.
func (h *helper) awaitOwn() bool {
	return awaitLeave(func() (left []proc, none bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for pid := range h.supervisors {
			if p, ok := readProc(pid); ok && isEndable(p) {
				left = append(left, p)
			}
		}
		return left, len(h.supervisors) == 0
	})
}

// awaitLeave waits at most leaveTimeout until no supervisor is left. look returns those that
// are alive, and whether there are none. Dead ones that were not reaped count as neither.
func awaitLeave(look func() (left []proc, none bool)) bool {
	for deadline, told := uptime()+leaveTimeout, time.Duration(0); ; {
		left, none := look()
		now := uptime()
		if none || now >= deadline {
			return none
		}
		if now-told >= 100*time.Millisecond { // wakes those that wait for kept children
			told = now
			signalAll(left, unix.SIGUSR1)
		}
		if len(left) == 0 {
			time.Sleep(time.Millisecond) // until they have been reaped
			continue
		}
		// The others leave at the same time.
		waitAny(left[:1], min(deadline-now, 100*time.Millisecond))
	}
}

// hasNoChildren reports whether this process certainly has no children, alive or dead.
func hasNoChildren() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == unix.ECHILD
		}
	}
}

// removeSpool removes the spool and what else the run has left on this host.
func (h *helper) removeSpool() {
	withTimeout(filesTimeout, func() {
		err := retryUnlessMissing(func() error { return remove(attempts.HeartbeatFile(h.dir, h.config.Host)) })
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = retryUnlessMissing(func() error { return remove(attempts.MachineFile(h.dir, h.config.Host)) })
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = retryUnlessMissing(h.config.temps(h.holder()).removeDead)
		}
		if err != nil {
			h.reportTrouble("cleaning up after the run: %v", err)
		}
	})
	if !h.open.KeepFiles {
		withTimeout(filesTimeout, func() {
			if err := h.files.store.Remove(); err != nil {
				h.reportTrouble("removing the files of jobs: %v", err)
			}
		})
	}
	if names, err := h.spool.list(dirDone); err == nil && len(names) > 0 {
		h.reportTrouble("%d outcomes could not be written to %s; they are kept in %s", len(names), h.dir,
			h.spool.path(dirDone))
		return
	}
	if err := h.spool.remove(); err != nil {
		h.reportTrouble("removing the spool: %v", err)
	}
}
