package sched

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Hosts on demand. Providers create instances, which become hosts of the run, when the
// queue cannot be consumed soon enough without them, and terminate them when they are idle.
// Each creation and termination is recorded before its command runs. What exists is known
// from the provider's list alone: a command that failed may have had its effect.

const (
	provideEvery     = time.Second
	listSoon         = 5 * time.Second  // between lists while something is under way
	listLater        = time.Minute      // … and otherwise, while there are instances
	maxCommandDelay  = 5 * time.Minute  // between tries of a command that fails
	goneWithin       = 30 * time.Second // an instance that is still listed so long after its termination is terminated again
	startupLimit     = 3                // an instance that has not answered after so many startup times is terminated
	minStartupLimit  = 30 * time.Second
	partingTime      = time.Second      // for an instance to end what jobs left behind, before it is terminated
	listPending      = 20 * time.Second // between lists while allocations wait in the queue of their cluster
	lastMoments      = 30 * time.Second // before the end of an allocation its jobs are stopped, to be run elsewhere
	firstDialTime    = 15 * time.Second // how long hosts that are dialed for the first time count as capacity
	instancesEndTime = 10 * time.Minute // how long the end of a run waits for its instances to go
)

// Orders about instances. All are carried out apart from the engine.
type (
	// CreateInstance runs the create command; answered by InstanceCreated.
	CreateInstance struct{ Provider, Name string }
	// TerminateInstance runs the terminate command; answered by InstanceTerminated.
	TerminateInstance struct{ Provider, Name string }
	// ListInstances runs the list command; answered by InstancesListed.
	ListInstances struct{ Provider string }
	// FetchInstance copies the outputs of attempts of a host of an instance that keeps them to
	// itself into the run directory; answered by InstanceFetched with the same name.
	FetchInstance struct {
		Name     string
		Attempts []jobs.AttemptID
	}
	// UseInstances gives the instances that are to be hosts of the run, besides the other hosts.
	UseInstances struct{ Names []string }
)

// Events about instances. Err is for people; "": all is well.
type (
	InstanceCreated    struct{ Name, Err string }
	InstanceTerminated struct{ Name, Err string }
	InstanceFetched    struct{ Name, Err string }
	InstancesListed    struct {
		Provider string
		Names    []string                 // those of this run
		Pending  map[string]string        // why an allocation has not begun
		Left     map[string]time.Duration // until the end of an allocation; absent: none is known
		Err      string                   // the rest means nothing then
	}
)

// SetProviders is the complete set of providers from now on. One that is not in it any more
// creates nothing and goes on terminating what it has created.
type SetProviders struct{ Providers []*hosts.Provider }

func (SetProviders) event()       {}
func (InstanceCreated) event()    {}
func (InstanceTerminated) event() {}
func (InstanceFetched) event()    {}
func (InstancesListed) event()    {}

// To returns "": the dispatcher itself carries these orders out.
func (CreateInstance) To() string    { return "" }
func (TerminateInstance) To() string { return "" }
func (ListInstances) To() string     { return "" }
func (FetchInstance) To() string     { return "" }
func (UseInstances) To() string      { return "" }

// provisions is what the core knows of providers and instances.
type provisions struct {
	providers []*provider
	instances []*instance // that are not gone, in the order of their numbers
	byName    map[string]*instance
	highest   int      // number of the newest instance
	used      []string // as the last UseInstances said
	nextAt    time.Duration
	endBy     time.Duration // the end of the run waits for instances; 0: it is not near
	orders    []Order       // only while a Step lasts
}

type provider struct {
	spec     *hosts.Provider
	startup  time.Duration // how long an instance takes to answer, from experience
	learned  bool          // … and no longer as the inventory says
	slots    int           // of an instance, as far as is known
	listed   bool          // the list was read by this dispatcher
	listing  bool          // a list command is under way …
	listFrom time.Duration // … since
	listAt   time.Duration // no list before
	failures int           // creations that failed in a row
	createAt time.Duration // no creation before
	lists    int           // lists that failed in a row
	problem  string        // as it was last told
}

