package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// lifetime holds the state of the run as a whole, and what ends it.
type lifetime struct {
	hasBegun      bool
	beganAt       jobs.Stamp
	allSubmitted  bool   // no more jobs will be submitted
	holders       Holder // reasons of the program to launch nothing
	drainReason   string // why nothing more is launched; "": the run does not drain
	drainedByFile bool   // a STOP file asked for the drain
	stopped       bool
	stopReason    string
	finished      bool
	fenced        bool
	halt          halt
	// When something was last possible, for Config.GiveUpAfter (see isAnythingPossible).
	lastPossibleAt time.Duration
	// Until when the end waits for the fate of lost attempts; 0: the run does not end yet.
	waitLostUntil time.Duration
}

// finishRun finishes the run when nothing is left to do.
func (c *Core) finishRun() {
	if c.fenced {
		c.finishWith(Fenced, "another dispatcher owns the run now")
		return
	}
	if c.finished || c.stopped {
		return
	}
	if len(c.requests) > 0 {
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
	if left > 0 && c.drainReason == "" {
		c.provisions.endBy = 0
	}
	switch {
	case c.allSubmitted && left == 0 && len(c.inFlight) == 0:
		if c.waitsForLost() || c.waitsForInstances() {
			return
		}
		left := joinTexts(c.attemptsLeft(), c.instancesLeft())
		if !c.table.Ended {
			c.emit(jobs.Record{Kind: jobs.KindEnded, Reason: left})
		}
		c.finishWith(AllDone, left)
	case c.drainReason != "" && len(c.inFlight) == 0:
		if !c.waitsForInstances() {
			c.finishWith(Drained, joinTexts(c.drainReason, c.instancesLeft()))
		}
	case !possible && c.isHopeless():
		c.finishWith(NoHosts, joinTexts(c.whyNoHosts(), c.instancesLeft()))
	}
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
// another Finish when that work is done.
func (c *Core) IsOutdated(f Finish) bool {
	return f.How == AllDone && c.drainReason == "" && c.table.Unfinished() > 0
}

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
			if cl.fits[h.index] && h.isAnswering() && !h.removed && !h.retiring && !h.isUnfit() {
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

// whyNoHosts returns the reasons why nothing was possible, by host, as far as they are known.
func (c *Core) whyNoHosts() string {
	var why []string
	for _, p := range c.provisions.providers {
		if p.problem != "" {
			why = append(why, p.problem)
		}
	}
	if len(c.hosts) == 0 && why == nil {
		return "there is no host"
	}
	for h := range c.everyHost() {
		if len(why) == maxNamed {
			break
		}
		switch unfit := h.whyUnfit(); {
		case !h.linked && h.reason != "":
			why = append(why, h.reason)
		case !h.isAnswering() || h.removed:
			why = append(why, h.spec.Name+" "+h.status().Clause())
		case unfit != "":
			why = append(why, h.spec.Name+" "+unfit)
		default:
			why = append(why, h.spec.Name+" can run none of the jobs that are ready")
		}
	}
	if more := len(c.hosts) + len(c.provisions.providers) - len(why); more > 0 && len(why) > 0 {
		why = append(why, fmt.Sprintf("and %d more", more))
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

// joinTexts joins two texts, each of which may be empty.
func joinTexts(a, b string) string {
	if a != "" && b != "" {
		a += "; "
	}
	return a + b
}

// Halt describes when the run stops launching because of its results. The zero value means never.
type Halt struct {
	Of      HaltOf
	Jobs    int     // number of results that count; 0: see Percent
	Percent float64 // share of results that count among all results, 0 to 100
	Now     bool    // running attempts are ended, too; their jobs are queued again
	Never   bool    // not even when no command is found
}

// HaltOf selects the results that count for a Halt.
type HaltOf uint8

const (
	HaltOfFailures  HaltOf = iota // failed and timed-out jobs
	HaltOfSuccesses               // succeeded jobs
	HaltOfAll                     // all of these
)

// minHaltResults is the number of results from which a percentage counts.
const minHaltResults = 10

// halt counts the results of this dispatcher. A resumed run counts from zero; otherwise it would
// halt again at once.
type halt struct {
	succeeded, failed int
	wasNear           bool // isNearHalt returned true after the last event
	endedRunning      bool // running attempts were ended, as --halt now requires
	// Jobs whose command was not found, at most maxNotFound, and the hosts on which that was so. nil
	// after an attempt that ended otherwise.
	notFound map[jobs.ID]bool
	without  map[string]bool
	isFound  bool   // an attempt ended otherwise, or a person continued a halted run
	lastLine string // of such an attempt
}

// maxNotFound is the number of jobs without a command that halt a run in which no attempt has ended
// otherwise. It is reached on each host before a sweep of thousands of jobs is used up.
const maxNotFound = 10

// Exit codes of a shell for a command that it cannot run, and for one that it cannot find.
const (
	exitNotRunnable = 126
	exitNotFound    = 127
)

// countAttempt counts an attempt that has exited.
func (h *halt) countAttempt(r *jobs.Record) {
	o := r.Outcome
	switch {
	case h.isFound || o.Error != "" || o.Stopped:
	case o.Signal != "" || o.Exit != exitNotRunnable && o.Exit != exitNotFound:
		h.isFound, h.notFound, h.without = true, nil, nil
	default:
		if h.notFound == nil {
			h.notFound, h.without = map[jobs.ID]bool{}, map[string]bool{}
		}
		h.without[r.Host] = true
		if len(h.notFound) < maxNotFound {
			h.notFound[r.Job] = true
		}
		h.lastLine = o.LastLine
	}
}

func (h *halt) count(s jobs.JobState) {
	switch s {
	case jobs.Succeeded:
		h.succeeded++
	case jobs.Failed, jobs.TimedOut:
		h.failed++
	}
}

// numCounted returns the number of results that count, and a noun for them.
func (h *halt) numCounted(of HaltOf) (n int, what string) {
	switch of {
	case HaltOfSuccesses:
		return h.succeeded, "succeeded"
	case HaltOfAll:
		return h.succeeded + h.failed, "ended"
	}
	return h.failed, "failed"
}

// haltReason is the reason for ending attempts by --halt now.
const haltReason = "the run was halted"

// checkHalt drains the run when its Halt is reached, before the slot of the job that has just
// ended is used again.
func (c *Core) checkHalt() {
	if c.drainReason != "" {
		return
	}
	if n, what := c.halt.numCounted(c.cfg.Halt.Of); c.hasReachedHalt(n, c.halt.succeeded+c.halt.failed) {
		why := fmt.Sprintf("%s %s %s", text.Plural(n, "job"), text.Verb(n, "has", "have"), what)
		if c.cfg.Halt.Jobs == 0 {
			why = fmt.Sprintf("%d of %d jobs %s %s", n, c.halt.succeeded+c.halt.failed,
				text.Verb(n, "has", "have"), what)
		}
		Drain{Why: why}.carryOut(c)
		if c.cfg.Halt.Now {
			c.halt.endedRunning = true
			for h := range c.everyHost() {
				c.endAttempts(h, haltReason)
			}
		}
		return
	}
	if c.findsNoCommand() {
		why := fmt.Sprintf("the first %d jobs exited with 126 or 127: their command was not found or cannot be run",
			maxNotFound)
		if line := text.Shorten(text.Line(c.halt.lastLine)); line != "" {
			why += " (" + line + ")"
		}
		Drain{Why: why}.carryOut(c)
		return
	}
	if was := c.halt.wasNear; !was && c.isNearHalt() {
		for h := range c.everyHost() {
			h.withdrawAll()
		}
	}
	c.halt.wasNear = c.isNearHalt()
}

// findsNoCommand reports whether the commands of the first jobs were found on no host that takes
// jobs, or may take some soon, so that all further jobs would fail, too.
func (c *Core) findsNoCommand() bool {
	if len(c.halt.notFound) < maxNotFound || c.cfg.Halt.Never {
		return false
	}
	for h := range c.everyHost() {
		isUsable := h.isFirstDial() || h.acceptsJobs() && (h.limit > 0 || h.hold == jobs.NotHeld || h.isPreparing())
		if isUsable && !c.halt.without[h.spec.Name] {
			return false
		}
	}
	return true
}

// hasReachedHalt reports whether n results that count, of all results, halt the run.
func (c *Core) hasReachedHalt(n, all int) bool {
	h := &c.cfg.Halt
	return h.Jobs > 0 && n >= h.Jobs || h.Percent > 0 && all >= minHaltResults &&
		float64(n)*100 >= h.Percent*float64(all)
}

// isNearHalt reports whether one more result halts the run. Hosts then get no jobs ahead of need,
// because they would start the next job before that result arrives here. With --buffer they get
// them nevertheless.
func (c *Core) isNearHalt() bool {
	if c.cfg.Buffer > 0 || c.drainReason != "" {
		return false
	}
	n, _ := c.halt.numCounted(c.cfg.Halt.Of)
	return c.hasReachedHalt(n+1, c.halt.succeeded+c.halt.failed+1)
}

// carryOut stops launching until an EndDrain, and withdraws buffered jobs.
func (e Drain) carryOut(c *Core) (refused string) {
	switch {
	case c.drainReason != "":
		return "the run drains already: " + c.drainReason
	case c.stopped:
		return whyStoppedAlready
	}
	c.drainReason, c.drainedByFile = cmp.Or(e.Why, "asked to drain"), e.ByFile
	c.logf("", 0, "draining: %s", c.drainReason)
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
// from zero again; otherwise the run would drain again at once.
func (e EndDrain) carryOut(c *Core) (refused string) {
	switch {
	case c.drainReason == "" || e.OnlyByFile && !c.drainedByFile:
		return whyNotPaused
	case c.finished || c.stopped:
		return whyDrainOver
	}
	c.drainReason, c.halt = "", halt{isFound: true}
	c.logf("", 0, "launching continues: %s", cmp.Or(e.Why, "asked to continue"))
	return ""
}

// carryOut ends the dispatcher and leaves attempts running.
func (e Stop) carryOut(c *Core) (refused string) {
	if c.stopped {
		return whyStoppedAlready
	}
	c.stopped, c.stopReason = true, cmp.Or(e.Why, "asked to stop")
	c.finishWith(Stopped, c.stopReason)
	return ""
}

// Stopped reports whether a person has stopped the dispatcher, and why.
func (c *Core) Stopped() (why string, stopped bool) { return c.stopReason, c.stopped }
