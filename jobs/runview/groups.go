package runview

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// groups are the failures by cause and last line of stderr (X7), kept as rows change.
type groups struct {
	byKey   map[[2]string]uint16
	list    []*group // index 0 is nobody's
	free    []uint16
	edition uint64 // grows with each change

	// When members of the groups were worked out last, and of which edition.
	shown   uint64
	shownAt time.Time
	took    time.Duration
}

// maxGroups bounds the causes that are kept apart; further ones share otherCauses.
const maxGroups = 1000

var otherCauses = [2]string{"other causes", ""}

// group is one of them.
type group struct {
	key   [2]string
	count int
	tries int // jobs that are being tried again
	hosts map[string]int

	// Members, as of the last settle; which is nil if the group was not shown then.
	which  jobs.Ranges
	newest []uint32
	rows   []Row
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
	g.list[n] = &group{key: key, hosts: map[string]int{}}
	g.byKey[key] = n
	return n
}

func counts(p Phase) bool { return p == Failed || p == TimedOut }

func (g *groups) enter(r *row, host string) { g.count(r, host, 1) }
func (g *groups) leave(r *row, host string) { g.count(r, host, -1) }

func (g *groups) count(r *row, host string, n int) {
	if r.group == 0 {
		return
	}
	x := g.list[r.group]
	g.edition++
	if !counts(r.phase) {
		x.tries += n
		return
	}
	x.count += n
	if host == "" {
		return
	}
	if x.hosts[host] += n; x.hosts[host] <= 0 {
		delete(x.hosts, host)
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
	in := make(map[*group]*group, len(all)) // the one that each is shown in
	for _, x := range all {
		in[x] = x
	}
	if len(all) > MaxGroups {
		rest := &group{key: otherCauses, hosts: map[string]int{}}
		for _, x := range all[MaxGroups-1:] {
			x.which, in[x] = nil, rest
			rest.count += x.count
			rest.tries += x.tries
			for h, n := range x.hosts {
				rest.hosts[h] += n
			}
		}
		all = append(all[:MaxGroups-1:MaxGroups-1], rest)
	}
	known := g.shown == g.edition || now.Sub(g.shownAt) < pace(g.took)
	for _, x := range all {
		known = known && x.which != nil
	}
	if !known {
		g.settle(all, in, rows, now)
	}
	return all
}

// settle works out the members of the groups that are shown, and the newest of them.
func (g *groups) settle(all []*group, in map[*group]*group, rows []row, now time.Time) {
	began := time.Now()
	for _, x := range all {
		x.which, x.newest, x.rows = jobs.Ranges{}, nil, nil
	}
	shownIn := make([]*group, len(g.list))
	for n, x := range g.list {
		shownIn[n] = in[x]
	}
	later := func(a, b uint32) int { return cmp.Or(cmp.Compare(rows[b-1].seq, rows[a-1].seq), cmp.Compare(b, a)) }
	for i := range rows {
		x, id := shownIn[rows[i].group], uint32(i+1)
		if x == nil || !counts(rows[i].phase) {
			continue
		}
		x.which.Add(jobs.ID(id))
		if n := len(x.newest); n == MaxGroupRows && later(x.newest[n-1], id) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(x.newest, id, later)
		x.newest = slices.Insert(x.newest, at, id)
		x.newest = x.newest[:min(len(x.newest), MaxGroupRows)]
	}
	g.shown, g.shownAt, g.took = g.edition, now, time.Since(began)
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
