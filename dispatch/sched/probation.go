package sched

import (
	"fmt"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// probation is what keeps jobs from a host although its link is up: a pause because it refused
// jobs, or a trial. A host is on trial because its first jobs failed at once, because more of its
// latest jobs failed than is bad luck, or because jobs fail there that succeed on other hosts (it is
// on probation). On trial it gets one job at a time, with rests, until one succeeds. Where jobs have
// succeeded before, this concerns only jobs of the kinds that fail.
type probation struct {
	paused   bool
	until    time.Duration // when the pause ends
	why      string
	refusals int // consecutive refusals
	returned int // consecutive reports that jobs, which were not withdrawn, will not start

	all         blame.Record // how jobs of all queues fare there
	onTrial     bool
	onProbation bool          // only if onTrial
	kinds       blame.Kinds   // of the jobs because of which it is on trial
	numRests    int           // number of rests of the trial
	restsUntil  time.Duration // when the last rest ends
	since       time.Duration // since when it is on trial
	checkedAt   time.Duration // when it was last checked whether it is still suspect
	reportedAt  time.Duration // when a trial was last reported; 0: never
	isReported  bool          // the end of the trial must be reported, too
	others      blame.Others
}

// countOthers updates the results of the other hosts.
func (c *Core) countOthers(h *host) { h.probation.others.Update(c.results) }

// wasGood reports whether a job has succeeded on the host.
func (r *probation) wasGood() bool { return r.all.Succeeded > 0 }

// limited returns the kinds of jobs of which the host gets only one at a time. If it was good before,
// the others run as usual.
func (r *probation) limited() blame.Kinds {
	switch {
	case !r.onTrial:
		return 0
	case !r.wasGood():
		return ^blame.Kinds(0)
	}
	return r.kinds & r.all.FailedKinds()
}

// isResting reports whether a host on trial waits for its next job of some kinds.
func (r *probation) isResting(kinds blame.Kinds, now time.Duration) bool {
	return now < r.restsUntil && kinds&^r.limited() == 0
}

// isOnProbationFor reports whether the host is on probation because of jobs of a kind.
func (r *probation) isOnProbationFor(kind blame.Kinds) bool {
	return r.onProbation && r.limited()&kind != 0
}

// isRefuted reports whether the success of an attempt, nil if it is not open, shows that the host
// is good. If the host is on trial and was good before, an attempt that was launched before the trial
// shows nothing, nor does one of a kind that has not failed.
func (r *probation) isRefuted(by *inFlight) bool {
	return !r.onTrial || !r.wasGood() || by != nil && by.launchedAt >= r.since && r.all.FailedKinds()&by.kind != 0
}

// refutes returns the kinds of jobs whose failures are refuted by an attempt that shows that the host is
// good: its own, if the host is on trial and was good before.
func (r *probation) refutes(by *inFlight) blame.Kinds {
	if !r.onTrial || !r.wasGood() {
		return ^blame.Kinds(0)
	}
	return by.kind
}

const (
	// fastFailure is the time within which a failure is fast, however short the jobs are.
	fastFailure = time.Second
	minStreak   = 3
	// maxRest is the longest rest of a host on trial.
	maxRest = 30 * time.Minute
)

// pauseHost pauses a host.
func (c *Core) pauseHost(h *host, d time.Duration, why string) {
	h.touch()
	h.probation.paused, h.probation.why = true, why
	h.probation.until = c.now.Mono + d
	h.reserved = nil
	h.withdrawAll()
}

// pauseRefusing pauses a host that cannot take jobs now, and reports it. The pause grows each
// time, until a job starts there.
func (c *Core) pauseRefusing(h *host, why string) {
	h.probation.refusals++
	c.pauseHost(h, c.backoff(h.probation.refusals, shortAway), why)
	c.logf(h.spec.Name, 0, "%s pauses for %s: %s", h.spec.Name, text.Span(h.probation.until-c.now.Mono), why)
}

// maxReturned is how often in a row a host may give jobs back without starting one. A host whose leases
// have run out, or whose launches were lost with its link, does so once.
const maxReturned = 8

// isReturned reports whether a report that an attempt will not start comes without having been asked
// for by a withdrawal or a kill.
func (c *Core) isReturned(id jobs.AttemptID) bool {
	f := c.inFlight[id]
	return f != nil && f.isWaiting()
}

// countReturned counts a report of a host that jobs will not start. A host that keeps giving jobs back
// without being asked is paused like one that refuses them. Otherwise launches and reports would
// alternate forever.
func (c *Core) countReturned(h *host, why string) {
	h.probation.returned++
	if h.probation.returned >= maxReturned && !h.probation.paused {
		c.pauseRefusing(h, "it keeps giving jobs back without starting one: "+why)
	}
}

// endPauses ends the pauses that are over, and the trials of hosts that are not suspect any more.
func (c *Core) endPauses() {
	for h := range c.visits() {
		c.reconsiderTrial(h)
		if h.probation.paused && c.now.Mono >= h.probation.until {
			h.probation.paused = false
		}
	}
}

// learnFromOutcome updates the statistics with an attempt that ended by itself.
func (c *Core) learnFromOutcome(h *host, j *jobs.Job, id jobs.AttemptID, o *jobs.Outcome) {
	if o.Error == "" {
		took := min(o.Elapsed(), c.maxElapsed(j))
		st := c.statsOf(j.Spec)
		st.recent.Add(took.Seconds(), o.OK())
		if o.OK() {
			st.Add(took.Seconds())
		}
	}
	if o.OK() {
		c.recordSuccess(h, j, id, o)
	}
}

// countResults adds results of a host to those of all hosts. A failure is added when it is known that
// its host is good: when a job succeeds there later, or the job that failed is at fault. Otherwise
// bad hosts would excuse each other.
func (c *Core) countResults(h *host, numFailed, numSucceeded int) {
	c.countOthers(h)
	c.results.Add(numFailed, numSucceeded)
	h.probation.others.Skip(c.results)
}

// addFailure adds a failure of a job by itself.
func (r *probation) addFailure(f blame.Failure) {
	if r.all.NumStreak == 0 {
		r.others.BeginStreak()
	}
	r.all.AddFailure(f)
}

func isFast(f blame.Failure) bool { return f.Took < fastFailure }

// beginTrial puts a host on trial, or lets it rest again if it is. Jobs of the kinds that the trial did not
// concern before are withdrawn.
func (c *Core) beginTrial(h *host) {
	r := &h.probation
	limited := r.limited()
	h.touch()
	if !r.onTrial {
		r.onTrial, r.since = true, c.now.Mono
		h.reserved = nil
	}
	r.kinds |= c.unluckyKinds(h)
	if r.kinds == 0 {
		r.kinds = r.all.FailedKinds()
	}
	h.withdrawKinds(r.limited() &^ limited)
	if c.now.Mono >= r.restsUntil {
		r.restsUntil = c.now.Mono + c.restTime(r.numRests)
		r.numRests++
	}
}

// endTrial ends the trial of a host, and its rest.
func (c *Core) endTrial(h *host, why string) {
	r := &h.probation
	if !r.onTrial {
		return
	}
	h.touch()
	r.onTrial, r.onProbation, r.kinds, r.numRests, r.restsUntil = false, false, 0, 0, 0
	if r.isReported {
		r.isReported = false
		c.logf(h.spec.Name, 0, "%s gets jobs for all its slots again: %s", h.spec.Name, why)
	}
}

// slowDown puts a host on trial, on which a job has just failed, if it is suspect. Otherwise, with a
// failure every few milliseconds, all jobs would have failed there before the first job on another
// host has ended.
func (c *Core) slowDown(h *host) {
	r := &h.probation
	if !r.onProbation && !c.isSuspect(h) {
		if !r.wasGood() && r.all.Count(isFast) >= minStreak {
			for o := range c.everyHost() {
				if o.probation.onTrial && !o.probation.wasGood() {
					c.endTrial(o, "jobs fail alike on all hosts, and none has succeeded, so the jobs are at fault")
				}
			}
		}
		return
	}
	if !r.onTrial && (r.reportedAt == 0 || c.now.Mono-r.reportedAt >= reportInterval) {
		r.reportedAt, r.isReported = max(1, c.now.Mono), true
		c.logf(h.spec.Name, 0, "%s gets one job at a time until one succeeds: %s", h.spec.Name, r.whyOnTrial())
	}
	c.beginTrial(h)
}

// mayBeReconsidered reports whether the trial of the host ends once jobs succeed on no other host any more.
func (r *probation) mayBeReconsidered() bool { return r.onTrial && !r.onProbation && r.wasGood() }

// reconsiderTrial ends the trial of a host that is not on probation if it is not suspect any more: a job
// has run for longer than those that failed, or jobs do not succeed on other hosts, either.
func (c *Core) reconsiderTrial(h *host) {
	r := &h.probation
	if !r.onTrial || r.onProbation {
		return
	}
	switch f := h.triedAttempt(); {
	case f != nil && f.launchedAt >= r.since && !c.isBeingTried(h):
		if r.all.EndStreakOf(r.refutes(f)); r.limited() != 0 && r.wasGood() {
			h.touch()
			return
		}
		n := r.numRests
		c.endTrial(h, "a job runs longer there than those that failed")
		r.numRests = n
	case !r.mayBeReconsidered() || c.now.Mono < max(r.restsUntil, r.checkedAt+evidenceTime):
	case c.isSuspect(h):
		r.checkedAt = c.now.Mono
	default:
		c.endTrial(h, "jobs do not succeed more often on other hosts")
	}
}

// whyOnTrial returns why a host is on trial.
func (r *probation) whyOnTrial() string {
	switch {
	case r.onProbation:
		return "jobs fail there that succeed on other hosts"
	case r.wasGood():
		return fmt.Sprintf("its last %d jobs failed, and jobs succeed on other hosts", r.all.NumStreak)
	}
	return fmt.Sprintf("its first %d jobs failed at once", r.all.Count(isFast))
}

// isSuspect reports whether the host may be bad. If no job has succeeded there, three fast failures
// are enough, unless the jobs are at fault. If one has, it takes more failures in a row than is bad
// luck, while jobs succeed on another host, which is not suspect and can run the job that failed last.
func (c *Core) isSuspect(h *host) bool {
	r := &h.probation
	if len(r.all.Streak) == 0 {
		return false
	}
	j := c.table.Job(r.all.Streak[len(r.all.Streak)-1].ID.Job)
	if !r.wasGood() {
		return r.all.Count(isFast) >= minStreak && !c.areJobsAtFault(c.statsOf(j.Spec))
	}
	if r.all.NumStreak < minStreak || !c.isUnlucky(h) {
		return false
	}
	st := c.statsOf(j.Spec)
	var cl *class
	return c.anyHost(func(o *host) bool {
		if o == h || !c.hasSucceededLately(o, st) || o.probation.onTrial || c.isUnlucky(o) {
			return false
		}
		if cl == nil {
			cl = c.ownClassOf(j)
		}
		return c.canTry(o, cl)
	})
}

// restTime returns how long a host waits for its nth job on trial. It doubles, so that a host that
// was bad for a time waits about as long again at most, and one that stays bad fails few jobs.
func (c *Core) restTime(n int) time.Duration { return c.jitter(min(doubling(n), maxRest)) }

// isUnlucky reports whether more jobs in a row have failed on the host than is bad luck at the rate
// at which jobs fail on other hosts. Jobs that fail again do not count, because they are tried first.
func (c *Core) isUnlucky(h *host) bool {
	return c.isUnluckyWith(h, ^blame.Kinds(0), 1)
}

// isUnluckyWith is isUnlucky for jobs of some kinds, of which at least so many have failed.
func (c *Core) isUnluckyWith(h *host, kinds blame.Kinds, atLeast int) bool {
	n := h.probation.all.Count(func(f blame.Failure) bool { return !f.IsRepeated && f.Kind&kinds != 0 })
	if n < atLeast {
		return false
	}
	c.countOthers(h)
	return !h.probation.others.Explain(n)
}

// unluckyKinds returns the kinds of jobs of which more have failed in a row on the host than is bad luck.
// Jobs of another kind may be at fault themselves.
func (c *Core) unluckyKinds(h *host) (unlucky blame.Kinds) {
	failed := h.probation.all.FailedKinds()
	for rest := failed; rest != 0; rest &= rest - 1 {
		if k := rest & -rest; c.isUnluckyWith(h, k, minStreak) {
			unlucky |= k
		}
	}
	return unlucky
}

// restingKinds returns the kinds of jobs of which a host on trial gets none now: it has one, or rests.
// If no job has succeeded there, and it is not on probation, it is a new chance for jobs that have failed
// elsewhere (again), and does not rest from them.
func (c *Core) restingKinds(h *host, again bool) blame.Kinds {
	r := &h.probation
	limited := r.limited()
	if limited == 0 {
		return 0
	}
	if rests := r.wasGood() || r.onProbation || !again; rests && c.now.Mono < r.restsUntil || c.isBeingTried(h) {
		return limited
	}
	return 0
}

// openSlots returns how many free slots of the host jobs of some kinds could get now: one at most if it limits
// all these kinds, and none while it rests from them.
func (c *Core) openSlots(h *host, kinds blame.Kinds) int {
	free := max(0, h.freeSlots())
	switch limited := h.probation.limited(); {
	case limited == 0 || kinds&^limited != 0:
		return free
	case c.restingKinds(h, false) != 0:
		return 0
	}
	return min(free, 1)
}

// slotsFor returns how many slots of the host jobs occupy, or jobs of some kinds could get now.
func (c *Core) slotsFor(h *host, kinds blame.Kinds) int {
	return min(h.limit, h.occupiedSlots) + c.openSlots(h, kinds)
}

// isBeingTried reports whether a host on trial has its one job: an attempt that has not run for
// longer than those that failed there.
func (c *Core) isBeingTried(h *host) bool {
	f := h.triedAttempt()
	return f != nil && !(f.started && f.age(c.now.Mono) >= h.probation.trialTime())
}

// triedAttempt returns the newest attempt of a host on trial that is of a limited kind, or nil.
func (h *host) triedAttempt() *inFlight {
	f, limited := h.newest, h.probation.limited()
	for f != nil && limited&f.kind == 0 {
		f = f.prevOnHost
	}
	return f
}

// trialTime returns the run time at which the attempt of a trial is no longer alone.
func (r *probation) trialTime() time.Duration { return longerThanFailure(r.all.Longest()) }

// areJobsAtFault reports whether jobs of a queue fail alike on hosts and none has succeeded anywhere.
// It returns false while a job runs that may be the first to succeed: the first of its queue on a
// host, or one that has run far longer than those that failed.
func (c *Core) areJobsAtFault(st *queueStats) bool {
	failing, answering := 0, 0
	for h := range c.everyHost() {
		q := h.records[st]
		switch {
		case q != nil && q.Succeeded > 0:
			return false
		case h.isDrained() || h.isQuiet || h.removed:
			continue
		case h.isFirstDial() || !h.linked && c.isExpected(h):
			return false
		case !h.isAnswering():
			continue
		}
		answering++
		age, runs := c.oldestRun(h, st)
		switch {
		case q != nil && q.NumStreak > 0 && runs && age >= longerThanFailure(st.longestFailure):
			return false
		case q != nil && q.NumStreak > 0:
			failing++
		case h.numOpen > 0:
			return false
		}
	}
	return failing >= min(max(c.cfg.Tries, minHosts), answering)
}

// considerProbation puts a host on probation if jobs have failed there that succeeded on other
// hosts, and the failure rate of the others does not explain the streak.
func (c *Core) considerProbation(h *host) {
	r := &h.probation
	if r.all.NumStreak < minStreak {
		return
	}
	contradicted := r.all.Count(func(f blame.Failure) bool { return f.IsContradicted })
	if contradicted == 0 || !c.isUnlucky(h) {
		return
	}
	if !r.onProbation {
		r.onProbation, r.reportedAt, r.isReported = true, max(1, c.now.Mono), true
		c.logf(h.spec.Name, 0, "%s is on probation: %s in a row failed there, "+
			"%d of which succeeded on other hosts since",
			h.spec.Name, text.Plural(r.all.NumStreak, "job"), contradicted)
		c.beginTrial(h)
	}
	c.uncharge(r.all.Streak, r.limited(), whyUncharged(h))
}

// whyUncharged is the reason why failures on a host that is on probation are not charged.
func whyUncharged(h *host) string {
	return "jobs fail on " + h.spec.Name + " that succeed on other hosts"
}
