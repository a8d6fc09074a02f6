//go:build linux

package remote

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	wire "dcs-tui/hosts/helper"
	"dcs-tui/jobs"
)

// Under load, reports are read at intervals, because each reading wakes this helper, sshd, and
// the dispatcher.
const (
	shortGather = 5 * time.Millisecond
	midGather   = 20 * time.Millisecond
	longGather  = 50 * time.Millisecond
)

// gatherLocked returns how long to gather reports. It grows with the number of waiting
// attempts per slot: while some wait, no slot needs the dispatcher.
func (h *helper) gatherLocked() time.Duration {
	switch n := len(h.waiting); {
	case n <= h.limit:
		return 0
	case n <= 4*h.limit:
		return shortGather
	case n <= 16*h.limit:
		return midGather
	}
	return longGather
}

// reportPipe is the reading end of the supervisors' reports. It avoids the runtime's poller,
// which would be woken by each report.
type reportPipe struct {
	fd   int
	path string
}

// openReports opens the pipe of reports.
func (h *helper) openReports() (reportPipe, error) {
	p := reportPipe{path: h.spool.path(fileReports)}
	var err error
	if p.fd, err = openFIFO(p.path); err != nil {
		return p, fmt.Errorf("spool: %w", err)
	}
	unix.FcntlInt(uintptr(p.fd), unix.F_SETPIPE_SZ, 1<<20) // fails if less is allowed
	return p, nil
}

// read waits for reports and reads them. Before it waits it calls idle, which returns after
// what time to call it again (0: never).
func (p reportPipe) read(b []byte, idle func() time.Duration) (int, error) {
	for {
		n, err := unix.Read(p.fd, b)
		switch err {
		case unix.EAGAIN:
			limit := -1
			if d := idle(); d > 0 {
				limit = int(d/time.Millisecond) + 1
			}
			fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
			if _, err = unix.Poll(fds, limit); err != nil && err != unix.EINTR {
				return 0, err
			}
		case unix.EINTR:
		default:
			return n, err
		}
	}
}

// collect reads the supervisors' reports and forwards them in batches.
func (h *helper) collect(p reportPipe) error {
	buf := make([]byte, 64<<10)
	have := 0
	for {
		n, err := p.read(buf[have:], h.learnGroups)
		if err != nil {
			return fmt.Errorf("spool: reading reports: %w", err)
		}
		if h.isSuperseded() {
			return errSuperseded // the next helper finds out what these reports say
		}
		have += n
		end := bytes.LastIndexByte(buf[:have], '\n') + 1
		if end == 0 && have == len(buf) {
			end = have // too long for a report; it is discarded with an error
		}
		gather := h.handleReports(buf[:end])
		have = copy(buf, buf[end:have])
		if gather > 0 {
			time.Sleep(gather)
		}
	}
}

// handleReports handles complete lines and sends the resulting messages. It returns how long to
// wait before the next reading.
func (h *helper) handleReports(lines []byte) time.Duration {
	b := &batch{}
	var reports []report
	over := map[jobs.AttemptID]bool{}
	for line := range bytes.Lines(lines) {
		r, err := parseReport(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			b.other = append(b.other, &hosts.Trouble{Text: err.Error()})
			continue
		}
		if r.Kind == repExited {
			over[r.Attempt] = true
		}
		reports = append(reports, r)
	}
	h.mu.Lock()
	for i := range reports {
		// Omit a start whose exit was read, too.
		if r := &reports[i]; r.Kind != repStarted || !over[r.Attempt] {
			h.handleReportLocked(r, b)
		}
	}
	if len(h.waiting) > 0 && len(h.supervisors) < h.limit {
		h.startSupervisorsLocked() // an earlier helper's supervisor may have freed its slot
	}
	h.wakePipe.send()
	gather := h.gatherLocked()
	h.mu.Unlock()
	h.learnGroups()
	h.outbox.send(b.messages()...)
	h.answerProbe(b.toExamine)
	return gather
}

// batch gathers the contents of reports into few messages.
type batch struct {
	started   []hosts.StartedJob
	exits     []hosts.ExitedJob
	lapsed    []jobs.AttemptID
	other     []hosts.Message
	toExamine []jobs.AttemptID
}