type instance struct {
	name      string
	p         *provider
	busy      bool          // a command about it is under way
	since     time.Duration // its creation, or when this dispatcher began
	inherited bool
	up        bool // it has answered, maybe to an earlier dispatcher
	answered  bool // … to this one
	listed    bool // the newest list has it
	seen      bool // a list had it
	absent    int  // lists in a row that did not have it
	failed    bool // its creation failed
	leaving   bool // it gets no more jobs: its outputs are fetched, it leaves the run, and is terminated
	parting   bool // … its outputs are fetched
	ending    bool // its termination is recorded
	why       string
	settled   time.Duration               // when its last command ended: only later lists count
	idleAt    time.Duration               // since when nothing of ours is there; 0: it is busy, or not up
	outputs   map[string][]jobs.AttemptID // by host
	hosts     []*host                     // that it is, as this step has found them
	pending   string                      // why its allocation has not begun; "": it has
	told      string                      // pending, as it was told last …
	toldAt    time.Duration               // … and when
	waited    time.Duration               // when it was pending last
	ends      time.Duration               // its allocation; 0: no end is known
	failures  int                         // commands about it that failed in a row
	tryAt     time.Duration
}

// beginProviding takes over what the table says of instances.
func (c *Core) beginProviding() {
	c.setProviders(SetProviders{c.cfg.Providers})
	for _, name := range slices.Sorted(maps.Keys(c.table.Instances)) {
		is := c.table.Instances[name]
		n, _ := hosts.InstanceNumber(c.cfg.InstancePrefix, name)
		c.provisions.highest = max(c.provisions.highest, n)
		if is.State != jobs.InstanceGone && c.provider(is.Provider) == nil {
			c.say(name, 0, "the instance %s cannot be terminated, because there is no provider %s any more: add it to the inventory", name, is.Provider)
		}
	}
}

func (c *Core) setProviders(e SetProviders) {
	all := slices.Clone(e.Providers)
	for _, p := range c.provisions.providers {
		if !slices.ContainsFunc(all, func(spec *hosts.Provider) bool { return spec.Name == p.spec.Name }) {
			ends := *p.spec
			ends.Max = 0
			all = append(all, &ends)
		}
	}
	c.regroup(every, func() { c.cfg.Providers = all })
	for _, spec := range all {
		p := c.provider(spec.Name)
		if p == nil {
			p = &provider{spec: spec, startup: spec.Startup, slots: max(1, spec.Host.Slots.Fixed) * spec.Nodes()}
			c.provisions.providers = append(c.provisions.providers, p)
			c.adopt(p)
		}
		if p.spec = spec; !p.learned {
			p.startup = spec.Startup
		}
	}
	c.queue.capacityChanged()
}

// adopt takes over the instances that a provider has created according to the table.
func (c *Core) adopt(p *provider) {
	number := func(name string) int {
		n, _ := hosts.InstanceNumber(c.cfg.InstancePrefix, name)
		return n
	}
	adopted := map[string]bool{}
	for _, name := range slices.SortedFunc(maps.Keys(c.table.Instances), func(a, b string) int { return number(a) - number(b) }) {
		is := c.table.Instances[name]
		if is.Provider != p.spec.Name {
			continue
		}
		if is.Up != 0 {
			p.learn(is.Up.Sub(is.Created))
		}
		if is.State == jobs.InstanceGone {
			continue
		}
		in := c.addInstance(p, name, number(name))
		in.inherited, in.up, in.ending = true, is.Up != 0, is.State == jobs.InstanceTerminating
		in.leaving, in.why = in.ending, "an earlier dispatcher had begun to"
		adopted[name] = true
	}
	if len(adopted) > 0 {
		c.findOutputs(adopted)
	}
}

// findOutputs notes the outputs that instances may have according to the table.
func (c *Core) findOutputs(of map[string]bool) {
	for i := range c.table.Jobs {
		for _, a := range c.table.Jobs[i].Attempts {
			if a.Outcome != nil && of[hosts.InstanceOf(a.Host)] {
				c.keepsOutput(a.Host, a.ID)
			}
		}
	}
}

func (c *Core) provider(name string) *provider {
	for _, p := range c.provisions.providers {
		if p.spec.Name == name {
			return p
		}
	}
	return nil
}

