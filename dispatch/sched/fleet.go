package sched

import (
	"iter"
	"math"
	"slices"
	"time"

	"dcs-tui/dispatch/sched/blame"
	"dcs-tui/jobs"
)

// A Step visits only the hosts on which it may have an effect, so that the cost of an event does not
// grow with the number of hosts. These are the hosts that have been touched, which means that
// something has changed there, and those whose timer has expired. A host is visited in the Step in
// which it was touched, and in the next one, whose first policies see what the last ones have done.
//
// Whatever changes a host touches it: the events about the host, and the methods that attempts,
// outboxes, pauses, and reservations are changed with. Rare events, such as requests of people,
// touch all hosts.

// fleet holds the hosts of the inventory, and which of them to visit.
type fleet struct {
	hosts      []*host // in the order of the inventory
	numSteps   int
	visiting   []*host // the hosts to visit, each once
	isUnsorted bool    // visiting is not in the order of the inventory
	stale      []*host // hosts whose summary is out of date
	held       []*host // hosts whose hold is reported when a job is ready
	numVisits  int     // number of visited hosts, for tests
	seen       policyInputs
	clockGap   time.Duration // wall clock less Time.Mono in the last Step

	total     hostTotals
	closed    blame.KindCounts // free slots of total that jobs of a kind cannot get now, because of trials
	nodes     []hostSummary    // a tree: the children of node i are 2i and 2i+1, and the hosts are its leaves
	firstLeaf int              // index of the first leaf
}

// fleetState is the part of a host that its fleet owns.
type fleetState struct {
	fleet                       *fleet // nil: not in a fleet
	touchedIn                   int    // number of the last Step in which it was touched
	isVisiting, isStale, isHeld bool   // it is in fleet.visiting, in fleet.stale, in fleet.held
	counted                     hostTotals
	limited                     blame.Kinds // kinds of jobs that cannot get numClosed slots of counted.free
	numClosed                   int
}

// policyInputs are what the policies of hosts depend on beyond the host itself. If it changes, all
// hosts are visited.
type policyInputs struct {
	isPaused, isDraining, isClosed, isOver bool
	numHosts                               int
	readyPerHost                           int // slots of shared hosts that the ready jobs want
}

// hostTotals are sums over hosts.
type hostTotals struct {
	slots, ahead int // of hosts that accept jobs: limits, and jobs beyond them
	free         int // free slots of hosts that accept jobs and are not reserved, for jobs of some kind
	answering    int // hosts that answer and are not removed
	progressing  int // hosts with attempts that may progress
	withdrawing  int // attempts of linked hosts that are being withdrawn
}

// hostSummary describes a host, or all hosts below a node of the tree.
type hostSummary struct {
	space float64 // maximum of free slots, weighted; 0: none is free
	// The kinds of jobs that a host with free slots takes now: of jobs that have not failed on other
	// hosts, and of those that have.
	open, openAgain blame.Kinds
	ahead           blame.Kinds // the kinds of jobs that a host without free slots gets ahead of need
	// A host gets jobs ahead of need only if its part of the remaining jobs is at least minPart per
	// slot, and its high-water mark at least minHigh per slot. Infinity: it gets none.
	minPart, minHigh float64
	surplus          int           // maximum number of attempts that wait beyond the free slots
	wakeAt           time.Duration // earliest time at which a Tick is needed (see Next)
	visitAt          time.Duration // earliest time of a visit
}

var noHosts = hostSummary{minPart: math.Inf(1), minHigh: math.Inf(1), wakeAt: timeNever, visitAt: timeNever}

// touch makes the current and the next Step visit the host.
func (h *host) touch() {
	f := h.fleet
	if f == nil || h.index < 0 {
		return
	}
	h.touchedIn = f.numSteps
	if !h.isVisiting {
		h.isVisiting, f.isUnsorted = true, true
		f.visiting = append(f.visiting, h)
	}
	h.markStale()
}

