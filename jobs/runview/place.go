package runview

import (
	"cmp"
	"context"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// line is the queue in the order in which its jobs start, by order alone. It is made
// as seldom as an order; those that have left its front since are not counted.
type line struct {
	ids     []uint32
	mixed   bool // who comes next is not settled by order alone
	edition uint64
	made    time.Time
	took    time.Duration
}

// hardness is the order of jobs that run from the easiest to the hardest (E2).
type hardness struct {
	order map[*jobs.Options]uint32
	known int // of sched.Core.Hardnesses it was made
	made  time.Time
	took  time.Duration
}

// of is where a queued job stands among those that nothing else tells apart.
func (h *hardness) of(r *row) uint32 {
	if len(h.order) == 0 || r.phase != Queued {
		return 0
	}
	return h.order[r.spec.Options]
}

// mostHardnesses bounds how many are put in order, in the engine's goroutine, where 10,000
// were measured to take 6 ms. With more nobody is told a place.
const mostHardnesses = 20_000

// learnHardness has the order of hardness brought up to date, as seldom as an order.
func (b *Board) learnHardness(ctx context.Context) error {
	now := time.Now()
	switch {
	case b.status.hardnesses > mostHardnesses:
		b.hard.order = nil
		return nil
	case b.status.hardnesses == b.hard.known, now.Sub(b.hard.made) < pace(b.hard.took):
		return nil
	}
	type learnt struct {
		order map[*jobs.Options]uint32
		known int
	}
	answer := make(chan learnt, 1)
	if err := b.from.visit(ctx, func(k *desk) { answer <- learnt{k.core.HardnessOrder(), k.core.Hardnesses()} }); err != nil {
		return err
	}
	l := <-answer
	b.hard = hardness{l.order, l.known, now, time.Since(now)}
	b.edition++ // orders are to be made anew
	return nil
}

// stand makes the line.
func (b *Board) stand(l *line, now time.Time) {
	ids := l.ids[:0]
	var queue string
	var last *jobs.Options
	l.mixed = b.status.hardnesses > mostHardnesses
	for i := range b.rows {
		r := &b.rows[i]
		if r.phase != Queued {
			continue
		}
		if o := r.spec.Options; o != nil && (o != last || len(ids) == 0) {
			// Whose turn it is among queues changes with what they use, and who takes a short job with where a slot is free.
			l.mixed = l.mixed || len(ids) > 0 && o.Queue != queue || b.status.hybrid && o.Estimate > 0
			queue, last = o.Queue, o
		}
		ids = append(ids, uint32(i+1))
	}
	l.ids = sortIDs(&b.list, ids, SortAge, false, now)
	l.edition, l.made, l.took = b.edition, now, time.Since(now)
}

// place says of queued rows how many start before them, where that is known.
func (b *Board) place(rows []Row) {
	queued := func(r Row) bool { return r.Phase == Queued }
	if !slices.ContainsFunc(rows, queued) {
		return
	}
	l := &b.queue
	if now := time.Now(); l.ids == nil || l.edition != b.edition && now.Sub(l.made) >= pace(l.took) {
		b.stand(l, now)
	}
	if l.mixed {
		return
	}
	for len(l.ids) > 0 && b.rows[l.ids[0]-1].phase != Queued {
		l.ids = l.ids[1:]
	}
	for i := range rows {
		r := &rows[i]
		if !queued(*r) || int(r.ID) > len(b.rows) {
			continue
		}
		mine := &b.rows[r.ID-1]
		r.Place, _ = slices.BinarySearchFunc(l.ids, uint32(r.ID), func(id, me uint32) int {
			other := &b.rows[id-1]
			return cmp.Or(cmp.Compare(startKey(other), startKey(mine)), cmp.Compare(b.hard.of(other), b.hard.of(mine)), cmp.Compare(id, me))
		})
	}
}