func (c *Core) addInstance(p *provider, name string, n int) *instance {
	v := &c.provisions
	in := &instance{name: name, p: p, since: c.now.Mono}
	if v.byName == nil {
		v.byName = map[string]*instance{}
	}
	v.instances, v.byName[name], v.highest = append(v.instances, in), in, max(v.highest, n)
	return in
}

// learn takes in how long an instance took to answer.
func (p *provider) learn(took time.Duration) {
	took = min(max(took, time.Second), 24*time.Hour)
	if !p.learned {
		p.startup, p.learned = took, true
	}
	p.startup += (took - p.startup) / 2
}

// limit is how long an instance may take to answer. Of an allocation, the time in the queue of
// its cluster does not count.
func (p *provider) limit() time.Duration {
	if p.spec.Slurm != nil {
		return max(minStartupLimit, startupLimit*p.spec.Startup)
	}
	return max(minStartupLimit, startupLimit*max(p.startup, p.spec.Startup))
}

// trouble reports a problem with a provider, once.
func (c *Core) trouble(p *provider, host, text string) {
	if p.problem != text {
		c.say(host, 0, "%s", text)
	}
	p.problem = text
}

// after returns how long to wait after so many failures in a row.
func (c *Core) afterFailures(n int) time.Duration {
	return c.jitter(min(4*doubling(n), maxCommandDelay))
}

// commandEnded takes in the end of a command about an instance. It returns nil for an
// instance that nothing was asked about.
func (c *Core) commandEnded(name, err string) *instance {
	in := c.instanceOf(name)
	if in == nil || !in.busy {
		return nil
	}
	in.busy, in.settled = false, c.now.Mono
	in.p.listAt = min(in.p.listAt, c.now.Mono)
	if err == "" {
		in.failures, in.tryAt = 0, 0
		return in
	}
	in.failures++
	in.tryAt = c.now.Mono + c.afterFailures(in.failures)
	return in
}

// instanceOf returns the instance to which a host belongs; nil: it is no instance.
func (c *Core) instanceOf(host string) *instance { return c.provisions.byName[hosts.InstanceOf(host)] }

func (c *Core) instanceCreated(e InstanceCreated) {
	in := c.commandEnded(e.Name, e.Err)
	if in == nil {
		return
	}
	p := in.p
	if e.Err == "" {
		p.failures, p.createAt, p.problem = 0, 0, ""
		return
	}
	in.failed, in.why = true, "its creation failed"
	p.failures++
	p.createAt = c.now.Mono + c.afterFailures(p.failures)
	c.trouble(p, in.name, e.Err+"; another instance is tried after a delay that grows")
}

func (c *Core) instanceTerminated(e InstanceTerminated) {
	switch in := c.commandEnded(e.Name, e.Err); {
	case in == nil:
	case e.Err == "":
		in.tryAt = c.now.Mono + goneWithin
	default:
		c.trouble(in.p, in.name, e.Err+"; it is tried again until the instance is not listed any more")
	}
}

func (c *Core) instanceFetched(e InstanceFetched) {
	in := c.commandEnded(e.Name, e.Err)
	switch {
	case in == nil:
	case e.Err == "":
		delete(in.outputs, e.Name)
	default:
		in.leaving = false // it may get jobs meanwhile
		in.why = ""
		c.trouble(in.p, in.name, fmt.Sprintf("%s is not terminated, because outputs that only it has could not be fetched: %s", e.Name, e.Err))
	}
}

