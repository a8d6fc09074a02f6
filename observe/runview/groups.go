package runview

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// groups are the failures by cause and last line of stderr. Each row holds the number of its group.
// Members are counted only when they are shown.
type groups struct {
	causes results.Causes
	shown  []*group
	upkeep // refreshes shown
}

type group struct {
	results.Failure
	count int
	tries int            // jobs that are being tried again
	hosts map[uint16]int // failures by number of the host

	which  jobs.Ranges
	newest []uint32
	rows   []Row
}

func isFailedPhase(p Phase) bool { return p == Failed || p == TimedOut }

// top returns the groups to show, most frequent first. The last one combines those beyond
// MaxGroups.
func (g *groups) top(l *list) []*group {
	if g.isDue(l.edition) {
		g.recompute(l.edition, func() { g.updateMembers(l.rows) })
	}
	return g.shown
}

// updateMembers counts the members of the groups, and lists the members of the groups that are
// shown.
func (g *groups) updateMembers(rows []row) {
	in := make([]*group, max(1, len(g.causes.Keys))) // the shown group of each cause
	for n := range in {
		in[n] = &group{hosts: map[uint16]int{}}
	}
	for n, f := range g.causes.Keys {
		in[n].Failure = f
	}
	for i := range rows {
		r := &rows[i]
		x := in[r.group]
		if !isFailedPhase(r.phase) {
			x.tries++
			continue
		}
		x.count++
		if r.host != 0 {
			x.hosts[r.host]++
		}
	}
	all := slices.DeleteFunc(slices.Clone(in[1:]), func(x *group) bool { return x.count+x.tries == 0 })
	slices.SortFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.tries, a.tries),
			cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.LastLine, b.LastLine))
	})
	if len(all) > MaxGroups {
		rest := &group{Failure: results.OtherCauses, hosts: map[uint16]int{}}
		for _, x := range all[MaxGroups-1:] {
			in[slices.Index(in, x)] = rest
			rest.count += x.count
			rest.tries += x.tries
			for h, n := range x.hosts {
				rest.hosts[h] += n
			}
		}
		all = append(all[:MaxGroups-1:MaxGroups-1], rest)
	}
	later := func(a, b uint32) int { return cmp.Or(cmp.Compare(rows[b-1].seq, rows[a-1].seq), cmp.Compare(b, a)) }
	for i := range rows {
		n, id := rows[i].group, uint32(i+1)
		if n == 0 || !isFailedPhase(rows[i].phase) {
			continue
		}
		x := in[n]
		x.which.Add(jobs.ID(id))
		if n := len(x.newest); n == MaxGroupRows && later(x.newest[n-1], id) < 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(x.newest, id, later)
		x.newest = slices.Insert(x.newest, at, id)
		x.newest = x.newest[:min(len(x.newest), MaxGroupRows)]
	}
	g.shown = all
}

// maxGroupHosts bounds Group.Hosts.
const maxGroupHosts = 5

// view returns the group as it is shown. names are the names of hosts.
func (x *group) view(names []string) Group {
	hosts := slices.SortedFunc(maps.Keys(x.hosts), func(a, b uint16) int {
		return cmp.Or(cmp.Compare(x.hosts[b], x.hosts[a]), cmp.Compare(names[a], names[b]))
	})
	shown := make([]string, min(len(hosts), maxGroupHosts))
	for i := range shown {
		shown[i] = names[hosts[i]]
	}
	return Group{Cause: x.Cause, Last: x.LastLine, Count: x.count, Tries: x.tries,
		Hosts: shown, Jobs: x.rows, Which: x.which}
}

// HostText is a message about a host, such as why it cannot be used.
type HostText struct {
	Host, Text string
	At         time.Time // may be zero
}

// HostGroup is a set of hosts with the same message. Its texts are not cleaned.
type HostGroup struct {
	Hosts []string // in the order given
	// Text does not begin with the name of the host. Where the texts differ only in names,
	// addresses, and fingerprints, <host> and … stand for these.
	Text string
	At   time.Time // of the first message

	first string // the whole first message
}

// GroupHosts groups hosts by cause, in the order of the first host of each group. A group has a host
// once: a message that follows the same one of its host is left out, and one that the host repeats
// after another message begins a new group.
func GroupHosts(texts []HostText) []HostGroup {
	type member struct {
		host  string
		group int
	}
	var list []HostGroup
	at, last, members := map[string]int{}, map[string]int{}, map[member]bool{}
	for _, t := range texts {
		own := text.WithoutSubject(t.Text, t.Host)
		cause := causeOf(t.Host, own)
		i, ok := at[cause]
		switch isMember := ok && members[member{t.Host, i}]; {
		case isMember && last[t.Host] == i:
			continue
		case isMember, !ok:
			i, at[cause] = len(list), len(list)
			list = append(list, HostGroup{Text: own, At: t.At, first: t.Text})
		}
		last[t.Host], members[member{t.Host, i}] = i, true
		g := &list[i]
		g.Hosts = append(g.Hosts, t.Host)
		if g.Text != own {
			g.Text = cause
		}
	}
	return list
}

// Name returns the names of the hosts of a group, with ranges: "ws[01-30], here".
func (g *HostGroup) Name() string {
	const maxPatterns = 6
	return text.List(hosts.Fold(g.Hosts), maxPatterns)
}

// Title returns the name, with the number of hosts if there are several: "ws[01-30] (30 hosts)".
func (g *HostGroup) Title() string {
	if len(g.Hosts) == 1 {
		return g.Hosts[0]
	}
	return g.Name() + " (" + text.Plural(len(g.Hosts), "host") + ")"
}

// Sentence returns the text with its subject, which is the host's own name if there is only one.
func (g *HostGroup) Sentence() string {
	switch {
	case len(g.Hosts) == 1:
		return g.first
	case strings.HasPrefix(g.first, g.Hosts[0]+" "):
		return "each of " + g.Title() + " " + g.Text
	}
	return g.Title() + ": " + g.Text
}

// rewrite replaces what a pattern matches.
type rewrite struct {
	pattern *regexp.Regexp
	with    string
}

// generalizations replace what differs between hosts with the same problem, in this order.
var generalizations = sync.OnceValue(func() []rewrite {
	return []rewrite{
		{regexp.MustCompile(`\b(SHA256|MD5):[A-Za-z0-9+/=:]+`), "$1:…"},
		{regexp.MustCompile(`(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9][A-Za-z0-9._-]*):(\d+\b)`), "<host>:$2"},
		{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`), "<host>"},
	}
})

// causeOf returns a text that is the same for all hosts with the same problem. It replaces names,
// addresses, and fingerprints.
func causeOf(name, text string) string {
	for _, r := range generalizations() {
		text = r.pattern.ReplaceAllString(text, r.with)
	}
	// Match the name as a word, and as the first label of a domain name.
	named, err := regexp.Compile(`(^|[^A-Za-z0-9_.-])` + regexp.QuoteMeta(name) +
		`(\.[A-Za-z0-9.-]*[A-Za-z0-9])?($|[^A-Za-z0-9_-])`)
	if err != nil { // never: the name is quoted
		return text
	}
	return named.ReplaceAllString(text, "${1}<host>${3}")
}
