package sim

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"dcs-tui/dispatch/commit"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// machine is a machine on which a dispatcher may run.
type machine struct {
	name       string
	clockAhead time.Duration // how far its wall clock is ahead
	fullUntil  time.Duration // its writes to the run directory fail until then
	hungUntil  time.Duration // the run directory does not answer it until then
}

// dispatcher is one dispatcher from its start to its death: the engine of package dispatch without
// its goroutines. It holds the real core, commit loop, and journal.
type dispatcher struct {
	w         *World
	n         int
	m         *machine
	mount     *memdisk.Mount
	share     *memdisk.Mount // the shared directory, mounted by its machine
	run       *rundir.Run
	journal   *journal.Journal
	core      *sched.Core
	loop      *commit.Loop
	fileEpoch int // the epoch whose file it has created
	epoch     int // the same, once it owns the run
	agents    []*agent

	born          time.Duration
	slept         time.Duration // how long its machine slept; its monotonic clock does not count this
	inbox         []func()      // functions for its next turn
	queuedReports []sched.Event // reports of attempts that the core gets together
	busy          bool          // in a turn
	numPauses     int           // number of reasons why it does not run: SIGSTOP, or its machine sleeps
	dead          bool
	trigger       trigger
	wakeAt        time.Duration // true time of the next planned tick; 0: none

	receivedAt      map[*host]time.Duration // its monotonic time of the last heartbeat of each machine
	listed          map[*host]time.Duration // when each machine last listed its attempts completely
	drained         map[string]bool
	ownerPresent    map[string]bool // whether an owner is present, by the newest report
	slotsByPeople   map[string]int  // slots that people gave to hosts
	givenGPUs       map[jobs.AttemptID]givenGPUs
	pendingResults  []shownResult // results whose records are not in the journal yet
	writingResults  []shownResult // results whose records are being made durable
	offers          attempts.Offers
	numOffered      int           // number of attempts that it last added
	isHousekeeping  bool          // it is checking whether it still owns the run
	ownedAt         time.Duration // when it last found that it owns the run
	pausedByPeople  bool          // people have paused launching
	heartbeatAt     time.Duration
	fencedBy        int
	finish          *sched.Finish
	numLaunched     int                      // number of launches of the current step
	inventory       *hosts.Inventory         // the inventory that its core knows
	specs           map[string]*hosts.Host   // the hosts that its core may have
	listedInstances map[string]*hosts.Host   // the hosts of instances that it has listed
	omittedInstance string                   // an existing instance that its last list did not contain
	absentUntil     map[string]time.Duration // until when those that exist may be no hosts
	reportedBy      map[reportSource]bool    // which sources have reported on which attempts
	allSubmitted    bool                     // it knows that no more jobs will come
	leaving         bool
	closing         bool
	numAgentsEnded  int // number of agents that have ended
}

func (l *dispatcher) now() sched.Time {
	w := l.w
	return sched.Time{Mono: w.now - l.born - l.slept, Wall: wallStart + jobs.Stamp(w.now+l.m.clockAhead)}
}

// enqueue queues do for the next turn, after the collected reports of attempts.
func (l *dispatcher) enqueue(do func()) {
	l.post(func() {
		l.stepReports()
		do()
	})
}

// post queues do for the next turn.
func (l *dispatcher) post(do func()) {
	if l.dead {
		return
	}
	l.inbox = append(l.inbox, do)
	l.wake()
}

func (l *dispatcher) queueReport(ev sched.Event) {
	switch ev.(type) {
	case sched.AttemptsStarted, sched.AttemptsEnded:
		l.post(func() { l.queuedReports = append(l.queuedReports, ev) })
	default:
		l.enqueue(func() { l.step(ev) })
	}
}

// stepReports sends the collected reports of attempts to the core together.
func (l *dispatcher) stepReports() {
	if len(l.queuedReports) > 0 {
		told := l.queuedReports
		l.queuedReports = nil
		l.step(told...)
	}
}