// instancesListed learns which instances exist. A list counts for an instance only if it
// was asked for after the last command about the instance had ended.
func (c *Core) instancesListed(e InstancesListed) {
	p := c.provider(e.Provider)
	if p == nil || !p.listing {
		return
	}
	p.listing = false
	if e.Err != "" {
		p.lists++
		p.listAt = c.now.Mono + c.afterFailures(p.lists)
		c.trouble(p, "", e.Err+"; nothing is created or given up until the list can be read")
		return
	}
	if p.lists > 0 {
		p.problem = ""
	}
	p.listed, p.lists, p.listAt = true, 0, c.now.Mono+listSoon
	c.provisions.nextAt = 0
	listed := map[string]bool{}
	for _, name := range e.Names {
		listed[name] = true
	}
	for _, in := range c.provisions.instances {
		if in.p != p || in.busy || in.settled > p.listFrom {
			continue
		}
		if in.listed = listed[in.name]; in.listed {
			in.seen, in.absent = true, 0
			c.allocated(in, e.Pending[in.name], e.Left[in.name])
			continue
		}
		if in.absent++; in.absent < 2 {
			continue // one list may lack it by mistake, also after a terminate command that did nothing
		}
		if p.spec.Slurm != nil {
			in.ends = max(1, c.now.Mono) // where ssh goes on working, the node is not ours any more
		}
		switch {
		case in.ending || in.failed:
			c.instanceGone(in, in.why)
		case (in.seen || in.up) && !slices.ContainsFunc(in.hosts, func(h *host) bool { return h.linked }):
			c.instanceGone(in, fmt.Sprintf("provider %s does not list it any more", p.spec.Name))
		}
	}
	c.provisions.instances = slices.DeleteFunc(c.provisions.instances, func(in *instance) bool {
		return c.table.Instances[in.name].State == jobs.InstanceGone
	})
	for _, name := range e.Names {
		if n, ok := hosts.InstanceNumber(c.cfg.InstancePrefix, name); ok && c.provisions.byName[name] == nil {
			c.foundInstance(p, name, n)
		}
	}
}

// foundInstance takes in an instance that no record says exists: the create command of an
// earlier dispatcher ended late, or records were lost.
func (c *Core) foundInstance(p *provider, name string, n int) {
	was, known := c.table.Instances[name]
	if known && was.Provider != p.spec.Name {
		return
	}
	if !known {
		c.emit(jobs.Record{Kind: jobs.KindInstance, Host: name, How: string(jobs.InstanceCreating), Reason: p.spec.Name})
	}
	in := c.addInstance(p, name, n)
	in.inherited, in.listed, in.seen = true, true, true
	if !known {
		c.say(name, 0, "found the instance %s, of which there was no record", name)
		return
	}
	// It may have attempts, and outputs: it gets no more jobs and goes when it is idle.
	in.leaving, in.up, in.why = true, true, "it was taken for gone"
	c.emit(jobs.Record{Kind: jobs.KindInstance, Host: name, How: string(jobs.InstanceUp), Reason: in.why})
	c.findOutputs(map[string]bool{name: true})
}

func (c *Core) instanceGone(in *instance, why string) {
	c.emit(jobs.Record{Kind: jobs.KindInstance, Host: in.name, How: string(jobs.InstanceGone), Reason: why})
	delete(c.provisions.byName, in.name)
	for _, h := range c.everyHost() {
		if hosts.InstanceOf(h.spec.Name) != in.name {
			continue
		}
		h.inst, h.leaving = nil, true
		for _, id := range slices.Clone(h.missing) {
			c.forget(id) // nothing runs on a machine that does not exist
		}
	}
}

// terminate records the termination and then has the command run.
func (c *Core) terminate(in *instance, why string) {
	in.why, in.ending, in.busy = why, true, true
	c.emit(jobs.Record{Kind: jobs.KindInstance, Host: in.name, How: string(jobs.InstanceTerminating), Reason: why})
	c.provisions.orders = append(c.provisions.orders, TerminateInstance{in.p.spec.Name, in.name})
}

// provide decides what becomes of instances. It comes after launching, so that an instance
// without work has none that could be had.
func (c *Core) provide() {
	v := &c.provisions
	if len(v.providers) == 0 || c.stopped || c.fenced || c.finished {
		return
	}
	c.findInstances()
	for _, in := range v.instances {
		c.tend(in)
	}
	if c.now.Mono >= v.nextAt {
		v.nextAt = c.now.Mono + provideEvery
		for _, p := range v.providers {
			c.createFor(p)
		}
	}
	for _, p := range v.providers {
		c.listFor(p)
	}
	var used []string
	for _, in := range v.instances {
		if in.seen && in.pending == "" && !in.parting && !in.ending && !in.failed {
			used = append(used, in.name)
		}
	}
	if !slices.Equal(used, v.used) {
		v.used = used
		v.orders = append(v.orders, UseInstances{slices.Clone(used)})
	}
}

