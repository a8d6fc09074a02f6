//go:build linux

package remote

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// kill ends attempts, each apart from the others.
func (h *helper) kill(m *hosts.Kill) {
	if by := h.fence(m.Epoch); by != 0 {
		h.refuseFenced(m.Attempts, by)
		return
	}
	if m.Warn {
		for _, id := range m.Attempts {
			go h.warn(id)
		}
		return
	}
	gone := &hosts.Withdrawn{Why: m.Why}
	h.mu.Lock()
	for _, id := range m.Attempts {
		if h.takeBackLocked(id) {
			gone.Attempts = append(gone.Attempts, id)
		}
	}
	h.mu.Unlock()
	if len(gone.Attempts) > 0 {
		h.out.send(gone)
	}
	for _, id := range m.Attempts {
		if !slices.Contains(gone.Attempts, id) {
			go h.end(id)
		}
	}
}

// end stops one attempt that is not in the spool any more.
func (h *helper) end(id jobs.AttemptID) {
	r, by := h.heldBy(id)
	if r == nil {
		// Over, or never here. What it left behind ends too.
		if left := h.endAttempt(id, pgroup{}); len(left) > 0 {
			h.trouble(id, fmt.Sprintf("%s could not be ended, these processes do not die: %s", id, name(left)))
		}
		p := h.examine(id, pgroup{})
		if p.Answer == hosts.NeverStarted {
			h.out.send(&hosts.Withdrawn{Attempts: []jobs.AttemptID{id}, Why: "it had not started"})
			return
		}
		h.tell([]hosts.ProbedJob{p})
		return
	}
	// The supervisor ends the tree: it alone knows all of it, and says in the
	// sentinel that we did it. The request stands before the signal. Where there is
	// no room for it, we end what we see of the tree.
	patience := h.cfg.Grace + 12*time.Second // its own attempts may take as long, and a little
	if err := again(func() error { return writeFile(h.spool.path(dirStop, id.String()), nil) }); err != nil {
		h.trouble(id, fmt.Sprintf("spool: %v", err))
		patience = 0
	}
	h.nudge(by)
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-r.over:
		return
	case <-late.C:
	}
	h.mu.Lock()
	group := r.job // known since the job's start was reported
	h.mu.Unlock()
	if left := h.endUnder(id, by, group); len(left) > 0 {
		h.trouble(id, fmt.Sprintf("%s could not be ended, these processes do not die: %s", id, name(left)))
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

// endUnder is endAttempt for one that a living supervisor holds.
func (h *helper) endUnder(id jobs.AttemptID, by holder, job pgroup) []proc {
	return endAll(h.under(id, by, job), h.cfg.Grace)
}

// under chooses the processes of an attempt that a living supervisor holds: what is below
// that one and carries no cookie of another attempt is of this one, unless children that
// earlier jobs left are to be kept.
func (h *helper) under(id jobs.AttemptID, by holder, job pgroup) choose {
	mine := cookie(h.cfg.Run, h.cfg.Host, id.String())
	marked := withCookie(func(s string) bool { return s == mine }, job, nil)
	return func(t table) []proc {
		var roots []int
		for pid, p := range t {
			if p.ppid != by.pid || t[by.pid].start != by.start {
				continue
			}
			if mark, _ := cookieOf(pid); mark == mine || mark == "" && !h.open.KeepChildren {
				roots = append(roots, pid)
			}
		}
		return append(marked(t), t.pick(append(t.under(roots...), roots...), nil)...)
	}
}

// heldBy returns the run of an attempt that a living supervisor holds, and that
// supervisor; nil if there is none. It looks into taken/: the report may still be
// under way.
func (h *helper) heldBy(id jobs.AttemptID) (*run, holder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running[id] == nil {
		h.takenLocked()
	}
	if r := h.running[id]; r != nil {
		return r, r.by
	}
	return nil, holder{}
}

// nudge makes a supervisor look into stop/, though it may have been stopped.
func (h *helper) nudge(by holder) {
	if p, ok := readProc(by.pid); ok && p.start == by.start {
		signalAll([]proc{p}, unix.SIGUSR1, unix.SIGCONT)
	}
}
