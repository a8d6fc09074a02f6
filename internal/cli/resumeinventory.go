package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs/rundir"
)

// resumeInventory reads the inventory again, from --hosts or from the file that the run
// was started with, and reports what has changed. If that file cannot be read or has an
// error, the run keeps its inventory, because hosts of running jobs must be reachable.
func (a *app) resumeInventory(f *runFlags, run *rundir.Run) (*loadedInventory, error) {
	had, noOld := a.storedInventory(run)
	inv, err := had, noOld
	switch file := run.Asked.InventoryFile; {
	case f.hosts != "":
		inv, err = a.loadInventory(f.hosts)
	case file == "":
		inv, err = &loadedInventory{Inventory: hosts.Local()}, nil
	case filepath.IsAbs(file): // otherwise an older program created the run, and the directory is unknown
		now, why := a.reloadInventory(standing.Path(file))
		switch {
		case why == nil:
			inv, err = now, nil
		case noOld == nil:
			a.warn("the inventory has not been read again, the run keeps the one that it had: %s; correct %s and resume again, or use --hosts FILE",
				firstProblem(why), console.CleanLine(standing.Path(file)))
		}
	}
	if err != nil {
		return nil, err
	}
	if noOld != nil {
		a.warn("cannot tell what has changed in the inventory: %v", noOld)
	} else if text := inventoryChanges(had.Hosts, inv.Hosts); text != "" {
		from := "this machine alone"
		if inv.File != "" {
			from = standing.Path(inv.File)
		}
		a.con.Line(console.CleanLine("the inventory (" + from + ") has changed: " + text))
	}
	return inv, a.checkSSH(&f.options, inv.Hosts)
}

// reloadInventory is loadInventory for the file that the run was started with. It
// refuses a pipe, which cannot be read twice.
func (a *app) reloadInventory(file string) (*loadedInventory, error) {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("inventory file: %s is not a regular file", file)
	}
	return a.loadInventory(file)
}

// firstProblem returns the first line of an error, and whether there are more.
func firstProblem(err error) string {
	text, more, _ := strings.Cut(err.Error(), "\n")
	if more != "" {
		text += " (and more)"
	}
	return text
}

// keepInventory stores the inventory of this resume for later commands.
func (a *app) keepInventory(run *rundir.Run, inv *loadedInventory) {
	if text, _, err := run.Inventory(); err == nil && text == inv.text {
		return
	}
	if err := run.KeepInventory(inv.text); err != nil {
		a.warn("%v", err)
	}
}