// tend decides what becomes of an instance.
func (c *Core) tend(in *instance) {
	open := 0
	for _, o := range c.absent {
		if hosts.InstanceOf(o.spec.Name) == in.name {
			open += o.open
			if !in.p.listed {
				o.heard = c.now.Mono // it cannot be reached before its address is listed
			}
		}
	}
	slots := 0
	for _, h := range in.hosts {
		h.leaving = in.leaving
		open += h.open
		if !h.linked {
			continue
		}
		if !in.up {
			c.emit(jobs.Record{Kind: jobs.KindInstance, Host: in.name, How: string(jobs.InstanceUp)})
			if !in.inherited {
				in.p.learn(c.now.Mono - in.since)
			}
		}
		in.up, in.answered = true, true
		slots += max(1, h.slots())
	}
	if slots > 0 {
		in.p.slots = slots
	}
	c.vacate(in)
	if open > 0 {
		in.idleAt = 0
		return
	}
	if in.busy || c.now.Mono < in.tryAt {
		return
	}
	if in.up && in.idleAt == 0 {
		in.idleAt = max(1, c.now.Mono)
	}
	switch why, kept := c.endsFor(in), in.keeps(); {
	case why == "":
	case kept != "" && !in.ending:
		in.leaving, in.busy, in.why = true, true, why
		c.provisions.orders = append(c.provisions.orders, FetchInstance{kept, slices.Clone(in.outputs[kept])})
	case len(in.hosts) > 0:
		in.leaving, in.parting, in.why, in.outputs = true, true, why, nil
		in.tryAt = c.now.Mono + partingTime
	default:
		if !in.up && !in.ending && !c.nothingWaits() {
			in.p.failures++
			in.p.createAt = c.now.Mono + c.afterFailures(in.p.failures)
		}
		in.leaving = true
		c.terminate(in, why)
	}
	for _, h := range in.hosts {
		h.leaving = in.leaving
	}
}

// keepsOutput notes that an attempt has ended on an instance.
func (c *Core) keepsOutput(host string, id jobs.AttemptID) {
	if in := c.instanceOf(host); in != nil {
		if in.outputs == nil {
			in.outputs = map[string][]jobs.AttemptID{}
		}
		in.outputs[host] = append(in.outputs[host], id)
	}
}

// keeps returns the first host of the instance that has outputs of its attempts which are
// nowhere else; "": there is none.
func (in *instance) keeps() string {
	for _, name := range slices.Sorted(maps.Keys(in.outputs)) {
		i := slices.IndexFunc(in.hosts, func(h *host) bool { return h.spec.Name == name })
		if i < 0 || in.hosts[i].hello == nil || !in.hosts[i].hello.Shared {
			return name
		}
	}
	return ""
}

// endsFor returns why an instance on which nothing runs is to be terminated; "": it is not.
func (c *Core) endsFor(in *instance) string {
	age := c.now.Mono - max(in.since, in.waited)
	switch {
	case in.ending:
		return in.why // the command failed, or has not had its effect
	case in.failed && !in.listed:
		return "" // the next list tells whether there is anything to terminate
	case in.failed:
		return in.why
	case in.leaving:
		return in.why
	case !in.p.listed:
		return ""
	case c.nothingWaits():
		return "the run has no more work for it"
	case c.isOver(in):
		return allocationEnds
	case !in.up && in.pending == "" && age >= in.p.limit():
		return "it has not answered within " + short(in.p.limit())
	case in.up && c.now.Mono-in.idleAt >= in.p.spec.Idle:
		return "it has been idle for " + short(in.p.spec.Idle)
	}
	return ""
}

// nothingWaits reports whether this run has no job, or will launch none, for a host that
// has none.
func (c *Core) nothingWaits() bool {
	return c.drain != "" || c.last && c.table.Counts[jobs.Queued] == 0
}

