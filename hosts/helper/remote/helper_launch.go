//go:build linux

package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// launch writes a batch of specs into the spool, or refuses it.
func (h *helper) launch(m *hosts.Launch) {
	ids := make([]jobs.AttemptID, len(m.Jobs))
	for i := range m.Jobs {
		ids[i] = m.Jobs[i].Attempt
	}
	now := uptime()
	switch {
	case h.isFenced(m.Epoch, ids):
		return
	case now > m.ExpireUptime:
		h.refuseLate(ids, now-m.ExpireUptime)
		return
	case h.isSuperseded():
		h.outbox.send(&hosts.Refused{Attempts: ids, Why: "another helper has taken over on this host"})
		return
	}
	if h.unready != nil && !h.retryReady(ids) {
		return
	}
	h.reservePack()
	h.extendLease(m.ExpireUptime)
	refused, held := h.spoolSpecs(m)
	for _, m := range refused {
		h.outbox.send(m)
	}
	h.answerProbe(held)
}

// retryReady reports whether launches may be accepted from now on. If not, it refuses these attempts.
func (h *helper) retryReady(ids []jobs.AttemptID) bool {
	if !h.control.private {
		var by int
		by, h.unready = h.makeReady()
		if by != 0 {
			h.fencedBy.Store(int64(by))
			h.refuseFenced(ids, by)
			return false
		}
	}
	if h.unready != nil {
		h.sendRefused(ids, h.unready.Error())
	}
	return h.unready == nil
}

// spoolSpecs writes the specs of a launch into the spool. It returns those that it could not write, and
// those that were here already.
func (h *helper) spoolSpecs(m *hosts.Launch) (refused refusals, held []jobs.AttemptID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var buf []byte
	for i := range m.Jobs {
		job := &m.Jobs[i]
		if job.Attempt.Job < 1 || job.Attempt.N < 1 {
			refused.add(job.Attempt, fmt.Sprintf("%s is not an attempt", job.Attempt))
			continue
		}
		if h.holdsLocked(job.Attempt) {
			held = append(held, job.Attempt)
			continue
		}
		if job.Files != nil {
			if err := h.openFilesLocked(); err != nil {
				refused.add(job.Attempt, fmt.Sprintf("the directory %s for the files of jobs cannot be used: %v",
					h.files.store.Dir, err))
				continue
			}
		}
		buf = appendSpec(buf[:0], job)
		if err := h.spoolSpec(job.Attempt, buf); err != nil && h.removeSpec(job.Attempt) {
			refused.add(job.Attempt, fmt.Sprintf("the spool %s could not take it: %v", h.spool.dir, err))
			continue
		}
		h.waiting[job.Attempt] = true
		if !h.holdLocked(job) {
			h.wakePipe.add(job.Attempt)
		}
		// Wake supervisors early, so that the first jobs start while the rest is written.
		if i < 4 || i%16 == 15 {
			h.startSupervisorsLocked()
			h.wakePipe.send()
		}
	}
	h.startSupervisorsLocked()
	h.wakePipe.send()
	return refused, held
}

// refusals collects the refused attempts of a launch, in one message per reason.
type refusals []*hosts.Refused

func (r *refusals) add(id jobs.AttemptID, why string) {
	for _, m := range *r {
		if m.Why == why {
			m.Attempts = append(m.Attempts, id)
			return
		}
	}
	*r = append(*r, &hosts.Refused{Attempts: []jobs.AttemptID{id}, Why: why})
}

// refuseLate refuses a launch that came too late. For attempts that an earlier copy of the launch
// contained, it reports their state instead.
func (h *helper) refuseLate(ids []jobs.AttemptID, late time.Duration) {
	var held, refused []jobs.AttemptID
	h.mu.Lock()
	for _, id := range ids {
		if h.holdsLocked(id) {
			held = append(held, id)
		} else {
			refused = append(refused, id)
		}
	}
	h.mu.Unlock()
	h.sendRefused(refused, fmt.Sprintf("the launch came %v too late", late))
	h.answerProbe(held)
}

// holdsLocked reports whether an attempt waits or is held by a supervisor here.
func (h *helper) holdsLocked(id jobs.AttemptID) bool { return h.waiting[id] || h.running[id] != nil }

