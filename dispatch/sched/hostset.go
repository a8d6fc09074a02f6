package sched

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// The set of hosts changes during a run. A host is known by its name, and the machine behind a name
// may change: its address is edited, or its name is given to a new machine. Every machine has an id
// that was generated on it. The journal records which machine was behind a name when an attempt was
// launched there. Only that machine can settle the attempt. Another machine under the same name
// knows nothing about it.

// hostInputs are the inputs from which the core composes the set of hosts. Two more are
// Table.Inventory, with what people have added and removed, and the instances of providers.
type hostInputs struct {
	inventory *hosts.Inventory
	badHosts  string // why hosts that people have added cannot be used; "": they can
}

// SetInventory sets the hosts, providers, and tokens of the inventory. The core keeps it and does not
// change it. Any change of the set of hosts has these effects:
//
// The core connects to a new host. A host that is not in the set any more starts no jobs, and
// leaves when no attempt is open there. If it is added again before that, it stays. A new address
// is used when no attempt is open at the old one, and the host starts no jobs until then. Setup,
// nice, pin, and share_dir apply from the next connection on, and everything else immediately.
type SetInventory struct{ Inventory *hosts.Inventory }

// ChangeInventory adds or removes a host on request of a person, whatever the inventory file
// contains.
type ChangeInventory struct {
	Host    string
	Change  int    // jobs.HostAdded or jobs.HostRemoved
	Options string // of an added host
}

// Configure sets the specification for the next connections to a host. The first Configure of a
// host creates its agent.
type Configure struct {
	Host string
	Spec *hosts.Host
}

// Leave ends the use of a host, because no attempt of the run is open there. The agent says goodbye
// to the host and ends.
type Leave struct{ Host string }

// To returns the host.
func (c Configure) To() string { return c.Host }

// To returns the host.
func (c Leave) To() string { return c.Host }

// membership is the role of a host in the set of hosts.
type membership struct {
	// Number in Table.Machines of the machine with its attempts; 0: not known.
	machine int32
	// Not in the set any more; the host leaves when no attempt is open there.
	removed bool
	leaveBy time.Duration // when a removed host leaves even if lost attempts are not settled
	// Specification to use when no attempt is open at the current address; nil: keep spec.
	nextSpec     *hosts.Host
	maxLostAfter time.Duration // its longest lost_after so far, because leases may be that long
}

func (e ChangeInventory) carryOut(c *Core) (refused string) {
	had, ok := c.table.Inventory[e.Host]
	h := c.byName[e.Host]
	switch is := h != nil && !h.removed; {
	case e.Change == jobs.HostAdded && is:
		return e.Host + " is in use already"
	case e.Change == jobs.HostRemoved && ok && had.Removed:
		return e.Host + " is removed already"
	case e.Change == jobs.HostRemoved && !is && !ok:
		return c.noHostText(e.Host)
	}
	c.emit(jobs.Record{Kind: jobs.KindInventory, Host: e.Host, Count: e.Change, Reason: e.Options})
	c.updateHosts()
	return ""
}

// unsatisfiableWait is how long jobs that no host can run wait after a host was removed or changed,
// because the next change may bring one that can.
const unsatisfiableWait = 10 * time.Minute

func (e SetInventory) apply(c *Core) {
	was := c.inventory
	c.inventory = e.Inventory
	if !slices.EqualFunc(was.Providers, e.Inventory.Providers, (*hosts.Provider).Equal) {
		c.setProviders()
	}
	if !slices.Equal(was.Tokens, e.Inventory.Tokens) {
		c.setTokens()
	}
	c.updateHosts()
}

// updateHosts composes the set of hosts from the inventory, the requests of people, and the instances
// that are used, and applies what has changed.
func (c *Core) updateHosts() {
	var provided []*hosts.Host
	for _, in := range c.provisions.instances {
		if in.used {
			provided = append(provided, in.specs...)
		}
	}
	set, errs := c.inventory.With(c.table.Inventory, provided)
	bad := ""
	for _, err := range errs {
		bad += err.Error() + "\n"
	}
	if bad != c.badHosts {
		c.badHosts = bad
		for _, err := range errs {
			c.logf("", 0, "%v", err)
		}
	}
	c.reclassifyTried(func() { c.applyHostSet(set) })
}

