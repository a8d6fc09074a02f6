package board

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/dispatch/view"
)

// line is the queue in the order in which its jobs start, by order alone. It is made
// as seldom as an order; those that have left its front since are not counted.
type line struct {
	ids     []uint32
	edition uint64
	made    time.Time
	took    time.Duration
}

// place says of queued rows how many start before them.
func (b *Board) place(rows []view.Row) {
	queued := func(r view.Row) bool { return r.Phase == view.Queued }
	if !slices.ContainsFunc(rows, queued) {
		return
	}
	l := &b.queue
	if now := time.Now(); l.ids == nil || l.edition != b.edition && now.Sub(l.made) >= pace(l.took) {
		ids := l.ids[:0]
		for i := range b.rows {
			if b.rows[i].phase == view.Queued {
				ids = append(ids, uint32(i+1))
			}
		}
		l.ids = sortIDs(&b.list, ids, view.SortAge, false, now)
		l.edition, l.made, l.took = b.edition, now, time.Since(now)
	}
	for len(l.ids) > 0 && b.rows[l.ids[0]-1].phase != view.Queued {
		l.ids = l.ids[1:]
	}
	for i := range rows {
		r := &rows[i]
		if !queued(*r) || int(r.ID) > len(b.rows) {
			continue
		}
		mine := startKey(&b.rows[r.ID-1])
		r.Place, _ = slices.BinarySearchFunc(l.ids, uint32(r.ID), func(id, me uint32) int {
			return cmp.Or(cmp.Compare(startKey(&b.rows[id-1]), mine), cmp.Compare(id, me))
		})
	}
}