// wake begins a turn, unless a turn is under way or the process is stopped.
func (l *dispatcher) wake() {
	if l.dead || l.busy || l.numPauses > 0 || len(l.inbox) == 0 {
		return
	}
	l.busy = true
	l.w.numTurns++
	l.survives(func() {
		for len(l.inbox) > 0 && !l.dead {
			inbox := l.inbox
			l.inbox = nil
			for _, do := range inbox {
				do()
			}
			l.stepReports()
			l.commit()
		}
	})
	l.busy = false
	if !l.dead {
		l.plan()
	}
}

// commit ends a turn. The decisions go to the journal, and commands are released when their records
// are durable.
func (l *dispatcher) commit() {
	if l.fencedBy > 0 {
		return
	}
	now := l.now()
	if batch, ok := l.loop.Flush(now); ok {
		l.writingResults = append(l.writingResults, l.pendingResults...)
		l.pendingResults = nil
		l.write(batch)
	}
	out := l.loop.Idle(now)
	l.w.checkTurn(l, &out)
	l.release(out.Commands)
}

// write makes a batch durable outside the turns, and reports the result.
func (l *dispatcher) write(batch []jobs.Record) {
	w := l.w
	before, after := time.Duration(0), time.Duration(0)
	if w.oneInWhileFaults(12) { // the disk is slow
		before, after = w.between(0, 100*time.Millisecond), w.between(0, 100*time.Millisecond)
	}
	if w.now < l.m.hungUntil {
		before += l.m.hungUntil - w.now
	}
	l.later(before, func() {
		var err error
		if l.survives(func() {
			err = commit.Write(l.journal, batch)
			l.trigger.passPoint(atRelease)
		}) {
			return
		}
		l.later(after, func() { l.enqueue(func() { l.written(err) }) })
	})
}

// written handles the result of writing a batch.
func (l *dispatcher) written(err error) {
	if l.fencedBy > 0 {
		return
	}
	if err != nil {
		l.w.logf("%s: %v", l.m.name, err)
	}
	out := l.loop.Flushed(l.now(), err)
	if out.FencedBy > 0 {
		l.fence(out.FencedBy)
		return
	}
	if out.Durable {
		l.show(&l.writingResults)
	}
	l.release(out.Commands)
}

// later calls do after d, once the process is not stopped. It does nothing if the process is dead.
func (l *dispatcher) later(d time.Duration, do func()) {
	switch {
	case l.dead:
	case d > 0:
		l.w.after(d, func() { l.later(0, do) })
	case l.numPauses > 0:
		l.w.after(100*time.Millisecond, func() { l.later(0, do) })
	default:
		do()
	}
}

// fencedBy returns the epoch of the dispatcher that has taken over the run according to an event,
// or 0.
func fencedBy(ev sched.Event) int {
	switch ev := ev.(type) {
	case sched.HostRefused:
		return ev.Msg.FencedBy
	case sched.HostDown:
		var fenced *hosts.FencedError
		if errors.As(ev.Err, &fenced) {
			return fenced.By
		}
	}
	return 0
}

// step sends events to the core: either one event or several reports of attempts.
func (l *dispatcher) step(evs ...sched.Event) {
	if by := fencedBy(evs[0]); by > 0 {
		l.fence(by)
	}
	if l.fencedBy > 0 {
		return
	}
	for _, ev := range evs {
		if _, heartbeat := ev.(sched.HostHeartbeat); !heartbeat && l.w.verbose {
			l.w.logf("%s %s", l.m.name, describe(reflect.ValueOf(ev)))
		}
		l.w.recordReceived(l, ev)
	}
	unowned := l.w.now-l.ownedAt > sched.OwnershipTime
	switch ev := evs[0].(type) {
	case sched.HostUp:
		if a := l.agent(ev.Host); a != nil {
			a.uptime = 0
		}
		ev.Unowned = unowned
		evs[0] = ev
	case sched.HostHeartbeat:
		ev.Unowned = unowned
		evs[0] = ev
	}
	l.numLaunched = 0
	l.loop.Step(l.now(), evs...)
	isFinding := l.core.Table().Damaged // it records what hosts have as launches
	if l.w.cfg.MaxLaunches > 0 && l.numLaunched > l.w.cfg.MaxLaunches && !isFinding {
		l.w.fail(StepsAreShort, "%d launches in one step, and %d are allowed", l.numLaunched, l.w.cfg.MaxLaunches)
	}
	l.checkHostSet()
	switch ev := evs[0].(type) {
	case sched.HostUp:
		if !unowned {
			l.confirm(ev.Host, ev.Hello.Uptime)
		}
	case sched.HostHeartbeat:
		if !unowned {
			l.confirm(ev.Host, ev.Heartbeat.Uptime)
		}
	}
}

