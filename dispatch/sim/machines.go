package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir/memdisk"
)

// The set of hosts changes during a run: people edit the inventory file and add or remove hosts by
// request. A host's address leads to a machine. That machine may be replaced by another one, with
// or without a change of the file. A machine that no address leads to any more continues its jobs,
// and may come back.
//
// A world whose journal is damaged keeps its machines. There, the reports of any machine behind a
// name count, because the record that names the right machine may have been lost
// (docs/internals/reliability.md, what is not proved).

// newMachine creates a machine that can be behind a name, and returns it with its address.
func (w *World) newMachine(name string, gpus int) (h *host, address string) {
	n := len(w.hosts) + 1
	h = &host{w: w, name: name, gpus: gpus, idx: n - 1, id: fmt.Sprintf("machine%d", n), shared: w.choices.Draw(4) != 3,
		boot: 1, spoolBoot: 1, cuts: map[*machine]int{}, bootedAt: w.now - w.between(time.Hour, 20*time.Hour)}
	if h.shared {
		h.disk, h.dir = w.share.Mount(h.id), "/share"
	} else {
		h.disk, h.dir = memdisk.New().Mount(h.id), "/local"
		mustMkdir(h.disk, "/local", "/local/attempts", "/local/attempts/000")
	}
	address = fmt.Sprintf("address%d", n)
	w.hosts, w.hostByAddress[address] = append(w.hosts, h), h
	return h, address
}

// machineAt returns the machine to which a host's address leads.
func (w *World) machineAt(spec *hosts.Host) *host { return w.hostByAddress[spec.Addresses[0]] }

// machineOf returns the machine that is currently behind a name, whether or not the inventory has a
// host of that name.
func (w *World) machineOf(name string) *host {
	if s := w.knownSpecs[name]; s != nil {
		return w.machineAt(s)
	}
	return nil
}

// recordSpec records what a host with this specification may do from now on.
func (w *World) recordSpec(s *hosts.Host) {
	w.knownSpecs[s.Name] = s
	w.maxRuleSlots[s.Name] = max(w.maxRuleSlots[s.Name], s.Slots.Fixed)
	if least, ok := w.minLostAfter[s.Name]; !ok || s.LostAfterOrDefault() < least {
		w.minLostAfter[s.Name] = s.LostAfterOrDefault()
	}
}

// maxSlots returns the largest number of slots that a host was ever given, by its rule or by
// people.
func (w *World) maxSlots(name string) int { return max(w.maxRuleSlots[name], w.maxGivenSlots[name]) }

// hostSet returns the hosts of the run without instances: those of the file, changed by what people
// requested.
func (w *World) hostSet(t *jobs.Table) []*hosts.Host {
	list, errs := w.inventory().With(t.Inventory, nil)
	if errs != nil {
		panic(errs[0])
	}
	return list
}

// inventory returns the inventory that a dispatcher reads now.
func (w *World) inventory() *hosts.Inventory {
	return &hosts.Inventory{Hosts: w.inventoryFile, Providers: w.providers, Tokens: w.tokens}
}

// sendInventory sends the inventory to every dispatcher that lives, as each polls the file. A later
// dispatcher reads it itself.
func (w *World) sendInventory() {
	inv := w.inventory()
	for l := range w.liveDispatchers() {
		l.enqueue(func() { l.step(sched.SetInventory{Inventory: inv}) })
	}
}

// updateSpecs records the hosts that a core may have from now on: those of its inventory, changed by
// what people requested, and all instances that were listed.
func (l *dispatcher) updateSpecs() {
	w := l.w
	var listed []*hosts.Host
	for _, h := range w.hosts { // because a map has no order
		if s := l.listedInstances[h.name]; s != nil && !slices.Contains(listed, s) {
			listed = append(listed, s)
		}
	}
	list, errs := l.inventory.With(l.core.Table().Inventory, listed)
	if errs != nil {
		panic(errs[0])
	}
	l.specs = map[string]*hosts.Host{}
	for _, s := range list {
		l.specs[s.Name] = s
		w.recordSpec(s)
	}
}

// An instance that has left is terminated within maxAbsent. Before it leaves, it may wait for
// maxLeaving for the fate of attempts that were given up there, if none is open.
const (
	maxAbsent  = 10 * time.Second
	maxLeaving = time.Minute
)

