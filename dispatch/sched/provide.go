package sched

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// Hosts on demand. Providers create instances, which become hosts of the run, if the queue cannot
// be processed soon enough without them. They terminate idle instances. Each creation and
// termination is recorded before its command runs. Only the provider's list shows which instances
// exist, because a command that failed may have had an effect.

const (
	provideInterval   = time.Second
	shortListInterval = 5 * time.Second // between lists while a change is in progress
	longListInterval  = time.Minute     // between lists otherwise, while there are instances
	maxCommandDelay   = 5 * time.Minute // between attempts of a command that fails
	// terminateTimeout is when an instance that is still listed is terminated again.
	terminateTimeout = 30 * time.Second
	// maxStartupFactor is after how many startup times an instance that has not responded is
	// terminated.
	maxStartupFactor = 3
	minStartupLimit  = 30 * time.Second
	// maxUnanswered is after how many instances in a row that have not responded no other one is
	// expected to, so that the run may be given up.
	maxUnanswered = 3
	// leaveTime is how long an instance has to end processes that jobs left behind, before it is
	// terminated.
	leaveTime = time.Second
	// pendingListInterval is used while allocations wait in the queue of their cluster.
	pendingListInterval = 20 * time.Second
	// stopBeforeEnd is how long before the end of an allocation its jobs are stopped, to run
	// elsewhere.
	stopBeforeEnd = 30 * time.Second
	// firstDialTime is how long hosts that are dialed for the first time count as capacity.
	firstDialTime = 15 * time.Second
	// instancesEndTime is how long the end of a run waits for its instances to be gone.
	instancesEndTime = 10 * time.Minute
)

// provide makes the decisions about instances. It runs after launching, so an instance that is idle
// then cannot get work.
func (c *Core) provide() {
	v := &c.provisions
	if len(v.providers) == 0 || c.stopped || c.fenced || c.finished {
		return
	}
	c.linkInstancesWithHosts()
	for _, in := range v.instances {
		c.manageInstance(in)
	}
	if c.now.Mono >= v.nextAt {
		v.nextAt = c.now.Mono + provideInterval
		for _, p := range v.providers {
			c.createInstances(p)
		}
	}
	for _, p := range v.providers {
		c.requestInstanceList(p)
	}
	changed := false
	for _, in := range v.instances {
		changed = in.used != in.isUsable() || changed
		in.used = in.isUsable()
	}
	if changed {
		c.updateHosts()
		c.moveHosts()
	}
}

// isUsable reports whether the hosts of the instance must be hosts of the run.
func (in *instance) isUsable() bool {
	return in.wasListed && in.pending == "" && in.state < instanceLeaving && in.state != instanceFailed
}

// setSpecs sets the hosts of the instance.
func (in *instance) setSpecs(list []*hosts.Host) {
	in.used = in.used && slices.EqualFunc(list, in.specs, (*hosts.Host).Equal) // otherwise provide updates the set
	in.specs = list
}

// manageInstance decides about an instance.
func (c *Core) manageInstance(in *instance) {
	open := 0
	for _, o := range c.absent {
		if hosts.InstanceOf(o.spec.Name) == in.name {
			open += o.numOpen
			if !in.provider.listed {
				o.lastReceivedAt = c.now.Mono // it cannot be reached before its address is in a list
			}
		}
	}
	slots := 0
	for _, h := range in.hosts {
		h.touch()
		h.retiring = in.isRetiring()
		open += h.numOpen
		if !h.linked {
			continue
		}
		if !c.wasUp(in) && in.state != instanceTerminating {
			c.emit(jobs.Record{Kind: jobs.KindInstance, Host: in.name, How: string(jobs.InstanceUp)})
			in.provider.unanswered = 0
			if !in.inherited {
				in.provider.learnStartup(c.now.Mono - in.since)
			}
		}
		in.moveTo(instanceUp, in.why)
		slots += max(1, h.slots())
	}
	if slots > 0 {
		in.provider.slots = slots
	}
	c.vacateAllocation(in)
	if open > 0 {
		in.idleAt = 0
		return
	}
	if in.busy || c.now.Mono < in.retryAt {
		return
	}
	if c.wasUp(in) && in.idleAt == 0 {
		in.idleAt = max(1, c.now.Mono)
	}
	why, kept := c.whyTerminate(in), in.hostWithOutputs()
	if why != "" {
		c.countUseless(in)
	}
	switch {
	case why == "":
	case kept != "" && in.state != instanceTerminating:
		in.moveTo(instanceRetiring, why)
		in.busy, in.fetching = true, in.outputs[kept]
		delete(in.outputs, kept) // a lost attempt may report its end during the fetch
		c.provisions.commands = append(c.provisions.commands, FetchInstance{kept, slices.Clone(in.fetching)})
	case len(in.hosts) > 0:
		in.moveTo(instanceLeaving, why)
		in.outputs, in.retryAt = nil, c.now.Mono+leaveTime
	default:
		c.terminate(in, why)
	}
	for _, h := range in.hosts {
		h.retiring = in.isRetiring()
	}
}

