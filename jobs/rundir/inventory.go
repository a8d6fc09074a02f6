package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// InventoryFile holds the inventory of the last resume, as read, if it differs from
// that of run.toml. Later commands that reach hosts need the hosts that were added.
const InventoryFile = "inventory.toml"

// KeepInventory makes text the inventory of the run. An empty text means this machine
// alone.
func (r *Run) KeepInventory(text string) error {
	b := fmt.Appendf(nil, "%s%08x%s%s", sumPrefix, crc32.Checksum([]byte(text), castagnoli), sumSuffix, text)
	if err := Replace(r.Disk, r.Path(InventoryFile), b); err != nil {
		return fmt.Errorf("cannot keep the inventory in the run directory: %w", err)
	}
	return nil
}

// Inventory returns the text of the run's inventory, and the file name to use in
// messages. The text is empty for this machine alone.
func (r *Run) Inventory() (text, file string, err error) {
	names, err := r.Disk.Names(r.Dir)
	if err != nil {
		return "", "", fmt.Errorf("cannot list the run directory: %w", err)
	}
	if !slices.Contains(names, InventoryFile) {
		return r.Asked.InventoryText, r.Asked.InventoryFile, nil
	}
	path := r.Path(InventoryFile)
	b, err := ReadFile(r.Disk, path)
	if err == nil && len(b) == 0 {
		err = errors.New("it is empty")
	}
	if err == nil {
		err = checkAsked(b)
	}
	if err != nil {
		return "", "", fmt.Errorf("%s: %w (remove it, and the inventory of run.toml counts)", path, err)
	}
	if bytes.HasPrefix(b, []byte(sumPrefix)) {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return string(b), path, nil
}
