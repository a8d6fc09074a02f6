package cli

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// loadedInventory is an inventory with the text that it was read from, which run.toml
// keeps.
type loadedInventory struct {
	*hosts.Inventory
	text string
}

// loadInventory reads the inventory that the flag names or, without it, the one that
// hosts.FindInventory finds. If there is none, it returns this machine.
func (a *app) loadInventory(flag string) (*loadedInventory, error) {
	file, err := hosts.FindInventory(flag)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	if file == "" {
		return &loadedInventory{Inventory: hosts.Local()}, nil
	}
	inv, warnings, err := hosts.Load(file)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	for _, w := range warnings {
		a.warn("%s", w)
	}
	return &loadedInventory{inv, inv.Text}, nil
}

// storedInventory returns the inventory of a run's start or of its last resume.
func (a *app) storedInventory(run *rundir.Run) (*loadedInventory, error) {
	text, file, err := run.Inventory()
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	if text == "" {
		return &loadedInventory{Inventory: hosts.Local()}, nil
	}
	inv, _, err := hosts.Parse([]byte(text), file)
	if err != nil {
		return nil, exit.Usagef("the inventory of the run: %w", err)
	}
	return &loadedInventory{inv, text}, nil
}

// Limits of a line that reports changes of an inventory.
const (
	maxNamedHosts  = 4 // hosts of each kind of change
	maxHostChanges = 4 // different changes
)

// inventoryChanges describes in one line which hosts were added, removed and changed.
// It returns "" if none was. Hosts with the same change are grouped.
func inventoryChanges(old, now []*hosts.Host) string {
	before := map[string]*hosts.Host{}
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
			parts = append(parts, what+" "+someNames(names, maxNamedHosts))
		}
	}
	say("added", added)
	say("removed", removed)
	slices.SortStableFunc(changes, func(a, b string) int { return cmp.Compare(len(changed[b]), len(changed[a])) })
	rest := 0
	for i, text := range changes {
		if i >= maxHostChanges {
			rest += len(changed[text])
			continue
		}
		parts = append(parts, someNames(changed[text], maxNamedHosts)+": "+text)
	}
	if rest > 0 {
		parts = append(parts, jobs.Plural(rest, "other host")+" changed")
	}
	return strings.Join(parts, "; ")
}

// hostChange describes how a host has changed. It returns "" if it has not.
func hostChange(old, now *hosts.Host) string {
	var parts []string
	value := func(key, was, is string) {
		if was != is {
			parts = append(parts, key+" "+cmp.Or(is, "none")+" (was "+cmp.Or(was, "none")+")")
		}
	}
	value("slots", slotsValue(old.Slots), slotsValue(now.Slots))
	value("tags", strings.Join(old.Tags, " "), strings.Join(now.Tags, " "))
	value("address", strings.Join(old.Addresses, " "), strings.Join(now.Addresses, " "))
	var others []string
	for _, o := range []struct {
		key     string
		was, is any
	}{
		{"port", old.Port, now.Port}, {"user", old.User, now.User}, {"identity", old.Identity, now.Identity},
		{"jump", old.Jump, now.Jump}, {"yield", old.Yield, now.Yield}, {"max_load", old.MaxLoad, now.MaxLoad},
		{"min_mem_free", old.MinMemFree, now.MinMemFree}, {"min_disk_free", old.MinDiskFree, now.MinDiskFree},
		{"quiet", old.Quiet, now.Quiet}, {"nice", old.Nice, now.Nice}, {"gpus", old.GPUs, now.GPUs}, {"weight", old.Weight, now.Weight},
		{"work_dir", old.WorkDir, now.WorkDir}, {"share_dir", old.ShareDir, now.ShareDir},
		{"setup", old.Setup, now.Setup}, {"lost_after", old.LostAfter, now.LostAfter},
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
func slotsValue(r hosts.SlotRule) string {
	if r.Fixed > 0 {
		return strconv.Itoa(r.Fixed)
	}
	if r.Less == 0 {
		return "cores"
	}
	return "cores-" + strconv.Itoa(r.Less)
}
