package hosts

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"dcs-tui/internal/text"
)

// Limits of the line that Changes returns.
const (
	maxNamed   = 4 // hosts of each kind of change
	maxChanges = 4 // different changes
)

// Changes describes in one line which hosts were added, removed and changed. It returns ""
// if none was. Hosts with the same change are grouped.
func Changes(old, now []*Host) string {
	before := map[string]*Host{}
	for _, h := range old {
		before[h.Name] = h
	}
	var added, removed, changes []string
	changed := map[string][]string{} // hosts by change
	for _, h := range now {
		was := before[h.Name]
		delete(before, h.Name)
		if was == nil {
			added = append(added, h.Name)
			continue
		}
		if text := hostChange(was, h); text != "" {
			if changed[text] == nil {
				changes = append(changes, text)
			}
			changed[text] = append(changed[text], h.Name)
		}
	}
	for _, h := range old {
		if before[h.Name] != nil {
			removed = append(removed, h.Name)
		}
	}
	var parts []string
	if len(added) > 0 {
		parts = append(parts, "added "+text.List(added, maxNamed))
	}
	if len(removed) > 0 {
		parts = append(parts, "removed "+text.List(removed, maxNamed))
	}
	slices.SortStableFunc(changes, func(a, b string) int { return cmp.Compare(len(changed[b]), len(changed[a])) })
	rest := 0
	for i, change := range changes {
		if i >= maxChanges {
			rest += len(changed[change])
			continue
		}
		parts = append(parts, text.List(changed[change], maxNamed)+": "+change)
	}
	if rest > 0 {
		parts = append(parts, text.Plural(rest, "other host")+" changed")
	}
	return strings.Join(parts, "; ")
}

// hostChange describes how a host has changed. It returns "" if it has not.
func hostChange(old, now *Host) string {
	var parts, others []string
	for _, c := range []struct{ key, was, is string }{
		{"slots", old.Slots.String(), now.Slots.String()},
		{"tags", strings.Join(old.Tags, " "), strings.Join(now.Tags, " ")},
		{"queues", old.KeptText(), now.KeptText()},
		{"address", strings.Join(old.Addresses, " "), strings.Join(now.Addresses, " ")},
	} {
		if c.was != c.is {
			parts = append(parts, c.key+" "+cmp.Or(c.is, "none")+" (was "+cmp.Or(c.was, "none")+")")
		}
	}
	was, is := &draft{host: *old}, &draft{host: *now}
	for _, k := range inventoryKeys {
		if k.name != "tags" && k.name != "queues" && k.get != nil && !reflect.DeepEqual(k.get(was), k.get(is)) {
			others = append(others, k.name)
		}
	}
	if len(others) > 0 {
		parts = append(parts, "other "+strings.Join(others, ", "))
	}
	return strings.Join(parts, ", ")
}
