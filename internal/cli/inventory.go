package cli

import (
	"strconv"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// loadedInventory is an inventory and the text it was read from, which run.toml
// keeps.
type loadedInventory struct {
	*hosts.Inventory
	text string
}

// loadInventory reads the inventory that the flag or the usual places name, or
// gives this machine.
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

// storedInventory returns the inventory of the run: that of its start, or of the last
// resume.
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

// slotsText is what the inventory says of a host's slots.
func slotsText(h *hosts.Host) string {
	switch r := h.Slots; {
	case r.Fixed > 0:
		return jobs.Plural(r.Fixed, "slot")
	case r.Less > 0:
		return "cores-" + strconv.Itoa(r.Less) + " slots"
	}
	return "a slot a core"
}
