package runview

import (
	"context"
	"errors"
	"time"

	"dcs-tui/jobs"
)

// Match returns all jobs that a filter matches, and what it would cost to end them.
func (v *View) Match(ctx context.Context, text string) (jobs.Ranges, Weight, error) {
	if err := v.Ready(ctx); err != nil {
		return nil, Weight{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.take(time.Now())
	f, err := parseFilter(text, v.known)
	if err != nil {
		return nil, Weight{}, &Refused{Why: err.Error()}
	}
	which := jobs.Ranges{}
	for _, id := range v.matching(f) {
		which.Add(jobs.ID(id))
	}
	return which, v.weight(which), nil
}

// Weigh says what it would cost to end these jobs.
func (v *View) Weigh(ctx context.Context, which jobs.Ranges) (Weight, error) {
	if err := v.Ready(ctx); err != nil {
		return Weight{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.take(time.Now())
	if !sound(which) {
		return Weight{}, errRanges
	}
	return v.weight(which), nil
}

// errRanges is for callers who give jobs out of order.
var errRanges = errors.New("the jobs are not in ascending order")

// sound says that ranges are as Ranges wants them: others would count jobs twice.
func sound(which jobs.Ranges) bool {
	last := jobs.ID(0)
	for _, r := range which {
		if r.First <= last || r.Last < r.First {
			return false
		}
		last = r.Last
	}
	return true
}

func (v *View) weight(which jobs.Ranges) Weight {
	var w Weight
	now := jobs.StampOf(v.now())
	for _, x := range which {
		for id := max(1, x.First); id <= x.Last && int(id) <= len(v.rows); id++ {
			switch r := &v.rows[id-1]; {
			case r.phase.Terminal():
				w.Over++
			case r.phase == Handed:
				w.Handed++
			case runs(r.phase):
				w.Running++
				if r.when > 0 {
					w.Lost += max(0, now.Sub(r.when)) * time.Duration(max(1, v.options[r.options].Slots))
				}
			default:
				w.Queued++
			}
		}
	}
	return w
}
