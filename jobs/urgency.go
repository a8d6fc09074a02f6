package jobs

import (
	"cmp"
	"math"
	"slices"
)

// Urgency determines the order in which ready jobs start, before their hardness and their numbers:
// jobs of lost hosts first, then by priority, jobs that failed before others, and by deadline.
type Urgency struct {
	IsUrgent  bool // its host was lost
	Priority  int32
	HasFailed bool  // in its current round
	Deadline  int64 // ns since the Unix epoch; math.MaxInt64: none
}

// UrgencyOf returns the urgency of a job.
func UrgencyOf(j *Job) Urgency {
	return Urgency{j.Urgent, j.Priority, j.HasFailed(), DeadlineOf(j.Spec.Options)}
}

// DeadlineOf returns the deadline of jobs with these options, as Urgency.Deadline.
func DeadlineOf(o *Options) int64 {
	if o == nil || o.Deadline.IsZero() {
		return math.MaxInt64
	}
	return o.Deadline.UnixNano()
}

// HasFailed reports whether an attempt of the job's round has failed by itself.
func (j *Job) HasFailed() bool {
	return slices.ContainsFunc(j.Attempts, func(a *Attempt) bool { return a.Round == j.Round && a.Failed() })
}

// Compare returns -1 if jobs of urgency u start before those of urgency o, 1 if they start after
// them, and 0 if both are equal.
func (u Urgency) Compare(o Urgency) int {
	return cmp.Or(cmp.Compare(u.head(), o.head()), cmp.Compare(u.Deadline, o.Deadline))
}

// head returns everything but the deadline as a number of 34 bits. The smallest starts first.
func (u Urgency) head() uint64 {
	n := uint64(int64(u.Priority)-math.MinInt32) << 1
	if !u.IsUrgent {
		n |= 1 << 33
	}
	if !u.HasFailed {
		n |= 1
	}
	return n
}

// Key returns u as a number of 59 bits. Keys are in the order of Compare, but equal for deadlines
// within the same 16 seconds, and for those beyond 2043.
func (u Urgency) Key() uint64 {
	const unit, first, none = 16e9, 1_767_225_600e9, 1<<25 - 1 // from 2026 on
	deadline := int64(none)
	if u.Deadline != math.MaxInt64 {
		deadline = min(max((u.Deadline-first)/unit, 0), none-1)
	}
	return u.head()<<25 | uint64(deadline)
}