func (c *Core) applyHostSet(set []*hosts.Host) {
	place := make(map[string]int, len(set))
	for i, s := range set {
		place[s.Name] = i
	}
	fewer := false // a job may now fit on no host
	for h := range c.everyHost() {
		i, wanted := place[h.spec.Name]
		switch {
		case !wanted && h.removed:
		case !wanted:
			c.removeHost(h)
			fewer = true
		default:
			fewer = c.changeHost(h, set[i]) || fewer
		}
	}
	for _, s := range set {
		if c.byName[s.Name] == nil {
			c.addHost(s)
		}
	}
	order := func(h *host) int {
		if i, wanted := place[h.spec.Name]; wanted {
			return i
		}
		return len(place)
	}
	slices.SortStableFunc(c.hosts, func(a, b *host) int { return cmp.Compare(order(a), order(b)) })
	if fewer && c.failUnsatisfiableAt == 0 {
		c.failUnsatisfiableAt = c.now.Mono + unsatisfiableWait
	}
	c.handleHostSetChange()
}

// handleHostSetChange updates everything that depends on the set of hosts.
func (c *Core) handleHostSetChange() {
	for i, h := range c.hosts {
		h.index = i
	}
	c.rebuild()
	for _, cl := range c.queue.list {
		c.updateFits(cl)
	}
	// Classes include estimates only in a hybrid run.
	if hybrid := hasLocalAndRemote(c.HostSpecs()); hybrid != c.hybrid {
		c.reclassify(func() { c.hybrid = hybrid })
	}
}

// reclassify calls change, which affects the classes of all ready jobs, and puts them into their new
// classes.
func (c *Core) reclassify(change func()) {
	var ready []jobs.ID
	for i, state := range c.queue.states {
		if state == stateReady {
			ready = append(ready, jobs.ID(i+1))
		}
	}
	c.moveToNewClasses(ready, change)
}

// reclassifyTried is reclassify for a change that affects only the classes of jobs with attempts,
// which depend on the hosts of these (excludedHosts). Its cost does not grow with the other jobs.
func (c *Core) reclassifyTried(change func()) {
	c.moveToNewClasses(slices.Sorted(maps.Keys(c.queue.tried)), change)
}

func (c *Core) moveToNewClasses(again []jobs.ID, change func()) {
	anywhere := make(map[jobs.ID]bool)
	for _, id := range again {
		anywhere[id] = c.queue.avoidanceOver[id]
		c.removeFromQueue(id)
	}
	change()
	c.queue.lastOpts = nil
	for _, id := range again {
		if anywhere[id] {
			c.queue.avoidanceOver[id] = true
		}
		if j := c.peek(id); j.State == jobs.Queued && c.queue.states[id-1] == stateNotQueued {
			c.makeReady(id, j)
		}
	}
}

// HostSpecs returns the hosts that are not removed. The caller must not change them.
func (c *Core) HostSpecs() []*hosts.Host {
	var list []*hosts.Host
	for h := range c.everyHost() {
		if !h.removed {
			list = append(list, h.spec)
		}
	}
	return list
}

func (c *Core) addHost(s *hosts.Host) {
	machine := c.table.At[s.Name]
	h := newHost(s, len(c.hosts))
	h.lastSeenAt, h.lastReceivedAt, h.cutAt, h.inherited = c.now.Mono, c.now.Mono, c.now.Mono, true
	if i := c.absentWith(s.Name, machine); i >= 0 {
		h = c.absent[i]
		c.absent = slices.Delete(c.absent, i, i+1)
		h.spec, h.parts, h.wasUsed = s, s.NetworkParts(), true
		h.maxLostAfter = max(h.maxLostAfter, s.LostAfterOrDefault())
		h.isQuiet, h.quietChangeAt = false, 0
	}
	h.machine, h.awaySince, h.instance = machine, c.now.Mono, c.instanceOf(s.Name)
	h.probation.others.Skip(c.results)
	h.setState(jobs.HostConnecting, "")
	c.hosts = append(c.hosts, h)
	c.byName[s.Name] = h
	h.index = len(c.hosts) - 1
	c.queue.addColumn(h)
	c.applyHostRequest(h)
	c.logf(s.Name, 0, "%s is added to the hosts of the run", s.Name)
	h.outbox.configure = true
	c.connect(h)
}

func (c *Core) removeHost(h *host) {
	h.removed, h.leaveBy, h.nextSpec, h.reserved = true, c.now.Mono+waitLostTime, nil, nil
	c.queue.capacityChanged(h)
	goesOn := ""
	switch {
	case h.numOpen > 0 && !h.linked:
		goesOn = "; " + c.silentText(h)
	case h.numOpen > 0:
		goesOn = "; what runs there finishes"
	}
	c.logf(h.spec.Name, 0, "%s is removed from the hosts of the run: it starts nothing more%s", h.spec.Name, goesOn)
	h.withdrawAll()
}

