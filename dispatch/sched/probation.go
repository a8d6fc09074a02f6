package sched

import (
	"math"
	"time"

	"dcs-tui/jobs"
)

// probation is the state of a host that gets no jobs although its link is up: it refused jobs, or
// jobs fail fast there that succeed elsewhere.
type probation struct {
	paused          bool
	until           time.Duration
	why             string
	refusals        int              // consecutive refusals
	streak          int              // consecutive fast failures
	chargedFailures []jobs.AttemptID // failures of the streak that were charged and may be uncharged
	numProbations   int              // consecutive times on probation because of fast failures
	// Results of the other hosts since the first failure of the streak.
	othersSince tally
	// Recent results of the other hosts, with lower weights for older ones.
	othersBefore tally
}

// tally counts results.
type tally struct{ succeeded, failed float64 }

func (t *tally) add(ok bool) {
	if ok {
		t.succeeded++
	} else {
		t.failed++
	}
}

// failureRate returns the share of failures. It is never 0, because few results prove little.
func (t tally) failureRate() float64 { return (t.failed + 0.5) / (t.succeeded + t.failed + 1) }

// isOnTrial reports whether a host that was on probation gets only one job at a time, until one
// succeeds.
func (r *probation) isOnTrial() bool { return r.numProbations > 0 }

const (
	// fastFailure is the time within which a failure is fast, however short the jobs are.
	fastFailure = time.Second
	minStreak   = 3
	// maxStreakChance is the probability that a streak is bad luck at the failure rate of the other
	// hosts. Below it, the host is put on probation.
	maxStreakChance    = 1e-4
	maxRemembered      = 100 // number of failures that are remembered
	jobFaultHosts      = 3   // a job that fails on this many hosts is itself at fault
	maxUnchargedPerTry = 2   // failures per try that may be uncharged
	// minElsewhereSuccesses is the minimum number of other hosts' successes in the meantime for a
	// conclusion.
	minElsewhereSuccesses = 3
	decayPerResult        = 0.98 // factor of the weight of a result after each later one
)

// pauseHost pauses a host for the nth time in a row, with backoff.
func (c *Core) pauseHost(h *host, n int, why string) {
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
	c.logf(h.spec.Name, 0, "%s pauses for %s: %s", h.spec.Name, formatDuration(h.probation.until-c.now.Mono), why)
}

// endPauses ends the pauses and probations that are over.
func (c *Core) endPauses() {
	for _, h := range c.hosts {
		if h.probation.paused && c.now.Mono >= h.probation.until {
			h.probation.paused = false
			if h.probation.numProbations > 0 {
				c.logf(h.spec.Name, 0, "%s is tried again, with one job (it was on probation: %s)", h.spec.Name, h.probation.why)
			}
		}
	}
}

// learnFromOutcome updates the statistics with an attempt that ended by itself.
func (c *Core) learnFromOutcome(h *host, j *jobs.Job, o *jobs.Outcome) {
	if o.Error == "" {
		took := min(o.Elapsed(), c.maxElapsed(j))
		st := c.statsOf(j.Spec)
		st.recent.add(took.Seconds(), o.OK())
		if o.OK() {
			st.add(took.Seconds())
		}
	}
	if h == nil {
		return
	}
	if o.OK() {
		h.probation.streak, h.probation.numProbations = 0, 0
	}
	for _, other := range c.hosts {
		if r := &other.probation; other != h {
			r.othersBefore.succeeded, r.othersBefore.failed = r.othersBefore.succeeded*decayPerResult, r.othersBefore.failed*decayPerResult
			r.othersBefore.add(o.OK())
			r.othersSince.add(o.OK())
		}
	}
}

