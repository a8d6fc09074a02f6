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
	From     time.Duration    // when their claims are not needed any more, on a monotonic clock
}

// Add adds attempts, if there are any.
func (o *Offers) Add(f Offer) {
	if len(f.Attempts) > 0 {
		o.waiting = append(o.waiting, f)
	}
}

// PutBack adds attempts that Next has returned and that could not be packed. They are packed before all
// others, and nothing before retryAt, on the clock of Offer.From.
func (o *Offers) PutBack(f Offer, retryAt time.Duration) {
	o.waiting, o.retryAt = slices.Insert(o.waiting, 0, f), retryAt
}

// Next removes the oldest attempts whose claims are not needed any more and whose records are durable,
// and returns them. durable is the number of records of the dispatcher that are durable.
func (o *Offers) Next(now time.Duration, durable int64) (f Offer, ok bool) {
	i := slices.IndexFunc(o.waiting, func(f Offer) bool { return now >= f.From && durable >= f.Records })
	if i < 0 || now < o.retryAt {
		return f, false
	}
	f = o.waiting[i]
	o.waiting = slices.Delete(o.waiting, i, i+1)
	return f, true
}
