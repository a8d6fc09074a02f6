package runview

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// upkeep decides when a value that is computed from all rows is computed again. The longer that
// takes, the less often it happens.
type upkeep struct {
	edition uint64 // edition of the rows from which it was computed
	madeAt  time.Time
	took    time.Duration
}

// next returns the earliest time of the next computation. At this pace it takes at most 2 % of a
// core.
func (u *upkeep) next() time.Time { return u.madeAt.Add(50 * u.took) }

// isDue reports whether the value must be computed again for the given edition of the rows.
func (u *upkeep) isDue(edition uint64) bool {
	return u.madeAt.IsZero() || u.edition != edition && !time.Now().Before(u.next())
}

// recompute computes the value and records how long that took.
func (u *upkeep) recompute(edition uint64, remake func()) {
	began := time.Now()
	remake()
	u.edition, u.madeAt, u.took = edition, began, time.Since(began)
}

// An order is the list of jobs that match a filter, sorted.
type order struct {
	key    orderKey
	filter filter
	wrong  string
	ids    []uint32
	params int // number of parameters that the filter knew
	upkeep
}

type orderKey struct {
	filter  string
	sort    Sort
	reverse bool
}

// order returns the requested order. It is computed now unless the kept one is recent enough. A
// View keeps only the order of its screen.
func (v *View) order(key orderKey) *order {
	x := v.page
	if x == nil || x.key != key {
		x = &order{key: key}
		v.page = x
	}
	if n := len(v.known.params.Values); x.madeAt.IsZero() || x.params != n { // parameters have been added
		x.upkeep, x.params, x.wrong = upkeep{}, n, ""
		var err error
		if x.filter, err = parseFilter(key.filter, v.known); err != nil {
			x.wrong = err.Error()
		}
	}
	if x.isDue(v.edition) {
		v.remake(x)
	}
	return x
}

func (v *View) remake(x *order) {
	x.recompute(v.edition, func() {
		x.ids = nil
		if x.wrong == "" {
			x.ids = sortIDs(&v.list, v.matching(x.filter), x.key.sort, x.key.reverse, v.now())
		}
	})
}

// matching returns the jobs that a filter matches, in ascending order. A nil filter matches all.
func (l *list) matching(f filter) []uint32 {
	if f == nil {
		ids := make([]uint32, len(l.rows))
		for i := range ids {
			ids[i] = uint32(i + 1)
		}
		return ids
	}
	n := len(l.rows)
	parts := min(runtime.GOMAXPROCS(0), 1+n/20_000)
	found, faults := make([][]uint32, parts), make([]any, parts)
	var wg sync.WaitGroup
	for p := range parts {
		wg.Go(func() {
			defer func() { faults[p] = recover() }()
			l := *l
			if l.specs != nil {
				l.spec = l.specs()
			}
			for i := n * p / parts; i < n*(p+1)/parts; i++ {
				if f(candidate{&l, uint32(i + 1), &l.rows[i]}) {
					found[p] = append(found[p], uint32(i+1))
				}
			}
		})
	}
	wg.Wait()
	for _, fault := range faults { // panic in the caller, which recovers
		if fault != nil {
			panic(fault)
		}
	}
	return slices.Concat(found...)
}

// placeWindow places a window on a list of n rows. at is the position of the cursor in the list, or
// -1.
func placeWindow(n, at int, w *JobsWindow) (first, rows int) {
	rows = min(max(w.Rows, 0), MaxRows, n)
	if at < 0 {
		at = min(max(w.At, 0), n-1)
	}
	above := min(max(w.Above, 0), max(0, rows-1))
	return min(max(at-above, 0), n-rows), rows
}

// keptOrder returns the kept order if a window uses it, or nil.
func (v *View) keptOrder(w *JobsWindow) *order {
	if w == nil || v.page == nil || v.page.key != keyOf(w) {
		return nil
	}
	return v.page
}

func keyOf(w *JobsWindow) orderKey {
	by := w.Sort
	if by >= Sorts {
		by = SortAge
	}
	return orderKey{w.Filter, by, w.Reverse}
}

// keyed is a job with its sort key and its previous position.
type keyed[T uint64 | string] struct {
	key T
	at  uint32
	id  uint32
}

