package sched

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"dcs-tui/jobs"
)

// Hardness and the domino effect. Some jobs have a tuple that describes how hard they are. A job
// is at least as hard as another if no component of its tuple is less. Such jobs run from the
// easiest to the hardest. When one times out, those that are at least as hard are not tried.
//
// The time limit of a job is one more component: less time is harder. So a job that has more time
// than the one that timed out may run.

// tuple is one value of a hardness. Jobs of equal hardness share it.
type tuple struct {
	family        *family
	components    []jobs.Hardness
	limit         time.Duration // of its jobs; 0: none
	jobs          []uint32      // jobs that have this tuple, or had it before an edit
	timedOutJob   jobs.ID       // a job that is no harder and has timed out; 0: none
	timedOutLimit time.Duration // time limit of timedOutJob
	why           string        // reason of the jobs that are skipped; "": not needed yet
}

// family is the set of tuples that are compared with each other: those of one batch.
type family struct {
	number   int // in the order of their first jobs
	tuples   map[string]*tuple
	list     []*tuple
	timeouts []knownTimeout // minimal known timeouts
	stale    bool           // a job that had timed out begins again, so timeouts and the marks of tuples must be recomputed
}

// knownTimeout is a known timeout. Jobs that are at least as hard and have no more time are
// skipped.
type knownTimeout struct {
	components []jobs.Hardness
	limit      time.Duration
	job        jobs.ID
}

// appliesTo reports whether jobs of this hardness and time limit are skipped.
func (b *knownTimeout) appliesTo(at []jobs.Hardness, limit time.Duration) bool {
	if limit == 0 || limit > b.limit {
		return false
	}
	for i, x := range b.components {
		if !x.AtMost(at[i]) {
			return false
		}
	}
	return true
}

func (t *tuple) markTooHard(b *knownTimeout) {
	t.timedOutJob, t.timedOutLimit, t.why = b.job, b.limit, ""
}

// compare orders jobs from easy to hard: those without a tuple first, then by batch, then as
// jobs.CompareHardness does.
func (t *tuple) compare(o *tuple) int {
	switch {
	case t == o:
		return 0
	case t == nil:
		return -1
	case o == nil:
		return 1
	case t.family != o.family:
		return cmp.Compare(t.family.number, o.family.number)
	}
	return jobs.CompareHardness(t.components, o.components, t.limit, o.limit)
}

// hardnessIndex holds the tuples of all jobs.
type hardnessIndex struct {
	families  map[jobs.HardnessBatch]*family
	list      []*family
	byOptions map[*jobs.Options]*tuple
	options   []*jobs.Options // keys of tuples, in the order of their first use
	lastOpts  *jobs.Options   // options of the last lookup, which neighbors usually share
	lastTuple *tuple
	stale     bool // a family must be rebuilt
	// Jobs to check: their tuple was marked, or they were queued again with a marked tuple.
	toCheck    []uint32
	numChecked int // number of jobs in toCheck that were checked
}

func newHardnessIndex() hardnessIndex {
	return hardnessIndex{families: make(map[jobs.HardnessBatch]*family), byOptions: make(map[*jobs.Options]*tuple)}
}

// tupleOf returns the hardness of a job, or nil.
func (c *Core) tupleOf(s *jobs.Spec) *tuple {
	if len(s.Hardness) == 0 {
		return nil
	}
	h := &c.hardness
	if h.lastOpts == s.Options {
		return h.lastTuple
	}
	t := h.byOptions[s.Options]
	if t == nil {
		t = h.internTuple(s.Options, c.timeout(s))
		h.byOptions[s.Options] = t
		h.options = append(h.options, s.Options)
	}
	h.lastOpts, h.lastTuple = s.Options, t
	return t
}

func (h *hardnessIndex) internTuple(o *jobs.Options, limit time.Duration) *tuple {
	fk := o.HardnessBatch()
	f := h.families[fk]
	if f == nil {
		f = &family{number: len(h.list), tuples: make(map[string]*tuple)}
		h.families[fk] = f
		h.list = append(h.list, f)
	}
	at := make([]jobs.Hardness, len(o.Hardness))
	key := strconv.AppendInt(nil, int64(limit), 10)
	for i, s := range o.Hardness {
		at[i] = jobs.ParseHardness(s)
		if at[i].IsNum {
			key = append(append(append(key, 'n'), at[i].Num.String()...), 0)
		} else {
			key = strconv.AppendQuote(append(key, 't'), s)
		}
	}
	t := f.tuples[string(key)]
	if t == nil {
		t = &tuple{family: f, components: at, limit: limit}
		f.tuples[string(key)] = t
		f.list = append(f.list, t)
		for i := range f.timeouts {
			if b := &f.timeouts[i]; b.appliesTo(at, limit) {
				t.markTooHard(b)
				break
			}
		}
	}
	return t
}

// addTimeout adds a timeout, unless a known one implies it, and marks the tuples whose jobs must be
// skipped.
func (h *hardnessIndex) addTimeout(f *family, n knownTimeout) {
	for i := range f.timeouts {
		if f.timeouts[i].appliesTo(n.components, n.limit) {
			return
		}
	}
	f.timeouts = append(slices.DeleteFunc(f.timeouts, func(b knownTimeout) bool { return n.appliesTo(b.components, b.limit) }), n)
	for _, t := range f.list {
		if t.timedOutJob == 0 && n.appliesTo(t.components, t.limit) {
			t.markTooHard(&n)
			h.toCheck = append(h.toCheck, t.jobs...)
		}
	}
}

