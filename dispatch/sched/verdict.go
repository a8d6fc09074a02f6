package sched

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/jobs"
)

// Who is to blame for a failure: the job, or its host? Two sentences decide (docs/retries.md):
//
// A job is at fault if it fails on a host where other jobs of its queue succeed, or if it has
// failed on as many hosts as it has tries (at least minHosts, if there are so many) and jobs succeed
// on none of the others. Until that is known, its failures do not end it, and it is tried on a host
// where it has not failed. Package blame keeps the evidence.

const (
	// evidenceTime is how long a verdict waits while jobs run on hosts where none has succeeded
	// yet.
	evidenceTime = time.Second
	// minHosts is the minimum number of hosts on which a job must have failed to be at fault, unless a
	// job of its queue has succeeded on one of them since.
	minHosts = 3
	// maxHostFaults is the number of failures per try that are not charged because the host
	// reported that it is full.
	maxHostFaults = 2
)

// longerThanFailure returns the run time from which on an attempt may be one that succeeds, if the
// longest one that failed ran for d.
func longerThanFailure(d time.Duration) time.Duration { return max(evidenceTime, 2*d) }

// recordOf returns how the jobs of a queue fare on a host.
func (h *host) recordOf(st *queueStats) *blame.Record {
	q := h.records[st]
	if q == nil {
		if h.records == nil {
			h.records = make(map[*queueStats]*blame.Record)
		}
		q = new(blame.Record)
		h.records[st] = q
	}
	return q
}

// ownFailures yields the attempts of the job's round that failed by themselves. last, which may be
// 0, is the number of an attempt that has just failed, and whose end is not recorded yet.
func (c *Core) ownFailures(j *jobs.Job, last int) iter.Seq[*jobs.Attempt] {
	return func(yield func(*jobs.Attempt) bool) {
		for _, a := range j.Attempts {
			if (a.ID.N == last || a.Failed()) && a.Round == j.Round && !yield(a) {
				return
			}
		}
	}
}

// whyHostFull names what its host lacked for a job, or returns "".
func whyHostFull(o *jobs.Outcome) string {
	switch {
	case o.ProcessLimit.IsSet():
		return "no more processes could be started there: " + o.ProcessLimit.Text()
	case o.DiskFull:
		return "its disk was full"
	}
	return ""
}

// showsHost reports whether an outcome may show that a host is bad. A job that exceeds its own
// limits shows nothing.
func showsHost(o *jobs.Outcome) bool {
	return !o.TimedOut && o.Memory != jobs.MemoryLimit && !o.IsHostFull()
}

// forgives reports whether failures of the job may be blamed on its hosts. With a single try, a
// command that has started runs again only if people have asked for that.
func (c *Core) forgives(j *jobs.Job) bool { return c.maxTries(j) > 1 || c.cfg.ForgiveHosts }

// isCharged reports whether a failure uses up a try of the job. It does not if the host is full, or
// if no job of the queue has succeeded on the host and another host, where one has, can run the
// job.
func (c *Core) isCharged(h *host, j *jobs.Job, o *jobs.Outcome) bool {
	switch {
	case h == nil || !c.forgives(j):
		return true
	case o.IsHostFull():
		n := 0
		for a := range c.ownFailures(j, 0) {
			if a.Outcome.IsHostFull() {
				n++
			}
		}
		return n >= maxHostFaults*c.maxTries(j)
	case !showsHost(o), c.isIncriminated(j),
		h.recordOf(c.statsOf(j.Spec)).Succeeded > 0 && !h.probation.isOnProbationFor(c.kinds.KindOf(j.Spec)):
		return true
	}
	return !c.hasProvenHost(j, h)
}

// hasProvenHost reports whether jobs of the job's queue succeed on a host other than but where the job is untried.
func (c *Core) hasProvenHost(j *jobs.Job, but *host) bool {
	st := c.statsOf(j.Spec)
	if st.numGoodHosts == 0 {
		return false
	}
	cl := c.ownClassOf(j)
	return c.anyHost(func(h *host) bool {
		return h != but && h.records[st].IsProven(0) && c.isUntried(j, cl, h)
	})
}

// untriedHosts yields the hosts where the job is untried. but, which may be nil, is left out.
func (c *Core) untriedHosts(j *jobs.Job, but *host) iter.Seq[*host] {
	cl := c.ownClassOf(j)
	return func(yield func(*host) bool) {
		for h := range c.everyHost() {
			if h != but && c.isUntried(j, cl, h) && !yield(h) {
				return
			}
		}
	}
}

// isUntried reports whether a host can run the job, which has not failed there in this round, and accepts jobs, or
// will without a person's doing. cl is the job's class.
func (c *Core) isUntried(j *jobs.Job, cl *class, h *host) bool {
	return c.canTry(h, cl) && !c.hasFailedOn(j, h)
}