// changeHost applies a host's new specification, and reports whether it differs from the old one.
func (c *Core) changeHost(h *host, s *hosts.Host) bool {
	is := h.spec
	if h.nextSpec != nil {
		is = h.nextSpec
	}
	if h.removed {
		h.removed = false
		c.queue.capacityChanged(h)
		c.logf(s.Name, 0, "%s is added to the hosts of the run again, and stays", s.Name)
	}
	if is.Equal(s) {
		return false
	}
	c.logf(s.Name, 0, "%s is changed in the inventory", s.Name)
	h.nextSpec = nil
	now := *s
	if addressDiffers(h.spec, s) {
		h.nextSpec = s
		h.reserved = nil
		h.withdrawAll()
		if h.numOpen > 0 {
			c.logf(s.Name, 0, "the new address of %s is used when its attempts at the old one have ended", s.Name)
		}
		now.Addresses, now.Port, now.User, now.Identity = h.spec.Addresses, h.spec.Port, h.spec.User, h.spec.Identity
		now.SSHConfig, now.Jump = h.spec.SSHConfig, h.spec.Jump
		now.Link, now.Command, now.Shells, now.WorkDir = h.spec.Link, h.spec.Command, h.spec.Shells, h.spec.WorkDir
	}
	c.setHostSpec(h, &now)
	return true
}

// addressDiffers reports whether b leads to another machine than a, or in another way.
func addressDiffers(a, b *hosts.Host) bool {
	return !slices.Equal(a.Addresses, b.Addresses) || a.Port != b.Port || a.User != b.User ||
		a.Identity != b.Identity || a.SSHConfig != b.SSHConfig || !slices.Equal(a.Jump, b.Jump) ||
		a.Link != b.Link || !slices.Equal(a.Command, b.Command) || a.Shells != b.Shells || a.WorkDir != b.WorkDir
}

// setHostSpec replaces the specification of a host.
func (c *Core) setHostSpec(h *host, s *hosts.Host) {
	rule := h.spec.Slots
	if !slices.Equal(h.spec.Queues, s.Queues) {
		h.withdrawAll() // jobs that wait there may belong to another queue
	}
	h.spec, h.parts = s, s.NetworkParts()
	// For leases that were given before.
	h.maxLostAfter = max(h.maxLostAfter, s.LostAfterOrDefault())
	h.outbox.configure = true
	if h.hello != nil {
		hello := *h.hello
		if hello.Cores > 0 && s.Slots != rule {
			hello.Slots = s.Slots.Count(hello.Cores)
		}
		h.storeHello(&hello)
	}
	c.queue.capacityChanged(h)
	if len(s.Quiet) == 0 && h.isQuiet {
		h.isQuiet, h.quietChangeAt = false, 0
	}
}

// moveHosts moves hosts to their new addresses and lets removed ones leave, if no attempt is open
// there.
func (c *Core) moveHosts() {
	for _, h := range slices.Collect(c.visits()) {
		switch {
		case h.numOpen > 0:
		case h.nextSpec != nil:
			c.moveHost(h)
		case h.removed && (!h.linked || len(h.orphans) == 0 || c.now.Mono >= h.leaveBy):
			c.reclassifyTried(func() {
				c.hosts = slices.Delete(c.hosts, h.index, h.index+1)
				c.queue.removeColumn(h)
				c.endHostUse(h)
				c.handleHostSetChange()
			})
		}
	}
	c.absent = slices.DeleteFunc(c.absent, func(h *host) bool { return h.numOpen == 0 && len(h.orphans) == 0 })
	if c.failUnsatisfiableAt > 0 && c.now.Mono >= c.failUnsatisfiableAt {
		c.failUnsatisfiableAt = 0
		c.queue.epoch++
	}
}

// moveHost connects to a host at its new address.
func (c *Core) moveHost(h *host) {
	c.awaitUnlisted(h)
	if h.linked {
		c.markLinkDown(h)
		h.silentLinks = 0
	}
	h.outbox.disconnect = true
	s := h.nextSpec
	h.nextSpec, h.dialing, h.failures = nil, false, 0
	h.setState(jobs.HostConnecting, "")
	c.setHostSpec(h, s)
	c.connect(h)
}

// endHostUse ends the use of a host.
func (c *Core) endHostUse(h *host) {
	name := h.spec.Name
	delete(c.byName, name)
	c.awaitUnlisted(h)
	c.claims.leftLease = max(c.claims.leftLease, c.leaseOf(h))
	c.countOthers(h)
	c.leaves = append(c.leaves, Leave{name})
	c.logf(name, 0, "%s has left the run", name)
	if len(h.orphans) == 0 {
		return
	}
	if h.linked {
		c.markLinkDown(h)
	}
	h.index, h.removed, h.dialing, h.retryAt = -1, false, false, 0
	h.setState(jobs.HostSuspect, notInInventory)
	h.outbox = outbox{}
	c.absent = append(c.absent, h)
}

const notInInventory = "it is not in the inventory any more"

