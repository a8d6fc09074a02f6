//go:build linux

package remote

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// kill ends attempts, each apart from the others.
func (h *helper) kill(m *hosts.Kill) {
	if h.fenced(m.Epoch, m.Attempts) {
		return
	}
	if m.Warn {
		for _, id := range m.Attempts {
			go h.warn(id)
		}
		return
	}
	var gone []jobs.AttemptID
	h.mu.Lock()
	for _, id := range m.Attempts {
		if h.takeBackLocked(id) {
			gone = append(gone, id)
		} else {
			go h.end(id)
		}
	}
	h.mu.Unlock()
	h.sendWithdrawn(gone, m.Why)
}

// end stops one attempt that is not in the spool any more.
func (h *helper) end(id jobs.AttemptID) {
	r, by := h.heldBy(id)
	if r == nil {
		// Over, or never here. What it left behind ends too.
		if left := h.endAttempt(id, pgroup{}); len(left) > 0 {
			h.troubleOf(id, "%s could not be ended: these processes cannot be killed: %s", id, name(left))
		}
		p := h.examine(id, pgroup{})
		if p.Answer == hosts.NeverStarted {
			h.sendWithdrawn([]jobs.AttemptID{id}, "it had not started")
			return
		}
		h.sendResults([]hosts.ProbedJob{p})
		return
	}
	// The supervisor ends the tree: it alone knows all of it, and says in the
	// sentinel that we did it. The request stands before the signal. Where there is
	// no room for it, we end what we see of the tree.
	patience := h.cfg.Grace + 12*time.Second // its own attempts may take as long, and a little
	if err := again(func() error { return writeFile(h.spool.path(dirStop, id.String()), nil) }); err != nil {
		h.troubleOf(id, "spool: %v", err)
		patience = 0
	}
	h.nudge(by)
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-r.over:
		again(func() error { return remove(h.spool.path(dirStop, id.String())) })
		return
	case <-late.C:
	}
	h.mu.Lock()
	group := r.job // known since the job's start was reported
	h.mu.Unlock()
	if left := endAll(h.under(id, by, group), h.cfg.Grace); len(left) > 0 {
		h.troubleOf(id, "%s could not be ended: these processes cannot be killed: %s", id, name(left))
	}
}

// warn tells a running attempt that its end is near.
func (h *helper) warn(id jobs.AttemptID) {
	if r, by := h.heldBy(id); r != nil && h.cfg.Signal > 0 {
		h.mu.Lock()
		group := r.job
		h.mu.Unlock()
		warn(h.under(id, by, group), h.cfg.Signal)
	}
}

// warn sends a signal to those processes that have a handler for it. It would end the
// others, such as the shell around a program that writes checkpoints.
func warn(pick choose, signal int) {
	ready := slices.DeleteFunc(pick(scan(nil)), func(p proc) bool { return !handles(p.pid, signal) })
	signalAll(ready, unix.Signal(signal))
}

// handles reports whether a process has a handler for a signal (proc(5), SigCgt).
func handles(pid, signal int) bool {
	for line := range strings.Lines(string(procFile(pid, "status"))) {
		if mask, ok := strings.CutPrefix(line, "SigCgt:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && set&(1<<(signal-1)) != 0
		}
	}
	return false
}

// under chooses the processes of an attempt that a living supervisor holds: what is below
// that one and carries no cookie of another attempt is of this one, unless children that
// earlier jobs left are to be kept.
func (h *helper) under(id jobs.AttemptID, by holder, job pgroup) choose {
	mine := cookie(h.cfg.Run, h.cfg.Host, id.String())
	return jobTree(mine, job, nil, func(p proc) bool {
		if p.ppid != by.PID || !by.alive() {
			return false
		}
		mark, _ := cookieOf(p.pid)
		return mark == mine || mark == "" && !h.open.KeepChildren
	})
}

// heldBy returns the run of an attempt that a living supervisor holds, and that
// supervisor; nil if there is none. It looks into taken/: the report may still be
// under way.
func (h *helper) heldBy(id jobs.AttemptID) (*run, holder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[id] == nil {
		h.reconcileTakenLocked()
	}
	if r := h.running[id]; r != nil {
		return r, r.by
	}
	return nil, holder{}
}

