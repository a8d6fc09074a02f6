package sim

import (
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// The supervisors: they take specs from the spool, claim, start, wait, and seal.

// fill starts the jobs that the limit and the lease allow. After a reboot there are no supervisors
// until a helper has connected.
func (h *host) fill() {
	if h.spoolBoot != h.boot {
		return
	}
	for len(h.spool) > 0 && h.hasSpace(h.spool[0].spec.SlotCount()) &&
		h.numBusy()+h.spool[0].spec.SlotCount() <= h.limit {
		s := h.spool[0]
		h.spool = h.spool[1:]
		if h.uptime() > h.lease {
			h.reportLapsed(s.id)
			continue
		}
		r := &heldAttempt{h: h, spooled: s, slot: 1 + len(h.heldAttempts), boot: h.boot, lease: h.lease,
			supervisorLives: true}
		h.heldAttempts = append(h.heldAttempts, r)
		h.w.checkShared(h, true)
		h.prepare(r)
	}
}

func (h *host) reportLapsed(id jobs.AttemptID) {
	h.sendReport(func(p *helper) {
		p.forgetEnded(id)
		p.reportWithdrawn(leaseOverReason, id)
	})
}

// isAlive reports whether the supervisor of a run lives and the host was not rebooted since.
func (r *heldAttempt) isAlive() bool { return r.supervisorLives && r.boot == r.h.boot }

// prepare makes the claim. A file system that hangs delays it.
func (h *host) prepare(r *heldAttempt) {
	w := h.w
	if !r.isAlive() {
		return
	}
	if !h.isAnswering() {
		w.after(h.hungUntil-w.now+w.between(0, time.Second), func() { h.prepare(r) })
		return
	}
	if w.now < h.sentinelsFailUntil {
		h.dropHeld(r)
		h.reportRefused(r.spooled.id, "making the claim: no space left on device")
		return
	}
	if taken := h.lockGPUs(r); len(taken) > 0 {
		h.replaceByTombstone(r.spooled.id)
		h.dropHeld(r)
		h.reportRefused(r.spooled.id, "its GPU is in use", taken...)
		return
	}
	if err := h.claim(r.spooled.id, false); err != nil {
		h.dropHeld(r)
		w.logf("%s does not claim %s: %v", h.name, r.spooled.id, err)
		h.sendReport(func(p *helper) {
			p.waiting.del(r.spooled.id)
			p.answer([]jobs.AttemptID{r.spooled.id})
		})
		return
	}
	r.claimed, r.started = true, h.stamp() // an upper bound for reports before the start
	if w.oneInWhileFaults(15) {            // it may hang between the claim and the start
		w.after(w.between(0, 20*time.Second), func() { h.begin(r) })
		return
	}
	h.begin(r)
}

// reportRefused reports that a supervisor does not start an attempt, because of devices if there
// are any.
func (h *host) reportRefused(id jobs.AttemptID, why string, gpus ...int) {
	h.sendReport(func(p *helper) {
		p.forgetEnded(id)
		p.sendEvent(sched.HostRefused{Host: h.name,
			Msg: &hosts.Refused{Attempts: []jobs.AttemptID{id}, Why: why, GPUs: gpus}})
	})
}

// begin starts the process, unless the lease has run out since the claim.
func (h *host) begin(r *heldAttempt) {
	w := h.w
	if !r.isAlive() {
		return
	}
	if h.uptime() > r.lease {
		h.replaceByTombstone(r.spooled.id)
		h.dropHeld(r)
		h.reportLapsed(r.spooled.id)
		h.fill()
		return
	}
	r.processLives, r.started = true, h.stamp()
	w.truth.recordStart(w, r)
	h.writeHeartbeatFile()
	h.sendReport(func(p *helper) {
		p.waiting.del(r.spooled.id)
		p.running.add(r.spooled.id)
		p.sendEvent(sched.AttemptsStarted{Host: h.name, Msg: &hosts.Started{
			Jobs: []hosts.StartedJob{{Attempt: r.spooled.id, Slot: r.slot, At: r.started}}}})
	})
	d, o := h.chooseFate(r)
	h.ranFor(d, func() {
		if r.processLives && r.boot == h.boot && !r.isStopping {
			h.endProcess(r, o)
		}
	})
}

// chooseFate chooses how long a job runs and how it ends.
func (h *host) chooseFate(r *heldAttempt) (time.Duration, *jobs.Outcome) {
	w := h.w
	if w.blame != nil {
		return w.blame.fate(w, h, r.spooled.spec)
	}
	d := w.between(0, w.size.runTimes[0])
	switch w.choices.Draw(8) {
	case 1, 2:
		d = w.between(0, w.size.runTimes[1])
	case 3:
		d = w.between(0, w.size.runTimes[2])
	}
	o := &jobs.Outcome{}
	switch {
	case w.now < h.failsFastUntil:
		d, o.Exit = w.between(0, 50*time.Millisecond), 127
	case w.choices.OneIn(7):
		o.Exit = 1 + w.choices.Draw(2)
	case w.choices.OneIn(25):
		o.Signal = "SIGSEGV"
	}
	if t := r.spooled.timeout; t > 0 && d > t {
		d = t
		*o = jobs.Outcome{TimedOut: true, Signal: "SIGTERM"}
	}
	return d, o
}

// endProcess ends a job's process with an outcome.
func (h *host) endProcess(r *heldAttempt, o *jobs.Outcome) {
	o.Started, o.Ended = r.started, max(r.started, h.stamp())
	r.outcome = o
	r.die()
	if r.supervisorLives {
		h.w.truth.recordSeenOutcome(r)
		h.recordEnd(r)
	}
}

// die ends the process, whether or not a supervisor notices.
func (r *heldAttempt) die() {
	if r.processLives {
		r.processLives = false
		r.h.w.truth.recordDeath(r)
	}
}

// recordEnd writes the sentinel, releases the spec, and reports the exit.
func (h *host) recordEnd(r *heldAttempt) {
	w := h.w
	if !r.isAlive() {
		return
	}
	if !h.isAnswering() {
		w.after(h.hungUntil-w.now+w.between(0, time.Second), func() { h.recordEnd(r) })
		return
	}
	switch {
	case w.now >= h.sentinelsFailUntil:
		h.writeSentinel(r)
	case w.now >= h.fullUntil:
		finished := h.token(r.spooled.id, false).EncodeFinished(r.slot, *r.outcome)
		h.keptFiles = append(h.keptFiles, keptFile{r.spooled.id, finished})
		w.after(h.sentinelsFailUntil-w.now, h.placeKeptFiles)
	default: // both disks fail: the helper may still pass the outcome on
		h.reportExit(r)
		w.after(w.between(time.Second, 5*time.Second), func() { h.recordEnd(r) })
		return
	}
	h.dropHeld(r)
	h.reportExit(r)
	h.fill()
}

func (h *host) reportExit(r *heldAttempt) {
	h.sendReport(func(p *helper) {
		p.forgetEnded(r.spooled.id)
		p.sendEvent(sched.AttemptsEnded{Host: h.name, Msg: &hosts.Exits{
			Jobs: []hosts.ExitedJob{{Attempt: r.spooled.id, Slot: r.slot, Outcome: *r.outcome}}}})
	})
}

// The files of attempts. Their format is the real one.

func (h *host) token(id jobs.AttemptID, tombstone bool) *attempts.Claim {
	return &attempts.Claim{Tombstone: tombstone, Run: runUID, Attempt: id, Host: h.name, By: "1.1.1",
		Boot: h.bootID(), At: h.stamp()}
}

// claim creates the status file of an attempt. It contains the claim or a tombstone, and the bytes
// that are reserved for the outcome. The error is fs.ErrExist if the file exists.
func (h *host) claim(id jobs.AttemptID, tombstone bool) error {
	f, err := h.disk.OpenFile(jobs.AttemptFile(h.dir, id, jobs.FileStatus), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return h.writeTo(f, h.token(id, tombstone).Encode(), 0)
}

// writeTo writes b at off and closes f.
func (h *host) writeTo(f rundir.File, b []byte, off int64) error {
	_, err := f.WriteAt(b, off)
	if err == nil && h.shared {
		err = f.Sync() // on a local disk it may be lost with the power; then nothing is known
	}
	return errors.Join(err, f.Close())
}

// replaceByTombstone replaces the host's own claim with a tombstone.
func (h *host) replaceByTombstone(id jobs.AttemptID) {
	if f, err := h.disk.OpenFile(jobs.AttemptFile(h.dir, id, jobs.FileStatus), os.O_WRONLY, 0); err == nil {
		_ = h.writeTo(f, h.token(id, true).Encode(), 0)
	}
}

// writeSentinel fills the reserved bytes of a status file.
func (h *host) writeSentinel(r *heldAttempt) {
	sentinel := h.token(r.spooled.id, false).Sentinel(r.slot, *r.outcome)
	h.writeStatus(r.spooled.id, os.O_WRONLY, sentinel, attempts.SentinelAt)
}

func (h *host) writeStatus(id jobs.AttemptID, flag int, b []byte, off int64) {
	f, err := h.disk.OpenFile(jobs.AttemptFile(h.dir, id, jobs.FileStatus), flag, 0o600)
	if err == nil {
		err = h.writeTo(f, b, off)
	}
	if err != nil {
		panic(err) // the simulated disk fails only where the world makes it fail
	}
}

// placeKeptFiles moves the status files that wait in the spool to the attempts directory.
func (h *host) placeKeptFiles() {
	if h.w.now < h.sentinelsFailUntil || !h.isAnswering() {
		return
	}
	for _, d := range h.keptFiles {
		h.writeStatus(d.id, os.O_WRONLY|os.O_CREATE, d.status, 0)
	}
	h.keptFiles = nil
}

// readFate returns the state of an attempt according to its status file in the attempts directory
// or in the spool.
func (h *host) readFate(id jobs.AttemptID) (f attempts.Fate, err error) {
	b, err := rundir.ReadFile(rundir.WithPacks(h.disk), jobs.AttemptFile(h.dir, id, jobs.FileStatus))
	f.Attempt = id
	if err == nil {
		f = attempts.Decode(b, runUID, id)
	}
	for _, d := range h.keptFiles {
		if d.id == id && f.State != attempts.Finished {
			f, err = attempts.Decode(d.status, runUID, id), nil
		}
	}
	return f, err
}

// tombstone creates the status file of an attempt, which can then never start, and returns its
// content.
func (h *host) tombstone(id jobs.AttemptID) attempts.Fate {
	if err := h.claim(id, true); err != nil {
		return attempts.Fate{Attempt: id, State: attempts.Unreadable}
	}
	f, _ := h.readFate(id)
	return f
}

// hasClaim reports whether the host has made a claim or a tombstone. It does not make one.
func (h *host) hasClaim(id jobs.AttemptID) bool {
	f, err := h.readFate(id)
	return err == nil && f.Claim.Host == h.name
}

// writeHeartbeatFile writes the heartbeat file. Supervisors do so every 10 s while they run jobs.
func (h *host) writeHeartbeatFile() {
	w := h.w
	if w.now < h.heartbeat+10*time.Second && h.heartbeat > 0 {
		return
	}
	h.heartbeat = w.now
	if h.isAnswering() && w.now >= h.sentinelsFailUntil {
		f, err := h.disk.OpenFile(attempts.HeartbeatFile(h.dir, h.name), os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_, _ = f.WriteAt([]byte(strings.Repeat("0", 9)+h.heartbeat.String()+" "+h.bootID()+"\n"), 0)
			f.Close()
		}
	}
	boot := h.boot
	w.after(10*time.Second, func() {
		lives := func(r *heldAttempt) bool { return r.supervisorLives }
		if h.boot == boot && slices.ContainsFunc(h.heldAttempts, lives) {
			h.writeHeartbeatFile()
		}
	})
}