// listFor asks for the list of a provider when it is needed.
func (c *Core) listFor(p *provider) {
	if p.listing || c.now.Mono < p.listAt {
		return
	}
	needed, later := !p.listed, listLater
	for _, in := range c.provisions.instances {
		if in.p == p && !in.busy {
			needed = true
			switch {
			case in.pending != "" && in.listed && !in.ending && c.now.Mono-in.since > listLater:
				later = min(later, listPending)
			case !in.up || in.ending || !in.listed:
				later = 0
			}
		}
	}
	if !needed || p.listed && later > 0 && c.now.Mono < p.listFrom+later {
		return
	}
	p.listing, p.listFrom = true, c.now.Mono
	c.provisions.orders = append(c.provisions.orders, ListInstances{p.spec.Name})
}

// createFor creates instances if the queue cannot be consumed, at the present rate, within
// the time that a new instance needs to start.
func (c *Core) createFor(p *provider) {
	if !p.listed || c.now.Mono < p.createAt || c.closed() || c.queue.ready == 0 {
		return
	}
	n, coming := 0, 0
	for _, in := range c.provisions.instances {
		if in.p == p {
			n++
		}
		if c.comes(in) {
			coming += in.p.slots
		}
	}
	for left := c.leftWhenUp(p); n < p.spec.Max && coming < left; n++ {
		if p.failures > 0 && coming > 0 {
			return // one is enough to find out whether it works again
		}
		coming += p.slots
		number := c.provisions.highest + 1
		in := c.addInstance(p, hosts.InstanceName(c.cfg.InstancePrefix, number), number)
		in.busy = true
		c.emit(jobs.Record{Kind: jobs.KindInstance, Host: in.name, How: string(jobs.InstanceCreating), Reason: p.spec.Name})
		c.provisions.orders = append(c.provisions.orders, CreateInstance{p.spec.Name, in.name})
	}
}

// comes reports whether an instance is on its way to take jobs.
func (c *Core) comes(in *instance) bool {
	return !in.answered && !in.failed && !in.ending && (!in.up || c.now.Mono-max(in.since, in.waited) < in.p.limit())
}

// leftWhenUp returns how many slots the jobs that wait, and that an instance could run,
// would still need when an instance created at this instant came up.
func (c *Core) leftWhenUp(p *provider) int {
	_, known := c.workLeft(c.now) // sets the law of each queue
	oldest := map[*runStats]float64{}
	horizon, free, slots := p.startup.Seconds(), 0.0, 0
	for _, h := range c.hosts {
		switch {
		case h.takes():
			slots += h.limit
			free += float64(h.limit) * horizon
		case h.onFirstDial() && h.inst == nil && c.now.Mono < firstDialTime:
			return 0 // what it can do will be known in a moment
		}
		for f := h.head; f != nil; f = f.next {
			age := 0.0
			if f.started {
				age = f.age(c.now.Mono).Seconds()
			}
			oldest[f.stats] = max(oldest[f.stats], age)
			if h.takes() {
				free -= float64(f.slots) * min(horizon, max(0, f.stats.meanOr(known, oldest[f.stats])-age))
			}
		}
	}
	for _, in := range c.provisions.instances {
		if c.comes(in) {
			free += float64(in.p.slots) * max(0, horizon-max(0, in.p.startup-(c.now.Mono-in.since)).Seconds())
		}
	}
	stranded, waiting, work := 0, 0, 0.0
	for _, cl := range c.queue.list {
		slots := c.withinPools(cl) * cl.key.slots
		switch {
		case !p.couldRun(cl):
		case !c.canRunNow(cl):
			stranded += slots
		default:
			waiting += slots
			work += float64(slots) * cl.stats.meanOr(known, oldest[cl.stats])
		}
	}
	left := 0
	if waiting > 0 && work > free {
		left = int(float64(waiting) * (work - max(0, free)) / work)
	}
	if limit := c.cfg.MaxSlots; limit > 0 { // what only an instance can run waits for slots that others leave
		left, stranded = max(0, min(left, limit-slots)), min(stranded, limit)
	}
	return left + stranded
}

// meanOr returns the mean run time in seconds as far as it is known, and otherwise the age
// of the oldest job that runs.
func (st *runStats) meanOr(known bool, oldest float64) float64 {
	if known {
		return max(st.law.mean, 1e-3)
	}
	return oldest
}

