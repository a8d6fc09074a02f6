package runview

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// groups are the failures by cause and last line of stderr (X7), kept as rows change.
type groups struct {
	byKey map[[2]string]uint16
	list  []*group // index 0 is nobody's
	free  []uint16
}

// maxGroups bounds the causes that are kept apart; further ones share otherCauses.
const maxGroups = 1000

var otherCauses = [2]string{"other causes", ""}

// group is one of them.
type group struct {
	key   [2]string
	tries int // jobs that are being tried again
	hosts map[string]int

	// Members as of the last settle, ascending, and what has changed since.
	ids        []uint32
	come, gone map[uint32]struct{}

	count   int
	edition uint64    // grows with each change
	shown   uint64    // of which newest and which were worked out
	shownAt time.Time // when
	took    time.Duration
	newest  []jobs.ID
	which   jobs.Ranges
	rows    []Row
}

func (g *groups) init() {
	g.byKey = map[[2]string]uint16{}
	g.list = []*group{nil}
}

// of returns the number of the group of a cause; now is that of the row so far.
func (g *groups) of(now uint16, cause, last string) uint16 {
	key := [2]string{cause, last}
	if now > 0 && g.list[now].key == key {
		return now
	}
	n, ok := g.byKey[key]
	if !ok && len(g.byKey) >= maxGroups {
		key = otherCauses
		n, ok = g.byKey[key]
	}
	if ok {
		return n
	}
	if k := len(g.free); k > 0 {
		n, g.free = g.free[k-1], g.free[:k-1]
	} else {
		n = uint16(len(g.list))
		g.list = append(g.list, nil)
	}
	g.list[n] = &group{key: key, hosts: map[string]int{}, come: map[uint32]struct{}{}, gone: map[uint32]struct{}{}}
	g.byKey[key] = n
	return n
}

func counts(p Phase) bool { return p == Failed || p == TimedOut }

func (g *groups) enter(id uint32, r *row, host string) {
	if r.group == 0 {
		return
	}
	x := g.list[r.group]
	x.edition++
	if !counts(r.phase) {
		x.tries++
		return
	}
	x.count++
	if _, was := x.gone[id]; was {
		delete(x.gone, id)
	} else {
		x.come[id] = struct{}{}
	}
	if host != "" {
		x.hosts[host]++
	}
}

func (g *groups) leave(id uint32, r *row, host string) {
	if r.group == 0 {
		return
	}
	x := g.list[r.group]
	x.edition++
	if !counts(r.phase) {
		x.tries--
	} else {
		x.count--
		if _, new := x.come[id]; new {
			delete(x.come, id)
		} else {
			x.gone[id] = struct{}{}
		}
		if x.hosts[host]--; x.hosts[host] <= 0 {
			delete(x.hosts, host)
		}
	}
}

// tidy forgets a group that nobody is in any more.
func (g *groups) tidy(n uint16) {
	if n == 0 {
		return
	}
	if x := g.list[n]; x != nil && x.count == 0 && x.tries == 0 {
		delete(g.byKey, x.key)
		g.list[n] = nil
		g.free = append(g.free, n)
	}
}

// settle works out members and the newest of them, as often as pace allows.
func (x *group) settle(rows []row, now time.Time) {
	if x.shown == x.edition && x.which != nil || x.which != nil && now.Sub(x.shownAt) < pace(x.took) {
		return
	}
	began := time.Now()
	if len(x.come)+len(x.gone) > 0 {
		come := make([]uint32, 0, len(x.come))
		for id := range x.come {
			come = append(come, id)
		}
		slices.Sort(come)
		merged := make([]uint32, 0, x.count)
		for _, id := range x.ids {
			for len(come) > 0 && come[0] < id {
				merged, come = append(merged, come[0]), come[1:]
			}
			if _, gone := x.gone[id]; !gone {
				merged = append(merged, id)
			}
		}
		x.ids = append(merged, come...)
		clear(x.come)
		clear(x.gone)
	}
	x.which = jobs.Ranges{}
	newest := make([]uint32, 0, MaxGroupRows+1)
	later := func(a, b uint32) int { return cmp.Or(cmp.Compare(rows[b-1].seq, rows[a-1].seq), cmp.Compare(b, a)) }
	for _, id := range x.ids {
		x.which.Add(jobs.ID(id))
		if n := len(newest); n == MaxGroupRows && later(newest[n-1], id) < 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(newest, id, later)
		newest = slices.Insert(newest, i, id)
		newest = newest[:min(len(newest), MaxGroupRows)]
	}
	x.newest = x.newest[:0]
	for _, id := range newest {
		x.newest = append(x.newest, jobs.ID(id))
	}
	x.rows = nil
	x.shown, x.shownAt, x.took = x.edition, now, time.Since(began)
}

// top returns the groups to show, most frequent first; what stands behind MaxGroups
// is gathered in the last.
func (g *groups) top(rows []row, now time.Time) []*group {
	all := make([]*group, 0, len(g.byKey))
	for _, x := range g.list {
		if x != nil && x.count+x.tries > 0 {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.tries, a.tries),
			cmp.Compare(a.key[0], b.key[0]), cmp.Compare(a.key[1], b.key[1]))
	})
	if len(all) > MaxGroups {
		all = append(all[:MaxGroups-1:MaxGroups-1], together(all[MaxGroups-1:]))
	}
	for _, x := range all {
		x.settle(rows, now)
	}
	return all
}

// together makes one group of several.
func together(list []*group) *group {
	sum := &group{key: otherCauses, hosts: map[string]int{}, edition: 1}
	for _, x := range list {
		sum.count += x.count
		sum.tries += x.tries
		for h, n := range x.hosts {
			sum.hosts[h] += n
		}
		for _, id := range x.ids {
			if _, gone := x.gone[id]; !gone {
				sum.ids = append(sum.ids, id)
			}
		}
		for id := range x.come {
			sum.ids = append(sum.ids, id)
		}
	}
	slices.Sort(sum.ids)
	return sum
}

// maxGroupHosts bounds Group.Hosts.
const maxGroupHosts = 5

func (x *group) view() Group {
	names := make([]string, 0, len(x.hosts))
	for h := range x.hosts {
		names = append(names, h)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(x.hosts[b], x.hosts[a]), cmp.Compare(a, b)) })
	return Group{Cause: x.key[0], Last: x.key[1], Count: x.count, Tries: x.tries,
		Hosts: names[:min(len(names), maxGroupHosts)], Jobs: x.rows, Which: x.which}
}