// recordOutput records that an attempt has ended on an instance.
func (c *Core) recordOutput(host string, id jobs.AttemptID) {
	if in := c.instanceOf(host); in != nil {
		if in.outputs == nil {
			in.outputs = map[string][]jobs.AttemptID{}
		}
		in.outputs[host] = append(in.outputs[host], id)
	}
}

// hostWithOutputs returns the first host of the instance that has outputs which exist nowhere else,
// or "".
func (in *instance) hostWithOutputs() string {
	for _, name := range slices.Sorted(maps.Keys(in.outputs)) {
		i := slices.IndexFunc(in.hosts, func(h *host) bool { return h.spec.Name == name })
		if i < 0 || in.hosts[i].hello == nil || !in.hosts[i].hello.Shared {
			return name
		}
	}
	return ""
}

// whyTerminate returns why an instance without jobs must be terminated, or "".
func (c *Core) whyTerminate(in *instance) string {
	age := c.now.Mono - max(in.since, in.lastPending)
	switch {
	case in.state == instanceFailed && !in.isListed():
		return "" // the next list shows whether there is anything to terminate
	case in.state >= instanceFailed:
		return in.why // a command failed, or has had no effect yet
	case !in.provider.listed:
		return ""
	case c.isOver(), c.hasNoWaitingJob() && !c.isKept(in):
		return "the run has no more work for it"
	case in.provider.spec.Rule == hosts.Eager && c.wasUp(in) && !c.isKept(in) && c.hasNoWorkFor(in.provider):
		return "no job is left that it could run"
	case c.isAllocationOver(in):
		return allocationEnds
	case !c.wasUp(in) && in.pending == "" && age >= in.provider.answerLimit():
		return "it has not answered within " + text.Span(in.provider.answerLimit()) + in.linkReason()
	case c.wasUp(in) && c.now.Mono-in.idleAt >= in.provider.spec.Idle && !c.isKept(in):
		return "it has been idle for " + text.Span(in.provider.spec.Idle)
	}
	return ""
}

// linkReason returns, as the end of a sentence, why the first host of the instance that is not linked
// could not be reached, or "".
func (in *instance) linkReason() string {
	for _, h := range in.hosts {
		if !h.linked && h.reason != "" {
			return " (" + text.WithoutSubject(h.reason, h.spec.Name) + ")"
		}
	}
	return ""
}

// isOver reports whether instances are of no more use, because no job is queued or runs.
func (c *Core) isOver() bool {
	return c.drain != nil || c.hasNoWaitingJob() && c.table.Counts[jobs.Running] == 0
}

// isKept reports whether an instance is one of those that its provider keeps while the run lasts. None is
// kept in the place of one that a job needs.
func (c *Core) isKept(in *instance) bool {
	n, p := 0, in.provider
	for _, o := range c.provisions.instances {
		if o.provider == p && o.state < instanceFailed {
			n++
		}
	}
	return n <= p.spec.Min && (n < p.spec.Max || !c.needsOtherInstance(p))
}

// needsOtherInstance reports whether a job waits that no host can run, but a new instance of the provider
// could, because the inventory was changed after its instances were created.
func (c *Core) needsOtherInstance(p *provider) bool {
	return slices.ContainsFunc(c.queue.list, func(cl *class) bool {
		c.updateFits(cl)
		return cl.numReady > 0 && cl.numCanRun == 0 && p.canRun(cl)
	})
}