// hasFailedOn reports whether the job has failed by itself on a host in this round.
func (c *Core) hasFailedOn(j *jobs.Job, h *host) bool {
	for a := range c.ownFailures(j, 0) {
		if a.Host == h.spec.Name {
			return true
		}
	}
	return false
}

// hasFailedOnGoodHost reports whether the job has failed by itself in this round on another host,
// which nothing shows to be bad.
func (c *Core) hasFailedOnGoodHost(j *jobs.Job, but *host) bool {
	for a := range c.ownFailures(j, 0) {
		h := c.byName[a.Host]
		if h != nil && h != but && h.probation.wasGood() && !h.probation.onTrial && !c.isUnlucky(h) {
			return true
		}
	}
	return false
}

// canTry reports whether the host can run the class, and accepts jobs, or will without a person's
// doing.
func (c *Core) canTry(h *host, cl *class) bool {
	if !cl.fitsOn(h) || !c.hasTimeFor(h, cl.key.maxRunTime) {
		return false
	}
	switch {
	case h.isClosed():
		return false
	case h.isFirstDial():
		return true
	case !h.linked:
		return c.isExpected(h)
	case !h.isAnswering() || h.state != jobs.HostUp,
		h.probation.onProbation && h.probation.isResting(cl.kind, c.now.Mono):
		return false
	case h.isPreparing():
		return true
	case h.hold != jobs.NotHeld || h.slots() == 0:
		return false
	case h.numOpen > 0 || h.probation.paused || c.Paused() || c.drain != nil || h.limit == 0:
		return true
	}
	_, why := c.spaceOn(h, cl)
	return why == notPassed // others may use what the job needs
}

// isExpected reports whether a host that is not linked may be back soon.
func (c *Core) isExpected(h *host) bool {
	return h.state != jobs.HostLost && h.state != jobs.HostDisabled && h.ineligible == "" && c.now.Mono < h.lostAt()
}

// hasUntriedHost reports whether jobs of the class can be tried on a host that they do not avoid.
func (cl *class) hasUntriedHost(c *Core) bool {
	return c.anyHost(func(h *host) bool {
		return !cl.avoids(h) && c.canTry(h, cl)
	})
}

// isIncriminated reports whether a charged failure of the job in this round shows that it is at
// fault.
func (c *Core) isIncriminated(j *jobs.Job) bool {
	st := c.statsOf(j.Spec)
	for a := range c.ownFailures(j, 0) {
		if h := c.byName[a.Host]; h != nil && a.Charged && h.records[st].Incriminates(a.Outcome) {
			return true
		}
	}
	return false
}

// verdict is what follows from the failures of a job that has used up its tries.
type verdict uint8

const (
	atFault      verdict = iota // the job is at fault
	runElsewhere                // its hosts may be at fault: it runs on another one
	undecided                   // the same, if a job that runs now on another host succeeds
)

// judge returns the verdict on a job that has used up its tries. last is as for ownFailures.
func (c *Core) judge(j *jobs.Job, last int) verdict {
	if !c.forgives(j) {
		return atFault
	}
	st := c.statsOf(j.Spec)
	var tried []*host
	numFailures, numProven, numUseless := 0, 0, 0
	for a := range c.ownFailures(j, last) {
		numFailures++
		h := c.byName[a.Host]
		if h == nil || slices.Contains(tried, h) {
			continue
		}
		tried = append(tried, h)
		q := h.records[st]
		if q.IsProven(j.Spec.ID) {
			numProven++
		}
		if h.probation.onTrial && (q == nil || q.Succeeded == 0) {
			numUseless++ // all jobs fail there
		}
	}
	if numFailures >= c.maxFailures(j) || numProven >= max(c.maxTries(j), minHosts) || c.isIncriminated(j) {
		return atFault
	}
	cl := c.ownClassOf(j)
	v := atFault
	enough := len(tried)-numUseless >= max(c.maxTries(j), minHosts) || c.areJobsAtFault(st)
	for h := range c.everyHost() {
		if slices.Contains(tried, h) || !c.canTry(h, cl) {
			continue
		}
		q := h.records[st]
		age, runs := c.oldestRun(h, st)
		switch {
		case !enough, h.isFirstDial(),
			runs && (age >= longerThanFailure(st.longestFailure) || q == nil || q.NumStreak == 0),
			q != nil && q.Succeeded > 0 && (q.NumStreak == 0 || c.hasSucceededLately(h, st)):
			return runElsewhere
		case runs:
			v = undecided
		}
	}
	return v
}

