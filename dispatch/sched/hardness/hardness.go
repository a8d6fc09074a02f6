// Package hardness knows which jobs are too hard to be tried. Some jobs have a tuple that describes
// how hard they are. A job is at least as hard as another if no component of its tuple is less. Such
// jobs run from the easiest to the hardest. When one times out, those that are at least as hard are
// not tried.
//
// The time limit of a job is one more component: less time is harder. So a job that has more time
// than the one that timed out may run.
//
// Everything about hardness follows from the table of the run, so a new dispatcher continues where
// the last one ended. The core skips and stops the jobs that an Index returns (sched/hardness.go).
package hardness

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"dcs-tui/jobs"
)

// Tuple is one value of a hardness. Jobs of equal hardness share it. nil is the tuple of jobs without
// hardness.
type Tuple struct {
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
	tuples   map[string]*Tuple
	list     []*Tuple
	timeouts []knownTimeout // minimal known timeouts
	// A job that had timed out begins again, so timeouts and the marks of tuples must be recomputed.
	stale bool
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

func (t *Tuple) markTooHard(b *knownTimeout) {
	t.timedOutJob, t.timedOutLimit, t.why = b.job, b.limit, ""
}

// Compare orders jobs from easy to hard: those without a tuple first, then by batch, then as
// jobs.CompareHardness does.
func (t *Tuple) Compare(o *Tuple) int {
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

// Limits returns the time limits of jobs.
type Limits struct {
	Of     func(*jobs.Spec) time.Duration // limit of a job; 0: none
	UsedBy func(*jobs.Job) time.Duration  // limit with which a job has timed out
}

// Index holds the tuples of all jobs of a table.
type Index struct {
	table     *jobs.Table
	limits    Limits
	families  map[jobs.HardnessBatch]*family
	list      []*family
	byOptions map[*jobs.Options]*Tuple
	lastOpts  *jobs.Options // options of the last lookup, which neighbors usually share
	lastTuple *Tuple
	stale     bool // a family must be rebuilt
	// Jobs to check: their tuple was marked, or they were queued again with a marked tuple.
	toCheck    []uint32
	numChecked int // number of jobs in toCheck that were checked
}

// New returns an index without jobs.
func New(t *jobs.Table, limits Limits) *Index {
	return &Index{table: t, limits: limits, families: make(map[jobs.HardnessBatch]*family),
		byOptions: make(map[*jobs.Options]*Tuple)}
}

// TupleOf returns the hardness of a job, or nil.
func (x *Index) TupleOf(s *jobs.Spec) *Tuple {
	if len(s.Hardness) == 0 {
		return nil
	}
	if x.lastOpts == s.Options {
		return x.lastTuple
	}
	t := x.byOptions[s.Options]
	if t == nil {
		t = x.intern(s.Options, x.limits.Of(s))
		x.byOptions[s.Options] = t
	}
	x.lastOpts, x.lastTuple = s.Options, t
	return t
}

// intern returns the tuple with the hardness of the options, and makes it if there is none.
func (x *Index) intern(o *jobs.Options, limit time.Duration) *Tuple {
	batch := o.HardnessBatch()
	f := x.families[batch]
	if f == nil {
		f = &family{number: len(x.list), tuples: make(map[string]*Tuple)}
		x.families[batch] = f
		x.list = append(x.list, f)
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
		t = &Tuple{family: f, components: at, limit: limit}
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
func (x *Index) addTimeout(f *family, n knownTimeout) {
	for i := range f.timeouts {
		if f.timeouts[i].appliesTo(n.components, n.limit) {
			return
		}
	}
	f.timeouts = append(slices.DeleteFunc(f.timeouts,
		func(b knownTimeout) bool { return n.appliesTo(b.components, b.limit) }), n)
	for _, t := range f.list {
		if t.timedOutJob == 0 && n.appliesTo(t.components, t.limit) {
			t.markTooHard(&n)
			x.toCheck = append(x.toCheck, t.jobs...)
		}
	}
}

// Add adds a job that is new, or that was edited.
func (x *Index) Add(id jobs.ID, j *jobs.Job) {
	t := x.TupleOf(j.Spec)
	if t == nil {
		return
	}
	t.jobs = append(t.jobs, uint32(id))
	if j.State == jobs.TimedOut {
		x.recordTimeout(id, j)
	}
	x.Recheck(id, j)
}

// Recheck lets Next return a job that is open although it is too hard.
func (x *Index) Recheck(id jobs.ID, j *jobs.Job) {
	if x.IsTooHard(j) && !j.State.Terminal() {
		x.toCheck = append(x.toCheck, uint32(id))
	}
}

// Update follows a job from one state to another, or through an edit. A timeout after which the job
// is tried again does not count (--retry-timeouts).
func (x *Index) Update(id jobs.ID, j *jobs.Job, was jobs.JobState, edited bool) {
	if len(j.Spec.Hardness) == 0 {
		return
	}
	if was == jobs.TimedOut && j.State != was {
		x.stale, x.TupleOf(j.Spec).family.stale = true, true
	}
	switch {
	case edited:
		x.Add(id, j)
	case j.State == jobs.TimedOut && was != j.State:
		x.recordTimeout(id, j)
	}
}

func (x *Index) recordTimeout(id jobs.ID, j *jobs.Job) {
	t := x.TupleOf(j.Spec)
	x.addTimeout(t.family, knownTimeout{t.components, x.limits.UsedBy(j), id})
}

// IsTooHard reports whether a job must be skipped.
func (x *Index) IsTooHard(j *jobs.Job) bool {
	t := x.TupleOf(j.Spec)
	return t != nil && t.timedOutJob != 0
}

// Why describes the timeout because of which a job is skipped.
func (x *Index) Why(j *jobs.Job) string {
	t := x.TupleOf(j.Spec)
	if t.why == "" {
		t.why = jobs.TooHardReason(x.table.Job(t.timedOutJob).Spec, t.timedOutLimit)
	}
	if j.Round > 1 {
		return t.why + "; it can run with more time, or when that job is requeued too"
	}
	return t.why
}

// IsPending reports whether there are jobs to check. Nothing may be launched until then.
func (x *Index) IsPending() bool { return x.stale || x.numChecked < len(x.toCheck) }

// Next returns the next job to check: it may be too hard. ok is false if there is none.
func (x *Index) Next() (id jobs.ID, ok bool) {
	if x.stale {
		for _, f := range x.list {
			if f.stale {
				x.rebuild(f)
			}
		}
		x.stale = false
	}
	if x.numChecked == len(x.toCheck) {
		x.toCheck, x.numChecked = nil, 0
		return 0, false
	}
	x.numChecked++
	return jobs.ID(x.toCheck[x.numChecked-1]), true
}

// rebuild computes the timeouts of a batch again from the states of its jobs.
func (x *Index) rebuild(f *family) {
	f.timeouts, f.stale = nil, false
	var rows jobs.RowReader
	for _, t := range f.list {
		t.timedOutJob = 0
	}
	for _, t := range f.list {
		for _, n := range t.jobs {
			id := jobs.ID(n)
			if x.table.State(id) != jobs.TimedOut {
				continue
			}
			if j := rows.Job(x.table, id); x.TupleOf(j.Spec) == t {
				x.recordTimeout(id, j)
			}
		}
	}
}
