package sched

import (
	"slices"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/dispatch/sched/forecast"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// inFlight is an open attempt, with the data of the core that is not in the table.
type inFlight struct {
	id                     jobs.AttemptID
	host                   *host
	prevOnHost, nextOnHost *inFlight // in the list of the host, in the order of launching
	spec                   *jobs.Spec
	stats                  *queueStats
	kind                   blame.Kinds

	slots int
	mem   int64
	gpus  []int
	// Number of devices if gpus is incomplete, because the attempt was taken over.
	wantGPUs jobs.GPUs

	launchedAt   time.Duration // Time.Mono
	startedAt    time.Duration // Time.Mono; only if started
	started      bool
	isAlive      bool // its host has reported to this dispatcher that it has it
	isSecond     bool // it was found running without a record, and its job has another one (reconcile.go)
	sentOverLink bool // it was sent over the present link of its host
	withdrawn    bool // it must not start, and no Withdraw has been answered yet
	killed       bool // a Kill has not been answered yet
	warned       bool // the warning signal was sent
	runElsewhere bool // it was killed only so that it runs elsewhere
	hasOutcome   bool // its outcome is being recorded
	provedDead   bool // the host has shown that it has ended
	// A person asked to queue its job again while its host was silent. This dispatcher gives it up
	// as soon as it cannot start any more (lost.go).
	abandoned bool

	runTime, cpuTime time.Duration // reported by its host at its end; 0: not known
	// CPU seconds charged beyond the time of its slots while it runs (charge.go).
	excessCharge     float64
	earlierRunTime   time.Duration // time that it ran before startedAt, under an earlier dispatcher
	suspendedAtStart time.Duration // host.suspended when it started; 0 if it was taken over
	isStraggler      bool
	progress         progress
}

// attempts are the attempts that may be alive.
type attempts struct {
	// Every open attempt; the order is in each host's list.
	inFlight map[jobs.AttemptID]*inFlight
	// Attempts given up as lost and not reported since; see host.orphans.
	orphaned     map[jobs.AttemptID]bool
	orphanCharge map[jobs.AttemptID]float64 // their charges by this dispatcher (charge.go)
	// Lost attempts that came back, were reported, and are being ended.
	toKill map[jobs.AttemptID]bool
	// Lost attempts of unfinished jobs that their host knew when it came back (lost.go).
	stillRunning map[jobs.AttemptID]bool
}

// hostAttempts are the in-flight attempts of a host.
type hostAttempts struct {
	oldest, newest *inFlight // in the order of launching
	numOpen        int       // number of attempts
	occupiedSlots  int       // slots of all open attempts
	runningSlots   int       // slots of those known to have started
	numSpecial     int       // number of attempts that are not plain
	numUnknownGPUs int       // number of attempts whose devices are not known
	mem            int64
}

// isPlain reports whether the attempt may be buffered: it takes one slot and nothing else.
func (f *inFlight) isPlain() bool { return f.slots == 1 && f.mem == 0 && f.wantGPUs == 0 }

// isWaiting reports whether the attempt was sent to a host, is not known to have started, and is
// still needed.
func (f *inFlight) isWaiting() bool { return !f.started && !f.withdrawn && !f.killed && !f.hasOutcome }

// track adds an open attempt. The caller calls host.addUse when the attempt is complete.
func (c *Core) track(h *host, id jobs.AttemptID, s *jobs.Spec) *inFlight {
	f := &inFlight{id: id, host: h, spec: s, slots: s.SlotCount(), mem: c.memoryRequest(c.table.Job(id.Job)),
		wantGPUs: s.GPUs, launchedAt: c.now.Mono,
		stats: c.statsOf(s), kind: c.kinds.KindOf(s)}
	c.inFlight[id] = f
	f.prevOnHost = h.newest
	if f.prevOnHost != nil {
		f.prevOnHost.nextOnHost = f
	} else {
		h.oldest = f
	}
	h.newest = f
	h.numOpen++
	h.touch()
	c.addPoolUse(f, 1)
	f.stats.share.Send(f.slots)
	return f
}

// untrack removes an attempt that is not open any more.
func (c *Core) untrack(f *inFlight) {
	h := f.host
	delete(c.inFlight, f.id)
	if f.prevOnHost != nil {
		f.prevOnHost.nextOnHost = f.nextOnHost
	} else {
		h.oldest = f.nextOnHost
	}
	if f.nextOnHost != nil {
		f.nextOnHost.prevOnHost = f.prevOnHost
	} else {
		h.newest = f.prevOnHost
	}
	h.numOpen--
	c.addPoolUse(f, -1)
	c.chargeEnded(f)
	if f.isStraggler {
		c.numStragglers.Add(f.kind, -1)
	}
	h.addUse(f, -1)
}

// addUse adds an attempt to the sums of its host. n is 1 to add it, or -1 to remove
// it.
func (h *host) addUse(f *inFlight, n int) {
	h.touch()
	h.occupiedSlots += n * f.slots
	h.mem += int64(n) * f.mem
	if f.started {
		h.runningSlots += n * f.slots
	}
	if !f.isPlain() {
		h.numSpecial += n
	}
	if f.wantGPUs.Devices() > len(f.gpus) {
		h.numUnknownGPUs += n
	}
	for _, g := range f.gpus {
		h.gpu(g).ours += jobs.GPUs(n) * f.wantGPUs.Share()
	}
}

// numInFlight returns how many attempts of the host meet a condition.
func (h *host) numInFlight(condition func(*inFlight) bool) (n int) {
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if condition(f) {
			n++
		}
	}
	return n
}