// hasSucceededLately reports whether a job of a queue has succeeded on a host within twice the mean run
// time of those that succeed, or within evidenceTime.
func (c *Core) hasSucceededLately(h *host, st *queueStats) bool {
	q, mean := h.records[st], st.recent.Succeeded
	if mean == 0 {
		mean, _, _ = st.Moments() // of jobs that ended before this dispatcher started
	}
	lately := max(evidenceTime, durationOfSeconds(2*mean))
	return q != nil && q.Succeeded > 0 && c.now.Mono-q.LastSuccessAt < lately
}

// maxFailures returns how often a job may fail in a round at most, charged or not.
func (c *Core) maxFailures(j *jobs.Job) int {
	return (1+maxHostFaults)*c.maxTries(j) + len(c.hosts)
}

// oldestRun returns how long the oldest running attempt of a queue has run on a host.
func (c *Core) oldestRun(h *host, st *queueStats) (age time.Duration, ok bool) {
	for f := h.oldest; f != nil; f = f.nextOnHost {
		if f.stats == st && f.started && !f.hasOutcome && !f.killed {
			return f.age(c.now.Mono), true
		}
	}
	return 0, false
}

// recordFailure updates the records of the host with a failure of a job by itself, before anything
// is decided about the job.
func (c *Core) recordFailure(h *host, j *jobs.Job, id jobs.AttemptID, o *jobs.Outcome) {
	switch {
	case h == nil:
		return
	case o.ProcessLimit.IsSet():
		c.boundByProcesses(h, o.ProcessLimit, h.runningSlots-j.Spec.SlotCount())
		return
	case o.IsHostFull():
		if !h.probation.paused {
			c.pauseRefusing(h, "a job failed because the disk was full")
		}
		return
	case !showsHost(o), c.isIncriminated(j): // it shows nothing about the host
		return
	}
	st := c.statsOf(j.Spec)
	st.longestFailure = max(st.longestFailure, min(o.Elapsed(), c.maxElapsed(j)))
	f := blame.Failure{ID: id, Kind: c.kinds.KindOf(j.Spec), Took: o.Elapsed(),
		IsRepeated: c.hasFailedOnGoodHost(j, h)}
	h.recordOf(st).AddFailure(f)
	st.hasFailed = true
	c.countOthers(h)
	limited := h.probation.limited()
	h.probation.addFailure(f)
	h.withdrawKinds(h.probation.limited() &^ limited)
	c.slowDown(h)
	c.considerProbation(h)
}

// explainFailures takes the job's failures off the records of its hosts, because the job is at fault.
func (c *Core) explainFailures(j *jobs.Job) {
	st := c.statsOf(j.Spec)
	for _, a := range j.Attempts {
		h := c.byName[a.Host]
		if h == nil || a.Round != j.Round {
			continue
		}
		if q := h.records[st]; q != nil {
			q.Explain(j.Spec.ID)
		}
		r := &h.probation
		if !r.all.Explain(j.Spec.ID) {
			continue
		}
		h.touch()
		c.countResults(h, 1, 0)
		if r.limited() == 0 || r.all.NumStreak == 0 || !r.onProbation && !c.isSuspect(h) {
			c.endTrial(h, "the jobs that failed there fail on other hosts, too")
		}
	}
}

// recordSuccess updates the records of all hosts with a success of a job on one of them. The hosts
// where it failed before are contradicted. If it is the first of its queue on this host, failures on
// hosts where none has succeeded are not charged any more.
func (c *Core) recordSuccess(h *host, j *jobs.Job, id jobs.AttemptID, o *jobs.Outcome) {
	st := c.statsOf(j.Spec)
	if h != nil {
		c.recordSuccessOn(h, st, id, o)
	}
	for _, a := range j.Attempts {
		if o := c.byName[a.Host]; o != nil && o != h && a.Round == j.Round {
			if o.probation.all.Contradict(j.Spec.ID) {
				c.considerProbation(o)
			}
		}
	}
	st.longestFailure = 0
	if h == nil || h.records[st].Succeeded > 1 || !st.hasFailed {
		return
	}
	for o := range c.everyHost() {
		if q := o.records[st]; q != nil && q.Succeeded == 0 {
			c.uncharge(q.Streak, ^blame.Kinds(0),
				"no job of its queue has succeeded on "+o.spec.Name+", and jobs succeed on "+h.spec.Name)
		}
	}
}

// recordSuccessOn updates the record of the host where a job has succeeded.
func (c *Core) recordSuccessOn(h *host, st *queueStats, id jobs.AttemptID, o *jobs.Outcome) {
	q, r := h.recordOf(st), &h.probation
	by := c.inFlight[id]
	isRefuted, kinds := r.isRefuted(by), blame.Kinds(0)
	if isRefuted {
		kinds = r.refutes(by)
	}
	c.countSuccess(h, st, o)
	if !isRefuted {
		return
	}
	if r.onTrial {
		c.countResults(h, 0, 1)
	} else {
		c.countResults(h, r.all.NumStreak, 1)
	}
	was, limited := slices.Clone(q.Streak), r.limited()
	q.EndStreak()
	r.all.EndStreakOf(kinds)
	if r.onProbation {
		c.uncharge(was, limited, whyUncharged(h))
	}
	for _, f := range was {
		if j := c.table.Job(f.ID.Job); c.isIncriminated(j) {
			c.explainFailures(j)
			c.allowReturn(f.ID.Job, j)
			c.withdrawWaiting(j)
		}
	}
	if h.touch(); r.limited() == 0 || kinds == ^blame.Kinds(0) {
		r.numRests = 0
		c.endTrial(h, "a job has succeeded there")
	}
}