// checkHostSet checks that the hosts of a core are exactly those of its inventory, changed by what
// people requested, and the instances that it has listed and does not terminate.
func (l *dispatcher) checkHostSet() {
	t, wanted, has := l.core.Table(), map[string]bool{}, map[string]bool{}
	for _, s := range l.inventory.Hosts {
		wanted[s.Name] = true
	}
	for name, asked := range t.Inventory {
		wanted[name] = !asked.Removed
	}
	for _, s := range l.core.HostSpecs() {
		has[s.Name] = true
	}
	for name, in := range t.Instances {
		switch is := l.listedInstances[name] != nil; {
		case is && (in.State == jobs.InstanceUp || in.State == jobs.InstanceCreating):
			now := l.now().Mono
			switch {
			case has[name]:
				delete(l.absentUntil, name)
			case l.absentUntil[name] == 0:
				l.absentUntil[name] = now + maxAbsent
				if hasOnlyLost(t, name) {
					l.absentUntil[name] += maxLeaving
				}
			case l.agent(name) == nil:
				l.absentUntil[name] = min(l.absentUntil[name], now+maxAbsent)
			}
			// A host leaves shortly before it is terminated, and is none if its creation failed.
			// A dispatcher that finishes may leave the termination to the next one.
			mustBe := l.finish == nil && in.State == jobs.InstanceUp && now > l.absentUntil[name]
			wanted[name] = has[name] || mustBe
		}
	}
	for name := range has {
		if !wanted[name] {
			l.w.fail(AskedHostsStay, "%s is in the set of hosts, and nothing asks for it", name)
		}
	}
	for name, is := range wanted {
		if is && !has[name] {
			l.w.fail(AskedHostsStay, "%s is not in the set of hosts", name)
		}
	}
}

// hasOnlyLost reports whether attempts were given up on a host, and none is open there.
func hasOnlyLost(t *jobs.Table, host string) bool {
	lost := false
	for j := range t.Rows() {
		for _, a := range j.Attempts {
			if a.Host == host && a.State.Open() {
				return false
			}
			lost = lost || a.Host == host && a.State == jobs.AttemptLost
		}
	}
	return lost
}

// reportSource identifies a report on an attempt by its source, which is a machine or a file.
type reportSource struct {
	id   jobs.AttemptID
	from *host // nil: files in the shared directory
}

// passReport passes a machine's report on to the core and records which machine reported on which
// attempts.
func (l *dispatcher) passReport(h *host, ev sched.Event) {
	l.post(func() {
		var from = h
		var ids []jobs.AttemptID
		switch ev := ev.(type) {
		case sched.HostHeartbeat:
			if !ev.Heartbeat.Early && l.core.Linked(ev.Host) {
				l.receivedAt[h] = l.now().Mono
			}
		case sched.HostListed:
			if ev.Msg.Last && ev.Msg.Why == "" {
				l.listed[h] = l.w.now
			}
			for _, p := range ev.Msg.Jobs {
				ids = append(ids, p.Attempt)
			}
		case sched.HostInspected:
			from = nil
			l.recordInspected(ev)
		case sched.HostRefused:
			ids = ev.Msg.Attempts
		case sched.AttemptsWithdrawn:
			ids = ev.Msg.Attempts
		case sched.AttemptsProbed:
			for _, p := range ev.Msg.Jobs {
				ids = append(ids, p.Attempt)
			}
		case sched.AttemptsStarted:
			for _, s := range ev.Msg.Jobs {
				ids = append(ids, s.Attempt)
			}
		case sched.AttemptsEnded:
			for _, x := range ev.Msg.Jobs {
				ids = append(ids, x.Attempt)
			}
		}
		for _, id := range ids {
			l.reportedBy[reportSource{id, from}] = true
		}
	})
	l.queueReport(ev)
}

// recordInspected records the attempts that files report on. The files are the same for every
// machine.
func (l *dispatcher) recordInspected(ev sched.HostInspected) {
	for _, x := range ev.Msg.Jobs {
		l.reportedBy[reportSource{x.Attempt, nil}] = true
	}
	for _, id := range slices.Concat(ev.Msg.Runs, ev.Msg.Never) {
		l.reportedBy[reportSource{id, nil}] = true
	}
}

// recordLaunches records the machine to which each launch goes.
func (w *World) recordLaunches(placed []sched.LaunchItem, h *host) {
	for _, p := range placed {
		w.truth.sent[p.Attempt] = h
	}
}