// markStale makes the next summarize update the host.
func (h *host) markStale() {
	if f := h.fleet; !h.isStale {
		h.isStale = true
		f.stale = append(f.stale, h)
	}
}

func (f *fleet) touchAll() {
	for _, h := range f.hosts {
		h.touch()
	}
}

// everyHost yields all hosts, in the order of the inventory. It is not for what most events need.
func (f *fleet) everyHost() iter.Seq[*host] {
	return func(yield func(*host) bool) {
		for _, h := range f.hosts {
			f.numVisits++
			if !yield(h) {
				return
			}
		}
	}
}

// anyHost reports whether any host meets a condition.
func (f *fleet) anyHost(is func(*host) bool) bool {
	for h := range f.everyHost() {
		if is(h) {
			return true
		}
	}
	return false
}

// rebuild makes the tree after a change of the set of hosts or of their order.
func (f *fleet) rebuild() {
	f.firstLeaf = 1
	for f.firstLeaf < len(f.hosts) {
		f.firstLeaf *= 2
	}
	f.nodes = slices.Repeat([]hostSummary{noHosts}, 2*f.firstLeaf)
	f.visiting, f.stale, f.held, f.total, f.closed = nil, nil, nil, hostTotals{}, blame.KindCounts{}
	for _, h := range f.hosts {
		h.fleetState = fleetState{fleet: f}
		h.touch()
	}
}

// visits yields the hosts to visit, in the order of the inventory. Hosts that are touched meanwhile
// are included if they come later.
func (f *fleet) visits() iter.Seq[*host] {
	return func(yield func(*host) bool) {
		for last := -1; ; {
			if f.isUnsorted {
				slices.SortFunc(f.visiting, func(a, b *host) int { return a.index - b.index })
				f.isUnsorted = false
			}
			i, _ := slices.BinarySearchFunc(f.visiting, last+1, func(h *host, index int) int { return h.index - index })
			if i == len(f.visiting) {
				return
			}
			h := f.visiting[i]
			last = h.index
			f.numVisits++
			if !yield(h) {
				return
			}
		}
	}
}

// visitsWithAbsent yields the hosts to visit, and then the absent ones.
func (c *Core) visitsWithAbsent() iter.Seq[*host] {
	return func(yield func(*host) bool) {
		for h := range c.visits() {
			if !yield(h) {
				return
			}
		}
		for _, h := range c.absent {
			if !yield(h) {
				return
			}
		}
	}
}

// beginVisits touches the hosts whose timers have expired.
func (c *Core) beginVisits() {
	f := &c.fleet
	f.numSteps++
	for i := f.firstDue(1, c.now.Mono); i >= 0; i = f.firstDue(1, c.now.Mono) {
		f.nodes[f.firstLeaf+i].visitAt = timeNever
		f.updateParents(i)
		f.hosts[i].touch()
	}
	// Quiet hours depend on the wall clock.
	gap := time.Duration(c.now.Wall) - c.now.Mono
	if apart := gap - f.clockGap; max(apart, -apart) >= time.Second {
		f.touchAll()
	}
	f.clockGap = gap
	if len(c.requests) > 0 {
		f.touchAll()
	}
}

// firstDue returns the index of the first host below a node whose time for a visit has come, or -1.
func (f *fleet) firstDue(node int, now time.Duration) int {
	if f.nodes[node].visitAt > now {
		return -1
	}
	for node < f.firstLeaf {
		node *= 2
		if f.nodes[node].visitAt > now {
			node++
		}
	}
	return node - f.firstLeaf
}

// touchFor touches the hosts that an event may change.
func (c *Core) touchFor(ev Event) {
	switch ev := ev.(type) {
	case Tick, Acked, Log, Submit:
	case interface{ about() string }:
		if h := c.byName[ev.about()]; h != nil {
			h.touch()
		}
	default:
		c.touchAll()
	}
}