// countSuccess counts a success of a job of a queue on a host.
func (c *Core) countSuccess(h *host, st *queueStats, o *jobs.Outcome) {
	q := h.recordOf(st)
	q.Succeeded++
	if q.Succeeded == 1 {
		st.numGoodHosts++
	}
	q.LastGoodStart, q.LastSuccessAt = max(q.LastGoodStart, o.Started), c.now.Mono
	h.probation.all.Succeeded++
	if h.instance != nil {
		h.instance.handleProven()
	}
}

// withdrawWaiting withdraws the attempts of a job that have not started. A job that is at fault may run
// where it has failed, and need not wait for a slot of another host.
func (c *Core) withdrawWaiting(j *jobs.Job) {
	for _, a := range j.Attempts {
		if f := c.inFlight[a.ID]; f != nil && f.isWaiting() {
			f.host.withdraw(f)
		}
	}
}

// uncharge gives jobs of some kinds that have not ended the tries back that failures have used up.
func (c *Core) uncharge(failures []blame.Failure, kinds blame.Kinds, why string) {
	for _, f := range failures {
		j, a := c.table.Job(f.ID.Job), c.table.Attempt(f.ID)
		if f.Kind&kinds != 0 && a.Charged && a.Round == j.Round && !j.State.Terminal() && c.forgives(j) {
			c.emit(jobs.Record{Kind: jobs.KindForgiven, Job: f.ID.Job, N: f.ID.N, Host: a.Host, Reason: why})
		}
	}
}

// learnRecords rebuilds the records of the hosts from the table, after a takeover. Failures count
// for a streak if they ended after the last success there, unless their job is at fault.
func (c *Core) learnRecords() {
	type place struct {
		h  *host
		st *queueStats
	}
	type failure struct {
		place
		blame.Failure
		ended jobs.Stamp
	}
	lastSuccess := make(map[place]jobs.Stamp) // the queue is nil for that of all queues
	var failures []failure
	numExplained := make(map[*host]int)
	for j := range c.table.RowsWithOptions() {
		for _, a := range j.Attempts {
			h := c.byName[a.Host]
			if h == nil || a.State != jobs.AttemptExited || a.Outcome == nil {
				continue
			}
			p, o := place{h, c.statsOf(j.Spec)}, a.Outcome
			switch {
			case o.OK():
				c.countSuccess(h, p.st, o)
				lastSuccess[p] = max(lastSuccess[p], o.Ended)
				lastSuccess[place{h: h}] = max(lastSuccess[place{h: h}], o.Ended)
			case !a.Failed() || !showsHost(o):
			case j.State == jobs.Failed && c.forgives(j):
				numExplained[h]++
			case o.Ended > lastSuccess[p]:
				f := blame.Failure{ID: a.ID, Kind: c.kinds.KindOf(j.Spec), Took: o.Elapsed()}
				failures = append(failures, failure{p, f, o.Ended})
			}
		}
	}
	slices.SortFunc(failures, func(a, b failure) int { return cmp.Compare(a.ended, b.ended) })
	for _, f := range failures {
		if f.ended <= lastSuccess[f.place] {
			numExplained[f.h]++
			continue
		}
		f.h.recordOf(f.st).AddFailure(f.Failure)
		f.st.hasFailed = true
		if f.ended > lastSuccess[place{h: f.h}] {
			f.h.probation.all.AddFailure(f.Failure)
		}
	}
	for h := range c.everyHost() {
		if h.probation.wasGood() {
			c.countResults(h, numExplained[h], h.probation.all.Succeeded)
		}
	}
	for h := range c.everyHost() {
		c.countOthers(h)
		h.probation.others.BeginStreak()
	}
}

// resumeTrials slows down the hosts again that an earlier dispatcher had reason to have on trial,
// if jobs have succeeded on others.
func (c *Core) resumeTrials() {
	for h := range c.everyHost() {
		s := h.probation.all.Streak
		if len(s) == 0 {
			continue
		}
		st := c.statsOf(c.table.Job(s[len(s)-1].ID.Job).Spec)
		if c.anyHost(func(o *host) bool { return o != h && o.records[st] != nil && o.records[st].Succeeded > 0 }) {
			c.slowDown(h)
		}
	}
}
