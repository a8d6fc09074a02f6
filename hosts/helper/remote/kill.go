//go:build linux

package remote

import (
	"fmt"
	"slices"
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

// endUnder is endAttempt for one that a living supervisor holds: what is below that
// one and carries no cookie of another attempt is of this one, unless children that
// earlier jobs left are to be kept.
func (h *helper) endUnder(id jobs.AttemptID, by holder, job pgroup) []proc {
	mine := cookie(h.cfg.Run, h.cfg.Host, id.String())
	marked := withCookie(func(s string) bool { return s == mine }, job, nil)
	return endAll(func(t table) []proc {
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
	}, h.cfg.Grace)
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
