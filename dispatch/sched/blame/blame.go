// Package blame keeps the evidence about who is to blame for failures: jobs, or their hosts
// (docs/retries.md). A Record holds how jobs fare on one host. Results and Others hold how often jobs
// fail on the other hosts, so that bad luck is no evidence.
//
// The verdicts need the hosts and the attempts of the core: those on jobs are in sched/verdict.go,
// and those on hosts in sched/probation.go.
package blame

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// Record holds how jobs fare on one host: those of one queue, or all.
type Record struct {
	Succeeded int
	// When the attempt that succeeded and started last has started, by the clock of the host.
	LastGoodStart jobs.Stamp
	LastSuccessAt time.Duration // Time.Mono of the core
	// Failures since the last success, one for each job; at most maxRemembered.
	Streak    []Failure
	NumStreak int // number of failures of the streak, with those that are not remembered
}

// Failure is a failed attempt.
type Failure struct {
	ID             jobs.AttemptID
	Kind           Kinds
	Took           time.Duration // how long the attempt ran
	IsRepeated     bool          // the job had failed before on another host, which is good
	IsContradicted bool          // the job has succeeded on another host since
}

// kind tells jobs apart that may fail on a host for different reasons: only those that use a device fail
// if it is dead.
type kind struct {
	queue            string
	usesGPUs, isWide bool // wide jobs use several slots
}

// Kinds is a set of kinds of jobs, one for each bit. Kinds beyond the 63rd share the last bit.
type Kinds uint64

// KindIndex gives each kind of jobs its bit.
type KindIndex map[kind]Kinds

// KindOf returns the kind of a job.
func (x KindIndex) KindOf(s *jobs.Spec) Kinds {
	k := kind{s.Queue, s.GPUs != 0, s.SlotCount() > 1}
	bit, ok := x[k]
	if !ok {
		bit = 1 << min(len(x), 63)
		x[k] = bit
	}
	return bit
}

// KindCounts counts things by their kind.
type KindCounts struct {
	Set Kinds // those whose count is not 0
	n   [64]int
}

// Add adds n things of a kind.
func (c *KindCounts) Add(k Kinds, n int) {
	of := &c.n[bits.TrailingZeros64(uint64(k))]
	*of += n
	c.Set |= k
	if *of == 0 {
		c.Set &^= k
	}
}

// Of returns the count of a kind.
func (c *KindCounts) Of(k Kinds) int { return c.n[bits.TrailingZeros64(uint64(k))] }

const maxRemembered = 100 // number of failures of a streak that are remembered

// AddFailure adds a failure. Several failures of one job count as one.
func (q *Record) AddFailure(f Failure) {
	if q.IndexOf(f.ID.Job) >= 0 {
		return
	}
	q.NumStreak++
	if len(q.Streak) < maxRemembered {
		q.Streak = append(q.Streak, f)
	}
}

// EndStreak forgets the failures, because a later attempt has refuted them.
func (q *Record) EndStreak() { q.Streak, q.NumStreak = q.Streak[:0], 0 }

// EndStreakOf forgets the failures of jobs of some kinds.
func (q *Record) EndStreakOf(kinds Kinds) {
	n := len(q.Streak)
	q.Streak = slices.DeleteFunc(q.Streak, func(f Failure) bool { return f.Kind&kinds != 0 })
	q.NumStreak -= n - len(q.Streak)
	if len(q.Streak) == 0 {
		q.NumStreak = 0
	}
}

// FailedKinds returns the kinds of the jobs of the streak.
func (q *Record) FailedKinds() (failed Kinds) {
	for i := range q.Streak {
		failed |= q.Streak[i].Kind
	}
	return failed
}

// Longest returns how long the failed attempt of the streak ran that ran longest.
func (q *Record) Longest() (most time.Duration) {
	for _, f := range q.Streak {
		most = max(most, f.Took)
	}
	return most
}