// confirm starts the leases of a host from a heartbeat that the core has seen.
func (l *dispatcher) confirm(name string, uptime time.Duration) {
	if l.core.Linked(name) {
		if a := l.agent(name); a != nil {
			a.uptime = uptime
		}
	}
}

func (l *dispatcher) agent(name string) *agent {
	for _, a := range l.agents {
		if a.spec.Name == name {
			return a
		}
	}
	return nil
}

// onRecord observes each record just after it was folded.
func (l *dispatcher) onRecord(r *jobs.Record) {
	if l.w.verbose {
		l.w.logf("  record %s %s %s next=%s seq=%d %s", r.Kind, r.Attempt(), r.Host, r.Next, r.Seq, r.Reason)
	}
	if r.Seq > 0 && r.Kind != jobs.KindAcked {
		s := shownResultOf(l.core.Table().RowOf(r))
		l.w.checkResult(r, s)
		l.pendingResults = append(l.pendingResults, s)
	}
	switch r.Kind {
	case jobs.KindInventory:
		l.updateSpecs()
	case jobs.KindLaunching:
		l.numLaunched++
	}
	l.w.checkRecord(l, r)
	l.w.passMoment()
}

// show delivers results to the consumer.
func (l *dispatcher) show(results *[]shownResult) {
	for _, s := range *results {
		l.w.consumer.receive(l, s)
	}
	*results = (*results)[:0]
}

// release carries out commands.
func (l *dispatcher) release(commands []sched.Command) {
	for _, o := range commands {
		l.trigger.passPoint(atCommand)
		if l.w.verbose {
			l.w.logf("  command %s", describe(reflect.ValueOf(o)))
		}
		l.carryOut(o)
	}
}

func (l *dispatcher) carryOut(o sched.Command) {
	switch o := o.(type) {
	case sched.Finish:
		if l.finish == nil && l.core.IsOutdated(o) {
			return
		}
		l.finish = &o
		l.w.logf("%s finishes: %v %s", l.m.name, o.How, o.Why)
		l.leave(o.How != sched.Stopped)
		return
	case sched.Inspect:
		if o.Via == "" {
			l.inspectSharedDir(o)
			return
		}
	case sched.CreateInstance, sched.TerminateInstance, sched.ListInstances, sched.FetchInstance:
		l.carryOutInstanceCommand(o)
		return
	case sched.Configure:
		if a := l.agent(o.Host); a != nil {
			a.spec = o.Spec
		} else if !l.leaving {
			l.agents = append(l.agents, &agent{l: l, spec: o.Spec})
		}
		return
	case sched.Leave:
		if a := l.agent(o.Host); a != nil && !l.leaving {
			a.hangUp()
			l.agents = slices.DeleteFunc(l.agents, func(other *agent) bool { return other == a })
		}
		return
	case sched.Launch:
		l.w.checkLaunch(l, &o)
	case sched.SetLimit:
		l.w.checkLimit(l, o)
	}
	if a := l.agent(o.To()); a != nil {
		a.carryOut(o)
	}
}

// plan schedules a turn for the time at which the commit loop needs one.
func (l *dispatcher) plan() {
	at, ok := l.loop.Next()
	if !ok || l.fencedBy > 0 {
		return
	}
	w := l.w
	due := w.now + max(0, at-l.now().Mono)
	if l.wakeAt > w.now && l.wakeAt <= due {
		return
	}
	l.wakeAt = due
	w.agenda.add(due, func() {
		if l.dead || l.wakeAt != due {
			return
		}
		l.wakeAt = 0
		if at, ok := l.loop.Next(); ok && at > l.now().Mono {
			l.plan() // the time has moved
			return
		}
		l.queueReport(sched.Tick{})
	})
}

