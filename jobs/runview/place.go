package runview

import (
	"cmp"
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
	all   []*jobs.Options // of jobs that have a hardness, in the order of their first jobs
	had   map[*jobs.Options]bool
	known int // of all: those that are in order
	made  time.Time
	took  time.Duration
}

// learn takes in the options of a job.
func (h *hardness) learn(o *jobs.Options) {
	if o == nil || len(o.Hardness) == 0 || h.had[o] {
		return
	}
	if h.had == nil {
		h.had = map[*jobs.Options]bool{}
	}
	h.had[o] = true
	h.all = append(h.all, o)
}

// hardnessOf is where a queued job stands among those that nothing else tells apart.
func (l *list) hardnessOf(r *row) uint32 {
	h := &l.hard
	if len(h.order) == 0 || r.phase != Queued {
		return 0
	}
	return h.order[l.options[r.options]]
}

// maxHardnesses bounds how many are put in order. With more nobody is told a place.
const maxHardnesses = 20_000

// sort numbers the options from 1 for the easiest, batch by batch, as sched starts their
// jobs; those that are as hard as each other have one number.
func (h *hardness) sort() {
	type batch struct {
		queue, file string
		n           int
	}
	type tuple struct {
		o     *jobs.Options
		batch int
		at    []jobs.Hardness
	}
	batches := map[batch]int{}
	list := make([]tuple, len(h.all))
	for i, o := range h.all {
		b := batch{o.Queue, o.File, len(o.Hardness)}
		if _, ok := batches[b]; !ok {
			batches[b] = len(batches)
		}
		list[i] = tuple{o: o, batch: batches[b]}
		for _, s := range o.Hardness {
			list[i].at = append(list[i].at, jobs.ParseHardness(s))
		}
	}
	compare := func(a, b tuple) int {
		if c := cmp.Compare(a.batch, b.batch); c != 0 {
			return c
		}
		if c := slices.CompareFunc(a.at, b.at, jobs.Hardness.Compare); c != 0 {
			return c
		}
		return cmp.Compare(uint64(b.o.Timeout-1), uint64(a.o.Timeout-1)) // none is the most
	}
	slices.SortStableFunc(list, compare)
	h.order = make(map[*jobs.Options]uint32, len(list))
	n := uint32(0)
	for i, t := range list {
		if i == 0 || compare(list[i-1], t) != 0 {
			n++
		}
		h.order[t.o] = n
	}
}

// learnHardness brings the order of hardness up to date, as seldom as an order.
func (v *View) learnHardness(now time.Time) {
	h := &v.hard
	switch {
	case len(h.all) > maxHardnesses:
		h.order = nil
		return
	case len(h.all) == h.known, now.Sub(h.made) < pace(h.took):
		return
	}
	start := time.Now()
	h.sort()
	h.known, h.made, h.took = len(h.all), now, time.Since(start)
	v.edition++ // orders are to be made anew
}

// stand makes the line.
func (v *View) stand(l *line, now time.Time) {
	start := time.Now()
	ids := l.ids[:0]
	var queue string
	var last *jobs.Options
	l.mixed = len(v.hard.all) > maxHardnesses
	for i := range v.rows {
		r := &v.rows[i]
		if r.phase != Queued {
			continue
		}
		if o := v.options[r.options]; o != last || len(ids) == 0 {
			// Whose turn it is among queues changes with what they use, and who takes a short job with where a slot is free.
			l.mixed = l.mixed || len(ids) > 0 && o.Queue != queue || v.state != nil && v.state.Hybrid && o.Estimate > 0
			queue, last = o.Queue, o
		}
		ids = append(ids, uint32(i+1))
	}
	l.ids = sortIDs(&v.list, ids, SortAge, false, now)
	l.edition, l.made, l.took = v.edition, now, time.Since(start)
}

// placeRows says of queued rows how many start before them, where that is known.
func (v *View) placeRows(rows []Row) {
	queued := func(r Row) bool { return r.Phase == Queued }
	if !slices.ContainsFunc(rows, queued) {
		return
	}
	l := &v.queue
	if now := v.now(); l.ids == nil || l.edition != v.edition && now.Sub(l.made) >= pace(l.took) {
		v.stand(l, now)
	}
	if l.mixed {
		return
	}
	for len(l.ids) > 0 && v.rows[l.ids[0]-1].phase != Queued {
		l.ids = l.ids[1:]
	}
	for i := range rows {
		r := &rows[i]
		if !queued(*r) || int(r.ID) > len(v.rows) {
			continue
		}
		mine := &v.rows[r.ID-1]
		r.Place, _ = slices.BinarySearchFunc(l.ids, uint32(r.ID), func(id, me uint32) int {
			other := &v.rows[id-1]
			return cmp.Or(cmp.Compare(v.startKey(other), v.startKey(mine)), cmp.Compare(v.hardnessOf(other), v.hardnessOf(mine)), cmp.Compare(id, me))
		})
	}
}