// sortIDs sorts ids, which are ascending, in place. Equal ones stay in the order of their ids, even
// with reverse. Times, progress, memory, and tries are sorted in descending order, and everything
// else in ascending order. Jobs without a value come last.
func sortIDs(l *list, ids []uint32, by Sort, reverse bool, now time.Time) []uint32 {
	switch by {
	case SortID:
		if reverse {
			slices.Reverse(ids)
		}
		return ids
	case SortName:
		sortByKey(ids, reverse, func(id uint32) string { return l.spec(id).Title() })
		return ids
	}
	if by == SortAge {
		l.rankHardness()
		if l.numHardnesses > 0 { // breaks ties
			sortBy(l, ids, reverse, func(r *row) uint64 { return uint64(l.hardnessOf(r)) })
		}
	}
	sortBy(l, ids, reverse, l.keyOf(by, now))
	return ids
}

func sortBy(l *list, ids []uint32, reverse bool, key func(*row) uint64) {
	sortByKey(ids, false, func(id uint32) uint64 {
		k := key(&l.rows[id-1])
		if reverse && k != none {
			k = none - 1 - k
		}
		return k
	})
}

// sortByKey sorts ids by a key, and equal ones by their position.
func sortByKey[T uint64 | string](ids []uint32, reverse bool, key func(id uint32) T) {
	list := make([]keyed[T], len(ids))
	for i, id := range ids {
		list[i] = keyed[T]{key(id), uint32(i), id}
	}
	slices.SortFunc(list, func(a, b keyed[T]) int {
		c := cmp.Compare(a.key, b.key)
		if reverse {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.at, b.at))
	})
	for i := range list {
		ids[i] = list[i].id
	}
}

// none is the key of rows that come last in either direction.
const none = math.MaxUint64

// keyOf returns a function that computes the sort key of a row. All keys except none are below
// 1<<63.
func (l *list) keyOf(by Sort, now time.Time) func(*row) uint64 {
	switch by {
	case SortState:
		return func(r *row) uint64 { return uint64(r.phase) }
	case SortHost:
		rank := ranks(l.names.Values)
		return func(r *row) uint64 {
			if r.host == 0 {
				return none
			}
			return rank[r.host]
		}
	case SortTry:
		return func(r *row) uint64 { return uint64(math.MaxUint16 + 1 - r.tryNumber()) }
	case SortTime:
		at := jobs.StampOf(now)
		return func(r *row) uint64 {
			switch {
			case r.phase <= Away && r.when > 0:
				return 1<<62 - uint64(max(0, at.Sub(r.when)))
			case r.took > 0:
				return 1<<62 - uint64(min(float64(r.took)*1e9, 1<<61))
			}
			return none
		}
	case SortProgress:
		return func(r *row) uint64 {
			if r.progress == noProgress {
				return none
			}
			return uint64(noProgress - r.progress)
		}
	case SortPriority:
		return func(r *row) uint64 { return uint64(int64(r.priority) - math.MinInt32) }
	case SortQueue:
		rank := ranks(text.Each(l.options.Values, func(o *jobs.Options) string { return o.Queue }))
		return func(r *row) uint64 { return rank[r.options] }
	case SortMemory:
		return func(r *row) uint64 {
			if r.mem == 0 {
				return none
			}
			return uint64(math.MaxUint32 - r.mem)
		}
	}
	return l.ageKey
}

// ageKey is the key of the default order: running, waiting to retry, failed, queued in the order in
// which they start, then finished jobs, newest first.
func (l *list) ageKey(r *row) uint64 {
	newest := uint64(math.MaxUint32 - r.seq)
	switch r.phase {
	case Ending, Running, Suspended, Away, Sent, Retry:
		return uint64(r.phase)<<59 | uint64(max(0, r.when))>>4
	case Failed, TimedOut:
		return uint64(Failed)<<59 | newest
	case Queued:
		return uint64(Queued)<<59 | l.startKey(r)
	case Waits:
		return uint64(Waits) << 59
	}
	return uint64(Succeeded)<<59 | newest
}

