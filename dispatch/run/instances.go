package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/fetch"
	"dcs-tui/hosts/provider"
	"dcs-tui/jobs"
)

// maxCommands bounds the commands of providers that run at a time.
const maxCommands = 16

// instances carries out the core's orders about instances of providers. Each order has a
// goroutine, which ends with the context of the run; the answer is an event.
type instances struct {
	r         *Run
	prefix    string
	providers map[string]*hosts.Provider
	connector hosts.Connector // for outputs that only an instance has
	started   chan struct{}   // closed when the dispatcher runs
	places    chan struct{}
	running   sync.WaitGroup

	mu    sync.Mutex
	found map[string][]*hosts.Host // of each instance, as they were listed last
	used  []string                 // instances that are to be hosts of the run
}

func newInstances(r *Run) *instances {
	m := &instances{r: r, prefix: hosts.InstancePrefix(r.dir.UID()), providers: map[string]*hosts.Provider{},
		started: make(chan struct{}), places: make(chan struct{}, maxCommands), found: map[string][]*hosts.Host{}}
	m.know(r.opts.Providers)
	return m
}

// know keeps how the commands of providers are run.
func (m *instances) know(list []*hosts.Provider) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range list {
		m.providers[p.Name] = p
	}
}

// setProviders lets changed providers count.
func (m *instances) setProviders(list []*hosts.Provider) {
	m.know(list)
	m.r.d.Do(sched.SetProviders{Providers: list})
}

func (m *instances) provider(name string) *hosts.Provider {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.providers[name]
}

// carryOut begins to carry an order out.
func (m *instances) carryOut(o sched.Order) {
	if o, ok := o.(sched.UseInstances); ok {
		m.mu.Lock()
		m.used = o.Names
		m.mu.Unlock()
	}
	m.running.Go(func() {
		<-m.started
		select {
		case m.places <- struct{}{}:
		case <-m.r.ctx.Done():
			return
		}
		ev := m.answer(m.r.ctx, o)
		<-m.places
		if ev != nil && m.r.ctx.Err() == nil {
			m.r.d.Do(ev)
		}
	})
}

// answer carries an order out and returns its answer, nil if there is none.
func (m *instances) answer(ctx context.Context, o sched.Order) sched.Event {
	switch o := o.(type) {
	case sched.CreateInstance:
		return sched.InstanceCreated{Name: o.Name, Err: textOf(provider.Create(ctx, m.provider(o.Provider), m.prefix, o.Name))}
	case sched.TerminateInstance:
		return sched.InstanceTerminated{Name: o.Name, Err: textOf(provider.Terminate(ctx, m.provider(o.Provider), m.prefix, o.Name))}
	case sched.ListInstances:
		return m.list(ctx, o.Provider)
	case sched.FetchInstance:
		return sched.InstanceFetched{Name: o.Name, Err: textOf(m.fetch(ctx, o))}
	case sched.UseInstances:
		m.r.inventory.Provide(m.hosts())
	}
	return nil
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (m *instances) list(ctx context.Context, name string) sched.Event {
	list, err := provider.List(ctx, m.provider(name), m.prefix)
	if err != nil {
		return sched.InstancesListed{Provider: name, Err: err.Error()}
	}
	ev := sched.InstancesListed{Provider: name, Pending: map[string]string{}, Left: map[string]time.Duration{}}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, in := range list {
		ev.Names = append(ev.Names, in.Name)
		ev.Pending[in.Name], ev.Left[in.Name] = in.Pending, in.Left
		m.found[in.Name] = in.Hosts
	}
	return ev
}

// hosts returns the hosts of the instances that are to be hosts of the run.
func (m *instances) hosts() (list []*hosts.Host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.used {
		list = append(list, m.found[name]...)
	}
	return list
}

// fetch copies outputs that only the instance has into the run directory.
func (m *instances) fetch(ctx context.Context, o sched.FetchInstance) error {
	if m.r.dir.HostDirs()[o.Name] == "" {
		return nil // it shares the run directory
	}
	m.mu.Lock()
	found := m.found[hosts.InstanceOf(o.Name)]
	m.mu.Unlock()
	i := slices.IndexFunc(found, func(h *hosts.Host) bool { return h.Name == o.Name })
	if i < 0 {
		return fmt.Errorf("the instance is not listed")
	}
	slices.SortFunc(o.Attempts, func(a, b jobs.AttemptID) int { return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.N, b.N)) })
	reader := fetch.NewReader(m.connector, m.r.dir.UID(), found[i:i+1])
	defer reader.Close()
	bringer := &fetch.Bringer{Run: m.r.dir, Read: reader.Read}
	results, err := bringer.Bring(ctx, &fetch.Plan{Hosts: []fetch.HostPlan{{Host: o.Name, Attempts: slices.Compact(o.Attempts)}}})
	for _, res := range results {
		err = cmp.Or(err, res.Err)
	}
	return err
}