// markStarted records that an attempt has started.
func (c *Core) markStarted(f *inFlight) {
	f.withdrawn = false // the withdrawal came too late
	if !f.started {
		c.chargeStarted(f, 0)
		f.started, f.startedAt, f.suspendedAtStart = true, c.now.Mono, f.host.suspendedTime(c.now.Mono)
		f.host.runningSlots += f.slots
		f.host.touch()
		if c.endedRunning { // the withdrawal came too late
			c.endAttempt(f, haltReason)
		}
	}
}

// hasOtherOpen reports whether an attempt of the job other than the nth may be alive.
func hasOtherOpen(j *jobs.Job, n int) bool {
	return slices.ContainsFunc(j.Attempts, func(a *jobs.Attempt) bool { return a.State.Open() && a.ID.N != n })
}

// launch records an attempt, and sends it to the host at the end of the Step.
func (c *Core) launch(id jobs.ID, h *host) {
	j := c.table.Job(id)
	a := jobs.AttemptID{Job: id, N: c.nextNumber(j)}
	c.numLaunched++
	c.emit(jobs.Record{Kind: jobs.KindLaunching, Job: id, N: a.N, Host: h.spec.Name})
	f := c.track(h, a, j.Spec)
	h.outbox.urgent = h.outbox.urgent || h.freeSlots() > 0
	f.gpus, f.sentOverLink = h.takeGPUs(f.wantGPUs), h.linked
	h.addUse(f, 1)
	earlierRuns := numAttempts(j, func(a *jobs.Attempt) bool { return a != j.Last() && !a.NeverRan() })
	h.outbox.launch = append(h.outbox.launch, LaunchItem{Attempt: a, Spec: j.Spec, Mem: f.mem, GPUs: f.gpus,
		Timeout: grownLimit(c.timeout(j.Spec), c.cfg.TimeoutGrowth, j), Restart: earlierRuns})
}

// numAttempts returns how many attempts of this round meet a condition.
func numAttempts(j *jobs.Job, condition func(*jobs.Attempt) bool) (n int) {
	for _, a := range j.Attempts {
		if a.Round == j.Round && condition(a) {
			n++
		}
	}
	return n
}

// progress is the latest progress that a running job reported.
type progress struct {
	text      string
	doneShare float64       // finished share of the work; 0: not known
	age       time.Duration // of the attempt when the text last changed
	at        time.Duration // Time.Mono when the text last changed
}

// handleProgress stores the progress that a heartbeat contains.
func (h *host) handleProgress(b *hosts.Heartbeat, now time.Duration) {
	if len(b.Progress) == 0 {
		return
	}
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if !f.started {
			continue
		}
		if text, ok := b.Progress[f.id.String()]; ok && text != f.progress.text {
			share, _ := jobs.ReadProgress(text)
			f.progress = progress{text, max(0, share), f.age(now), now}
		}
	}
}

// remaining returns the distribution of the remaining run time of a job that has run for age.
func (p *progress) remaining(age time.Duration) (d forecast.Distribution, ok bool) {
	return forecast.OfProgress(p.doneShare, p.age.Seconds(), age.Seconds())
}

