package sim

import (
	"errors"
	"os"
	"slices"
	"time"

	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// faultKind is a kind of fault.
type faultKind struct {
	name   string
	weight int
	worlds worldKinds          // in which it happens
	inject func(w *World) bool // false: the fault was not possible at this time
}

// worldKinds is a set of kinds of worlds.
type worldKinds uint8

const (
	plainWorld    worldKinds = 1 << iota
	worldOfCuts              // faultkinds.go
	worldOfBlame             // blame.go
	worldOfDeaths            // hostdeaths.go

	usual    = plainWorld | worldOfDeaths
	anyWorld = usual | worldOfCuts | worldOfBlame
)

// The indexes of the faults that are injected while something else happens.
const (
	faultKilledInTakeover = iota // a dispatcher dies while it takes the run over
	faultHostLeftOut             // a host is removed from the inventory of one dispatcher
	faultWokenInTakeover         // an old dispatcher wakes up while another takes the run over
	faultDamagedAgain            // a journal that was damaged before is damaged again
)

// faultKinds are all faults, in the order of the choices.
var faultKinds []faultKind

func init() {
	faultKinds = []faultKind{
		{"dispatcher killed while it takes over", 0, usual, nil},
		{"host taken out of the inventory", 0, usual, nil},
		{"old dispatcher woken during a takeover", 0, usual, nil},
		{"a journal is damaged again before a takeover", 0, usual, nil},
		{"dispatcher killed", 15, anyWorld, onDispatcher(killDispatcher)},
		{"power loss of the dispatcher", 3, usual, onDispatcher(powerLoss)},
		{"dispatcher or laptop stopped and woken", 6, usual, onDispatcher(stopAndWake)},
		{"dispatcher stopped, taken over, woken", 6, usual, onDispatcher(takeOver)},
		{"taken over by force from a living dispatcher", 3, usual, onDispatcher(takeByForce)},
		{"journal's disk full", 5, usual, onDispatcher(fullDisk)},
		{"run directory hangs", 3, usual, onDispatcher(hangDisk)},
		{"a bit of the journal turns over", 8, usual, damageJournal},
		{"the journal loses its end", 8, usual | worldOfCuts, cutJournal},
		{"the run directory is copied", 4, usual | worldOfCuts, copyRunDir},
		{"the run goes on in the copy", 16, usual | worldOfCuts, continueInCopy},
		{"network of hosts cut", 16, usual, cutNetwork},
		{"two dispatchers that see neither each other nor the same hosts", 3, usual, onDispatcher(splitBrain)},
		{"link reset", 6, usual | worldOfBlame, onHelper(resetLink)},
		{"helper killed", 5, usual | worldOfBlame, onHelper(killHelper)},
		{"helper stopped", 4, usual, onHelper(stopHelper)},
		{"helpers send no heartbeats", 3, usual, lastingFault(func(h *host) *time.Duration { return &h.silentUntil })},
		{"sshd refuses", 3, usual, refuse},
		{"supervisor killed", 6, usual | worldOfBlame, killSupervisor},
		{"an owner comes back", 5, usual, lastingFault(func(h *host) *time.Duration { return &h.jobs.ownerUntil })},
		{"host rebooted", 5, usual, reboot},
		{"host's file systems hang", 5, usual, lastingFault(func(h *host) *time.Duration { return &h.hungUntil })},
		{"sentinels cannot be written", 4, usual, sealSentinels},
		{"spool full", 3, usual, lastingFault(func(h *host) *time.Duration { return &h.fullUntil })},
		{"jobs fail at once on a host", 3, usual,
			lastingFault(func(h *host) *time.Duration { return &h.failsFastUntil })},
		{"a clock jumps", 6, usual, moveClock},
		{"jobs canceled, requeued, edited, or given another priority", 25, usual, asks(changeJobs)},
		{"cancel all", 1, usual, asks(cancelAll)},
		{"launching paused", 3, usual, asks(pauseRun)},
		{"host drained", 4, usual, asks(drainHost)},
		{"slots of a host changed", 5, usual, asks(setSlots)},
		{"a host removed and added again", 4, plainWorld, changeHosts},
		{"slots, tags, queues or lost_after of a host changed in the file", 4, plainWorld, changeSpec},
		{"tokens changed in the file", 3, usual, changeTokens},
		{"another machine behind a name, perhaps at another address", 9, plainWorld, changeMachine},
		{"a host added to the file or removed from it", 3, plainWorld, addHost},
		{"a host added or removed on request", 4, plainWorld, asks(changeHostSet)},
		{"an instance vanishes", 3, usual, vanishInstance},
		{"the provider changes in the file", 2, usual, changeProvider},
		{"the commands of the provider fail", 2, usual, failCommands},
		{"run drained", 2, usual, asks(drainRun)},
		{"dispatcher asked to stop", 3, usual, asks(stopRun)},
		{"hosts die for good", 9, worldOfDeaths, killHosts},
	}
}

// countFault counts a fault.
func (w *World) countFault(i int) {
	w.faultCounts[i]++
	w.faultsLeft--
	w.logf("FAULT %s (%d left)", faultKinds[i].name, w.faultsLeft)
}

// injectFaults injects one fault after another until the budget is used up.
func (w *World) injectFaults() {
	isNext := true
	inject := func() {
		if !isNext {
			return
		}
		isNext, w.momentsLeft = false, 0
		if w.faultsAreOver() || w.choices.Over() {
			w.faultsLeft = 0
			w.heal()
			return
		}
		injected := false
		for n := 0; n < w.size.maxDraws && !injected; n++ {
			injected = w.injectAny()
		}
		w.injectFaults()
	}
	w.after(w.within(w.size.faultGap), inject)
	if w.size.maxMoments > 0 {
		w.momentsLeft, w.injectNext = w.choices.Draw(1+w.size.maxMoments), inject
	}
}

// injectAny chooses a fault and injects it. It returns false if that fault is not possible now.
func (w *World) injectAny() bool {
	sum := 0
	for i := range faultKinds {
		sum += w.weight(&faultKinds[i])
	}
	n := w.choices.Draw(sum)
	for i := range faultKinds {
		n -= w.weight(&faultKinds[i])
		if n < 0 {
			return w.inject(i)
		}
	}
	return false
}

// inject injects the fault with an index if it is possible now.
func (w *World) inject(i int) bool {
	at := len(w.log)
	if !faultKinds[i].inject(w) {
		return false
	}
	w.countFault(i)
	if w.verbose { // log it before its effects
		copy(w.log[at+1:], w.log[at:len(w.log)-1])
		w.log[at] = w.log[len(w.log)-1]
	}
	return true
}

// weight returns how often a fault occurs, relative to the others.
func (w *World) weight(p *faultKind) int {
	kind := plainWorld
	switch {
	case w.onlyCuts:
		kind = worldOfCuts
	case w.blame != nil:
		kind = worldOfBlame
	case w.losesHosts:
		kind = worldOfDeaths
	}
	if p.worlds&kind == 0 {
		return 0
	}
	return p.weight
}

// heal ends the faults that would otherwise last forever.
func (w *World) heal() {
	w.logf("no more faults")
	for _, h := range w.hosts {
		h.failsFastUntil, h.jobs.ownerUntil = min(h.failsFastUntil, w.now), min(h.jobs.ownerUntil, w.now)
	}
}

func (w *World) anyHost() *host { return w.hosts[w.choices.Draw(len(w.hosts))] }

// longDuration chooses a duration. Most are near the times after which a silent host is suspected
// or given up.
func (w *World) longDuration() time.Duration {
	return w.within(w.size.lasting[w.choices.Draw(len(w.size.lasting))])
}

// cutNetwork disconnects a host, or most hosts, from the machines on which a dispatcher may run, or
// from one of them.
func cutNetwork(w *World) bool {
	list, from := []*host{w.anyHost()}, w.machines
	if w.choices.Draw(4) == 3 {
		list = slices.Clone(w.hosts)
		if len(list) > 2 {
			spare := w.choices.Draw(len(list))
			list = slices.Delete(list, spare, spare+1)
		}
	}
	if w.choices.Draw(4) == 3 {
		i := w.choices.Draw(len(from))
		from = from[i : i+1]
	}
	d := w.longDuration()
	for _, h := range list {
		h.cut(d+w.between(0, 5*time.Second), from...)
	}
	return true
}

// lastingFault makes a fault of a host that lasts for a time. end returns where the time of its end
// is kept.
func lastingFault(end func(h *host) *time.Duration) func(*World) bool {
	return func(w *World) bool {
		at := end(w.anyHost())
		*at = w.now + w.longDuration()
		return true
	}
}

// onHelper makes a fault that needs a live helper on a host.
func onHelper(inject func(w *World, p *helper) bool) func(*World) bool {
	return func(w *World) bool {
		p := w.anyHost().helper
		return p != nil && p.alive && inject(w, p)
	}
}

func resetLink(w *World, p *helper) bool {
	if p.link.closed {
		return false
	}
	if w.choices.Draw(2) == 1 {
		p.link.lost = true // messages in transit are lost
	}
	k := p.link
	w.after(w.between(0, time.Second), func() { k.a.handleEnd(k, broken(k.h, "connection reset by peer")) })
	p.inputEnded()
	return true
}

func killHelper(w *World, p *helper) bool {
	p.die("killed")
	return true
}

func stopHelper(w *World, p *helper) bool {
	p.stoppedUntil = w.now + w.longDuration()
	return true
}

func refuse(w *World) bool {
	h := w.anyHost()
	h.refusesUntil = max(h.refusesUntil, w.now+w.longDuration()) // an instance that is no more stays so
	if w.choices.Draw(2) == 1 && h.helper != nil {
		h.helper.die("sshd was killed")
	}
	return true
}

func killSupervisor(w *World) bool {
	h := w.anyHost()
	if len(h.heldAttempts) == 0 {
		return false
	}
	r := h.heldAttempts[w.choices.Draw(len(h.heldAttempts))]
	if !r.supervisorLives {
		return false
	}
	r.supervisorLives = false
	if w.choices.Draw(2) == 1 || h.jobs.isSuspended {
		r.die() // the job dies with its supervisor: the kernel kills a suspended job
	} else if r.processLives { // the job continues, and nobody observes its end
		w.after(w.between(0, time.Minute), r.die)
	}
	w.after(w.between(0, time.Second), h.fill)
	return true
}

func reboot(w *World) bool {
	off := w.between(5*time.Second, 30*time.Second)
	if w.choices.Draw(3) == 2 {
		off = w.longDuration()
	}
	w.anyHost().reboot(off)
	return true
}

func sealSentinels(w *World) bool {
	d := w.longDuration()
	if w.choices.Draw(2) == 1 {
		w.anyHost().sentinelsFailUntil = w.now + d
		return true
	}
	for _, h := range w.hosts {
		if h.shared {
			h.sentinelsFailUntil = w.now + d
		}
	}
	return true
}

// moveClock moves the clock of a host or of a machine on which a dispatcher may run.
func moveClock(w *World) bool {
	if w.choices.Draw(2) == 0 {
		w.anyHost().clockAhead += w.between(-time.Hour, time.Hour)
	} else {
		w.machines[w.choices.Draw(len(w.machines))].clockAhead += w.between(-10*time.Minute, 10*time.Minute)
	}
	return true
}

// The faults below make a journal end early: it is cut, or the run goes on in a copy of
// the run directory, or in an earlier snapshot of it. Every line that is left is whole.
//
// If the last heartbeat of the owner had counted the lost end, or the directory is
// another one, that is damage. An end that no heartbeat has counted looks like that of
// a dispatcher that was killed there, and only the hosts that are up can show that it
// is lost. In a world of cuts all hosts are up, and nothing happens but these faults
// and deaths of dispatchers. No attempt starts twice there, and no finished job runs
// again.

// cutAllJournals makes every world a world of cuts.
var cutAllJournals bool

// canEndEarly reports whether the journal can be made to end early now. Nobody may be writing it.
func (w *World) canEndEarly() bool {
	return w.mayBeDamaged && w.dispatcher == nil && w.ledger.epoch > 0 &&
		!slices.ContainsFunc(w.dispatchers, func(l *dispatcher) bool { return !l.dead })
}

// cutJournal removes the end of the newest journal file that counts.
func cutJournal(w *World) bool {
	g := &w.ledger
	if !w.canEndEarly() {
		return false
	}
	w.server.WriteBack()
	size := int64(len(w.readJournal(g.epoch)))
	if !w.onlyCuts {
		// A lost end that no heartbeat counted is found only if all hosts answer.
		o, err := journal.ReadOwner(&rundir.Run{Dir: runDir, Disk: g.observer})
		if err != nil || o == nil || o.File != g.epoch {
			return false
		}
		size = min(size, o.Bytes)
	}
	if size == 0 {
		return false
	}
	at := int64(w.choices.Draw(int(size)))
	switch text := w.readJournal(g.epoch); w.choices.Draw(4) {
	case 0:
		at = 0
	case 1, 2: // after a line
		for at > 0 && text[at-1] != '\n' {
			at--
		}
	}
	f, err := g.observer.OpenFile(journalPath(g.epoch), os.O_RDWR, 0)
	if err != nil || errors.Join(f.Truncate(at), f.Sync(), f.Close()) != nil {
		return false
	}
	w.logf("the journal of epoch %d is cut at byte %d of %d", g.epoch, at, size)
	w.rereadJournal()
	return true
}

// copyRunDir keeps the current state of the run directory, for a copy or a snapshot. A copy shows what it
// is only by the file owner, so one with a torn owner file can be taken for the original
// (docs/internals/reliability.md, what is not proved).
func copyRunDir(w *World) bool {
	if !w.mayBeDamaged || w.dispatcher == nil || w.ledger.epoch == 0 || w.dispatcher.epoch != w.ledger.epoch {
		return false
	}
	if _, err := journal.ReadOwner(&rundir.Run{Dir: runDir, Disk: w.ledger.observer}); err != nil && !w.onlyCuts {
		return false
	}
	restore, err := w.server.Snapshot(runDir)
	if err != nil {
		return false
	}
	w.copied = &copied{restore, len(w.ledger.files), w.numSubmitted}
	return true
}

// copied is an earlier state of the run directory.
type copied struct {
	restore      func(anew bool)
	numFiles     int // number of journal files at that time
	numSubmitted int // number of jobs stored at that time
}

// continueInCopy lets the run go on in a copy of its directory when no dispatcher has it. It
// does nothing if a later epoch began or jobs were stored since the copy was made:
// hosts would refuse the older epoch, and the numbers of those jobs would be given to
// other jobs.
func continueInCopy(w *World) bool {
	c := w.copied
	if c == nil || !w.canEndEarly() || c.numFiles != len(w.ledger.files) || c.numSubmitted != w.numSubmitted {
		return false
	}
	anew := !w.onlyCuts || w.choices.Draw(2) == 1
	c.restore(anew)
	w.logf("the run directory is as it was earlier (copied %v)", anew)
	w.rereadJournal()
	return true
}

// rereadJournal makes the ledger read the journal again.
func (w *World) rereadJournal() {
	g := &w.ledger
	w.damaged, w.isDamageUnread = true, true
	for i := range g.files {
		b := &g.files[i]
		if b.f != nil {
			b.f.Close()
			b.f = nil
		}
		size := int64(len(w.readJournal(i + 1)))
		b.numRead, b.durable, b.minDurable = min(b.numRead, size), min(b.durable, size), min(b.minDurable, size)
	}
}