// launchedOn returns the machine on which an attempt was launched, or nil if it is not known.
func (l *dispatcher) launchedOn(id jobs.AttemptID) *host {
	t := l.core.Table()
	a := t.Attempt(id)
	for m, n := range t.Machines {
		if a != nil && n == a.Machine {
			for _, h := range l.w.hosts {
				if h.id == m.ID {
					return h
				}
			}
		}
	}
	return nil
}

// checkSettled checks that the end of an attempt was reported by the machine on which it was
// launched, or by files that every machine sees the same.
func (w *World) checkSettled(l *dispatcher, r *jobs.Record) {
	id := r.Attempt()
	at := w.truth.sent[id]
	if at == nil || l.epoch != w.ledger.epoch || w.damaged || l.reportedBy[reportSource{id, at}] ||
		l.reportedBy[reportSource{id, nil}] {
		return
	}
	w.fail(SettledByItsMachine, "%s of %s is recorded (%s), and %s, on which it was launched, has not told of it",
		r.Kind, id, r.Reason, at.id)
}

// checkPlace checks that a job is launched on a host of the set, that the host has the job's tags,
// and that the launch goes to the host's current address.
func (w *World) checkPlace(l *dispatcher, r *jobs.Record) {
	s := l.specs[r.Host]
	if s == nil {
		w.fail(DrainedHolds, "%s is launched on %s, which was removed", r.Attempt(), r.Host)
	}
	for _, tag := range l.core.Table().Job(r.Job).Spec.Tags {
		if !slices.Contains(s.Tags, tag) {
			w.fail(RunsAsEdited, "%s is launched on %s and wants tag %s", r.Attempt(), r.Host, tag)
		}
	}
	if a := l.agent(r.Host); a == nil || !slices.Equal(a.spec.Addresses, s.Addresses) {
		w.fail(DrainedHolds, "%s is launched on %s at an address that it has no more", r.Attempt(), r.Host)
	}
}

// isCleaned reports whether the end of the run reaches a machine. It does if the address of a host
// of the set leads to it and the journal names it too. The end of the run lists what is alive on
// other machines.
func (w *World) isCleaned(h *host) bool {
	return !h.isDead && w.ledger.machines[h.name] == h.id &&
		slices.ContainsFunc(w.hostSet(w.ledger.table), func(s *hosts.Host) bool { return w.machineAt(s) == h })
}

// The faults that change the set of hosts.

// editHost changes a host of the inventory file.
func (w *World) editHost(i int, change func(*hosts.Host)) {
	s := *w.inventoryFile[i]
	change(&s)
	w.inventoryFile = slices.Clone(w.inventoryFile)
	w.inventoryFile[i] = &s
	w.logf("the inventory: %s slots %d tags %v at %s", s.Name, s.Slots.Fixed, s.Tags, s.Addresses[0])
	w.sendInventory()
}

// indexOfHost returns the index of a host in the inventory file, or -1 if it is not there.
func (w *World) indexOfHost(name string) int {
	return slices.IndexFunc(w.inventoryFile, func(s *hosts.Host) bool { return s.Name == name })
}

// changeHosts removes a host from the file and adds it again later, which may be before or after
// the host has left.
func changeHosts(w *World) bool {
	if w.runningDispatcher() == nil || len(w.inventoryFile) == 0 {
		return false
	}
	out := w.choices.Draw(len(w.inventoryFile))
	s := w.inventoryFile[out]
	w.inventoryFile = slices.Delete(slices.Clone(w.inventoryFile), out, out+1)
	w.sendInventory()
	w.after(w.between(time.Second, 90*time.Second), func() {
		w.inventoryFile = append(slices.Clone(w.inventoryFile), s)
		w.sendInventory()
	})
	return true
}

// changeSpec changes the slots, tags, kept slots, or lost_after of a host in the file.
func changeSpec(w *World) bool {
	if len(w.inventoryFile) == 0 {
		return false
	}
	w.editHost(w.choices.Draw(len(w.inventoryFile)), func(s *hosts.Host) {
		switch w.choices.Draw(5) {
		case 4:
			s.Queues = nil
			if s.Name != "melon1" && w.choices.Draw(2) == 0 {
				s.Queues = w.drawKeptPart(s.Slots.Fixed)
			}
		case 0:
			s.Tags = nil
			if w.choices.Draw(2) == 0 {
				s.Tags = []string{"big"}
			}
		case 1:
			s.LostAfter = []time.Duration{0, 25 * time.Second, 40 * time.Second}[w.choices.Draw(3)]
		default:
			s.Slots.Fixed = 1 + w.choices.Draw(5)
		}
	})
	return true
}

