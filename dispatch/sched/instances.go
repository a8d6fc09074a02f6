package sched

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// The commands about instances. The dispatcher carries them out outside its engine.
type (
	// CreateInstance runs the create command; answered by InstanceCreated.
	CreateInstance struct{ Provider, Name string }
	// TerminateInstance runs the terminate command; answered by InstanceTerminated.
	TerminateInstance struct{ Provider, Name string }
	// ListInstances runs the list command; answered by InstancesListed.
	ListInstances struct{ Provider string }
	// FetchInstance copies the outputs of attempts of an instance's host, which does not share its
	// files, into the run directory. It is answered by InstanceFetched with the same name.
	FetchInstance struct {
		Name     string
		Attempts []jobs.AttemptID
	}
)

// The events about instances. Err is for people; "" means success.
type (
	InstanceCreated    struct{ Name, Err string }
	InstanceTerminated struct{ Name, Err string }
	InstanceFetched    struct{ Name, Err string }
	InstancesListed    struct {
		Provider string
		Names    []string                 // those of this run
		Hosts    map[string][]*hosts.Host // of each instance; none while its allocation is pending
		Pending  map[string]string        // why an allocation has not begun
		Left     map[string]time.Duration // time until the end of an allocation; absent: not known
		Err      string                   // if set, the other fields have no meaning
	}
)

// To returns "": the dispatcher itself carries these commands out.
func (CreateInstance) To() string    { return "" }
func (TerminateInstance) To() string { return "" }
func (ListInstances) To() string     { return "" }
func (FetchInstance) To() string     { return "" }

// provisions holds the state of providers and instances.
type provisions struct {
	providers []*provider
	instances []*instance // instances that are not gone, in the order of their numbers
	byName    map[string]*instance
	highest   int // number of the newest instance
	nextAt    time.Duration
	// Deadline of waiting for instances at the end of the run; 0: not at the end.
	endBy    time.Duration
	commands []Command // set only during a Step
}

type provider struct {
	spec            *hosts.Provider
	startup         time.Duration // how long an instance takes to respond
	startupMeasured bool          // startup was measured, and is not from the inventory
	slots           int           // slots of an instance, as far as is known
	listed          bool          // this dispatcher has received the list
	listing         bool          // a list command is running
	listFrom        time.Duration // when the list command began
	listAt          time.Duration // earliest time of the next list
	failures        int           // consecutive failed creations
	unanswered      int           // consecutive instances that were terminated because they had not responded
	bad             int           // consecutive instances that ended on probation, and on which no job has succeeded
	createAt        time.Duration // earliest time of the next creation
	listFailures    int           // consecutive failed lists
	length          int           // length of the queue at lengthAt, for hosts.ByLength
	lengthAt        time.Duration // 0: never
	workCheckAt     time.Duration // next search for a job that an instance could run
	lastWork        jobs.ID       // number of jobs before the one that the last search found
	noWorkAt        time.Duration // when a search last found none
	problem         string        // last reported problem
}

type instance struct {
	name            string
	provider        *provider
	state           instanceState
	why             string        // why it is in the state, from instanceFailed on
	busy            bool          // a command about it is running
	since           time.Duration // its creation, or the start of this dispatcher
	inherited       bool          // an earlier dispatcher created it
	wasListed       bool          // it was in some list
	numListsWithout int           // consecutive lists without it
	// When its last command ended: only later lists count.
	commandEndedAt time.Duration
	// Since when it has been idle; 0: it is busy, or not up.
	idleAt            time.Duration
	outputs           map[string][]jobs.AttemptID // by host
	fetching          []jobs.AttemptID            // outputs that the running fetch copies; not in outputs
	specs             []*hosts.Host               // its hosts, according to the last list
	used              bool                        // specs are in the set of hosts
	isProven          bool                        // a job has succeeded there
	isCounted         bool                        // countUseless has counted it
	hosts             []*host                     // its hosts, as found by this Step
	pending           string                      // why its allocation has not begun; "": it has
	reportedPending   string                      // last reported value of pending
	pendingReportedAt time.Duration               // time of that report
	lastPending       time.Duration               // last time when it was pending
	endsAt            time.Duration               // end of its allocation; 0: not known
	failures          int                         // consecutive failed commands about it
	retryAt           time.Duration
}

// instanceState is the state of an instance for this dispatcher. An instance goes through the states
// in their order and may skip some. Only a failed fetch leads back, from instanceRetiring.
type instanceState uint8

const (
	instanceStarting    instanceState = iota // it has not responded to this dispatcher
	instanceUp                               // it has responded to this dispatcher
	instanceFailed                           // its creation failed
	instanceRetiring                         // it gets no more jobs, and its outputs are fetched
	instanceLeaving                          // its outputs were fetched, and it leaves the run
	instanceTerminating                      // its termination is recorded
)