// hasNoWorkFor reports whether no job will come, and none is queued, that an instance of the provider
// could run. It looks at all jobs at most once per provideInterval, from the last one that it found.
func (c *Core) hasNoWorkFor(p *provider) bool {
	switch {
	case !c.allSubmitted:
		return false
	case c.now.Mono < p.workCheckAt: // of another instance
		return c.now.Mono == p.noWorkAt
	}
	p.workCheckAt = c.now.Mono + provideInterval
	n := c.table.NumJobs()
	for i := range n {
		id := jobs.ID((int(p.lastWork)+i)%n + 1)
		if c.table.State(id) == jobs.Queued && p.canRun(c.classOf(c.peek(id))) {
			p.lastWork = id - 1
			return false
		}
	}
	p.noWorkAt = c.now.Mono
	return true
}

// hasNoWaitingJob reports whether no job waits for a host that does not exist yet.
func (c *Core) hasNoWaitingJob() bool {
	return c.drain != nil || c.allSubmitted && c.table.Counts[jobs.Queued] == 0
}

// requestInstanceList requests the list of a provider when it is needed.
func (c *Core) requestInstanceList(p *provider) {
	if p.listing || c.now.Mono < p.listAt {
		return
	}
	needed, later := !p.listed, longListInterval
	for _, in := range c.provisions.instances {
		if in.provider == p && !in.busy {
			needed = true
			switch {
			case in.pending != "" && in.isListed() && in.state != instanceTerminating &&
				c.now.Mono-in.since > longListInterval:
				later = min(later, pendingListInterval)
			case !c.wasUp(in) || in.state == instanceTerminating || !in.isListed() || c.awaitsHostOf(in):
				later = 0 // a host with open attempts that is silent may be gone
			}
		}
	}
	if !needed || p.listed && later > 0 && c.now.Mono < p.listFrom+later {
		return
	}
	p.listing, p.listFrom = true, c.now.Mono
	c.provisions.commands = append(c.provisions.commands, ListInstances{p.spec.Name})
}

// awaitsHostOf reports whether an open attempt waits for a silent host of the instance.
func (c *Core) awaitsHostOf(in *instance) bool {
	return slices.ContainsFunc(in.hosts, func(h *host) bool { return !h.linked && h.numOpen > 0 })
}

// createInstances creates the instances that are kept, and others by the provider's rule.
func (c *Core) createInstances(p *provider) {
	if !p.listed || c.now.Mono < p.createAt || c.isLaunchingClosed() ||
		c.queue.ready == 0 && (p.spec.Min == 0 || c.hasNoWaitingJob()) {
		return
	}
	n, coming := 0, 0
	for _, in := range c.provisions.instances {
		if in.provider == p {
			n++
		}
		if c.isStarting(in) {
			coming += in.provider.slots
		}
	}
	left := 0
	switch {
	case c.queue.ready == 0:
	case p.spec.Rule == hosts.ByLength:
		if c.growsByLength(p) {
			left = coming + 1
		}
	default:
		left = c.slotsNeeded(p)
	}
	for ; n < p.spec.Max && (n < p.spec.Min || coming < left); n++ {
		if p.numUseless() > 0 && coming > 0 {
			return // one is enough to find out whether it works again
		}
		if p.bad > 0 {
			c.delayCreation(p) // it may respond long before it proves to be bad
		}
		coming += p.slots
		number := c.provisions.highest + 1
		in := c.addInstance(p, hosts.InstanceName(c.cfg.InstancePrefix, number), number)
		in.busy = true
		c.emit(jobs.Record{Kind: jobs.KindInstance, Host: in.name, How: string(jobs.InstanceCreating),
			Reason: p.spec.Name})
		c.provisions.commands = append(c.provisions.commands, CreateInstance{p.spec.Name, in.name})
	}
}

// lengthInterval is how often the length of the queue is compared with the previous one.
const lengthInterval = 10 * time.Second

