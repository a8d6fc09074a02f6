package sched

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// lifetime holds the state of the run as a whole, and what ends it.
type lifetime struct {
	hasBegun     bool
	allSubmitted bool   // no more jobs will be submitted
	holders      Holder // reasons of the program to launch nothing
	drain        *Drain // why nothing more is launched; nil: the run does not drain
	stopped      bool
	stopReason   string
	finished     bool
	fenced       bool
	halt         halt.Counter
	wasNearHalt  bool // isNearHalt returned true after the last event
	endedRunning bool // running attempts were ended, as --halt now requires
	// When something was last possible, for Config.GiveUpAfter (see isAnythingPossible).
	lastPossibleAt time.Duration
	// Until when the end waits for the fate of lost attempts; 0: the run does not end yet.
	waitLostUntil time.Duration
}

// finishRun finishes the run when nothing is left to do.
func (c *Core) finishRun() {
	switch {
	case c.fenced:
		c.finishWith(Fenced, "another dispatcher owns the run now")
		return
	case c.finished:
		return
	case c.stopped:
		c.finishWith(Stopped, c.stopReason)
		return
	case len(c.requests) > 0:
		c.lastPossibleAt = c.now.Mono
		return
	}
	left := c.table.Unfinished()
	possible := left == 0 || c.isAnythingPossible()
	if possible {
		c.lastPossibleAt = c.now.Mono
	}
	if c.allSubmitted && left == 0 {
		c.giveUpRedundant()
	}
	if left > 0 {
		c.waitLostUntil = 0
	}
	if left > 0 && c.drain == nil {
		c.provisions.endBy = 0
	}
	isEmpty := len(c.inFlight) == 0 && !c.awaitsUnrecorded()
	switch {
	case c.allSubmitted && left == 0 && isEmpty:
		if c.waitsForLost() || c.waitsForInstances() {
			return
		}
		left := text.Join("; ", c.attemptsLeft(), c.instancesLeft())
		if !c.table.Ended {
			c.emit(jobs.Record{Kind: jobs.KindEnded, Reason: left})
		}
		c.finishWith(AllDone, left)
	case c.drain != nil && isEmpty:
		if !c.waitsForInstances() {
			c.finishWith(c.howDrained(), text.Join("; ", c.drain.Why, c.instancesLeft()))
		}
	case !possible && c.isHopeless():
		c.finishWith(NoHosts, text.Join("; ", c.whyNoHosts(), c.instancesLeft()))
	}
}

// howDrained returns how the run finishes when its drain is over. Results that a person has waited for do
// not make a drain that a person has asked for their success.
func (c *Core) howDrained() Finished {
	if c.drain.Cause == DrainHalted && c.halt.Rule.IsGoalReached(c.table.Judged()) {
		return Reached
	}
	return Drained
}

// waitLostTime is how long the end of a run waits until hosts have reported the fate of lost
// attempts.
const waitLostTime = time.Minute

// waitsForLost reports whether lost attempts may still be alive on hosts that respond, or to which
// the first connection of this dispatcher is being made.
func (c *Core) waitsForLost() bool {
	if c.waitLostUntil == 0 {
		c.waitLostUntil = c.now.Mono + waitLostTime
	}
	return c.now.Mono < c.waitLostUntil && c.anyHost(func(h *host) bool {
		return len(h.orphans) > 0 && (h.linked || h.inherited && h.dialing && h.failures == 0)
	})
}

// IsOutdated reports whether work was added while f waited for the journal. The core returns
// another Finish when that work is done, or at once in a drain.
func (c *Core) IsOutdated(f Finish) bool { return f.How == AllDone && c.table.Unfinished() > 0 }

// finishWith returns a Finish from this Step, unless there was one.
func (c *Core) finishWith(how Finished, why string) {
	if !c.finished {
		c.finished = true
		c.finish = append(c.finish, Finish{How: how, Why: why})
	}
}

// isHopeless reports whether a run in which nothing is possible now is given up: after
// Config.GiveUpAfter, or immediately if every host waits for a person and no attempt is open.
func (c *Core) isHopeless() bool {
	// The set of hosts cannot change.
	hopeless := len(c.hosts) > 0 && len(c.inFlight) == 0 && c.failUnsatisfiableAt == 0 &&
		len(c.provisions.providers) == 0
	for h := range c.everyHost() {
		hopeless = hopeless && (h.state == jobs.HostDisabled && !h.wasUsed || h.ineligible != "")
	}
	return hopeless || c.now.Mono-c.lastPossibleAt >= c.cfg.GiveUpAfter
}

