package sched

import (
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// probation is what keeps jobs from a host although its link is up: a pause because it refused
// jobs, a slow start because its first jobs failed at once, or a probation because jobs fail there
// that succeed on other hosts. On a slow start and on probation it gets one job at a time, with
// pauses, until one succeeds.
type probation struct {
	paused bool
	// When the pause ends, or that of a slow start: jobs that have not failed elsewhere do not go
	// there before.
	until    time.Duration
	why      string
	refusals int // consecutive refusals
	returned int // consecutive reports that jobs, which were not withdrawn, will not start

	all           blame.Record  // how jobs of all queues fare there
	startsSlowly  bool          // its slow start has not ended
	numSlow       int           // number of pauses of the slow start
	numProbations int           // consecutive times on probation; 0: it is not
	since         time.Duration // since when it starts slowly, or is on probation
	reportedAt    time.Duration // when that was last reported; 0: never
	isReported    bool          // its end must be reported, too
	others        blame.Others
}

// countOthers updates the results of the other hosts.
func (c *Core) countOthers(h *host) { h.probation.others.Update(c.results) }

// isOnTrial reports whether the host gets only one job at a time, until one succeeds.
func (r *probation) isOnTrial() bool { return r.numProbations > 0 || r.startsSlowly }

// isOnProbation reports whether jobs failed on the host that succeeded on others.
func (h *host) isOnProbation() bool { return h.probation.numProbations > 0 }

const (
	// fastFailure is the time within which a failure is fast, however short the jobs are.
	fastFailure = time.Second
	minStreak   = 3
)

// pauseHost pauses a host for the nth time in a row, with backoff.
func (c *Core) pauseHost(h *host, n int, why string) {
	h.touch()
	h.probation.paused, h.probation.why = true, why
	h.probation.until = c.now.Mono + c.backoff(n, shortAway)
	h.reserved = nil
	h.withdrawAll()
}

// pauseRefusing pauses a host that cannot take jobs now, and reports it. The pause grows each
// time, until a job starts there.
func (c *Core) pauseRefusing(h *host, why string) {
	h.probation.refusals++
	c.pauseHost(h, h.probation.refusals, why)
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

// endPauses ends the pauses and probations that are over.
func (c *Core) endPauses() {
	for h := range c.visits() {
		if h.probation.paused && c.now.Mono >= h.probation.until {
			h.probation.paused = false
			if h.isOnProbation() {
				c.logf(h.spec.Name, 0, "%s is tried again, with one job (it was on probation: %s)", h.spec.Name,
					h.probation.why)
			}
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
	// Only a host where jobs succeed shows how often they fail. Otherwise bad hosts would excuse
	// each other.
	if h == nil || h.probation.all.Succeeded == 0 || h.probation.isOnTrial() {
		return
	}
	c.countOthers(h)
	c.results.Add(o.OK())
	h.probation.others.Skip(c.results)
}

// addFailure adds a failure of a job by itself.
func (r *probation) addFailure(id jobs.AttemptID, fast bool) {
	if r.all.NumStreak == 0 {
		r.others.BeginStreak()
	}
	r.all.Add(id, false, fast)
}

func isFast(f blame.Failure) bool { return f.IsFast }

// endTrial ends the slow start and the probation of a host, and their pauses.
func (c *Core) endTrial(h *host, why string) {
	r := &h.probation
	if !r.isOnTrial() {
		return
	}
	h.touch()
	if h.isOnProbation() && r.refusals == 0 {
		r.paused = false
	}
	r.startsSlowly, r.numSlow, r.numProbations = false, 0, 0
	if r.isReported {
		r.isReported = false
		c.logf(h.spec.Name, 0, "%s gets jobs for all its slots again: %s", h.spec.Name, why)
	}
}

// startSlowly makes a host, on which a job has just failed, get one job at a time if its first jobs
// have all failed at once. Otherwise, with a failure every few milliseconds, all jobs would have
// failed there before the first job on another host has ended.
func (c *Core) startSlowly(h *host, st *queueStats) {
	r := &h.probation
	if r.all.Succeeded > 0 || r.all.Count(isFast) < minStreak || r.numProbations > 0 {
		return
	}
	if c.areJobsAtFault(st) {
		for o := range c.everyHost() {
			if o.probation.startsSlowly {
				c.endTrial(o, "jobs fail alike on all hosts, and none has succeeded, so the jobs are at fault")
			}
		}
		return
	}
	if !r.startsSlowly {
		r.startsSlowly, r.since = true, c.now.Mono
		if r.reportedAt == 0 || c.now.Mono-r.reportedAt >= reportInterval {
			r.reportedAt, r.isReported = max(1, c.now.Mono), true
			c.logf(h.spec.Name, 0, "%s gets one job at a time until one succeeds: its first %d jobs failed at once",
				h.spec.Name, r.all.Count(isFast))
		}
		h.withdrawAll()
	}
	if !r.paused && c.now.Mono >= r.until {
		r.until = c.now.Mono + c.backoff(r.numSlow, shortAway)
		r.numSlow++
	}
}

// rests reports whether a host that starts slowly gets no jobs now but those that have failed
// elsewhere, for which it is a new chance.
func (c *Core) rests(h *host) bool { return h.probation.startsSlowly && c.now.Mono < h.probation.until }

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
		case q != nil && q.NumStreak > 0 && runs && age >= max(evidenceTime, 2*st.longestFailure):
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
// hosts, and the failure rate of the others does not explain the streak. failed reports whether a
// job has just failed there.
func (c *Core) considerProbation(h *host, failed bool) {
	r := &h.probation
	if r.numProbations > 0 && (!failed || r.paused) || r.all.NumStreak < minStreak {
		return
	}
	c.countOthers(h)
	contradicted := r.all.Count(func(f blame.Failure) bool { return f.IsContradicted })
	if contradicted == 0 || r.others.Explain(r.all.NumStreak) {
		return
	}
	r.numProbations++
	if r.numProbations == 1 {
		r.since, r.reportedAt, r.isReported = c.now.Mono, max(1, c.now.Mono), true
		c.logf(h.spec.Name, 0, "%s is on probation: %s in a row failed there, "+
			"%d of which succeeded on other hosts since",
			h.spec.Name, text.Plural(r.all.NumStreak, "job"), contradicted)
	}
	r.startsSlowly = false
	c.pauseHost(h, r.numProbations, "jobs fail there that succeed on other hosts")
	c.uncharge(r.all.Streak, whyUncharged(h))
}

// whyUncharged is the reason why failures on a host that is on probation are not charged.
func whyUncharged(h *host) string {
	return "jobs fail on " + h.spec.Name + " that succeed on other hosts"
}
