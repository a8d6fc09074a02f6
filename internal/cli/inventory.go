package cli

import (
	"slices"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/rundir"
)

// loadedInventory is an inventory with the text that it was read from, which run.toml
// keeps.
type loadedInventory struct {
	*hosts.Inventory
	text string
}

// reached returns the hosts, and for each provider an instance, which stands for all of them
// where it matters how hosts are reached.
func (inv *loadedInventory) reached() []*hosts.Host {
	list := slices.Clone(inv.Hosts)
	for _, p := range inv.Providers {
		if h, err := p.Instance(p.Name, "", 0); err == nil {
			list = append(list, h)
		}
	}
	return list
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

// selectInventory returns the hosts of --host, which yields to --hosts in a resume, or the
// inventory of loadInventory.
func (a *app) selectInventory(f *runFlags) (*loadedInventory, error) {
	if f.HostList == "" || f.hosts != "" {
		return a.loadInventory(f.hosts)
	}
	text := strings.ReplaceAll(f.HostList, ",", "\n") + "\n"
	inv, warnings, err := hosts.ParseLogins([]byte(text), "--host")
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	for _, w := range warnings {
		a.warn("%s", w)
	}
	return &loadedInventory{inv, text}, nil
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

// maxNamedHosts is the number of hosts that a message names.
const maxNamedHosts = 4
