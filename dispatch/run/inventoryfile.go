package run

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

const (
	// inventoryInterval is the interval between checks of the inventory file.
	inventoryInterval = 2 * time.Second
	// settleTime is the time after a change during which a file may change again without a
	// different time or size.
	settleTime = 5 * time.Second
)

// Inventory is the inventory of a run. Its file is read again when it changes, and then goes to the
// dispatcher. Inventory stores it for later commands, with the hosts that people added.
type Inventory struct {
	run     *rundir.Run
	file    string // absolute path; "": the run has no inventory file
	warn    func(string)
	record  func(string)           // records an event about the file; it may block
	wake    chan struct{}          // holds a signal to check the file
	prepare func(*hosts.Inventory) // nil: the inventory is used as it was read

	mu             sync.Mutex
	inv            *hosts.Inventory
	changed        bool // inv is not passed to the dispatcher yet
	requests       map[string]jobs.HostRequest
	handledContent []byte // last handled content of the file, valid or not
	pendingContent []byte // content seen once, which an editor may not have completed
	info           fs.FileInfo
	problem        string
	events         []string // to record when mu is released
}

func newInventory(run *rundir.Run, o *Options, t *jobs.Table, warn, record func(string)) *Inventory {
	inv := o.Inventory
	in := &Inventory{run: run, inv: inv, file: o.InventoryFile, prepare: o.PrepareInventory, warn: warn,
		record: record, wake: make(chan struct{}, 1), requests: maps.Clone(t.Inventory),
		handledContent: []byte(inv.Text)}
	if in.requests == nil {
		in.requests = map[string]jobs.HostRequest{}
	}
	// A pipe cannot be read twice.
	if info, err := os.Stat(in.file); !filepath.IsAbs(in.file) || err == nil && !info.Mode().IsRegular() {
		in.file = ""
	}
	return in
}

// Hosts returns the hosts that are not instances of a provider, which come and go.
func (in *Inventory) Hosts() []*hosts.Host {
	in.mu.Lock()
	defer in.mu.Unlock()
	list, _ := in.inv.With(in.requests, nil) // the core reports the errors
	return list
}

// HandleRequest stores the request of a person to add or remove a host. It does not block.
func (in *Inventory) HandleRequest(name string, q jobs.HostRequest) {
	in.mu.Lock()
	in.requests[name] = q
	in.mu.Unlock()
	dispatch.Signal(in.wake)
}

// Check returns the reason why a host cannot be added, or nil.
func (in *Inventory) Check(name, options string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	_, err := in.inv.Add(name, options)
	return err
}

// Problem returns the problem of the inventory file, or "".
func (in *Inventory) Problem() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.problem
}

// Reload reads the file now. It returns the reason if it changes nothing.
func (in *Inventory) Reload() error {
	if in.file == "" {
		return errors.New("the run was started without an inventory file that can be read again; " +
			"hosts add and hosts remove change its hosts")
	}
	in.check(true)
	if why := in.Problem(); why != "" {
		return errors.New(why)
	}
	dispatch.Signal(in.wake)
	return nil
}

// Reread makes the next check read the file, whatever its time and size say. An NFS client may
// report those of an older version until the file is opened. It does not block.
func (in *Inventory) Reread() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.info = nil
}

// serve calls give with the inventory when its file has changed, until the run is over or give
// returns an error.
func (in *Inventory) serve(over <-chan struct{}, give func(*hosts.Inventory) error) {
	every := time.NewTicker(inventoryInterval)
	defer every.Stop()
	for {
		select {
		case <-over:
			return
		case <-every.C:
			if in.file == "" || !in.check(false) {
				continue
			}
		case <-in.wake:
		}
		in.mu.Lock()
		inv, changed := in.inv, in.changed
		in.changed = false
		in.mu.Unlock()
		if changed && give(inv) != nil {
			return
		}
		in.store()
	}
}

