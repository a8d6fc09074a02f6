package runview

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// An order is the list of jobs that match a filter, sorted. Making one takes time
// where there are very many jobs, so a few are kept, and made anew only so often that
// it costs little.
type order struct {
	key     orderKey
	filter  *filter
	wrong   string
	ids     []uint32
	edition uint64 // of the rows that it was made of
	made    time.Time
	took    time.Duration
	used    uint64
	at      int // where the cursor was found last
	params  int // that the filter was read with
}

type orderKey struct {
	filter  string
	sort    Sort
	reverse bool
}

// orders are the few that are kept.
type orders struct {
	kept []*order
	uses uint64
}

// maxOrders bounds the orders that are kept: two screens with two views each.
const maxOrders = 4

// pace is how long after it was made something waits that took so long to make:
// making it again and again then costs 2 % of a core.
func pace(took time.Duration) time.Duration { return 50 * took }

// get returns the order asked for, made now unless a kept one is good enough.
func (o *orders) get(l *list, key orderKey, now time.Time) *order {
	o.uses++
	var x *order
	for _, k := range o.kept {
		if k.key == key {
			x = k
		}
	}
	if x == nil {
		x = &order{key: key}
		x.read(l)
		if len(o.kept) < maxOrders {
			o.kept = append(o.kept, x)
		} else {
			oldest := 0
			for i, k := range o.kept {
				if k.used < o.kept[oldest].used {
					oldest = i
				}
			}
			o.kept[oldest] = x
		}
	}
	x.used = o.uses
	if x.params != len(l.known.params) {
		x.read(l)
	}
	if x.made.IsZero() || x.edition != l.edition && !now.Before(x.due()) {
		x.make(l, now)
	}
	return x
}

// read reads the filter, and once more when jobs have come with other parameters.
func (x *order) read(l *list) {
	x.filter, x.wrong, x.params, x.made = nil, "", len(l.known.params), time.Time{}
	f, err := parseFilter(x.key.filter, l.known)
	if x.filter = f; err != nil {
		x.wrong = err.Error()
	}
}

// due is when the order may be made anew.
func (x *order) due() time.Time { return x.made.Add(pace(x.took)) }

func (x *order) make(l *list, now time.Time) {
	began := time.Now()
	x.ids = nil
	if x.wrong == "" {
		x.ids = sortIDs(l, l.matching(x.filter), x.key.sort, x.key.reverse, now)
	}
	x.edition, x.made, x.took = l.edition, now, time.Since(began)
}

// find returns the position of a job, -1 if it is not in the order.
func (x *order) find(id uint32) int {
	const near = 1000 // a cursor mostly moves a little
	from, to := max(0, x.at-near), min(len(x.ids), x.at+near)
	if i := slices.Index(x.ids[min(from, to):to], id); i >= 0 {
		x.at = from + i
		return x.at
	}
	if i := slices.Index(x.ids, id); i >= 0 {
		x.at = i
		return i
	}
	return -1
}

// matching returns the jobs that fit a filter, ascending; nil fits all.
func (l *list) matching(f *filter) []uint32 {
	if f == nil {
		ids := make([]uint32, len(l.rows))
		for i := range ids {
			ids[i] = uint32(i + 1)
		}
		return ids
	}
	n := len(l.rows)
	parts := min(runtime.GOMAXPROCS(0), 1+n/20_000)
	found := make([][]uint32, parts)
	faults := make(chan any, parts)
	var wg sync.WaitGroup
	for p := range parts {
		look := func() {
			defer func() {
				if p := recover(); p != nil {
					faults <- p
				}
			}()
			var ids []uint32
			l := *l
			if l.specs != nil {
				l.spec = l.specs()
			}
			for i := n * p / parts; i < n*(p+1)/parts; i++ {
				if f.fits(&l, uint32(i+1), &l.rows[i]) {
					ids = append(ids, uint32(i+1))
				}
			}
			found[p] = ids
		}
		if p == parts-1 {
			look()
		} else {
			wg.Go(look)
		}
	}
	wg.Wait()
	select {
	case p := <-faults: // in whoever looks, where it is caught
		panic(p)
	default:
	}
	all := found[0]
	for _, ids := range found[1:] {
		all = append(all, ids...)
	}
	return all
}

// window says which part of a list of n is shown: the first position, how many, and
// that of the cursor in the list (-1: it is not in it).
func window(x *order, w *JobsWindow) (first, rows, cursor int) {
	cursor = -1
	if w.Cursor > 0 && uint64(w.Cursor) < 1<<32 {
		cursor = x.find(uint32(w.Cursor))
	}
	first, rows = placeWindow(len(x.ids), cursor, w)
	return first, rows, cursor
}

// placeWindow places a window on a list of n rows, in which its cursor is at position
// at, -1 for nowhere.
func placeWindow(n, at int, w *JobsWindow) (first, rows int) {
	rows = min(max(w.Rows, 0), MaxRows, n)
	if at < 0 {
		at = min(max(w.At, 0), n-1)
	}
	above := min(max(w.Above, 0), max(0, rows-1))
	return min(max(at-above, 0), n-rows), rows
}

// of returns the kept order of a window, nil if there is none.
func (o *orders) of(w *JobsWindow) *order {
	if w == nil {
		return nil
	}
	for _, x := range o.kept {
		if x.key == keyOf(w) && !x.made.IsZero() {
			return x
		}
	}
	return nil
}

func keyOf(w *JobsWindow) orderKey {
	by := w.Sort
	if by >= Sorts {
		by = SortAge
	}
	return orderKey{w.Filter, by, w.Reverse}
}
