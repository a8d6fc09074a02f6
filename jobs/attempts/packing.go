package attempts

import (
	"slices"
	"time"

	"dcs-tui/jobs"
)

// Offers holds attempts of a run that is dispatched until they may be packed. It is not safe for
// concurrent use.
type Offers struct {
	waiting []Offer       // the oldest first
	retryAt time.Duration // see PutBack
}

// Offer holds attempts of one directory whose outcomes are recorded.
type Offer struct {
	Attempts []jobs.AttemptID // in order
	Records  int64            // number of records of the dispatcher, with those of the outcomes
	At       time.Duration    // when they were read, on a monotonic clock
}

// Add adds attempts. They are packed after all others.
func (o *Offers) Add(f Offer) { o.waiting = append(o.waiting, f) }

// PutBack adds attempts that Next has returned and that could not be packed. They are packed before all
// others, and nothing before retryAt, on the clock of Offer.At.
func (o *Offers) PutBack(f Offer, retryAt time.Duration) {
	o.waiting, o.retryAt = slices.Insert(o.waiting, 0, f), retryAt
}

// Next removes the oldest attempts and returns them, if no launch from before they were added can be
// valid now any more, and if their records are durable. lease is for how long after its record a launch
// can be carried out, and durable the number of records of the dispatcher that are durable.
func (o *Offers) Next(now, lease time.Duration, durable int64) (f Offer, ok bool) {
	if len(o.waiting) == 0 || now < o.retryAt || now-o.waiting[0].At < lease || durable < o.waiting[0].Records {
		return f, false
	}
	f, o.waiting[0] = o.waiting[0], f // its attempts are not kept in memory
	o.waiting = o.waiting[1:]
	return f, true
}
