package runview

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// keyed is a job with the number that it is sorted by.
type keyed struct {
	key uint64
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

// sortBy sorts ids by a key, stably.
func sortBy(l *list, ids []uint32, reverse bool, key func(*row) uint64) {
	list := make([]keyed, len(ids))
	for i, id := range ids {
		k := key(&l.rows[id-1])
		if reverse && k != none {
			k = none - 1 - k
		}
		list[i] = keyed{k, id}
	}
	for i, k := range radix(list, nil) {
		ids[i] = k.id
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

// radix sorts by key, stably, a byte at a time, leaving out bytes that all have in
// common. scratch is used if it is long enough.
func radix(list, scratch []keyed) []keyed {
	if len(list) < 256 {
		slices.SortStableFunc(list, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
		return list
	}
	var differ uint64
	for i := range list {
		differ |= list[i].key ^ list[0].key
	}
	if cap(scratch) < len(list) {
		scratch = make([]keyed, len(list))
	}
	to := scratch[:len(list)]
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var at [256]int
		for i := range list {
			at[list[i].key>>shift&0xff]++
		}
		sum := 0
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, k := range list {
			b := k.key >> shift & 0xff
			to[at[b]] = k
			at[b]++
		}
		list, to = to, list
	}
	return list
}

// sortByName sorts by title: by eight bytes at a time behind what all have in common,
// which costs little even where very many titles begin alike.
func sortByName(l *list, ids []uint32, reverse bool) []uint32 {
	title := func(id uint32) string { return l.spec(id).Title() }
	list := make([]keyed, len(ids))
	for i, id := range ids {
		list[i].id = id
	}
	scratch := make([]keyed, len(ids))
	byName(list, scratch, 0, title)
	if reverse { // equal ones stay in the order of their ids
		slices.Reverse(list)
		for i := 0; i < len(list); {
			j := i + 1
			for j < len(list) && title(list[j].id) == title(list[i].id) {
				j++
			}
			slices.Reverse(list[i:j])
			i = j
		}
	}
	for i, k := range list {
		ids[i] = k.id
	}
	return ids
}

// byName sorts a list whose titles are equal in their first n bytes.
func byName(list, scratch []keyed, n int, title func(uint32) string) {
	if len(list) < 64 {
		slices.SortStableFunc(list, func(a, b keyed) int { return strings.Compare(title(a.id)[n:], title(b.id)[n:]) })
		return
	}
	n += common(list, n, title)
	for i := range list {
		list[i].key = chunk(title(list[i].id), n)
	}
	if out := radix(list, scratch); &out[0] != &list[0] {
		copy(list, out)
	}
	first := 0
	for i := 1; i <= len(list); i++ {
		if i < len(list) && list[i].key == list[first].key {
			continue
		}
		if i-first > 1 && list[first].key&0xff == more { // equal so far
			byName(list[first:i], scratch, n+7, title)
		}
		first = i
	}
}

// more is the lowest byte of the chunk of a text that goes on behind it.
const more = 8

// chunk makes a number of the seven bytes behind the n-th, the lowest byte saying how
// many there were, so that a text stands before those that it begins.
func chunk(s string, n int) uint64 {
	var k uint64
	m := min(max(len(s)-n, 0), 7)
	for i := range m {
		k |= uint64(s[n+i]) << (56 - 8*i)
	}
	if m == 7 && len(s) > n+7 {
		return k | more
	}
	return k | uint64(m)
}

// common is how many further bytes all titles have in common.
func common(list []keyed, n int, title func(uint32) string) int {
	first := title(list[0].id)[n:]
	m := len(first)
	for _, k := range list[1:] {
		s := title(k.id)[n:]
		i := 0
		for i < m && i < len(s) && s[i] == first[i] {
			i++
		}
		if m = i; m == 0 {
			break
		}
	}
	return m
}