// housekeep writes the dispatcher's heartbeat and checks whether it still owns the run. It does so
// outside the turns, because the run directory may hang.
func (l *dispatcher) housekeep() {
	if l.dead {
		return
	}
	w := l.w
	w.after(3*time.Second, l.housekeep)
	if l.numPauses > 0 {
		return
	}
	l.queueReport(sched.Tick{})
	l.enqueue(l.packFiles)
	if l.isHousekeeping || l.dead {
		return
	}
	l.isHousekeeping = true
	began := w.now
	due, written := w.now-l.heartbeatAt >= journal.HeartbeatInterval, false
	l.later(max(0, l.m.hungUntil-w.now), func() {
		var by int
		var err error
		if l.survives(func() {
			by, err = l.journal.Fenced()
			// A late heartbeat is allowed.
			written = due && err == nil && by == 0 && l.journal.Heartbeat() == nil
		}) {
			return
		}
		l.enqueue(func() {
			l.isHousekeeping = false
			if written {
				l.heartbeatAt = began
			}
			if by > 0 {
				l.fence(by)
				return
			}
			if err == nil {
				l.ownedAt = began
			}
			if l.fencedBy == 0 && (err == nil || l.loop.Problem(l.now()) == nil) {
				l.loop.SetObstacle(l.now(), err)
			}
		})
	})
}

// packFiles packs the files of attempts in the shared directory, and lets hosts pack their own, as
// package run does.
func (l *dispatcher) packFiles() {
	w := l.w
	var recorded []jobs.AttemptID
	for job := range l.core.Table().Rows() {
		recorded = job.AppendRecorded(recorded)
	}
	if spent, _ := l.core.SplitClaims(recorded); len(spent) > l.numOffered {
		l.numOffered = len(spent)
		l.offers.Add(attempts.Offer{Attempts: spent, Records: l.loop.NumRecords()})
	}
	for {
		f, ok := l.offers.Next(w.now, l.loop.NumDurable())
		if !ok {
			return
		}
		w.pack(&attempts.Packer{Disk: l.share, Dir: "/share", May: attempts.Among(f.Attempts)})
		for _, a := range l.agents {
			a.pack(slices.DeleteFunc(slices.Clone(f.Attempts), func(id jobs.AttemptID) bool {
				return l.core.Table().Attempt(id).Host != a.spec.Name
			}))
		}
	}
}

// pack packs attempts.
func (w *World) pack(p *attempts.Packer) {
	p.Disk, p.Run, p.Least = rundir.WithPacks(p.Disk), runUID, 1
	p.Token = func() string { w.numPacks++; return fmt.Sprint(w.numPacks) }
	n, err := p.Pack("000")
	if err != nil {
		panic(err) // the simulated disk fails only where the world makes it fail
	}
	w.numPacked += n
}

// fence stops everything, because another dispatcher owns the run.
func (l *dispatcher) fence(by int) {
	if l.fencedBy > 0 {
		return
	}
	l.w.logf("%s of epoch %d finds epoch %d: it stops", l.m.name, l.epoch, by)
	l.w.checkFence(l, by)
	l.fencedBy = by
	l.loop.Fence()
	l.pendingResults, l.writingResults = nil, nil
	l.w.after(0, func() { l.die(false) }) // it reports this and exits
}

// inspectSharedDir reads the shared directory through the machine's own mount.
func (l *dispatcher) inspectSharedDir(o sched.Inspect) {
	w := l.w
	w.after(w.between(time.Millisecond, 50*time.Millisecond), func() {
		found := hosts.InspectDisk(rundir.WithPacks(l.share), "/share", runUID, o.Host, o.Attempts)
		l.passReport(nil, sched.HostInspected{Msg: found})
	})
}