// startKey is the key of the order in which ready jobs start. It has 59 bits.
func (l *list) startKey(r *row) uint64 {
	u := jobs.Urgency{IsUrgent: r.flags&urgent != 0, Priority: r.priority, HasFailed: r.flags&retried != 0,
		Deadline: jobs.DeadlineOf(l.options.Values[r.options])}
	return u.Key()
}

// ranks returns the position of each text among the distinct ones in sorted order.
func ranks(texts []string) []uint64 {
	sorted := slices.Compact(slices.Sorted(slices.Values(texts)))
	ranks := make([]uint64, len(texts))
	for i, text := range texts {
		n, _ := slices.BinarySearch(sorted, text)
		ranks[i] = uint64(n)
	}
	return ranks
}

// queue holds the queued jobs in the order in which they start, as far as their sort keys determine
// it.
type queue struct {
	ids   []uint32
	mixed bool // the sort keys alone do not determine which job is next
	upkeep
}

// maxHardnesses bounds how many options are ranked. If there are more, no row has a Place.
const maxHardnesses = 20_000

// rankHardness ranks the options with a hardness from 1 for the easiest, batch by batch, in the order
// in which sched starts their jobs. Options of equal hardness have the same rank. With too many of
// them, or none, there are no ranks.
func (l *list) rankHardness() {
	all := l.options.Values
	if len(l.hardness) == len(all) {
		return
	}
	type tuple struct {
		options, batch int
		at             []jobs.Hardness
	}
	var batches jobs.Numbering[jobs.HardnessBatch]
	var list []tuple
	for i, o := range all {
		if len(o.Hardness) == 0 {
			continue
		}
		t := tuple{options: i, batch: batches.Number(o.HardnessBatch())}
		for _, s := range o.Hardness {
			t.at = append(t.at, jobs.ParseHardness(s))
		}
		list = append(list, t)
	}
	l.hardness, l.numHardnesses = make([]uint32, len(all)), len(list)
	if l.numHardnesses > maxHardnesses {
		return
	}
	compare := func(a, b tuple) int {
		return cmp.Or(cmp.Compare(a.batch, b.batch),
			jobs.CompareHardness(a.at, b.at, all[a.options].Timeout, all[b.options].Timeout))
	}
	slices.SortStableFunc(list, compare)
	n := uint32(0)
	for i, t := range list {
		if i == 0 || compare(list[i-1], t) != 0 {
			n++
		}
		l.hardness[t.options] = n
	}
}

// hardnessOf returns the rank of a queued job's hardness, which breaks ties between equal keys. A job
// whose options have no rank yet comes first.
func (l *list) hardnessOf(r *row) uint32 {
	if r.phase != Queued || int(r.options) >= len(l.hardness) {
		return 0
	}
	return l.hardness[r.options]
}

func (v *View) sortQueue() {
	l := &v.queue
	ids := l.ids[:0]
	var name string
	var last *jobs.Options
	v.rankHardness()
	l.mixed = v.numHardnesses > maxHardnesses
	for i := range v.rows {
		r := &v.rows[i]
		if r.phase != Queued {
			continue
		}
		if o := v.options.Values[r.options]; o != last || len(ids) == 0 {
			// Which queue is next depends on its usage, and which host gets a short job depends on
			// where a slot becomes free.
			l.mixed = l.mixed || len(ids) > 0 && o.Queue != name || v.state != nil && v.state.Hybrid && o.Estimate > 0
			name, last = o.Queue, o
		}
		ids = append(ids, uint32(i+1))
	}
	l.ids = sortIDs(&v.list, ids, SortAge, false, v.now())
}

// placeRows sets Place of queued rows where it is known. It does not count jobs that have left the
// front of the queue since the queue was computed.
func (v *View) placeRows(rows []Row) {
	queued := func(r Row) bool { return r.Phase == Queued }
	if !slices.ContainsFunc(rows, queued) {
		return
	}
	l := &v.queue
	if l.isDue(v.edition) {
		l.recompute(v.edition, v.sortQueue)
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
			return cmp.Or(cmp.Compare(v.startKey(other), v.startKey(mine)),
				cmp.Compare(v.hardnessOf(other), v.hardnessOf(mine)), cmp.Compare(id, me))
		})
	}
}