// moveTo changes the state for a reason, unless the instance is further already.
func (in *instance) moveTo(s instanceState, why string) { in.state, in.why = max(in.state, s), why }

// isRetiring reports whether the instance gets no more jobs.
func (in *instance) isRetiring() bool { return in.state >= instanceRetiring }

// stay ends a retirement: the instance may get jobs again.
func (in *instance) stay() {
	if in.state != instanceRetiring {
		return
	}
	in.state, in.why = instanceStarting, ""
	if slices.ContainsFunc(in.hosts, func(h *host) bool { return h.linked }) {
		in.state = instanceUp
	}
}

// isListed reports whether the newest list that counts for the instance has it.
func (in *instance) isListed() bool { return in.wasListed && in.numListsWithout == 0 }

// wasUp reports whether the instance has responded, possibly to an earlier dispatcher.
func (c *Core) wasUp(in *instance) bool { return c.table.Instances[in.name].Up != 0 }

// beginProviding takes over the instances in the table.
func (c *Core) beginProviding() {
	c.setProviders()
	for _, name := range slices.Sorted(maps.Keys(c.table.Instances)) {
		is := c.table.Instances[name]
		n, _ := hosts.InstanceNumber(c.cfg.InstancePrefix, name)
		c.provisions.highest = max(c.provisions.highest, n)
		if is.State != jobs.InstanceGone && c.provider(is.Provider) == nil {
			c.logf(name, 0, "the instance %s cannot be terminated, because there is no provider %s any more: "+
				"add it to the inventory", name, is.Provider)
		}
	}
}

// setProviders follows the inventory. A provider that is not in it any more creates no more
// instances, but still terminates its own.
func (c *Core) setProviders() { c.reclassify(c.updateProviders) }

func (c *Core) updateProviders() {
	for _, p := range c.provisions.providers {
		ends := *p.spec
		ends.Max = 0
		p.spec = &ends
	}
	for _, spec := range c.inventory.Providers {
		p := c.provider(spec.Name)
		if p == nil {
			p = &provider{spec: spec, startup: spec.Startup, slots: max(1, spec.Host.Slots.Fixed) * spec.Nodes()}
			c.provisions.providers = append(c.provisions.providers, p)
			c.adoptInstances(p)
		}
		p.spec = spec
		if !p.startupMeasured {
			p.startup = spec.Startup
		}
	}
	c.queue.epoch++
	for h := range c.everyHost() {
		if h.instance != nil {
			c.queue.capacityChanged(h)
		}
	}
}

// adoptInstances takes over the instances that a provider has created according to the table.
func (c *Core) adoptInstances(p *provider) {
	number := func(name string) int {
		n, _ := hosts.InstanceNumber(c.cfg.InstancePrefix, name)
		return n
	}
	adopted := map[string]bool{}
	byNumber := func(a, b string) int { return number(a) - number(b) }
	for _, name := range slices.SortedFunc(maps.Keys(c.table.Instances), byNumber) {
		is := c.table.Instances[name]
		if is.Provider != p.spec.Name {
			continue
		}
		if is.Up != 0 {
			p.learnStartup(is.Up.Sub(is.Created))
		}
		if is.State == jobs.InstanceGone {
			continue
		}
		in := c.addInstance(p, name, number(name))
		in.inherited = true
		if is.State == jobs.InstanceTerminating {
			in.moveTo(instanceTerminating, "an earlier dispatcher had begun to")
		}
		adopted[name] = true
	}
	if len(adopted) > 0 {
		c.findOutputs(adopted)
	}
}