// about returns the name of the only host that the event may change.
func (e HostUp) about() string            { return e.Host }
func (e HostHeartbeat) about() string     { return e.Host }
func (e HostDown) about() string          { return e.Host }
func (e HostRefused) about() string       { return e.Host }
func (e AttemptsStarted) about() string   { return e.Host }
func (e AttemptsEnded) about() string     { return e.Host }
func (e AttemptsWithdrawn) about() string { return e.Host }
func (e AttemptsProbed) about() string    { return e.Host }
func (e HostListed) about() string        { return e.Host }
func (e HostInspected) about() string     { return e.Msg.Host }

// checkPolicyInputs touches all hosts if what their policies depend on has changed.
func (c *Core) checkPolicyInputs() {
	is := policyInputs{isPaused: c.Paused(), isDraining: c.drain != nil, isClosed: c.isLaunchingClosed(),
		isOver: c.stopped || c.fenced, numHosts: len(c.hosts)}
	if c.cfg.RunShare > 0 {
		is.readyPerHost = min(c.readyPerHost(), jobs.MaxSlots)
	}
	if is != c.seen {
		c.seen = is
		c.touchAll()
	}
	if c.queue.ready > 0 && !is.isClosed {
		for _, h := range c.fleet.held {
			h.isHeld = false
			h.touch()
		}
		c.fleet.held = c.fleet.held[:0]
	}
}

// endVisits updates the summaries of the visited hosts, and forgets those that need no other visit.
func (c *Core) endVisits() {
	f := &c.fleet
	kept := f.visiting[:0]
	for _, h := range f.visiting {
		switch {
		case h.reserved != nil || c.isOverdue(h): // it depends on other hosts or on the queue
			h.touch()
		case c.isHoldUnreported(h) && !h.isHeld:
			h.isHeld = true
			f.held = append(f.held, h)
		}
		h.markStale()
		h.isVisiting = h.touchedIn == f.numSteps
		if h.isVisiting {
			kept = append(kept, h)
		}
	}
	clear(f.visiting[len(kept):])
	f.visiting = kept
	c.summarize()
}

// summarize updates the totals and the tree for the hosts that have changed.
func (c *Core) summarize() {
	f := &c.fleet
	for _, h := range f.stale {
		h.isStale = false
		f.count(h, -1)
		node := &f.nodes[f.firstLeaf+h.index]
		had, hadSurplus := h.fleetState, node.surplus
		h.counted, h.limited = c.totalsOf(h), h.probation.limited()
		h.numClosed = max(0, h.counted.free-c.openSlots(h, h.limited))
		f.count(h, 1)
		*node = c.summaryOf(h)
		c.handleMoreToMove(&had, &h.fleetState, hadSurplus, node.surplus)
		f.updateParents(h.index)
	}
	f.stale = f.stale[:0]
}

// count adds what is counted of a host to the sums. n is 1 to add it, or -1 to remove it.
func (f *fleet) count(h *host, n int) {
	f.total.add(h.counted, n)
	for rest := h.limited; h.numClosed > 0 && rest != 0; rest &= rest - 1 {
		f.closed.Add(rest&-rest, n*h.numClosed)
	}
}

func (f *fleet) updateParents(index int) {
	for i := (f.firstLeaf + index) / 2; i > 0; i /= 2 {
		a, b := &f.nodes[2*i], &f.nodes[2*i+1]
		f.nodes[i] = hostSummary{max(a.space, b.space), a.open | b.open, a.openAgain | b.openAgain, a.ahead | b.ahead,
			min(a.minPart, b.minPart), min(a.minHigh, b.minHigh), max(a.surplus, b.surplus),
			min(a.wakeAt, b.wakeAt), min(a.visitAt, b.visitAt)}
	}
}

func (t *hostTotals) add(o hostTotals, n int) {
	t.slots += n * o.slots
	t.ahead += n * o.ahead
	t.free += n * o.free
	t.answering += n * o.answering
	t.progressing += n * o.progressing
	t.withdrawing += n * o.withdrawing
}