// isAnythingPossible reports whether the unfinished jobs may progress, or wait for something that a
// person or another user has asked for. Without a host that answers, only a pause counts. With one,
// the following count: open attempts, except those that a host has not started although it should;
// jobs that are not ready, because they have a retry timer or wait for other jobs; reasons of the
// run to launch nothing; and hosts that could take a ready job.
func (c *Core) isAnythingPossible() bool {
	if c.table.Paused || c.hasStartingInstance() {
		return true
	}
	c.summarize()
	if c.total.answering == 0 {
		return false
	}
	if c.isLaunchingClosed() {
		return true
	}
	if c.total.progressing > 0 || slices.ContainsFunc(c.absent, (*host).mayProgress) {
		return true
	}
	if c.queue.ready == 0 {
		return len(c.inFlight) == 0 || len(c.queue.timers) > 0
	}
	for _, cl := range c.queue.list {
		if cl.numReady == 0 {
			continue
		}
		c.updateFits(cl)
		for h := range c.everyHost() {
			if cl.fitsOn(h) && h.isAnswering() && !h.removed && !h.retiring && !h.isUnfit() {
				return true
			}
		}
	}
	return false
}

// mayProgress reports whether attempts on the host may progress.
func (h *host) mayProgress() bool {
	return h.numOpen > 0 && (h.runningSlots > 0 || !h.linked || !h.isUnfit())
}

// isUnfit reports whether a host that answers starts no job because of a fault. Quiet hours, the
// load of others, and requests of people are not faults.
func (h *host) isUnfit() bool { return h.hasFaultyHold() || h.probation.refusals > 0 }

func (h *host) hasFaultyHold() bool {
	switch h.hold {
	case jobs.HeldUnleased, jobs.HeldByHungDisk, jobs.HeldByDisk, jobs.HeldByUnknownDisk:
		return true
	}
	return false
}

// whyUnfit describes why the host is unfit, as a continuation of its name. It returns "" if it is not.
func (h *host) whyUnfit() string {
	switch {
	case h.hasFaultyHold():
		return h.whyHeld()
	case h.isUnfit():
		return "starts nothing: " + h.probation.why
	}
	return ""
}

// whyNoHosts describes why nothing was possible. Each reason begins with its host or provider.
func (c *Core) whyNoHosts() string {
	var why []string
	for _, p := range c.provisions.providers {
		if p.problem != "" {
			why = append(why, p.spec.Name+": "+text.WithoutSubject(p.problem, p.spec.Name))
		}
	}
	if len(c.hosts) == 0 && why == nil {
		return "there is no host"
	}
	var clauses []string
	names := map[string][]string{} // of the hosts of each clause
	for h := range c.everyHost() {
		clause := cmp.Or(h.whyUnfit(), "can run none of the jobs that are ready")
		if !h.isAnswering() || h.removed {
			clause = h.status().Clause()
		}
		if names[clause] == nil {
			clauses = append(clauses, clause)
		}
		names[clause] = append(names[clause], h.spec.Name)
	}
	for _, clause := range clauses {
		list := names[clause]
		why = append(why, text.If(len(list) > 1, "each of ")+text.List(hosts.Fold(list), maxNamed)+" "+clause)
	}
	return joinNamed(why)
}