// otherMachine returns another machine for a host: one that was behind its name earlier, or a new
// one.
func (w *World) otherMachine(s *hosts.Host) (h *host, address string) {
	is := w.machineAt(s)
	for a := range w.hosts {
		address := fmt.Sprintf("address%d", a+1)
		if h := w.hostByAddress[address]; h.name == s.Name && h != is && w.choices.Draw(2) == 1 {
			return h, address
		}
	}
	return w.newMachine(s.Name, is.gpus)
}

// leaveNetwork makes a machine unreachable for a time in one of three cases, and ends its
// connections in another.
func (h *host) leaveNetwork() {
	switch w := h.w; w.choices.Draw(3) {
	case 0:
		h.cut(w.longDuration(), w.machines...)
	case 1:
		if h.helper != nil {
			h.helper.die("sshd was killed")
		}
	}
}

// changeMachine puts another machine behind a host: at another address in the file, or at the same
// address. In most cases it restores the old machine later.
func changeMachine(w *World) bool {
	if w.mayBeDamaged || len(w.inventoryFile) == 0 {
		return false
	}
	s := w.inventoryFile[w.choices.Draw(len(w.inventoryFile))]
	was, inFile := w.machineAt(s), w.choices.Draw(2) == 1
	is, address := w.otherMachine(s)
	put := func(h *host, addresses []string) {
		if i := w.indexOfHost(s.Name); inFile && i >= 0 {
			w.editHost(i, func(now *hosts.Host) { now.Addresses = addresses })
		} else if !inFile {
			w.hostByAddress[s.Addresses[0]] = h
			w.logf("behind %s is now %s", s.Name, h.id)
		}
	}
	was.leaveNetwork()
	put(is, []string{address})
	if w.choices.Draw(3) > 0 {
		w.after(w.longDuration(), func() {
			is.leaveNetwork()
			put(was, s.Addresses)
		})
	}
	return true
}

// addHost adds a host to the file, or removes an added host for good.
func addHost(w *World) bool {
	if w.mayBeDamaged {
		return false
	}
	if i := slices.IndexFunc(w.inventoryFile,
		func(s *hosts.Host) bool { return strings.HasPrefix(s.Name, "kiwi") }); i >= 0 && w.choices.Draw(2) == 1 {
		if len(w.hostSet(w.ledger.table)) < 2 {
			return false // a run always has at least one host
		}
		w.logf("the inventory: without %s", w.inventoryFile[i].Name)
		w.inventoryFile = slices.Delete(slices.Clone(w.inventoryFile), i, i+1)
		w.sendInventory()
		return true
	}
	w.numAdded++
	name := fmt.Sprintf("kiwi%d", w.numAdded)
	_, address := w.newMachine(name, 0)
	s := &hosts.Host{Name: name, Addresses: []string{address}, Slots: hosts.SlotRule{Fixed: 1 + w.choices.Draw(4)},
		Link: "ssh", Tags: []string{"big"}}
	w.inventoryFile = append(slices.Clone(w.inventoryFile), s)
	w.logf("the inventory: %s with %d slots", name, s.Slots.Fixed)
	w.sendInventory()
	return true
}

// changeHostSet adds or removes a host by request, whatever the file contains.
func changeHostSet(w *World, l *dispatcher) []sched.Event {
	if w.mayBeDamaged {
		return nil
	}
	list := w.hostSet(l.core.Table())
	if n := w.choices.Draw(3); n == 0 && len(list) > 1 { // the first host stays, so that there is always one
		return []sched.Event{sched.ChangeInventory{Host: list[1+w.choices.Draw(len(list)-1)].Name,
			Change: jobs.HostRemoved}}
	}
	w.numAdded++
	name := fmt.Sprintf("lime%d", w.numAdded)
	_, address := w.newMachine(name, 0)
	return []sched.Event{sched.ChangeInventory{Host: name, Change: jobs.HostAdded,
		Options: fmt.Sprintf("slots=%d tags=big address=%s", 1+w.choices.Draw(3), address)}}
}