// canRunNow reports whether a host that takes jobs could run the class.
func (c *Core) canRunNow(cl *class) bool {
	if cl.epoch != c.queue.epoch {
		c.fit(cl)
	}
	for _, h := range c.hosts {
		if cl.fits[h.idx] && h.takes() && c.hasTimeFor(h, cl.key.lasts) {
			return true
		}
	}
	return false
}

// couldRun reports whether an instance of the provider could run the class, as far as is known.
func (p *provider) couldRun(cl *class) bool {
	if p.spec.Max == 0 {
		return false
	}
	h := host{spec: &p.spec.Host, inst: &instance{p: p}}
	h.setGPUs(h.spec.GPUNumbers(nil))
	return h.misses(cl) == ""
}

// anyProviderCouldRun reports whether there is such a provider.
func (c *Core) anyProviderCouldRun(cl *class) bool {
	return slices.ContainsFunc(c.provisions.providers, func(p *provider) bool { return p.couldRun(cl) })
}

// instancesMayCome reports whether an instance is on its way: not all hope for the run is lost.
func (c *Core) instancesMayCome() bool {
	return slices.ContainsFunc(c.provisions.instances, func(in *instance) bool {
		return c.comes(in) && in.p.failures == 0
	})
}

// instancesGo reports whether the end of the run has to wait for instances to go.
func (c *Core) instancesGo() bool {
	unsure := func(p *provider) bool { return !p.listed }
	if len(c.provisions.instances) == 0 && (len(c.table.Instances) == 0 || !slices.ContainsFunc(c.provisions.providers, unsure)) {
		return false
	}
	if c.provisions.endBy == 0 {
		c.provisions.endBy = c.now.Mono + instancesEndTime
	}
	return c.now.Mono < c.provisions.endBy
}

// instancesLeft names the instances that may still exist, for the end of a run.
func (c *Core) instancesLeft() string {
	var names []string
	for _, in := range c.provisions.instances {
		names = append(names, in.name)
	}
	if names == nil {
		return ""
	}
	if len(names) > 5 {
		names = append(names[:5], "…")
	}
	return "instances may still exist: " + strings.Join(names, ", ") + "; see dcs-tui hosts instances"
}

// idle returns how long an instance that is up has had no work.
func (c *Core) idle(h *host) time.Duration {
	if h.inst == nil || h.inst.idleAt == 0 || h.open > 0 || !h.takes() {
		return 0
	}
	return max(1, c.now.Mono-h.inst.idleAt)
}

// addInstanceViews adds the instances that are not among the hosts, and gives those that are
// the state of the instance where it says more.
func (c *Core) addInstanceViews(views []HostView) []HostView {
	shown := len(views)
	for _, in := range c.provisions.instances {
		none := true
		for i := range views[:shown] {
			if hosts.InstanceOf(views[i].Name) == in.name {
				none = false
				c.showInstance(in, &views[i])
			}
		}
		if none {
			views = append(views, HostView{Name: in.name, State: Starting, Slots: in.p.slots, Down: max(1, in.since)})
			c.showInstance(in, &views[len(views)-1])
		}
	}
	return views
}

func (c *Core) showInstance(in *instance, v *HostView) {
	switch {
	case in.leaving || in.ending || in.failed:
		v.State, v.Reason = Terminating, in.why
	case in.busy:
		v.State = Creating
	case !in.answered && v.State == Connecting || v.State == BackingOff && !in.up:
		v.State = Starting
	case v.State == Up && v.Reason == "" && in.ends > 0:
		v.Reason = c.endText(in)
	}
	switch {
	case in.answered || v.State == Terminating:
	case in.pending != "":
		v.Reason = fmt.Sprintf("pending: %s, for %s", in.pending, short(c.now.Mono-in.since))
	default:
		v.Reason = fmt.Sprintf("of provider %s, for %s", in.p.spec.Name, short(c.now.Mono-in.since))
	}
}

// nextProvision tells soon when an instance or a list is to be looked after.
func (c *Core) nextProvision(soon func(time.Duration)) {
	for _, in := range c.provisions.instances {
		soon(in.tryAt)
		if in.ends > 0 {
			soon(in.ends - lastMoments)
		}
		soon(in.p.listAt)
	}
	for _, p := range c.provisions.providers {
		soon(p.createAt)
	}
}
