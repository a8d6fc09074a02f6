//go:build linux

package remote

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/jobs"
)

// wakeEvery is how often stopped supervisors are looked for.
const wakeEvery = 3 * time.Second

// wake lets supervisors go on that were stopped, by a job or by a person: a stopped
// one sees neither its job's end nor its timeout, nor that it shall be ended. To
// hold a job up, the job is what is to be stopped.
func (h *helper) wake() {
	told := map[int]bool{}
	for range time.Tick(wakeEvery) {
		h.mu.Lock()
		supervisors := make(map[int]holder, len(h.sups))
		for _, r := range h.running {
			supervisors[r.by.pid] = r.by
		}
		for pid, s := range h.sups { // idle ones too: the next token may be theirs
			if _, known := supervisors[pid]; known {
				continue
			}
			if p, ok := readProc(pid); ok {
				supervisors[pid] = holder{s.slot, pid, p.start}
			}
		}
		h.mu.Unlock()
		for _, s := range supervisors {
			if h.shutOut() || !goOn(s) || told[s.pid] {
				continue
			}
			told[s.pid] = true
			h.trouble(jobs.AttemptID{}, fmt.Sprintf("the supervisor of slot %d had been stopped (SIGSTOP); it goes on", s.slot))
		}
	}
}

// goOn continues a supervisor if it is stopped, and reports whether it was.
func goOn(by holder) bool {
	p, ok := readProc(by.pid)
	if !ok || p.start != by.start || p.state != 'T' {
		return false
	}
	signalAll([]proc{p}, unix.SIGCONT)
	return true
}