// store stores the inventory for later commands, with the hosts that were added.
func (in *Inventory) store() {
	in.mu.Lock()
	all, added := in.inv.Text, ""
	for _, name := range slices.Sorted(maps.Keys(in.requests)) {
		if q := in.requests[name]; !q.Removed && in.inv.Find(name) == nil {
			added += hosts.AddedText(name, q.Options)
		}
	}
	if added != "" || all == "" {
		all = in.inv.TOML() + added
	}
	in.mu.Unlock()
	if _, _, err := hosts.Parse([]byte(all), in.file); err != nil {
		return // host = [{…}]: nothing can be appended
	}
	if had, _, err := in.run.Inventory(); err == nil && had == all {
		return
	}
	if err := in.run.KeepInventory(all); err != nil {
		in.warn(err.Error())
	}
}

// check reads the file if it may have changed, and reports whether the inventory has changed. New
// content counts when it was read twice in a row, or immediately if now is set.
func (in *Inventory) check(now bool) bool {
	changed := in.read(now)
	in.mu.Lock()
	events := in.events
	in.events = nil
	in.mu.Unlock()
	for _, text := range events {
		in.record(text)
	}
	return changed
}

// read is check without recording the events.
func (in *Inventory) read(now bool) bool {
	info, err := os.Stat(in.file)
	in.mu.Lock()
	defer in.mu.Unlock()
	if err == nil && !now && in.problem == "" && in.pendingContent == nil && in.info != nil &&
		os.SameFile(info, in.info) && info.Size() == in.info.Size() &&
		info.ModTime().Equal(in.info.ModTime()) && time.Since(info.ModTime()) > settleTime {
		return false
	}
	var inv *hosts.Inventory
	var warnings []string
	if err == nil {
		in.mu.Unlock() // not held while reading, because the file system may hang
		inv, warnings, err = hosts.Load(in.file)
		in.mu.Lock()
	}
	var wrong hosts.Problems
	switch {
	case errors.Is(err, fs.ErrNotExist):
		in.setProblem(fmt.Sprintf("the inventory file %s is gone: the run keeps its hosts", in.file))
		return false
	case err != nil && !errors.As(err, &wrong):
		in.setProblem(fmt.Sprintf("the inventory cannot be read again, the run keeps its hosts: %v", err))
		return false
	}
	in.info = info
	var content []byte // the content of an invalid file is the text of its errors
	if err == nil {
		content = []byte(inv.Text)
	} else {
		content = []byte(err.Error())
	}
	if bytes.Equal(content, in.handledContent) {
		in.pendingContent = nil
		if err == nil && in.problem != "" { // the file has its previous content again
			in.setProblem("")
		}
		return false
	}
	if !now && !bytes.Equal(content, in.pendingContent) {
		in.pendingContent = content
		return false
	}
	in.pendingContent = nil
	if err != nil {
		first, more, _ := strings.Cut(err.Error(), "\n")
		if more != "" {
			first += " (and more)"
		}
		in.setProblem("the inventory has an error, the run keeps its hosts: " + first)
		return false
	}
	in.setProblem("")
	if in.prepare != nil {
		in.prepare(inv)
	}
	changes := hosts.Changes(in.inv.Hosts, inv.Hosts)
	if !slices.EqualFunc(in.inv.Providers, inv.Providers, (*hosts.Provider).Equal) {
		changes = strings.TrimPrefix(changes+"; changed providers", "; ")
	}
	if !slices.Equal(in.inv.Tokens, inv.Tokens) {
		changes = strings.TrimPrefix(changes+"; changed tokens", "; ")
	}
	in.inv, in.changed, in.handledContent = inv, true, content
	for _, w := range warnings {
		in.warn(w)
	}
	if changes != "" {
		in.events = append(in.events, "the inventory ("+in.file+") has changed: "+changes)
	}
	return true
}

// setProblem stores the problem of the file, or "", and records a change.
func (in *Inventory) setProblem(why string) {
	switch {
	case why == in.problem:
		return
	case why == "":
		in.events = append(in.events, "the inventory can be used again")
	default:
		in.events = append(in.events, why)
	}
	in.problem = why
}
