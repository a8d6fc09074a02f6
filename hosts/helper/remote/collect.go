//go:build linux

package remote

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// gather is how long reports may wait for each other while jobs are buffered
// here and the slots therefore do not wait for the dispatcher.
const gather = 5 * time.Millisecond

// openReports opens the pipe of the supervisors' reports, for reading and writing:
// it then never ends when supervisors come and go.
func (h *helper) openReports() (*os.File, error) {
	fd, err := openat(unix.AT_FDCWD, h.spool.path(fileReports), unix.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return os.NewFile(uintptr(fd), fileReports), nil
}

// collect reads the supervisors' reports and passes them on in batches (B3).
func (h *helper) collect(f *os.File) error {
	buf := make([]byte, 64<<10)
	have := 0
	for {
		n, err := f.Read(buf[have:])
		if err != nil {
			return fmt.Errorf("spool: reading reports: %w", err)
		}
		if h.superseded() {
			return errSuperseded // these lines were for another; it looks after itself
		}
		have += n
		end := bytes.LastIndexByte(buf[:have], '\n') + 1
		if end == 0 && have == len(buf) {
			end = have // no line of ours is that long
		}
		more := h.reported(buf[:end])
		have = copy(buf, buf[end:have])
		if more {
			time.Sleep(gather)
		}
	}
}

// reported handles whole lines and sends what they come to. It says whether
// jobs still wait here.
func (h *helper) reported(lines []byte) bool {
	b := &batch{}
	h.mu.Lock()
	for line := range bytes.Lines(lines) {
		r, err := parseReport(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			b.other = append(b.other, &hosts.Trouble{Text: err.Error()})
			continue
		}
		h.reportLocked(&r, b)
	}
	more := len(h.waiting) > 0
	if more && len(h.sups) < h.limit {
		h.staffLocked() // an earlier helper's supervisor may have freed its slot
	}
	h.ringer.ring()
	h.mu.Unlock()
	h.out.send(b.messages()...)
	h.answer(b.ask)
	return more
}

// batch gathers what lines say into few messages.
type batch struct {
	started []hosts.StartedJob
	exits   []hosts.ExitedJob
	lapsed  []jobs.AttemptID
	other   []hosts.Message
	ask     []jobs.AttemptID // to be examined
}

func (h *helper) reportLocked(r *report, b *batch) {
	id := r.attempt
	switch r.kind {
	case repStarted:
		delete(h.waiting, id)
		group := groupOf(r.job, r.by)
		if old := h.running[id]; old != nil {
			old.by, old.job, old.at = r.by, group, r.at
		} else {
			h.running[id] = &run{by: r.by, job: group, at: r.at, over: make(chan struct{})}
		}
		b.started = append(b.started, hosts.StartedJob{Attempt: id, Slot: r.by.slot, At: r.at})
	case repExited:
		h.overLocked(id)
		h.reuseLocked(id)
		b.exits = append(b.exits, hosts.ExitedJob{Attempt: id, Slot: r.by.slot, Outcome: r.outcome})
	case repLapsed:
		h.overLocked(id)
		b.lapsed = append(b.lapsed, id)
	case repRefused:
		h.overLocked(id)
		h.lockedGPUs = union(h.lockedGPUs, r.gpus) // until watchGPUs looks at the locks again
		b.other = append(b.other, &hosts.Refused{Attempts: []jobs.AttemptID{id}, Why: r.why, GPUs: r.gpus})
	case repKnown:
		delete(h.waiting, id)
		b.ask = append(b.ask, id)
	case repTrouble:
		if r.why == ticketReturned {
			if h.waiting[id] {
				h.ringer.add(id)
			}
			return
		}
		b.other = append(b.other, &hosts.Trouble{Attempt: id, Text: r.why})
	}
}

// union returns the numbers that are in either list, sorted.
func union(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// maxUnused is how many files wait to be used again.
const maxUnused = 1024

// reuseLocked notes that a supervisor has put the file of a spec into free/.
func (h *helper) reuseLocked(id jobs.AttemptID) {
	if len(h.unused) < maxUnused {
		h.unused = append(h.unused, id.String())
	}
}

// overLocked forgets an attempt that is over and wakes those who wait for it.
func (h *helper) overLocked(id jobs.AttemptID) {
	delete(h.waiting, id)
	if r := h.running[id]; r != nil {
		delete(h.running, id)
		close(r.over)
	}
}

// messages makes messages of a batch. A start whose exit is known too is left
// out: the exit says it all.
func (b *batch) messages() []hosts.Message {
	var out []hosts.Message
	if len(b.exits) > 0 && len(b.started) > 0 {
		ended := make(map[jobs.AttemptID]bool, len(b.exits))
		for _, e := range b.exits {
			ended[e.Attempt] = true
		}
		kept := b.started[:0]
		for _, s := range b.started {
			if !ended[s.Attempt] {
				kept = append(kept, s)
			}
		}
		b.started = kept
	}
	if len(b.started) > 0 {
		out = append(out, &hosts.Started{Jobs: b.started})
	}
	if len(b.exits) > 0 {
		out = append(out, &hosts.Exits{Jobs: b.exits})
	}
	if len(b.lapsed) > 0 {
		out = append(out, &hosts.Withdrawn{Attempts: b.lapsed, Why: whyLapsed})
	}
	return append(out, b.other...)
}