// judgeFailure decides whether the job or its host is at fault for a failure. It returns true if
// the failure uses up a try of the job. Otherwise the host is at fault: the failure is the latest
// of a streak of fast failures that the failure rate of the other hosts does not explain. Such a
// host is put on probation.
func (c *Core) judgeFailure(h *host, j *jobs.Job, id jobs.AttemptID, o *jobs.Outcome) bool {
	r := &h.probation
	if o.IsHostFull() && numFailures(j) < maxUnchargedPerTry*c.maxTries(j) {
		switch {
		case o.ProcessLimit.IsSet():
			c.boundByProcesses(h, o.ProcessLimit, h.runningSlots-j.Spec.SlotCount())
		case !r.paused:
			c.pauseRefusing(h, "a job failed because the disk was full")
		}
		return false // it delays a result, but is not one
	}
	if o.TimedOut || o.Memory == jobs.MemoryLimit || o.Elapsed() >= max(fastFailure, time.Duration(c.statsOf(j.Spec).recent.succeeded/10*float64(time.Second))) {
		r.streak, r.numProbations = 0, 0 // the jobs themselves cause slow failures
		return true
	}
	if r.streak == 0 {
		r.othersSince, r.chargedFailures = tally{}, r.chargedFailures[:0]
	}
	r.streak++
	if len(r.chargedFailures) < maxRemembered {
		r.chargedFailures = append(r.chargedFailures, id)
	}
	if c.clearHostsIfJobAtFault(h, j) {
		return true
	}
	c.pauseFirstFailures(h)
	if r.streak < minStreak || r.othersSince.succeeded < minElsewhereSuccesses {
		return true
	}
	if math.Pow(max(r.othersSince.failureRate(), r.othersBefore.failureRate()), float64(r.streak)) > maxStreakChance {
		return true
	}
	if !r.paused {
		r.numProbations++
		c.pauseHost(h, r.numProbations, "jobs fail there at once that succeed on other hosts")
		c.logf(h.spec.Name, 0, "%s is on probation: %d jobs in a row failed there at once, while jobs succeed on other hosts", h.spec.Name, r.streak)
		c.unchargeStreak(h)
	}
	return false
}

// pauseFirstFailures pauses a host whose first jobs have all failed immediately until jobs have
// ended elsewhere, for longer each time. Otherwise, with a failure every few milliseconds, half a
// queue could fail before the first job on another host has ended.
func (c *Core) pauseFirstFailures(h *host) {
	r := &h.probation
	if r.paused || r.streak%minStreak != 0 || h.succeeded > 0 || r.othersSince.succeeded+r.othersSince.failed >= minElsewhereSuccesses {
		return
	}
	for _, o := range c.hosts {
		if o != h && (o.isAnswering() && o.numOpen > 0 || o.isFirstDial()) {
			c.pauseHost(h, r.streak/minStreak-1, "its first jobs failed at once; it waits until jobs have ended on other hosts")
			c.logf(h.spec.Name, 0, "%s pauses: its first %d jobs failed at once, and none has ended on another host yet", h.spec.Name, r.streak)
			return
		}
	}
}

// unchargeStreak uncharges the failures of the host's streak, except those of finished jobs.
func (c *Core) unchargeStreak(h *host) {
	for _, id := range h.probation.chargedFailures {
		j, a := c.table.Job(id.Job), c.table.Attempt(id)
		if a.Charged && a.Round == j.Round && !j.State.Terminal() {
			c.emit(jobs.Record{Kind: jobs.KindForgiven, Job: id.Job, N: id.N, Host: a.Host,
				Reason: "jobs fail at once on " + a.Host + " that succeed on other hosts"})
		}
	}
	h.probation.chargedFailures = h.probation.chargedFailures[:0]
}

// numFailures returns the number of attempts of this round that failed by themselves, charged or
// not.
func numFailures(j *jobs.Job) int {
	return numAttempts(j, func(a *jobs.Attempt) bool { return a.State == jobs.AttemptExited })
}

// clearHostsIfJobAtFault ends the streaks of the hosts on which a job has failed if they are so
// many that the job itself is at fault, and reports whether that is so. The job has just failed on
// h.
func (c *Core) clearHostsIfJobAtFault(h *host, j *jobs.Job) bool {
	names := []string{h.spec.Name}
	failures := 1
	for _, a := range j.Attempts {
		if a.Round != j.Round || a.State != jobs.AttemptExited {
			continue
		}
		failures++
		names = insertSorted(names, a.Host)
	}
	if len(names) < jobFaultHosts {
		return failures > maxUnchargedPerTry*c.maxTries(j)
	}
	for _, n := range names {
		if o := c.byName[n]; o != nil {
			o.probation.streak, o.probation.numProbations = 0, 0
			if o.probation.refusals == 0 {
				o.probation.paused = false
			}
		}
	}
	return true
}