// nudge makes a supervisor look into stop/, though it may have been stopped.
func (h *helper) nudge(by holder) {
	if p, ok := readProc(by.PID); ok && p.start == by.Start {
		signalAll([]proc{p}, unix.SIGUSR1, unix.SIGCONT)
	}
}

// What a supervisor was the parent of falls to the helper that started it when it
// is killed: the helper is a subreaper too. So also that is found which carries no
// cookie any more.

// adoptOrphans makes this process a subreaper. It does not touch what it had as
// children already: a login shell may have started something before it became us.
// With such children we cannot tell what comes of them from what comes of jobs.
func (h *helper) adoptOrphans() {
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil {
		return
	}
	for _, p := range scan(nil) {
		if p.ppid == os.Getpid() {
			return
		}
	}
	h.parent = true
}

// isOrphan reports for a process whether it is the orphan of a supervisor that died, and
// carries no cookie that tells whose it is.
func (h *helper) isOrphan(p proc) bool {
	if !h.parent || h.open.KeepChildren || p.ppid != os.Getpid() || !endable(p) {
		return false
	}
	if mark, _ := cookieOf(p.pid); mark != "" {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sups[p.pid] == nil && p.pid != h.suspender
}

// orphans chooses them and all below them.
func (h *helper) orphans(t table) []proc {
	var roots []int
	for pid, p := range t {
		if h.isOrphan(p) {
			roots = append(roots, pid)
		}
	}
	return t.pick(append(t.under(roots...), roots...), nil)
}

// leaveTimeout is how long supervisors have to leave at the end of a run.
const leaveTimeout = 2 * time.Second

// filesTimeout is how long the end of a run waits for a file system that hangs.
const filesTimeout = 10 * time.Second

// endLimit bounds endRun: all that its steps may take, and a little.
func (h *helper) endLimit() time.Duration { return 2*h.cfg.Grace + 90*time.Second }

// endRun cleans this host up: nothing of the run is alive afterwards (unless
// children are to be kept), and the spool is gone. Outputs and sentinels stay.
// Nothing in it waits for the link, nor without bound for a file system.
func (h *helper) endRun() {
	if h.isShutOut() {
		h.reportTakenOver()
		return
	}
	h.takeBackAll("the run is over")
	h.mu.Lock()
	h.closing = true
	h.reconcileTakenLocked()
	var busy []jobs.AttemptID
	for id := range h.running {
		busy = append(busy, id)
	}
	h.mu.Unlock()
	h.endSuspender()
	withTimeout(h.cfg.Grace+30*time.Second, func() { h.endRunning(busy) })
	// Before the look at all processes: one that wakes up may start supervisors.
	older := h.endOlder(0)
	if len(older) > 0 {
		h.trouble("an earlier helper of this run could not be ended: %s", name(older))
	}
	var onlyOwn atomic.Bool // only supervisors of this helper were alive
	withTimeout(h.cfg.Grace+20*time.Second, func() { onlyOwn.Store(h.endChildren() && len(older) == 0) })
	if h.isShutOut() {
		h.reportTakenOver()
		return
	}
	h.ctl.at(ctlLimit).Store(0)
	h.ctl.at(ctlEnd).Store(1)
	h.mu.Lock()
	h.wakePipe.close()
	h.mu.Unlock()
	if !h.awaitOwn() || !onlyOwn.Load() {
		h.dismissAll()
	}
	// What the supervisors could not end has fallen to us, as our children.
	if !hasNoChildren() {
		if left := endChasing(h.orphans, h.isOrphan, 0); len(left) > 0 {
			h.trouble("these processes of the run could not be ended: %s", name(left))
		}
	}
	withTimeout(filesTimeout, h.removeClaims)
	withTimeout(filesTimeout, func() { settle(h.spool, &h.cfg, h.holder()) })
	if h.isShutOut() {
		h.reportTakenOver()
		return
	}
	h.removeSpool()
}

// hasEnded reports whether nothing of the run is alive here any more but the helper that
// removes its traces.
func (h *helper) hasEnded() bool { return h.ctl.at(ctlEnd).Load() != 0 }

// reportTakenOver records why the run is not ended by us. A newer dispatcher is named
// when we leave.
func (h *helper) reportTakenOver() {
	h.trouble("another helper has taken over on this host; it must end the run")
}

// endRunning ends attempts that still run when the run is over: copies that lost
// the race, jobs that were given up.
func (h *helper) endRunning(busy []jobs.AttemptID) {
	done := make(chan struct{}, len(busy))
	for _, id := range busy {
		go func() {
			h.end(id)
			done <- struct{}{}
		}()
	}
	for range busy {
		<-done
	}
}

// endChildren ends what jobs have left behind: all that carries a cookie of
// this run and host, all below our supervisors, and the strays of those that died.
// It reports whether it looked at all processes and saw no supervisor of another helper.
func (h *helper) endChildren() (onlyOwn bool) {
	if h.open.KeepChildren {
		return false
	}
	left := endChasing(func(t table) []proc {
		h.mu.Lock()
		own := maps.Clone(h.sups)
		h.mu.Unlock()
		members, supervisors := h.spool.trees(t, cookie(h.cfg.Run, h.cfg.Host, ""))
		onlyOwn = true
		for pid := range supervisors {
			onlyOwn = onlyOwn && own[pid] != nil
		}
		return append(members, h.orphans(t)...)
	}, h.isOrphan, h.cfg.Grace)
	if len(left) > 0 {
		h.trouble("these processes of the run could not be ended: %s", name(left))
	}
	return onlyOwn
}

// isSupervisor reports whether a process is a supervisor of this spool, by its
// command line: those of earlier helpers are found too. Each leads a session.
func (s spool) isSupervisor(p proc) bool {
	return p.group == p.pid && strings.Contains(string(procFile(p.pid, "cmdline")), "\x00"+wordSlot+"\x00"+s.dir+"\x00")
}

// dismissAll waits for the supervisors to leave, also those of earlier helpers, and ends
// those that do not.
func (h *helper) dismissAll() {
	all := func() (left []proc, none bool) {
		for _, p := range scan(nil) {
			if endable(p) && h.spool.isSupervisor(p) {
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

// awaitOwn waits for the supervisors that this helper has started to leave, without a
// look at all processes, and reports whether all did.
func (h *helper) awaitOwn() bool {
	return awaitLeave(func() (left []proc, none bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for pid := range h.sups {
			if p, ok := readProc(pid); ok && endable(p) {
				left = append(left, p)
			}
		}
		return left, len(h.sups) == 0
	})
}

// awaitLeave waits until there are no supervisors, not longer than leaveTimeout. look returns
// those that are alive, and whether there are none, which need not be so if all are dead.
func awaitLeave(look func() (left []proc, none bool)) bool {
	for deadline, told := uptime()+leaveTimeout, time.Duration(0); ; {
		left, none := look()
		now := uptime()
		if none || now >= deadline {
			return none
		}
		if now-told >= 100*time.Millisecond { // those that stay with kept children look up
			told = now
			signalAll(left, unix.SIGUSR1)
		}
		if len(left) == 0 {
			time.Sleep(time.Millisecond) // until they have been reaped
			continue
		}
		waitAny(left[:1], min(deadline-now, 100*time.Millisecond)) // the others leave meanwhile
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

// removeSpool removes this host's directory and, if it was the last one, the run's.
func (h *helper) removeSpool() {
	withTimeout(filesTimeout, func() {
		err := again(func() error { return remove(attempts.BeatFile(h.dir, h.cfg.Host)) })
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = again(h.cfg.temps(h.holder()).sweep)
		}
		if err != nil {
			h.trouble("cleaning up after the run: %v", err)
		}
	})
	if !h.open.KeepFiles {
		withTimeout(filesTimeout, func() {
			if err := h.files.store.Remove(); err != nil {
				h.trouble("removing the files of jobs: %v", err)
			}
		})
	}
	if names, err := h.spool.list(dirDone); err == nil && len(names) > 0 {
		h.trouble("%d outcomes could not be written to %s; they are kept in %s", len(names), h.dir, h.spool.path(dirDone))
		return
	}
	if err := again(func() error { return removeTree(h.spool.dir) }); err != nil {
		h.trouble("removing the spool: %v", err)
	}
	unlinkat(unix.AT_FDCWD, filepath.Dir(h.spool.dir), unix.AT_REMOVEDIR) // fails while other hosts' spools are there
}
