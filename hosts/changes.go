package hosts

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// Limits of a line that reports changes of an inventory.
const (
	maxNamed   = 4 // hosts of each kind of change
	maxChanges = 4 // different changes
)

// Changes describes in one line which hosts were added, removed and changed.
// It returns "" if none was. Hosts with the same change are grouped.
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
	say := func(what string, names []string) {
		if len(names) > 0 {
			parts = append(parts, what+" "+nameSome(names))
		}
	}
	say("added", added)
	say("removed", removed)
	slices.SortStableFunc(changes, func(a, b string) int { return cmp.Compare(len(changed[b]), len(changed[a])) })
	rest := 0
	for i, text := range changes {
		if i >= maxChanges {
			rest += len(changed[text])
			continue
		}
		parts = append(parts, nameSome(changed[text])+": "+text)
	}
	if rest > 0 {
		parts = append(parts, jobs.Plural(rest, "other host")+" changed")
	}
	return strings.Join(parts, "; ")
}

// nameSome joins names. It shortens a long list.
func nameSome(names []string) string {
	if more := len(names) - maxNamed; more > 1 {
		names = append(slices.Clone(names[:maxNamed]), strconv.Itoa(more)+" more")
	}
	return strings.Join(names, ", ")
}

// hostChange describes how a host has changed. It returns "" if it has not.
func hostChange(old, now *Host) string {
	var parts []string
	value := func(key, was, is string) {
		if was != is {
			parts = append(parts, key+" "+cmp.Or(is, "none")+" (was "+cmp.Or(was, "none")+")")
		}
	}
	value("slots", slotsValue(old.Slots), slotsValue(now.Slots))
	value("tags", strings.Join(old.Tags, " "), strings.Join(now.Tags, " "))
	value("queues", old.KeptText(), now.KeptText())
	value("address", strings.Join(old.Addresses, " "), strings.Join(now.Addresses, " "))
	var others []string
	for _, o := range []struct {
		key     string
		was, is any
	}{
		{"port", old.Port, now.Port}, {"user", old.User, now.User}, {"identity", old.Identity, now.Identity},
		{"jump", old.Jump, now.Jump}, {"yield", old.Yield, now.Yield}, {"max_load", old.MaxLoad, now.MaxLoad},
		{"min_mem_free", old.MinMemFree, now.MinMemFree}, {"min_disk_free", old.MinDiskFree, now.MinDiskFree},
		{"quiet", old.Quiet, now.Quiet}, {"owner", old.Owner, now.Owner}, {"owner_idle", old.OwnerIdle, now.OwnerIdle}, {"nice", old.Nice, now.Nice}, {"gpus", old.GPUs, now.GPUs}, {"gpu_ids", old.GPUIDs, now.GPUIDs}, {"mem_limit", !old.NoMemLimit, !now.NoMemLimit}, {"weight", old.Weight, now.Weight},
		{"work_dir", old.WorkDir, now.WorkDir}, {"share_dir", old.ShareDir, now.ShareDir},
		{"setup", old.Setup, now.Setup}, {"send", old.Send, now.Send}, {"lost_after", old.LostAfter, now.LostAfter},
		{"link", append([]string{old.Link}, old.Command...), append([]string{now.Link}, now.Command...)},
	} {
		if !reflect.DeepEqual(o.was, o.is) {
			others = append(others, o.key)
		}
	}
	if len(others) > 0 {
		parts = append(parts, "other "+strings.Join(others, ", "))
	}
	return strings.Join(parts, ", ")
}

// slotsValue returns the rule for slots as it is written in the inventory.
func slotsValue(r SlotRule) string {
	if r.Fixed > 0 {
		return strconv.Itoa(r.Fixed)
	}
	if r.Less == 0 {
		return "cores"
	}
	return "cores-" + strconv.Itoa(r.Less)
}