func (h *helper) handleReportLocked(r *report, b *batch) {
	id := r.Attempt
	switch r.Kind {
	case repStarted:
		delete(h.waiting, id)
		// Only the number of the group is known; learnGroups adds its leader.
		group := pgroup{id: r.Job, since: r.By.Start}
		if old := h.running[id]; old != nil {
			old.holder, old.group, old.claimed, old.takenAt = r.By, group, true, r.At
		} else {
			h.running[id] = &heldAttempt{holder: r.By, group: group, claimed: true, takenAt: r.At,
				ended: make(chan struct{})}
		}
		h.started = append(h.started, newStart{id, uptime()})
		b.started = append(b.started, hosts.StartedJob{Attempt: id, Slot: r.By.Slot, At: r.At})
	case repExited:
		h.removeEndedLocked(id)
		h.reuseLocked(id)
		b.exits = append(b.exits, hosts.ExitedJob{Attempt: id, Slot: r.By.Slot, Outcome: r.Outcome})
	case repLapsed:
		h.removeEndedLocked(id)
		b.lapsed = append(b.lapsed, id)
	case repRefused:
		h.removeEndedLocked(id)
		if h.open.Sends { // a job may have changed files that every job gets
			go h.requestSharedFiles()
		}
		h.gpus.whole = union(h.gpus.whole, r.GPUs) // until the next watchGPUs
		b.other = append(b.other, &hosts.Refused{Attempts: []jobs.AttemptID{id}, Why: r.Why, GPUs: r.GPUs,
			Limit: r.Limit, Slots: len(h.running)})
	case repKnown:
		delete(h.waiting, id)
		b.toExamine = append(b.toExamine, id)
	case repReturned:
		if h.readyLocked()[id] {
			h.wakePipe.add(id)
		}
	case repTrouble:
		b.other = append(b.other, &hosts.Trouble{Attempt: id, Text: r.Why})
	}
}

// newStart is a reported start whose process group has not been looked at.
type newStart struct {
	id         jobs.AttemptID
	reportedAt time.Duration // boot clock
}

// groupDelay is the time from the report of a start to the look at the process group of the
// job. Short jobs therefore cost nothing. If the shell has ended by then, there is less
// evidence of what belongs to the group.
const groupDelay = 100 * time.Millisecond

// learnGroups looks at the process groups of jobs that started at least groupDelay ago. It
// returns after what time to call it again (0: never).
func (h *helper) learnGroups() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	for now := uptime(); len(h.started) > 0; h.started = h.started[1:] {
		s := h.started[0]
		if wait := s.reportedAt + groupDelay - now; wait > 0 {
			return wait
		}
		if r := h.running[s.id]; r != nil && r.group.leader == 0 {
			r.group = groupOf(r.group.id, r.holder)
		}
	}
	h.started = nil
	return 0
}

// union returns the sorted numbers that are in either list.
func union(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// maxUnused bounds the number of files kept for reuse.
const maxUnused = 1024

// reuseLocked records that a supervisor has put the file of a spec into free/.
func (h *helper) reuseLocked(id jobs.AttemptID) {
	if len(h.unused) < maxUnused {
		h.unused = append(h.unused, id.String())
	}
}

// removeEndedLocked removes an attempt that has ended, and wakes those who wait for that.
func (h *helper) removeEndedLocked(id jobs.AttemptID) {
	delete(h.waiting, id)
	if r := h.running[id]; r != nil {
		delete(h.running, id)
		close(r.ended)
	}
}

// messages returns the messages of a batch.
func (b *batch) messages() []hosts.Message {
	var out []hosts.Message
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

// outbox sends messages in order. Senders do not block. Messages that gather while a write is
// under way are written together by the next one.
type outbox struct {
	w      *wire.Writer
	broken chan error // receives the first error

	mu         sync.Mutex
	cond       *sync.Cond
	queue      []hosts.Message
	heartbeats int  // heartbeats in the queue; only one is queued
	writing    bool // a write is under way
	failed     bool
}

func newOutbox(w *wire.Writer) *outbox {
	o := &outbox{w: w, broken: make(chan error, 1)}
	o.cond = sync.NewCond(&o.mu)
	go o.run()
	return o
}

func (o *outbox) send(msgs ...hosts.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range msgs {
		if _, ok := m.(*hosts.Heartbeat); ok {
			if o.heartbeats > 0 {
				continue
			}
			o.heartbeats++
		}
		o.queue = append(o.queue, m)
	}
	o.cond.Broadcast()
}

func (o *outbox) run() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.queue) == 0 {
			o.cond.Wait()
		}
		msgs := o.queue
		o.queue, o.heartbeats, o.writing = nil, 0, true
		o.mu.Unlock()
		err := o.w.Write(msgs...)
		o.mu.Lock()
		o.writing = false
		if err != nil {
			o.failed, o.queue = true, nil
			o.broken <- err
			o.cond.Broadcast()
			return
		}
		o.cond.Broadcast()
	}
}

// flushTimeout bounds the wait for a stuck link when a helper ends.
const flushTimeout = 5 * time.Second

// flush waits until everything is written or the link has failed, at most flushTimeout.
func (o *outbox) flush() {
	late := false
	timer := time.AfterFunc(flushTimeout, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		late = true
		o.cond.Broadcast()
	})
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !late && !o.failed && (len(o.queue) > 0 || o.writing) {
		o.cond.Wait()
	}
}