// totalsOf returns what the host adds to the totals.
func (c *Core) totalsOf(h *host) (t hostTotals) {
	if h.acceptsJobs() {
		t.slots, t.ahead = h.limit, max(0, -h.freeSlots())
		if h.reserved == nil {
			t.free = c.openSlots(h, ^blame.Kinds(0))
		}
	}
	if h.isAnswering() && !h.removed {
		t.answering = 1
	}
	if h.mayProgress() {
		t.progressing = 1
	}
	if h.linked && h.occupiedSlots > h.runningSlots {
		t.withdrawing = h.numInFlight(func(f *inFlight) bool { return f.withdrawn })
	}
	return t
}

func (c *Core) summaryOf(h *host) hostSummary {
	s := noHosts
	if free := h.freeSlots(); free > 0 {
		s.space = float64(free) * weight(h)
		s.open, s.openAgain = ^c.restingKinds(h, false), ^c.restingKinds(h, true)
	} else if h.mayBuffer() {
		s.ahead = ^h.probation.limited()
		ahead := float64(-free)
		s.minPart = (ahead + 1) / float64(h.limit)
		if high := 2*ahead + 1; c.cfg.Buffer > 0 || high <= maxBuffered {
			s.minHigh = high / float64(h.limit)
		}
	}
	if h.linked && h.occupiedSlots > h.limit {
		s.surplus = max(0, h.surplus())
	}
	s.wakeAt = c.nextWake(h)
	s.visitAt = min(s.wakeAt, c.nextVisit(h))
	return s
}

// withSpace yields the hosts that have free slots and do not rest from the class, in the order of the
// inventory.
func (c *Core) withSpace(cl *class) iter.Seq[*host] {
	return func(yield func(*host) bool) {
		c.summarize()
		has := hasSpaceFor(cl)
		for i := c.next(0, has); i >= 0; i = c.next(i+1, has) {
			c.numVisits++
			if !yield(c.hosts[i]) {
				return
			}
		}
	}
}

// hasSpaceFor returns the condition that a host has free slots and does not rest from the class.
func hasSpaceFor(cl *class) func(*hostSummary) bool {
	if cl.key.avoid != "" {
		return func(s *hostSummary) bool { return s.space > 0 && s.openAgain&cl.kind != 0 }
	}
	return func(s *hostSummary) bool { return s.space > 0 && s.open&cl.kind != 0 }
}

// next returns the index of the first host, from an index on, that meets a condition, or -1. The
// condition must hold for a node of the tree if it holds for a host below it.
func (f *fleet) next(from int, condition func(*hostSummary) bool) int {
	if from >= len(f.hosts) {
		return -1
	}
	for node := f.firstLeaf + from; ; {
		if condition(&f.nodes[node]) {
			if node >= f.firstLeaf {
				return node - f.firstLeaf
			}
			node *= 2
			continue
		}
		for node&1 == 1 { // the next subtree to the right
			node /= 2
		}
		if node == 0 {
			return -1
		}
		node++
	}
}

// best returns the host with the largest score, and among equals the first, of those that meet a
// condition as for next. score returns that of a host, which is at most its space, and whether the host
// may be chosen at all.
func (f *fleet) best(condition func(*hostSummary) bool, score func(*host) (float64, bool)) *host {
	var best *host
	var most float64
	var search func(node, first, n int)
	search = func(node, first, n int) {
		space := f.nodes[node].space
		if !condition(&f.nodes[node]) || best != nil && (space < most || space == most && best.index < first) {
			return
		}
		if n == 1 {
			f.numVisits++
			h := f.hosts[first]
			if s, ok := score(h); ok && (best == nil || s > most || s == most && h.index < best.index) {
				best, most = h, s
			}
			return
		}
		left, right := 2*node, 2*node+1
		if f.nodes[left].space >= f.nodes[right].space {
			search(left, first, n/2)
			search(right, first+n/2, n/2)
		} else {
			search(right, first+n/2, n/2)
			search(left, first, n/2)
		}
	}
	search(1, 0, f.firstLeaf)
	return best
}
