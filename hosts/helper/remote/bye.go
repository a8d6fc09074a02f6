//go:build linux

package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// leaveTime is how long supervisors have to leave at the end of a run.
const leaveTime = 2 * time.Second

// filesTime is how long the end of a run waits for a file system that hangs.
const filesTime = 10 * time.Second

// endLimit bounds endRun: all that its steps may take, and a little.
func (h *helper) endLimit() time.Duration { return 2*h.cfg.Grace + 90*time.Second }

// within runs f and waits for it, not longer than d. It says whether f ended.
func within(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}

// endRun cleans this host up: nothing of the run is alive afterwards (unless
// children are to be kept), and the spool is gone. Outputs and sentinels stay.
// Nothing in it waits for the link, nor without bound for a file system.
func (h *helper) endRun() {
	if h.shutOut() {
		h.leaveTheEnd()
		return
	}
	h.takeBackAll("the run is over")
	h.mu.Lock()
	h.closing = true
	h.takenLocked()
	var busy []jobs.AttemptID
	for id := range h.running {
		busy = append(busy, id)
	}
	h.mu.Unlock()
	h.endSuspender()
	within(h.cfg.Grace+30*time.Second, func() { h.endBusy(busy) })
	// Before the look at all processes: one that wakes up may start supervisors.
	older := h.endOlder(0)
	if len(older) > 0 {
		h.trouble(jobs.AttemptID{}, "an earlier helper of this run could not be ended: "+name(older))
	}
	var onlyOwn atomic.Bool // supervisors
	within(h.cfg.Grace+20*time.Second, func() { onlyOwn.Store(h.endChildren() && len(older) == 0) })
	if h.shutOut() {
		h.leaveTheEnd()
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
	if !childless() {
		if left := endChasing(h.strays, h.stray, 0); len(left) > 0 {
			h.trouble(jobs.AttemptID{}, "these processes of the run could not be ended: "+name(left))
		}
	}
	within(filesTime, h.leaveShare)
	within(filesTime, func() { settle(h.spool, &h.cfg, h.holder()) })
	if h.shutOut() {
		h.leaveTheEnd()
		return
	}
	h.removeSpool()
}

// atEnd says that nothing of the run is alive here any more but the helper that
// removes its traces.
func (h *helper) atEnd() bool { return h.ctl.at(ctlEnd).Load() != 0 }

// leaveTheEnd says why the run is not ended by us. A newer dispatcher is named
// when we leave.
func (h *helper) leaveTheEnd() {
	h.trouble(jobs.AttemptID{}, "another helper has taken over on this host; it must end the run")
}

// endBusy ends attempts that still run when the run is over: copies that lost
// the race, jobs that were given up.
func (h *helper) endBusy(busy []jobs.AttemptID) {
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
		return append(members, h.strays(t)...)
	}, h.stray, h.cfg.Grace)
	if len(left) > 0 {
		h.trouble(jobs.AttemptID{}, "these processes of the run could not be ended: "+name(left))
	}
	return onlyOwn
}

// isSupervisor says whether a process is a supervisor of this spool, by its
// command line: those of earlier helpers are found too. Each leads a session.
func (s spool) isSupervisor(p proc) bool {
	return p.group == p.pid && strings.Contains(string(procFile(p.pid, "cmdline")), "\x00"+wordSlot+"\x00"+s.dir+"\x00")
}

// dismissAll waits for the supervisors to leave, also those of earlier helpers, and ends
// those that do not.
func (h *helper) dismissAll() {
	all := func(t table) (out []proc) {
		for _, p := range t {
			if endable(p) && h.spool.isSupervisor(p) {
				out = append(out, p)
			}
		}
		return out
	}
	deadline := uptime() + leaveTime
	for {
		left := all(scan(nil))
		if len(left) == 0 {
			return
		}
		now := uptime()
		if now >= deadline {
			break
		}
		signalAll(left, unix.SIGUSR1) // those that stay with kept children look up
		waitAny(left, min(deadline-now, 100*time.Millisecond))
	}
	for range killRounds {
		left := all(scan(nil))
		if len(left) == 0 {
			return
		}
		signalAll(left, unix.SIGKILL)
		waitAny(left, 100*time.Millisecond)
	}
}

// awaitOwn waits for the supervisors that this helper has started to leave, without a
// look at all processes, and reports whether all did.
func (h *helper) awaitOwn() bool {
	for deadline, told := uptime()+leaveTime, time.Duration(0); ; {
		var left []proc
		h.mu.Lock()
		num := len(h.sups)
		for pid := range h.sups {
			if p, ok := readProc(pid); ok && endable(p) {
				left = append(left, p)
			}
		}
		h.mu.Unlock()
		now := uptime()
		if num == 0 || now >= deadline {
			return num == 0
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

// childless reports whether this process certainly has no children, alive or dead.
func childless() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == unix.ECHILD
		}
	}
}

// removeSpool removes this host's directory and, if it was the last one, the run's.
func (h *helper) removeSpool() {
	within(filesTime, func() {
		err := again(func() error { return remove(attempts.BeatFile(h.dir, h.cfg.Host)) })
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = again(h.cfg.temps(h.holder()).sweep)
		}
		if err != nil {
			h.trouble(jobs.AttemptID{}, fmt.Sprintf("tidying up after the run: %v", err))
		}
	})
	if !h.open.KeepFiles {
		within(filesTime, func() {
			if err := h.files.store.Remove(); err != nil {
				h.trouble(jobs.AttemptID{}, fmt.Sprintf("removing the files of jobs: %v", err))
			}
		})
	}
	if names, err := h.spool.list(dirDone); err == nil && len(names) > 0 {
		h.trouble(jobs.AttemptID{}, fmt.Sprintf("%d outcomes could not be written to %s; they are kept in %s",
			len(names), h.dir, h.spool.path(dirDone)))
		return
	}
	if err := again(func() error { return removeTree(h.spool.dir) }); err != nil {
		h.trouble(jobs.AttemptID{}, fmt.Sprintf("removing the spool: %v", err))
	}
	unlinkat(unix.AT_FDCWD, filepath.Dir(h.spool.dir), unix.AT_REMOVEDIR) // fails while other hosts' spools are there
}