// IndexOf returns the index of a job's failure in the streak, or -1.
func (q *Record) IndexOf(id jobs.ID) int {
	return slices.IndexFunc(q.Streak, func(f Failure) bool { return f.ID.Job == id })
}

// Explain removes a job's failure from the streak, because the job is at fault.
func (q *Record) Explain(id jobs.ID) (found bool) {
	i := q.IndexOf(id)
	if i < 0 {
		return false
	}
	q.Streak = slices.Delete(q.Streak, i, i+1)
	q.NumStreak--
	return true
}

// Contradict records that a job that may have failed on the host has succeeded on another one.
func (q *Record) Contradict(id jobs.ID) (found bool) {
	i := q.IndexOf(id)
	if i >= 0 {
		q.Streak[i].IsContradicted = true
	}
	return i >= 0
}

// Count returns how many failures of the streak meet a condition.
func (q *Record) Count(is func(Failure) bool) (n int) {
	for _, f := range q.Streak {
		if is(f) {
			n++
		}
	}
	return n
}

// IsProven reports whether jobs succeed on the host: one has, and none but this one has failed
// since.
func (q *Record) IsProven(but jobs.ID) bool {
	switch {
	case q == nil || q.Succeeded == 0:
		return false
	case q.NumStreak == 0:
		return true
	}
	return q.NumStreak == 1 && q.IndexOf(but) == 0
}

// Incriminates reports whether a failure on the host shows that the job is at fault: another job of
// its queue has started there since, and succeeded.
func (q *Record) Incriminates(o *jobs.Outcome) bool {
	return q != nil && o != nil && q.LastGoodStart >= o.Ended && o.Ended > 0
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

// weighted returns the counts with a factor.
func (t tally) weighted(factor float64) tally { return tally{t.succeeded * factor, t.failed * factor} }

// addDifference adds a less b.
func (t *tally) addDifference(a, b tally) {
	t.succeeded += a.succeeded - b.succeeded
	t.failed += a.failed - b.failed
}

// failureRate returns the share of failures. It is never 0, because few results prove little.
func (t tally) failureRate() float64 { return (t.failed + 0.5) / (t.succeeded + t.failed + 1) }

const decayPerResult = 0.98 // factor of the weight of a result after each later one

// Results counts the results of all hosts that show how often jobs fail.
type Results struct {
	n      int
	all    tally
	recent tally // with lower weights for older results
}

// Add adds failures, and successes after them.
func (r *Results) Add(numFailed, numSucceeded int) {
	for i := range numFailed + numSucceeded {
		r.n++
		r.all.add(i >= numFailed)
		r.recent = r.recent.weighted(decayPerResult)
		r.recent.add(i >= numFailed)
	}
}

// Others holds, for one host, the results of the other hosts: those since the first failure of its
// streak, and recent ones with lower weights for older ones. The zero value is that of a host when
// there are no Results yet.
type Others struct {
	since, before tally
	counted       Results // Results that since and before include
}

// Skip leaves out the results since the last call, which are of the host itself or from before it was
// used.
func (o *Others) Skip(now Results) { o.counted = now }

// Update adds the results of the other hosts since the last call. It is called before each result of
// the host itself, so that a result costs nothing for the other hosts.
func (o *Others) Update(now Results) {
	kept := math.Pow(decayPerResult, float64(now.n-o.counted.n))
	o.since.addDifference(now.all, o.counted.all)
	o.before = o.before.weighted(kept)
	o.before.addDifference(now.recent, o.counted.recent.weighted(kept))
	o.counted = now
}

// BeginStreak begins to count the results since the first failure of a streak.
func (o *Others) BeginStreak() { o.since = tally{} }

// maxStreakChance is the probability below which a streak is no bad luck.
const maxStreakChance = 1e-4

// Explain reports whether n failures in a row may be bad luck at the failure rate of the others.
func (o *Others) Explain(n int) bool {
	return math.Pow(max(o.since.failureRate(), o.before.failureRate()), float64(n)) > maxStreakChance
}