// findOutputs finds the outputs that instances may have according to the table.
func (c *Core) findOutputs(of map[string]bool) {
	for j := range c.table.RowsWithOptions() {
		for _, a := range j.Attempts {
			if a.Outcome != nil && of[hosts.InstanceOf(a.Host)] {
				c.recordOutput(a.Host, a.ID)
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
	in := &instance{name: name, provider: p, since: c.now.Mono}
	if v.byName == nil {
		v.byName = map[string]*instance{}
	}
	v.instances, v.byName[name], v.highest = append(v.instances, in), in, max(v.highest, n)
	return in
}

// learnStartup updates the startup time of the provider's instances.
func (p *provider) learnStartup(took time.Duration) {
	took = min(max(took, time.Second), 24*time.Hour)
	if !p.startupMeasured {
		p.startup, p.startupMeasured = took, true
	}
	p.startup += (took - p.startup) / 2
}

// answerLimit returns the maximum time until an instance responds. Time of an allocation in the
// queue of its cluster does not count.
func (p *provider) answerLimit() time.Duration {
	if p.spec.Slurm != nil {
		return max(minStartupLimit, maxStartupFactor*p.spec.Startup)
	}
	return max(minStartupLimit, maxStartupFactor*max(p.startup, p.spec.Startup))
}

// numUseless returns how many creations in a row have led to nothing: they failed, or their instances did not
// respond or were bad.
func (p *provider) numUseless() int { return p.failures + p.unanswered + p.bad }

// delayCreation delays the next creation, the longer the more in a row have led to nothing.
func (c *Core) delayCreation(p *provider) { p.createAt = c.now.Mono + c.commandDelay(p.numUseless()) }

// handleProven handles the first success of a job on an instance.
func (in *instance) handleProven() {
	if !in.isProven {
		in.isProven, in.provider.bad = true, 0
	}
}

// countUseless counts an instance that ends although jobs wait, if it has never responded or is bad.
func (c *Core) countUseless(in *instance) {
	isOnProbation := func(h *host) bool { return h.probation.onProbation }
	switch {
	case in.isCounted || in.state >= instanceFailed || c.hasNoWaitingJob():
		return
	case in.state == instanceStarting && !c.wasUp(in):
		in.provider.unanswered++
	case !in.isProven && slices.ContainsFunc(in.hosts, isOnProbation):
		in.provider.bad++
	default:
		return
	}
	in.isCounted = true
	c.delayCreation(in.provider)
}

// reportProblem reports a problem of a provider, once.
func (c *Core) reportProblem(p *provider, host, text string) {
	if p.problem != text {
		c.logf(host, 0, "%s", text)
	}
	p.problem = text
}

// commandDelay returns the delay after n failures in a row.
func (c *Core) commandDelay(n int) time.Duration {
	return c.jitter(min(4*doubling(n), maxCommandDelay))
}

// handleCommandEnd handles the end of a command about an instance. It returns nil if no command was
// running.
func (c *Core) handleCommandEnd(name, err string) *instance {
	in := c.instanceOf(name)
	if in == nil || !in.busy {
		return nil
	}
	in.busy, in.commandEndedAt = false, c.now.Mono
	in.provider.listAt = min(in.provider.listAt, c.now.Mono)
	if err == "" {
		in.failures, in.retryAt = 0, 0
		return in
	}
	in.failures++
	in.retryAt = c.now.Mono + c.commandDelay(in.failures)
	return in
}

// instanceOf returns the instance that a host belongs to, or nil.
func (c *Core) instanceOf(host string) *instance { return c.provisions.byName[hosts.InstanceOf(host)] }

func (e InstanceCreated) apply(c *Core) {
	in := c.handleCommandEnd(e.Name, e.Err)
	if in == nil {
		return
	}
	p := in.provider
	if e.Err == "" {
		p.failures, p.problem = 0, ""
		if p.numUseless() == 0 {
			p.createAt = 0
		}
		return
	}
	in.moveTo(instanceFailed, "its creation failed")
	p.failures++
	c.delayCreation(p)
	c.reportProblem(p, in.name, e.Err+"; another instance is tried after a delay that grows")
}

func (e InstanceTerminated) apply(c *Core) {
	switch in := c.handleCommandEnd(e.Name, e.Err); {
	case in == nil:
	case e.Err == "":
		in.retryAt = c.now.Mono + terminateTimeout
	default:
		c.reportProblem(in.provider, in.name, e.Err+"; it is tried again until the instance is not listed any more")
	}
}

func (e InstanceFetched) apply(c *Core) {
	in := c.handleCommandEnd(e.Name, e.Err)
	if in == nil || e.Err == "" {
		return
	}
	for _, id := range in.fetching {
		c.recordOutput(e.Name, id)
	}
	in.stay() // it may get jobs in the meantime
	c.reportProblem(in.provider, in.name, fmt.Sprintf(
		"%s is not terminated, because outputs that only it has could not be fetched: %s", e.Name, e.Err))
}

// apply handles a provider's list. A list counts for an instance only if it was
// requested after the last command about the instance had ended.
func (e InstancesListed) apply(c *Core) {
	p := c.provider(e.Provider)
	if p == nil || !p.listing {
		return
	}
	p.listing = false
	if e.Err != "" {
		p.listFailures++
		p.listAt = c.now.Mono + c.commandDelay(p.listFailures)
		c.reportProblem(p, "", e.Err+"; nothing is created or given up until the list can be read")
		return
	}
	if p.listFailures > 0 {
		p.problem = ""
	}
	p.listed, p.listFailures, p.listAt = true, 0, c.now.Mono+shortListInterval
	c.provisions.nextAt = 0
	listed := map[string]bool{}
	for _, name := range e.Names {
		listed[name] = true
	}
	for _, in := range c.provisions.instances {
		if in.provider != p || in.busy || in.commandEndedAt > p.listFrom {
			continue
		}
		if listed[in.name] {
			in.wasListed, in.numListsWithout = true, 0
			in.setSpecs(e.Hosts[in.name])
			c.updateAllocation(in, e.Pending[in.name], e.Left[in.name])
			continue
		}
		in.numListsWithout++
		if in.numListsWithout < 2 {
			// One list may lack it by mistake, even after a terminate command without effect.
			continue
		}
		if p.spec.Slurm != nil {
			in.endsAt = max(1, c.now.Mono) // the node is not ours any more, even if ssh still works
		}
		switch {
		case in.state == instanceTerminating || in.state == instanceFailed:
			c.recordInstanceGone(in, in.why)
		case (in.wasListed || c.wasUp(in)) && c.isUnreachable(in):
			c.recordInstanceGone(in, fmt.Sprintf("provider %s does not list it any more", p.spec.Name))
		}
	}
	n := len(c.provisions.instances)
	c.provisions.instances = slices.DeleteFunc(c.provisions.instances, func(in *instance) bool {
		return c.table.Instances[in.name].State == jobs.InstanceGone
	})
	if len(c.provisions.instances) < n {
		c.updateHosts() // their hosts leave
	}
	for _, name := range e.Names {
		if n, ok := hosts.InstanceNumber(c.cfg.InstancePrefix, name); ok && c.provisions.byName[name] == nil {
			c.handleFoundInstance(p, name, n, e.Hosts[name])
		}
	}
}

// handleFoundInstance handles a listed instance without a record, or one that was assumed to be
// gone. The create command of an earlier dispatcher may have ended late, or records may be lost.
func (c *Core) handleFoundInstance(p *provider, name string, n int, specs []*hosts.Host) {
	was, known := c.table.Instances[name]
	if known && was.Provider != p.spec.Name {
		return
	}
	if !known {
		c.emit(jobs.Record{Kind: jobs.KindInstance, Host: name, How: string(jobs.InstanceCreating),
			Reason: p.spec.Name})
	}
	in := c.addInstance(p, name, n)
	in.inherited, in.wasListed, in.specs = true, true, specs
	if !known {
		c.logf(name, 0, "found the instance %s, of which there was no record", name)
		return
	}
	// It may have attempts and outputs, so it gets no more jobs and is terminated when it is idle.
	in.moveTo(instanceRetiring, "it was assumed to be gone")
	c.emit(jobs.Record{Kind: jobs.KindInstance, Host: name, How: string(jobs.InstanceUp), Reason: in.why})
	c.findOutputs(map[string]bool{name: true})
}

// isUnreachable reports whether each host of the instance has been silent for so long that it is
// suspect, and the shared directory does not show that it is alive. These include hosts with open
// attempts that no list has shown to this dispatcher yet.
func (c *Core) isUnreachable(in *instance) bool {
	for _, h := range c.allHosts() {
		if hosts.InstanceOf(h.spec.Name) != in.name {
			continue
		}
		mayHaveJobs := h.wasUsed || h.numOpen > 0
		if h.linked || mayHaveJobs && c.now.Mono-h.lastReceivedAt < h.suspectAfter || c.mayShowLife(h) {
			return false
		}
	}
	return true
}

// recordInstanceGone records that an instance does not exist any more. Nothing runs on a machine
// that does not exist, so its attempts are not waited for.
func (c *Core) recordInstanceGone(in *instance, why string) {
	for _, h := range c.allHosts() {
		for hosts.InstanceOf(h.spec.Name) == in.name && h.oldest != nil {
			h.oldest.provedDead = true
			c.loseAttempt(h.oldest, "the instance "+in.name+" does not exist any more: "+why)
		}
	}
	c.emit(jobs.Record{Kind: jobs.KindInstance, Host: in.name, How: string(jobs.InstanceGone), Reason: why})
	delete(c.provisions.byName, in.name)
	for _, h := range c.allHosts() {
		if hosts.InstanceOf(h.spec.Name) != in.name {
			continue
		}
		h.instance, h.retiring = nil, true
		for _, id := range slices.Clone(h.orphans) {
			c.settleOrphan(id)
		}
	}
}

// terminate records the termination and runs the terminate command.
func (c *Core) terminate(in *instance, why string) {
	in.moveTo(instanceTerminating, why)
	in.busy = true
	c.emit(jobs.Record{Kind: jobs.KindInstance, Host: in.name, How: string(jobs.InstanceTerminating), Reason: why})
	c.provisions.commands = append(c.provisions.commands, TerminateInstance{in.provider.spec.Name, in.name})
}
