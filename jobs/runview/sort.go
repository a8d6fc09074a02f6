package runview

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// keyed is a job with what it is sorted by, and its position before that.
type keyed[T uint64 | string] struct {
	key T
	at  uint32
	id  uint32
}

// sortIDs sorts ids, which are ascending, and uses their memory. Equal ones stay in
// the order of their ids, whatever reverse says. Times, progress, memory and tries are
// shown highest first, what has none of them last; the others lowest first.
func sortIDs(l *list, ids []uint32, by Sort, reverse bool, now time.Time) []uint32 {
	switch by {
	case SortID:
		if reverse {
			slices.Reverse(ids)
		}
		return ids
	case SortName:
		return sortByName(l, ids, reverse)
	}
	if by == SortAge && len(l.hard.order) > 0 { // of those that are equal otherwise
		sortBy(l, ids, reverse, func(r *row) uint64 { return uint64(l.hardnessOf(r)) })
	}
	sortBy(l, ids, reverse, l.keyOf(by, now))
	return ids
}

// sortBy sorts ids by a key, and equal ones by their position.
func sortBy(l *list, ids []uint32, reverse bool, key func(*row) uint64) {
	list := make([]keyed[uint64], len(ids))
	for i, id := range ids {
		k := key(&l.rows[id-1])
		if reverse && k != none {
			k = none - 1 - k
		}
		list[i] = keyed[uint64]{k, uint32(i), id}
	}
	slices.SortFunc(list, func(a, b keyed[uint64]) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) })
	for i := range list {
		ids[i] = list[i].id
	}
}

// none is the key of what stands last in either direction.
const none = math.MaxUint64

// keyOf returns what makes the key of a row, none excepted below 1<<63.
func (l *list) keyOf(by Sort, now time.Time) func(*row) uint64 {
	switch by {
	case SortState:
		return func(r *row) uint64 { return uint64(r.phase) }
	case SortHost:
		rank := ranks(l.names)
		return func(r *row) uint64 {
			if r.host == 0 {
				return none
			}
			return uint64(rank[r.host])
		}
	case SortTry:
		return func(r *row) uint64 { return uint64(math.MaxUint16 + 1 - r.try()) }
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
		rank := l.queueRanks()
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

// ageKey is TUI.md's first order: running, waiting to retry, failed, queued in the
// order in which they start, then what is over, newest first.
func (l *list) ageKey(r *row) uint64 {
	newest := uint64(math.MaxUint32 - r.seq)
	switch r.phase {
	case Ending, Running, Away, Handed, Retry:
		return uint64(r.phase)<<59 | uint64(max(0, r.when))>>4
	case Failed, TimedOut:
		return 5<<59 | newest
	case Queued:
		return 6<<59 | l.startKey(r)
	case Waits:
		return 7 << 59
	}
	return 8<<59 | newest
}

// startKey is the order in which ready jobs start, as sched's rank has it: urgent,
// priority, deadline, in 59 bits.
func (l *list) startKey(r *row) uint64 {
	k := uint64(int64(r.priority)-math.MinInt32) << 26
	if r.flags&urgent == 0 {
		k |= 1 << 58
	}
	late := uint64(1<<26 - 1)
	if o := l.options[r.options]; !o.Deadline.IsZero() {
		const unit = 8 // seconds; 2^26 of them are 17 years
		late = uint64(min(max((o.Deadline.Unix()-1_767_225_600)/unit, 0), 1<<26-2))
	}
	return k | late
}

// ranks numbers texts by their order.
func ranks(names []string) []int {
	byName := make([]int, len(names))
	for i := range byName {
		byName[i] = i
	}
	slices.SortFunc(byName, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	rank := make([]int, len(names))
	for i, n := range byName {
		rank[n] = i
	}
	return rank
}

// queueRanks numbers the queues by name, by the options that name them.
func (l *list) queueRanks() []uint64 {
	var names []string
	for _, o := range l.options {
		names = append(names, o.Queue)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	ranks := make([]uint64, len(l.options))
	for i, o := range l.options {
		n, _ := slices.BinarySearch(names, o.Queue)
		ranks[i] = uint64(n)
	}
	return ranks
}

// sortByName sorts by title.
func sortByName(l *list, ids []uint32, reverse bool) []uint32 {
	list := make([]keyed[string], len(ids))
	for i, id := range ids {
		list[i] = keyed[string]{l.spec(id).Title(), uint32(i), id}
	}
	slices.SortFunc(list, func(a, b keyed[string]) int {
		c := strings.Compare(a.key, b.key)
		if reverse {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.at, b.at))
	})
	for i := range list {
		ids[i] = list[i].id
	}
	return ids
}