// registerHardness adds a job that is new, or that was edited. Everything about hardness follows
// from the table, so a new dispatcher continues where the last one ended.
func (c *Core) registerHardness(id jobs.ID) {
	j := c.table.Job(id)
	t := c.tupleOf(j.Spec)
	if t == nil {
		return
	}
	t.jobs = append(t.jobs, uint32(id))
	if j.State == jobs.TimedOut {
		c.recordTimeout(id, j)
	}
	c.recheckHardness(id, j)
}

// recheckHardness lets skipTooHard check a job that is open although it is too hard.
func (c *Core) recheckHardness(id jobs.ID, j *jobs.Job) {
	if c.isTooHard(j) && !j.State.Terminal() {
		c.hardness.toCheck = append(c.hardness.toCheck, uint32(id))
	}
}

// updateHardness follows a job from one state to another. A timeout after which the job is tried
// again does not count (--retry-timeouts).
func (c *Core) updateHardness(id jobs.ID, j *jobs.Job, was jobs.JobState, edited bool) {
	if len(j.Spec.Hardness) == 0 {
		return
	}
	if was == jobs.TimedOut && j.State != was {
		c.hardness.stale, c.tupleOf(j.Spec).family.stale = true, true
	}
	switch {
	case edited:
		c.registerHardness(id)
	case j.State == jobs.TimedOut && was != j.State:
		c.recordTimeout(id, j)
	}
}

func (c *Core) recordTimeout(id jobs.ID, j *jobs.Job) {
	t := c.tupleOf(j.Spec)
	c.hardness.addTimeout(t.family, knownTimeout{t.components, c.timeoutUsed(j), id})
}

// timeout returns the time limit of a job, or 0 if there is none.
func (c *Core) timeout(s *jobs.Spec) time.Duration {
	return orDefault(s.Timeout, c.cfg.Timeout)
}

// timeoutUsed returns the time limit of a job that has timed out. The run's own timeout may have
// been raised since. In that case the job ran for less than the current limit, and the difference
// exceeds the error of clocks.
func (c *Core) timeoutUsed(j *jobs.Job) time.Duration {
	limit := grownLimit(c.timeout(j.Spec), c.cfg.TimeoutGrowth, j)
	if c.cfg.TimeoutGrowth > 1 && j.Failures > 0 {
		// The last failure was this timeout.
		limit = time.Duration(float64(limit) / c.cfg.TimeoutGrowth)
	}
	for i := len(j.Attempts) - 1; i >= 0 && j.Spec.Timeout == 0; i-- {
		if o := j.Attempts[i].Outcome; o != nil && o.TimedOut {
			if ran := o.Elapsed(); limit == 0 || ran < limit-limit/1000-time.Second {
				return ran
			}
			break
		}
	}
	return limit
}

// isTooHard reports whether a job must be skipped.
func (c *Core) isTooHard(j *jobs.Job) bool {
	t := c.tupleOf(j.Spec)
	return t != nil && t.timedOutJob != 0
}

// whyTooHard describes the timeout because of which a job is skipped.
func (c *Core) whyTooHard(j *jobs.Job) string {
	t := c.tupleOf(j.Spec)
	if t.why == "" {
		t.why = jobs.TooHardReason(c.table.Job(t.timedOutJob).Spec, t.timedOutLimit)
	}
	if j.Round > 1 {
		return t.why + "; it can run with more time, or when that job is requeued too"
	}
	return t.why
}

// mustDelaySkipping reports whether jobs must not be skipped yet. Pending requests may start some
// of them again, or the attempts that hosts report may change which timeouts count.
func (c *Core) mustDelaySkipping() bool {
	return len(c.requests) > 0 || c.reconcileUntil > 0 && c.table.Damaged
}

// hasJobsToSkip reports whether jobs must still be skipped. Nothing is launched until then.
func (c *Core) hasJobsToSkip() bool {
	return c.hardness.stale || c.hardness.numChecked < len(c.hardness.toCheck)
}

// skipTooHard skips the queued jobs that are too hard, and stops those that run, at most maxPerStep
// in a Step.
func (c *Core) skipTooHard() {
	if !c.hasJobsToSkip() || c.mustDelaySkipping() {
		return
	}
	h := &c.hardness
	for _, f := range h.list {
		if h.stale && f.stale {
			c.rebuildFamily(f)
		}
	}
	h.stale = false
	for n := 0; h.numChecked < len(h.toCheck) && n < maxPerStep; n++ {
		c.skipIfTooHard(jobs.ID(h.toCheck[h.numChecked]))
		h.numChecked++
	}
	if h.numChecked == len(h.toCheck) {
		h.toCheck, h.numChecked = nil, 0
	}
}

// rebuildFamily computes the timeouts of a batch again from the states of its jobs.
func (c *Core) rebuildFamily(f *family) {
	f.timeouts, f.stale = nil, false
	for _, t := range f.list {
		t.timedOutJob = 0
	}
	for _, t := range f.list {
		for _, n := range t.jobs {
			id := jobs.ID(n)
			if j := c.table.Job(id); j.State == jobs.TimedOut && c.tupleOf(j.Spec) == t {
				c.recordTimeout(id, j)
			}
		}
	}
}

func (c *Core) skipIfTooHard(id jobs.ID) {
	j := c.table.Job(id)
	if j.State.Terminal() || c.isCancelPending(id) || !c.isTooHard(j) {
		return
	}
	why := c.whyTooHard(j)
	if j.State == jobs.Queued {
		c.emit(jobs.Record{Kind: jobs.KindJob, Job: id, Next: jobs.Skipped, Reason: why, How: string(jobs.ReasonTooHard)})
	} else { // it is skipped when it has ended
		for _, a := range j.Attempts {
			if f := c.inFlight[a.ID]; f != nil && !f.killed {
				c.killAttempt(f, why)
			}
		}
	}
}