// absentWith returns the index in absent of a machine under a name, or -1.
func (c *Core) absentWith(name string, machine int32) int {
	return slices.IndexFunc(c.absent, func(o *host) bool { return o.isMachine(name, machine) })
}

// isMachine reports whether the host is the given machine under the given name.
func (h *host) isMachine(name string, machine int32) bool {
	return h.spec.Name == name && (machine == 0 || h.machine == machine)
}

// owns reports whether the attempt is on the machine behind the host's name.
func (h *host) owns(a *jobs.Attempt) bool { return h.isMachine(a.Host, a.Machine) }

// hostWith returns the host that has the attempts of a machine under a name, or nil.
func (c *Core) hostWith(name string, machine int32) *host {
	if h := c.byName[name]; h != nil && h.isMachine(name, machine) {
		return h
	}
	if i := c.absentWith(name, machine); i >= 0 {
		return c.absent[i]
	}
	return nil
}

// hostOf is like hostWith, and creates the host if there is none. A machine that cannot be queried,
// because its name is not in the inventory or belongs to another machine, is kept outside the
// inventory. Its attempts wait until they are lost. An attempt whose machine is not known, because
// it was found after damage before its host had answered, counts as one of the newest machine.
func (c *Core) hostOf(name string, machine int32) *host {
	if machine == 0 {
		machine = c.table.At[name]
	}
	if h := c.hostWith(name, machine); h != nil {
		return h
	}
	h := newHost(&hosts.Host{Name: name}, -1)
	h.machine, h.lastReceivedAt, h.cutAt, h.inherited = machine, c.now.Mono, c.now.Mono, true
	h.setState(jobs.HostSuspect, notInInventory)
	if c.byName[name] != nil {
		h.setState(jobs.HostSuspect, anotherMachine)
	}
	c.absent = append(c.absent, h)
	return h
}

const anotherMachine = "another machine answers under its name"

// identifyMachine records which machine responds under a host's name. If it is not the previous
// one, the open attempts of the previous machine are kept separately, because the new machine knows
// nothing about them.
func (c *Core) identifyMachine(h *host, id string) {
	name := h.spec.Name
	if id == "" || h.machine != 0 && c.table.Machines[jobs.Machine{Host: name, ID: id}] == h.machine {
		return
	}
	if !c.emit(jobs.Record{Kind: jobs.KindMachine, Host: name, Reason: id}) {
		return
	}
	if machine := c.table.At[name]; h.machine != machine {
		c.reclassifyTried(func() { c.changeMachine(h, machine) })
	}
}

// changeMachine puts another machine behind a host's name.
func (c *Core) changeMachine(h *host, machine int32) {
	name, was := h.spec.Name, h.machine
	known := c.absentWith(name, machine)
	if was == 0 { // after damage, a host without a known machine may have attempts
		h.machine = machine
		return
	}
	if h.numOpen > 0 || len(h.orphans) > 0 {
		o := newHost(h.spec, -1)
		o.machine, o.maxLostAfter, o.maxHeartbeat, o.hello = was, h.maxLostAfter, h.maxHeartbeat, h.hello
		o.lastSeenAt, o.lastReceivedAt, o.cutAt = h.lastSeenAt, h.lastReceivedAt, h.cutAt
		o.awaySince, o.inherited = h.awaySince, h.inherited
		o.setState(jobs.HostSuspect, anotherMachine)
		c.absent = append(c.absent, o)
		c.logf(name, 0, "another machine answers as %s: it does not know the attempts that were launched on "+
			"the previous one (%s), which waits until that one has been silent for %s",
			name, text.Plural(h.numOpen, "attempt"), text.Span(h.spec.LostAfterOrDefault()))
		o.takeAttemptsOf(h)
	}
	h.machine, h.probation = machine, probation{}
	h.probation.others.Skip(c.results)
	if known >= 0 {
		h.takeAttemptsOf(c.absent[known])
		c.absent = slices.Delete(c.absent, known, known+1)
	}
}

// takeAttemptsOf moves the attempts of another host to this one, which has none.
func (h *host) takeAttemptsOf(o *host) {
	for f := o.oldest; f != nil; f = f.nextOnHost {
		o.addUse(f, -1)
		f.host = h
		h.addUse(f, 1)
	}
	h.oldest, h.newest, h.numOpen = o.oldest, o.newest, o.numOpen
	o.oldest, o.newest, o.numOpen = nil, nil, 0
	h.orphans, o.orphans = o.orphans, nil
	h.wasUsed = true
}

// whyLeaving returns why a removed host accepts no jobs.
func (h *host) whyLeaving() string {
	return fmt.Sprintf("removed from the run: %s open there, then it leaves", text.Plural(h.numOpen, "attempt"))
}

// whyMoving is why a host with a new address accepts no jobs.
const whyMoving = "its new address is used when its attempts at the old one have ended"
