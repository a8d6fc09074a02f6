package run

import (
	"bytes"
	"cmp"
	"context"
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
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
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

// Inventory is the set of hosts of a run: the hosts of the inventory file, which is read again
// when it changes, with the changes that people requested and the instances of providers. When
// the set changes, Inventory passes all of it to the dispatcher.
type Inventory struct {
	run     *rundir.Run
	file    string // absolute path; "": the run has no inventory file
	print   func(string)
	warn    func(string)
	record  func(string)        // records an event about the file; it may block
	wake    chan struct{}       // holds a signal to check the file
	prepare func([]*hosts.Host) // nil: hosts are not changed

	mu             sync.Mutex
	inv            *hosts.Inventory
	requests       map[string]jobs.HostRequest
	providedHosts  []*hosts.Host
	handledContent []byte // last handled content of the file, valid or not
	pendingContent []byte // content seen once, which an editor may not have completed
	info           fs.FileInfo
	problem        string
	events         []string // to record when mu is released

	providersChanged bool // the providers or the tokens of the file have changed
}

func newInventory(run *rundir.Run, o *Options, t *jobs.Table, print, warn, record func(string)) *Inventory {
	inv := o.Inventory
	in := &Inventory{run: run, inv: inv, file: o.InventoryFile, prepare: o.PrepareHosts, print: print, warn: warn,
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

// Hosts returns the set: the hosts of the file that nobody has removed, then those that people
// added, and then those of providers.
func (in *Inventory) Hosts() []*hosts.Host {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.hosts()
}

func (in *Inventory) hosts() []*hosts.Host {
	list, added, errs := in.inv.With(in.requests, in.providedHosts)
	for _, err := range errs {
		in.print(err.Error())
	}
	if in.prepare != nil {
		in.prepare(added)
	}
	return list
}

// Provide sets the hosts of providers.
func (in *Inventory) Provide(list []*hosts.Host) {
	in.mu.Lock()
	in.providedHosts = slices.Clone(list)
	in.mu.Unlock()
	dispatch.Signal(in.wake)
}

// HandleRequest handles the request of a person to add or remove a host. It does not block.
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
		return errors.New("the run was started without an inventory file that can be read again; hosts add and hosts remove change its hosts")
	}
	in.check(true)
	if why := in.Problem(); why != "" {
		return errors.New(why)
	}
	dispatch.Signal(in.wake)
	return nil
}

// serve calls give with the set when it has changed, until the run is over.
func (in *Inventory) serve(over <-chan struct{}, give func(context.Context, []*hosts.Host) error,
	provide func(*hosts.Inventory)) {
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
		inv, changed := in.inv, in.providersChanged
		in.providersChanged = false
		in.mu.Unlock()
		if changed {
			provide(inv)
		}
		if give(context.Background(), in.Hosts()) != nil {
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

// check reads the file if it may have changed, and reports whether the set of hosts may have
// changed. New content counts when it was read twice in a row, or immediately if now is set.
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
		in.prepare(inv.Hosts)
	}
	changes := hosts.Changes(in.inv.Hosts, inv.Hosts)
	if !slices.EqualFunc(in.inv.Providers, inv.Providers, (*hosts.Provider).Equal) {
		in.providersChanged = true
		changes = strings.TrimPrefix(changes+"; changed providers", "; ")
	}
	if !slices.Equal(in.inv.Tokens, inv.Tokens) {
		in.providersChanged = true
		changes = strings.TrimPrefix(changes+"; changed tokens", "; ")
	}
	in.inv, in.handledContent = inv, content
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

// maxCommands bounds the number of concurrent commands of providers.
const maxCommands = 16

// instances carries out the core's commands about instances of providers. Each runs in a goroutine,
// which ends with the context of the run. The answer is an event.
type instances struct {
	r         *Run
	prefix    string
	providers map[string]*hosts.Provider
	connector hosts.Connector // for outputs that only an instance has
	started   chan struct{}   // closed when the dispatcher runs
	tokens    chan struct{}   // holds a token for each running command
	running   sync.WaitGroup

	mu        sync.Mutex
	hostsOf   map[string][]*hosts.Host // hosts of each instance, according to the last list
	usedNames []string                 // instances that must be hosts of the run
}

func newInstances(r *Run) *instances {
	m := &instances{r: r, prefix: hosts.InstancePrefix(r.dir.UID()), providers: map[string]*hosts.Provider{},
		started: make(chan struct{}), tokens: make(chan struct{}, maxCommands), hostsOf: map[string][]*hosts.Host{}}
	m.addProviders(r.opts.Providers)
	return m
}

// addProviders adds or replaces providers.
func (m *instances) addProviders(list []*hosts.Provider) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range list {
		m.providers[p.Name] = p
	}
}

// setProviders replaces the providers of the inventory file.
func (m *instances) setProviders(list []*hosts.Provider) {
	m.addProviders(list)
	m.r.d.Do(sched.SetProviders{Providers: list})
}

func (m *instances) provider(name string) *hosts.Provider {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.providers[name]
}

// carryOut starts to carry out a command.
func (m *instances) carryOut(o sched.Command) {
	if o, ok := o.(sched.UseInstances); ok {
		m.mu.Lock()
		m.usedNames = o.Names
		m.mu.Unlock()
	}
	m.running.Go(func() {
		<-m.started
		select {
		case m.tokens <- struct{}{}:
		case <-m.r.ctx.Done():
			return
		}
		ev := m.answer(m.r.ctx, o)
		<-m.tokens
		if ev != nil && m.r.ctx.Err() == nil {
			m.r.d.Do(ev)
		}
	})
}

// answer carries out a command and returns its answer, or nil if there is none.
func (m *instances) answer(ctx context.Context, o sched.Command) sched.Event {
	switch o := o.(type) {
	case sched.CreateInstance:
		return sched.InstanceCreated{Name: o.Name,
			Err: errorText(m.provider(o.Provider).CreateInstance(ctx, m.prefix, o.Name))}
	case sched.TerminateInstance:
		return sched.InstanceTerminated{Name: o.Name,
			Err: errorText(m.provider(o.Provider).TerminateInstance(ctx, m.prefix, o.Name))}
	case sched.ListInstances:
		return m.list(ctx, o.Provider)
	case sched.FetchInstance:
		return sched.InstanceFetched{Name: o.Name, Err: errorText(m.fetch(ctx, o))}
	case sched.UseInstances:
		m.r.inventory.Provide(m.hosts())
	}
	return nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (m *instances) list(ctx context.Context, name string) sched.Event {
	list, err := m.provider(name).Instances(ctx, m.prefix)
	if err != nil {
		return sched.InstancesListed{Provider: name, Err: err.Error()}
	}
	ev := sched.InstancesListed{Provider: name, Pending: map[string]string{}, Left: map[string]time.Duration{}}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, in := range list {
		ev.Names = append(ev.Names, in.Name)
		ev.Pending[in.Name], ev.Left[in.Name] = in.Pending, in.Left
		m.hostsOf[in.Name] = in.Hosts
	}
	return ev
}

// hosts returns the hosts of the instances that must be hosts of the run.
func (m *instances) hosts() (list []*hosts.Host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.usedNames {
		list = append(list, m.hostsOf[name]...)
	}
	return list
}

// fetch copies outputs that only the instance has into the run directory.
func (m *instances) fetch(ctx context.Context, o sched.FetchInstance) error {
	if m.r.dir.HostDirs()[o.Name] == "" {
		return nil // it shares the run directory
	}
	m.mu.Lock()
	found := m.hostsOf[hosts.InstanceOf(o.Name)]
	m.mu.Unlock()
	i := slices.IndexFunc(found, func(h *hosts.Host) bool { return h.Name == o.Name })
	if i < 0 {
		return fmt.Errorf("the instance is not listed")
	}
	slices.SortFunc(o.Attempts, func(a, b jobs.AttemptID) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.N, b.N))
	})
	reader := files.NewReader(m.connector, m.r.dir.UID(), found[i:i+1])
	defer reader.Close()
	fetcher := &files.Fetcher{Run: m.r.dir, Read: reader.Read}
	results, err := fetcher.Fetch(ctx, &files.FetchPlan{Hosts: []files.HostPlan{{Host: o.Name,
		Attempts: slices.Compact(o.Attempts)}}})
	for _, res := range results {
		err = cmp.Or(err, res.Err)
	}
	return err
}
