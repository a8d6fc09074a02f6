package runview

import (
	"context"
	"errors"
	"time"

	"dcs-tui/jobs"
)

// Match returns all jobs that a filter matches, and what it would cost to end them.
func (b *Board) Match(ctx context.Context, text string) (jobs.Ranges, Weight, error) {
	if !b.take(ctx) {
		return nil, Weight{}, ctx.Err()
	}
	defer b.give()
	if err := b.refresh(ctx, true); err != nil {
		return nil, Weight{}, err
	}
	f, err := parseFilter(text, b.known)
	if err != nil {
		return nil, Weight{}, &Refused{Why: err.Error()}
	}
	which := jobs.Ranges{}
	for _, id := range b.matching(f) {
		which.Add(jobs.ID(id))
	}
	return which, b.weight(which), nil
}

// Weigh says what it would cost to end these jobs.
func (b *Board) Weigh(ctx context.Context, which jobs.Ranges) (Weight, error) {
	if !b.take(ctx) {
		return Weight{}, ctx.Err()
	}
	defer b.give()
	if err := b.refresh(ctx, true); err != nil {
		return Weight{}, err
	}
	if !sound(which) {
		return Weight{}, errRanges
	}
	return b.weight(which), nil
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

func (b *Board) weight(which jobs.Ranges) Weight {
	var w Weight
	now := jobs.StampOf(time.Now())
	for _, x := range which {
		for id := max(1, x.First); id <= x.Last && int(id) <= len(b.rows); id++ {
			switch r := &b.rows[id-1]; {
			case r.phase.Terminal():
				w.Over++
			case r.phase == Handed:
				w.Handed++
			case runs(r.phase):
				w.Running++
				if r.when > 0 {
					slots := 1
					if r.spec.Options != nil {
						slots = r.spec.SlotCount()
					}
					w.Lost += max(0, now.Sub(r.when)) * time.Duration(slots)
				}
			default:
				w.Queued++
			}
		}
	}
	return w
}
