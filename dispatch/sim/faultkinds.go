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
	inject func(w *World) bool // false: the fault was not possible at this time
}

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
		{"dispatcher killed while it takes over", 0, nil},
		{"host taken out of the inventory", 0, nil},
		{"old dispatcher woken during a takeover", 0, nil},
		{"a journal is damaged again before a takeover", 0, nil},
		{"dispatcher killed", 3, onDispatcher(killNow)},
		{"dispatcher killed before a disk operation", 3, killAt(atDisk, 12)},
		{"dispatcher killed in the middle of a write", 3, killAt(atWrite, 3)},
		{"dispatcher killed between fsync and commands", 3, killAt(atRelease, 3)},
		{"dispatcher killed between two commands", 3, killAt(atCommand, 6)},
		{"power loss of the dispatcher", 3, onDispatcher(powerLoss)},
		{"dispatcher stopped and woken", 3, onDispatcher(stopAndWake)},
		{"dispatcher stopped, taken over, woken", 6, onDispatcher(takeOver)},
		{"taken over by force from a living dispatcher", 3, onDispatcher(takeByForce)},
		{"laptop sleeps", 3, onDispatcher(sleepMachine)},
		{"journal's disk full", 5, onDispatcher(fullDisk)},
		{"run directory hangs", 3, onDispatcher(hangDisk)},
		{"a bit of the journal turns over", 8, damageJournal},
		{"the journal loses its end", 8, cutJournal},
		{"the run directory is copied", 4, copyRunDir},
		{"the run goes on in the copy", 16, continueInCopy},
		{"network of a host cut", 8, cutOne},
		{"network between a host and a dispatcher's machine cut", 4, cutSome},
		{"two dispatchers that see neither each other nor the same hosts", 3, onDispatcher(splitBrain)},
		{"network of most hosts cut", 4, cutMost},
		{"link reset", 6, onHelper(resetLink)},
		{"helper killed", 5, onHelper(killHelper)},
		{"helper stopped", 4, onHelper(stopHelper)},
		{"helpers send no heartbeats", 3, lastingFault(func(h *host) *time.Duration { return &h.silentUntil })},
		{"sshd refuses", 3, refuse},
		{"supervisor killed", 6, killSupervisor},
		{"an owner comes back", 5, lastingFault(func(h *host) *time.Duration { return &h.jobs.ownerUntil })},
		{"suspender killed", 3, killSuspender},
		{"host rebooted", 5, reboot},
		{"host's file systems hang", 5, lastingFault(func(h *host) *time.Duration { return &h.hungUntil })},
		{"sentinels cannot be written", 4, sealSentinels},
		{"spool full", 3, lastingFault(func(h *host) *time.Duration { return &h.fullUntil })},
		{"jobs fail at once on a host", 3, lastingFault(func(h *host) *time.Duration { return &h.failsFastUntil })},
		{"clock of a host jumps", 3, hostClock},
		{"clock of the dispatcher jumps", 3, dispatcherClock},
		{"cancel", 5, askCancel},
		{"cancel all", 1, askCancelAll},
		{"requeue", 7, askRequeue},
		{"priority", 2, askPriority},
		{"edit", 6, askEdit},
		{"pause", 2, askPause},
		{"host drained", 3, askDrainHost},
		{"slots of a host changed", 4, askSlots},
		{"a host removed and added again", 4, changeHosts},
		{"slots, tags, queues or lost_after of a host changed in the file", 4, changeSpec},
		{"tokens changed in the file", 3, changeTokens},
		{"another address of a host", 4, changeAddress},
		{"another machine behind a name", 5, changeMachine},
		{"a host added to the file or removed from it", 3, addHost},
		{"a host added or removed on request", 4, askHosts},
		{"an instance vanishes", 3, vanishInstance},
		{"the provider changes in the file", 2, changeProvider},
		{"the commands of the provider fail", 2, failCommands},
		{"request in the run directory", 3, askByFile},
		{"request about a host or the run in the run directory", 4, askControlByFile},
		{"run drained", 1, askDrain},
		{"dispatcher asked to stop", 2, askStop},
		{"a host dies for good", 6, killHost},
		{"most hosts die for good", 3, killMostHosts},
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
	w.after(w.between(500*time.Millisecond, 18*time.Second), func() {
		if w.faultsAreOver() || w.choices.Over() {
			w.faultsLeft = 0
			w.heal()
			return
		}
		sum := 0
		for i := range faultKinds {
			sum += w.weight(&faultKinds[i])
		}
		n := w.choices.Draw(sum)
		for i := range faultKinds {
			n -= w.weight(&faultKinds[i])
			if n < 0 {
				at := len(w.log)
				if faultKinds[i].inject(w) {
					w.countFault(i)
					if w.verbose { // log it before its effects
						copy(w.log[at+1:], w.log[at:len(w.log)-1])
						w.log[at] = w.log[len(w.log)-1]
					}
				}
				break
			}
		}
		w.injectFaults()
	})
}

// weight returns how often a fault occurs, relative to the others.
func (w *World) weight(p *faultKind) int {
	if w.onlyCuts && !slices.Contains(cutFaults, p.name) || w.blame != nil && !isBlameFault(p.name) {
		return 0
	}
	if w.losesHosts && slices.Contains(inventoryFaults, p.name) {
		return 0
	}
	return p.weight
}

// cutFaults lists the faults of a world of cuts.
var cutFaults = []string{
	"dispatcher killed", "dispatcher killed before a disk operation", "dispatcher killed in the middle of a write",
	"dispatcher killed between fsync and commands", "dispatcher killed between two commands",
	"the journal loses its end", "the run directory is copied", "the run goes on in the copy",
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
	switch w.choices.Draw(4) {
	case 0:
		return w.between(100*time.Millisecond, 10*time.Second)
	case 1:
		return w.between(10*time.Second, 40*time.Second)
	case 2:
		return w.between(40*time.Second, 80*time.Second)
	}
	return w.between(time.Minute, 4*time.Minute)
}

func cutOne(w *World) bool {
	w.anyHost().cut(w.longDuration(), w.machines...)
	return true
}

// cutSome disconnects a host from some of the machines on which a dispatcher may run.
func cutSome(w *World) bool {
	h := w.anyHost()
	i := w.choices.Draw(len(w.machines))
	h.cut(w.longDuration(), w.machines[i])
	if w.choices.Draw(2) == 1 {
		h.cut(w.longDuration(), w.machines[(i+1)%len(w.machines)])
	}
	return true
}

func cutMost(w *World) bool {
	d := w.longDuration()
	spare := -1
	if len(w.hosts) > 2 {
		spare = w.choices.Draw(len(w.hosts))
	}
	for i, h := range w.hosts {
		if i != spare {
			h.cut(d+w.between(0, 5*time.Second), w.machines...)
		}
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

func hostClock(w *World) bool {
	w.anyHost().clockAhead += w.between(-time.Hour, time.Hour)
	return true
}

func dispatcherClock(w *World) bool {
	w.machines[w.choices.Draw(len(w.machines))].clockAhead += w.between(-10*time.Minute, 10*time.Minute)
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

// copyRunDir keeps the current state of the run directory, for a copy or a snapshot.
func copyRunDir(w *World) bool {
	if !w.mayBeDamaged || w.dispatcher == nil || w.ledger.epoch == 0 || w.dispatcher.epoch != w.ledger.epoch {
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