// knownLocked returns the state of an attempt that waits or runs here. ok is false for all others, and
// for one that a supervisor has taken and may still refuse.
func (h *helper) knownLocked(id jobs.AttemptID) (p hosts.ProbedJob, ok bool) {
	r := h.running[id]
	switch {
	case r != nil && r.claimed:
		return hosts.ProbedJob{Attempt: id, Answer: hosts.IsRunning, Slot: r.holder.Slot, Started: r.takenAt}, true
	case r == nil && h.waiting[id]:
		return hosts.ProbedJob{Attempt: id, Answer: hosts.Buffered}, true
	}
	return p, false
}

// spoolSpec writes a spec. It reuses a file if there is one, because creating files is the
// most expensive step, especially on ext4 after deletions. A new file gets its final name at
// once: nobody opens it before the token is sent, and the checksum detects a torn one.
func (h *helper) spoolSpec(id jobs.AttemptID, b []byte) error {
	name := specName(h.generation, id)
	for len(h.unused) > 0 {
		old := h.unused[len(h.unused)-1]
		h.unused = h.unused[:len(h.unused)-1]
		fd, err := openat(h.free, old, unix.O_WRONLY, 0)
		if err != nil {
			continue
		}
		if writeAndClose(fd, old, b) == nil && renameat(h.free, old, h.in, name) == nil {
			return nil
		}
	}
	fd, err := openat(h.in, name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return writeAndClose(fd, name, b)
}

// removeSpec removes a spec that could not be written. It returns false if the spec may still
// exist; then the supervisor that takes it decides.
func (h *helper) removeSpec(id jobs.AttemptID) bool {
	err := retryUnlessMissing(func() error { return unlinkat(h.in, specName(h.generation, id), 0) })
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// takeBackLocked removes a waiting spec. It returns true if the attempt will never start.
func (h *helper) takeBackLocked(id jobs.AttemptID) bool {
	if !h.waiting[id] || unlinkat(h.in, specName(h.generation, id), 0) != nil {
		return false
	}
	delete(h.waiting, id)
	return true
}

// takeBackAll withdraws everything that waits, and reports that.
func (h *helper) takeBackAll(why string) {
	h.mu.Lock()
	gone := h.takeAllBackLocked()
	h.mu.Unlock()
	h.sendWithdrawn(gone, why)
}

// takeAllBackLocked removes all waiting specs and returns those that will never start.
func (h *helper) takeAllBackLocked() (gone []jobs.AttemptID) {
	for id := range h.waiting {
		if h.takeBackLocked(id) {
			gone = append(gone, id)
		}
	}
	slices.SortFunc(gone, jobs.AttemptID.Compare)
	return gone
}

// whyLapsed is the reason for attempts whose lease ran out.
const whyLapsed = "its lease ran out before a slot was free"

// extendLease extends the lease of what waits. It first withdraws what has lapsed, because the
// dispatcher may have queued that elsewhere.
func (h *helper) extendLease(to time.Duration) {
	if h.isSuperseded() {
		return
	}
	if uptime() > h.control.lease() {
		h.takeBackAll(whyLapsed)
	}
	h.control.raiseLease(to)
}

// withdraw takes waiting attempts back. For the others it reports their state.
func (h *helper) withdraw(m *hosts.Withdraw) {
	if h.isFenced(m.Epoch, m.Attempts) {
		return
	}
	var gone, rest []jobs.AttemptID
	h.mu.Lock()
	for _, id := range m.Attempts {
		if h.takeBackLocked(id) {
			gone = append(gone, id)
		} else {
			delete(h.waiting, id) // taken: it runs or has run
			rest = append(rest, id)
		}
	}
	h.mu.Unlock()
	h.sendWithdrawn(gone, "withdrawn")
	h.answerProbe(rest)
}

// setLimit changes how many slots may be busy.
func (h *helper) setLimit(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limit = min(max(0, n), maxSlots)
	if !h.isSuperseded() {
		h.control.word(ctlLimit).Store(int64(h.limit))
		h.control.word(ctlAllowed).Store(int64(h.limit) + 1)
	}
	h.startSupervisorsLocked()
	h.wakePipe.send()
}
