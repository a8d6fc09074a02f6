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
	"dcs-tui/hosts/files"
	"dcs-tui/jobs"
)

// maxCommands bounds the number of concurrent commands of providers.
const maxCommands = 16

// instances carries out the core's commands about instances of providers. Each runs in a goroutine,
// which ends with the context of the run. The answer is an event.
type instances struct {
	r         *Run
	prefix    string
	providers map[string]*hosts.Provider
	connector hosts.Connector               // for outputs that only an instance has
	fenced    func() (epoch int, err error) // as in dispatch.Journal
	started   chan struct{}                 // closed when the dispatcher runs
	tokens    chan struct{}                 // holds a token for each running command
	running   sync.WaitGroup

	mu     sync.Mutex
	listed map[string][]*hosts.Host // hosts of all instances of a provider, according to its last list
}

func newInstances(r *Run) *instances {
	m := &instances{r: r, prefix: hosts.InstancePrefix(r.dir.UID()), providers: map[string]*hosts.Provider{},
		started: make(chan struct{}), tokens: make(chan struct{}, maxCommands), listed: map[string][]*hosts.Host{}}
	m.addProviders(r.opts.Inventory.Providers)
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

func (m *instances) provider(name string) *hosts.Provider {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.providers[name]
}

// carryOut starts to carry out a command.
func (m *instances) carryOut(o sched.Command) {
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
		return sched.InstanceCreated{Name: o.Name, Err: errorText(m.create(ctx, o))}
	case sched.TerminateInstance:
		return sched.InstanceTerminated{Name: o.Name,
			Err: errorText(m.provider(o.Provider).TerminateInstance(ctx, m.prefix, o.Name))}
	case sched.ListInstances:
		return m.list(ctx, o.Provider)
	case sched.FetchInstance:
		return sched.InstanceFetched{Name: o.Name, Err: errorText(m.fetch(ctx, o))}
	}
	return nil
}

// create creates an instance, unless another dispatcher owns the run. This one may have been suspended
// since the record of the instance was durable, and nothing else refuses what it creates.
func (m *instances) create(ctx context.Context, o sched.CreateInstance) error {
	switch by, err := m.fenced(); {
	case err != nil:
		return fmt.Errorf("%s is not created while the run directory cannot be read: %w", o.Name, err)
	case by > 0:
		return fmt.Errorf("%s is not created: another dispatcher has taken the run over (epoch %d)", o.Name, by)
	}
	return m.provider(o.Provider).CreateInstance(ctx, m.prefix, o.Name)
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
	ev := sched.InstancesListed{Provider: name, Hosts: map[string][]*hosts.Host{}, Pending: map[string]string{},
		Left: map[string]time.Duration{}}
	var all []*hosts.Host
	for _, in := range list {
		ev.Names = append(ev.Names, in.Name)
		ev.Hosts[in.Name], ev.Pending[in.Name], ev.Left[in.Name] = in.Hosts, in.Pending, in.Left
		all = append(all, in.Hosts...)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed[name] = all
	return ev
}

// fetch copies outputs that only the instance has into the run directory.
func (m *instances) fetch(ctx context.Context, o sched.FetchInstance) error {
	if m.r.dir.HostDirs()[o.Name] == "" {
		return nil // it shares the run directory
	}
	host := m.host(o.Name)
	if host == nil {
		return fmt.Errorf("the instance is not listed")
	}
	slices.SortFunc(o.Attempts, jobs.AttemptID.Compare)
	reader := files.NewReader(m.connector, m.r.dir.UID(), []*hosts.Host{host})
	defer reader.Close()
	fetcher := &files.Fetcher{Run: m.r.dir, Read: reader.Read}
	results, err := fetcher.Fetch(ctx, &files.FetchPlan{Hosts: []files.HostPlan{{Host: o.Name,
		Attempts: slices.Compact(o.Attempts)}}})
	for _, res := range results {
		err = cmp.Or(err, res.Err)
	}
	return err
}

// host returns the host of this name of the instances that the last lists contain, or nil.
func (m *instances) host(name string) *hosts.Host {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, list := range m.listed {
		for _, h := range list {
			if h.Name == name {
				return h
			}
		}
	}
	return nil
}