// joinNamed joins the first maxNamed reasons, and counts the others.
func joinNamed(why []string) string {
	if more := len(why) - maxNamed; more > 0 {
		why = append(why[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(why, "; ")
}

// attemptsLeft names the attempts that may still be alive: lost ones whose hosts have not reported
// their fate.
func (c *Core) attemptsLeft() string {
	var parts []string
	for _, h := range c.allHosts() {
		if len(h.orphans) == 0 {
			continue
		}
		ids := make([]string, 0, 5)
		for i, id := range h.orphans {
			if i == 4 {
				ids = append(ids, "…")
				break
			}
			ids = append(ids, id.String())
		}
		parts = append(parts, strings.Join(ids, ", ")+" on "+h.spec.Name)
	}
	if parts == nil {
		return ""
	}
	return "processes of lost attempts may still be alive: " + strings.Join(parts, "; ")
}

// haltReason is the reason for ending attempts by --halt now.
const haltReason = "the run was halted"

// checkHalt drains the run when its results halt it (package halt), before the slot of the job that
// has just ended is used again.
func (c *Core) checkHalt() {
	if c.drain != nil {
		return
	}
	if why := c.halt.Reached(c.numJobs()); why != "" {
		Drain{Why: why, Cause: DrainHalted}.carryOut(c)
		c.endedRunning = c.halt.Rule.Now
		if c.endedRunning {
			for h := range c.everyHost() {
				c.endAttempts(h, haltReason)
			}
		}
		return
	}
	if why := c.halt.NoCommand(c.takers()); why != "" {
		Drain{Why: why, Cause: DrainNoCommand}.carryOut(c)
		return
	}
	was := c.wasNearHalt
	c.wasNearHalt = c.isNearHalt()
	if c.wasNearHalt && !was {
		for h := range c.everyHost() {
			h.withdrawAll()
		}
	}
}

// takers yields the names of the hosts that take jobs, or may take some soon.
func (c *Core) takers() iter.Seq[string] {
	return func(yield func(string) bool) {
		for h := range c.everyHost() {
			isTaker := h.isFirstDial() || h.acceptsJobs() && (h.limit > 0 || h.hold == jobs.NotHeld || h.isPreparing())
			if isTaker && !yield(h.spec.Name) {
				return
			}
		}
	}
}

// isNearHalt reports whether one more result halts the run. Hosts then get no jobs ahead of need,
// because they would start the next job before that result arrives here. With --buffer they get
// them nevertheless.
func (c *Core) isNearHalt() bool {
	return c.cfg.Buffer == 0 && c.drain == nil && c.halt.IsNear(c.numJobs())
}

// numJobs returns the number of jobs of the run, or 0 while more may be submitted.
func (c *Core) numJobs() int {
	if !c.allSubmitted {
		return 0
	}
	return c.table.NumJobs()
}

// carryOut stops launching until an EndDrain, and withdraws buffered jobs.
func (e Drain) carryOut(c *Core) (refused string) {
	switch {
	case c.drain != nil:
		return "the run drains already: " + c.drain.Why
	case c.stopped:
		return whyStoppedAlready
	}
	e.Why = cmp.Or(e.Why, "asked to drain")
	c.drain = &e
	c.logf("", 0, "draining: %s", e.Why)
	for h := range c.everyHost() {
		h.withdrawAll()
	}
	return ""
}

// The reasons for refusing requests of people.
const (
	whyNotPaused      = "nothing holds launching back"
	whyDrainOver      = "the drain is over and the dispatcher is ending; resume the run to continue it"
	whyPausedAlready  = "launching is paused already"
	whyStoppedAlready = "the dispatcher is being stopped already"
)

// carryOut continues launching, unless the drain has finished. The results for --halt are counted
// from zero again, also by later dispatchers; otherwise the run would drain again at once.
func (e EndDrain) carryOut(c *Core) (refused string) {
	switch {
	case c.drain == nil || e.OnlyByFile && c.drain.Cause != DrainByFile:
		return whyNotPaused
	case c.finished || c.stopped:
		return whyDrainOver
	}
	c.drain, c.wasNearHalt, c.endedRunning = nil, false, false
	c.halt.Continue()
	r := jobs.Record{Kind: jobs.KindPause, N: 1}
	if c.table.Paused {
		r.Count = 1
	}
	c.emit(r)
	c.logf("", 0, "launching continues: %s", cmp.Or(e.Why, "asked to continue"))
	return ""
}

// carryOut ends the dispatcher and leaves attempts running.
func (e Stop) carryOut(c *Core) (refused string) {
	if c.stopped {
		return whyStoppedAlready
	}
	c.stopped, c.stopReason = true, cmp.Or(e.Why, "asked to stop")
	return ""
}

// Stopped reports whether a person has stopped the dispatcher, and why.
func (c *Core) Stopped() (why string, stopped bool) { return c.stopReason, c.stopped }