// growsByLength reports whether one more instance is needed by the rule of CS553: the queue has grown
// since the last comparison, or cannot be consumed at the rate (previous length - current length) /
// time within the startup time of an instance. At other times it returns false.
func (c *Core) growsByLength(p *provider) bool {
	passed := c.now.Mono - p.lengthAt
	if p.lengthAt > 0 && passed < lengthInterval {
		return false
	}
	length := 0
	for _, cl := range c.queue.list {
		if p.canRun(cl) {
			length += cl.numReady
		}
	}
	consumed := p.length - length
	p.length, p.lengthAt = length, max(1, c.now.Mono)
	return length > 0 && (consumed <= 0 || float64(length)*passed.Seconds() > float64(consumed)*p.startup.Seconds())
}

// isStarting reports whether an instance is being started and will accept jobs.
func (c *Core) isStarting(in *instance) bool {
	return in.state == instanceStarting &&
		(!c.wasUp(in) || c.now.Mono-max(in.since, in.lastPending) < in.provider.answerLimit())
}

// slotsNeeded returns how many slots the waiting jobs that an instance could run would still need
// at the time when an instance created now has started.
func (c *Core) slotsNeeded(p *provider) int {
	_, known := c.remainingWork(c.now) // sets the distribution of each queue
	oldest := map[*queueStats]float64{}
	horizon, free, slots := p.startup.Seconds(), 0.0, 0
	for h := range c.everyHost() {
		switch {
		case h.acceptsJobs():
			n := c.slotsFor(h, c.queue.kinds.Set)
			slots += n
			free += float64(n) * horizon
		case h.isFirstDial() && h.instance == nil && c.now.Mono < firstDialTime:
			return 0 // its capacity will be known in a moment
		}
		for f := h.oldest; f != nil; f = f.nextOnHost {
			age := 0.0
			if f.started {
				age = f.age(c.now.Mono).Seconds()
			}
			oldest[f.stats] = max(oldest[f.stats], age)
			if h.acceptsJobs() {
				free -= float64(f.slots) * min(horizon, max(0, f.stats.meanOr(known, oldest[f.stats])-age))
			}
		}
	}
	for _, in := range c.provisions.instances {
		if c.isStarting(in) {
			comesIn := max(0, in.provider.startup-(c.now.Mono-in.since))
			free += float64(in.provider.slots) * max(0, horizon-comesIn.Seconds())
		}
	}
	c.slots.plannedUse = 0
	for _, p := range c.queueAndTokenPools() {
		p.plannedUse = 0
	}
	stranded, waiting, work := 0, 0, 0.0
	for _, cl := range c.queue.list {
		if !p.canRun(cl) {
			continue
		}
		slots := c.planWithinPools(cl) * cl.key.slots
		switch {
		case !c.hasHostFor(cl):
			stranded += slots
		default:
			waiting += slots
			work += float64(slots) * cl.stats.meanOr(known, oldest[cl.stats])
		}
	}
	left := 0
	if p.spec.Rule == hosts.Eager {
		left = waiting
	} else if waiting > 0 && work > free {
		left = int(float64(waiting) * (work - max(0, free)) / work)
	}
	// A job that only an instance can run waits for slots that others leave.
	if limit := c.cfg.MaxSlots; limit > 0 {
		left, stranded = max(0, min(left, limit-slots)), min(stranded, limit)
	}
	return left + stranded
}

// meanOr returns the mean run time in seconds if it is known, and otherwise the age of the oldest
// running job.
func (st *queueStats) meanOr(known bool, oldest float64) float64 {
	if known {
		return max(st.dist.Mean, 1e-3)
	}
	return oldest
}

// hasHostFor reports whether a host that accepts jobs, and is not on probation for them, could run the class.
func (c *Core) hasHostFor(cl *class) bool {
	c.updateFits(cl)
	return c.anyHost(func(h *host) bool {
		return cl.fitsOn(h) && h.acceptsJobs() && c.hasTimeFor(h, cl.key.maxRunTime) &&
			!h.probation.isOnProbationFor(cl.kind)
	})
}