// handleLateOutcome handles the outcome of an attempt that was given up as lost and comes back, because
// its host was only unreachable. It counts if the job has no result in this round yet.
func (c *Core) handleLateOutcome(a *jobs.Attempt, slot int, o *jobs.Outcome) {
	news := c.orphaned[a.ID]
	j := c.table.Job(a.ID.Job)
	c.chargeLateOutcome(a, j, o)
	c.settleOrphan(a.ID)
	if why := c.whyNotCounted(j, a, o); why != "" {
		if news {
			c.logf(a.Host, a.ID.Job, "%s, given up as lost, has ended on %s; it does not count: its job %s",
				a.ID, a.Host, why)
		}
		return
	}
	r := jobs.Record{Kind: jobs.KindExited, Job: a.ID.Job, N: a.ID.N, Host: a.Host, Slot: slot, Outcome: o}
	if o.OK() {
		r.Next = jobs.Succeeded
	} else {
		c.completeFailure(&r, j, c.hostOf(a.Host, a.Machine))
	}
	c.recordEnd(r, c.hostOf(a.Host, a.Machine), o)
}

// whyNotCounted explains why the outcome of a lost attempt does not count, as a continuation of
// "its job". It returns "" if it counts.
func (c *Core) whyNotCounted(j *jobs.Job, a *jobs.Attempt, o *jobs.Outcome) string {
	switch {
	case j.State.Terminal():
		return j.State.Clause() + " already"
	case a.Round != j.Round:
		return "was requeued or changed since"
	case o.Stopped:
		return "has another attempt, and this one was stopped"
	case !o.OK() && c.isCancelPending(a.ID.Job):
		return "is being canceled"
	}
	return ""
}

// stopReturned stops an attempt that came back and is not needed, and reports that once.
func (c *Core) stopReturned(h *host, a *jobs.Attempt, why string) {
	h.kill(a.ID, why)
	if !c.toKill[a.ID] {
		c.toKill[a.ID] = true
		c.logf(a.Host, a.ID.Job, "%s is still alive on %s and is stopped: %s", a.ID, a.Host, why)
	}
}

// handleReturned handles an attempt that runs although it is not open. It keeps the attempt or
// stops it, whichever wastes less.
func (c *Core) handleReturned(a *jobs.Attempt, slot int, at jobs.Stamp) {
	h := c.byName[a.Host]
	if h == nil {
		return
	}
	j := c.table.Job(a.ID.Job)
	switch {
	case a.State == jobs.AttemptExited || a.State == jobs.AttemptCanceled || a.Outcome != nil:
		return // an outdated message
	case a.State != jobs.AttemptLost || j.State.Terminal() || a.Round != j.Round || c.isCancelPending(a.ID.Job):
		c.stopReturned(h, a, "its job has a result or another attempt")
		return
	}
	at = c.startTime(at)
	if !c.endShorterAttempts(a.ID, j, at) {
		c.stopReturned(h, a, "a newer attempt has run longer")
		return
	}
	was := c.orphanCharge[a.ID]
	c.settleOrphan(a.ID)
	if c.emit(jobs.Record{Kind: jobs.KindRunning, Job: a.ID.Job, N: a.ID.N, Host: a.Host, Slot: slot, Started: at,
		Reason: "it had been given up as lost"}) {
		f := c.track(h, a.ID, j.Spec)
		f.started, f.startedAt, f.earlierRunTime = true, c.now.Mono, c.ranBefore(a)
		c.chargeStarted(f, f.earlierRunTime)
		f.stats.share.Charge(c.now.Mono, -was) // until it was given up
		h.addUse(f, 1)
	}
}

// endShorterAttempts ends the other attempts of a job if one that came back has run for longer than
// all of them. It reports whether it did.
func (c *Core) endShorterAttempts(id jobs.AttemptID, j *jobs.Job, at jobs.Stamp) bool {
	for _, o := range j.Attempts {
		f := c.inFlight[o.ID]
		if f == nil || !o.State.Open() || o.ID == id {
			continue
		}
		if f.started && o.Started <= at {
			return false
		}
		c.killAttempt(f, "an earlier attempt came back that has run longer")
	}
	return true
}

// settleOrphan forgets a lost attempt whose fate is now known.
func (c *Core) settleOrphan(id jobs.AttemptID) {
	delete(c.toKill, id)
	if !c.orphaned[id] {
		return
	}
	c.removeFromQueue(id.Job) // its host may get the job again, which changes its class
	delete(c.orphaned, id)
	delete(c.orphanCharge, id)
	a := c.table.Attempt(id)
	if h := c.hostWith(a.Host, a.Machine); h != nil {
		h.orphans = slices.DeleteFunc(h.orphans, func(o jobs.AttemptID) bool { return o == id })
		h.touch()
	}
	c.enqueue(id.Job)
}
