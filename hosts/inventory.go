package hosts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dcs-tui/jobs"
)

// maxInventory bounds the size of an inventory file: a wrong path (a core dump,
// a disk image) must not be read whole.
const maxInventory = 8 << 20

// FindInventory returns the inventory file to read: flag (--hosts), else
// ./hosts.toml, else $XDG_CONFIG_HOME/dcs-tui/hosts.toml (~/.config when that
// is not set); "" when there is none, and then Local is the inventory. A file
// that was asked for and is not there is an error.
func FindInventory(flag string) (string, error) {
	if flag != "" {
		if _, err := os.Stat(flag); err != nil {
			return "", fmt.Errorf("inventory file: %w", err)
		}
		return flag, nil
	}
	candidates := []string{"hosts.toml"}
	if dir := configDir(); dir != "" {
		candidates = append(candidates, filepath.Join(dir, "dcs-tui", "hosts.toml"))
	}
	for _, file := range candidates {
		_, err := os.Stat(file)
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("inventory file: %w", err) // there, but not for us: not the same as none
		}
	}
	return "", nil
}

// configDir is $XDG_CONFIG_HOME, which counts only when absolute, else ~/.config.
func configDir() string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".config")
	}
	return ""
}

// Load reads an inventory file. The warnings are lines for people. An error
// about what is in the file is of type Problems.
func Load(path string) (*Inventory, []string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("inventory file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, nil, fmt.Errorf("inventory file: %s is a directory", path)
	}
	// The size is not checked first: the file may be a pipe, and a device has no size.
	data, err := io.ReadAll(io.LimitReader(f, maxInventory+1))
	if err != nil {
		return nil, nil, fmt.Errorf("inventory file: %w", err)
	}
	if len(data) > maxInventory {
		return nil, nil, fmt.Errorf("inventory file: %s is longer than %d MiB; that is no inventory", path, maxInventory>>20)
	}
	return Parse(data, path)
}

// Local is the inventory of this machine alone, for use when there is no
// file: one host over the local link, a core left free (P1, K5).
func Local() *Inventory {
	h := defaultHost()
	h.Name, h.Link = "local", "local"
	if name, err := os.Hostname(); err == nil {
		if short, _, _ := strings.Cut(name, "."); nameProblem(short) == "" {
			h.Name = short
		}
	}
	h.Slots = SlotRule{Less: 1}
	return &Inventory{Hosts: []*Host{&h}}
}

// defaultHost is a host of which nothing is said.
func defaultHost() Host {
	return Host{Yield: true, Nice: 10, GPUs: -1, Weight: 1, Link: "ssh"}
}

// Has says whether the host carries every one of the tags.
func (h *Host) Has(tags []string) bool {
	return !slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(h.Tags, t) })
}

// Find returns the host of that name, nil if there is none.
func (inv *Inventory) Find(name string) *Host {
	for _, h := range inv.Hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// TokensWith returns how many tokens there are of each kind: as the command line says, and
// otherwise as the inventory does.
func (inv *Inventory) TokensWith(commandLine []jobs.Token) []jobs.Token {
	all := slices.Clone(commandLine)
	for _, t := range inv.Tokens {
		if !slices.ContainsFunc(commandLine, func(own jobs.Token) bool { return own.Name == t.Name }) {
			all = append(all, t)
		}
	}
	return all
}