// canRun reports whether an instance of the provider could run the class, as far as is known.
func (p *provider) canRun(cl *class) bool {
	if p.spec.Max == 0 {
		return false
	}
	h := host{spec: &p.spec.Host, instance: &instance{provider: p}}
	h.setGPUs(h.spec.GPUNumbers(nil))
	return h.whyCannotRun(cl) == ""
}

// hasProviderFor reports whether canRun holds for some provider.
func (c *Core) hasProviderFor(cl *class) bool {
	return slices.ContainsFunc(c.provisions.providers, func(p *provider) bool { return p.canRun(cl) })
}

// hasStartingInstance reports whether an instance is being started and is expected to come up: the
// last creation succeeded, and one of the last instances has responded.
func (c *Core) hasStartingInstance() bool {
	return slices.ContainsFunc(c.provisions.instances, func(in *instance) bool {
		return c.isStarting(in) && in.provider.failures == 0 && in.provider.unanswered < maxUnanswered
	})
}

// waitsForInstances reports whether the end of the run waits for instances to be terminated.
func (c *Core) waitsForInstances() bool {
	unsure := func(p *provider) bool { return !p.listed }
	if len(c.provisions.instances) == 0 &&
		(len(c.table.Instances) == 0 || !slices.ContainsFunc(c.provisions.providers, unsure)) {
		return false
	}
	if c.provisions.endBy == 0 {
		c.provisions.endBy = c.now.Mono + instancesEndTime
	}
	return c.now.Mono < c.provisions.endBy
}

// instancesLeft names the instances that may still exist at the end of a run, including those of
// providers that are not in the inventory any more.
func (c *Core) instancesLeft() string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.table.Instances)) {
		if c.table.Instances[name].State != jobs.InstanceGone {
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return "instances may still exist: " + text.List(names, 5) + "; see dcs-tui hosts instances"
}

// idleTime returns how long an instance that is up has had no work.
func (c *Core) idleTime(h *host) time.Duration {
	if h.instance == nil || h.instance.idleAt == 0 || h.numOpen > 0 || !h.acceptsJobs() {
		return 0
	}
	return max(1, c.now.Mono-h.instance.idleAt)
}

// addInstanceViews adds the instances that have no host, and completes the views of hosts that are
// instances.
func (c *Core) addInstanceViews(views []HostView) []HostView {
	shown := len(views)
	for _, in := range c.provisions.instances {
		none := true
		for i := range views[:shown] {
			if hosts.InstanceOf(views[i].Name) == in.name {
				none = false
				c.fillInstanceView(in, &views[i])
			}
		}
		if none {
			views = append(views, HostView{Name: in.name, HostStatus: jobs.HostStatus{State: jobs.HostStarting},
				Slots: in.provider.slots, Down: max(1, in.since)})
			c.fillInstanceView(in, &views[len(views)-1])
		}
	}
	return views
}

func (c *Core) fillInstanceView(in *instance, v *HostView) {
	switch {
	case in.state >= instanceFailed:
		v.State, v.Reason = jobs.HostTerminating, in.why
	case in.busy:
		v.State = jobs.HostCreating
	case in.state == instanceStarting && v.State == jobs.HostConnecting,
		v.State == jobs.HostBackingOff && !c.wasUp(in):
		v.State = jobs.HostStarting
	case v.State == jobs.HostUp && v.Reason == "" && in.endsAt > 0:
		v.Reason = c.allocationEndText(in)
	}
	if v.State != jobs.HostUp {
		v.Hold = jobs.NotHeld
	}
	switch {
	case in.state == instanceUp || v.State == jobs.HostTerminating:
	case in.pending != "":
		v.Reason = fmt.Sprintf("pending: %s, for %s", in.pending, text.Span(c.now.Mono-in.since))
	default:
		v.Reason = fmt.Sprintf("of provider %s, for %s", in.provider.spec.Name, text.Span(c.now.Mono-in.since))
	}
}

// nextProvision adds the times at which provide must run again.
func (c *Core) nextProvision(next *earliest) {
	for _, in := range c.provisions.instances {
		next.add(in.retryAt)
		if in.endsAt > 0 {
			next.add(in.endsAt - stopBeforeEnd)
		}
		next.add(in.provider.listAt)
	}
	for _, p := range c.provisions.providers {
		next.add(p.createAt)
	}
}
