package sim

import (
	"errors"
	"math"
	"slices"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Hosts on demand. The commands of the provider fail, hang, and sometimes have their effect all the
// same. Its instances may never answer, or vanish. A command that runs while its dispatcher dies
// may have its effect later.

// cloud is the provider of a world.
type cloud struct {
	spec      *hosts.Provider
	instances map[string]*instance // existing instances, by name
	// Created by a command whose dispatcher had died or was taken over; nobody may have time to notice them.
	lateInstances map[string]bool
	fetched       map[jobs.AttemptID]bool
	failsUntil    time.Duration // every command fails until then
}

// instance is a machine that exists for a limited time.
type instance struct {
	h      *host
	spec   *hosts.Host
	endsAt time.Duration // end of its allocation; 0: it has no end
}

const never = time.Duration(math.MaxInt64)

const instancePrefix = "dcs-simrun"

// drawCloud gives some worlds a provider. A world with a damaged journal has none, because the next
// dispatcher knows instances only by their records.
func (w *World) drawCloud() {
	if w.mayBeDamaged || !w.choices.OneIn(3) {
		return
	}
	p := &hosts.Provider{Name: "cloud", Max: 1 + w.choices.Draw(4), Startup: w.between(5*time.Second, time.Minute),
		Idle: w.between(20*time.Second, 2*time.Minute),
		Host: hosts.Host{Link: "ssh", Slots: hosts.SlotRule{Fixed: 1 + w.choices.Draw(3)}, Tags: []string{"big"},
			GPUs: w.choices.Draw(2)}}
	p.Rule, p.Min = hosts.ProvisionRule(p.Max%3), p.Max/3
	if p.Idle < time.Minute { // each instance is an allocation, which has an end
		p.Slurm = &hosts.Slurm{Nodes: 1, Time: 4*p.Startup + 2*p.Idle, Margin: p.Startup}
	}
	w.providers, w.cfg.InstancePrefix = []*hosts.Provider{p}, instancePrefix
	w.cloud = &cloud{spec: p, instances: map[string]*instance{}, lateInstances: map[string]bool{},
		fetched: map[jobs.AttemptID]bool{}}
}

// carryOutInstanceCommand carries out a command about instances.
func (l *dispatcher) carryOutInstanceCommand(o sched.Command) {
	w := l.w
	switch o := o.(type) {
	case sched.CreateInstance:
		// As in package run, another goroutine first checks that the dispatcher still owns the run.
		l.later(max(time.Microsecond, l.m.hungUntil-w.now), func() { l.createInstance(o.Name) })
	case sched.TerminateInstance:
		w.checkTerminate(o.Name)
		l.runProviderCommand(o.Name, 10*time.Second, func() { w.destroy(o.Name) },
			func(err string) sched.Event { return sched.InstanceTerminated{Name: o.Name, Err: err} })
	case sched.ListInstances:
		l.later(w.between(0, 3*time.Second), func() { l.queueReport(l.list(o.Provider)) })
	case sched.FetchInstance:
		l.later(w.between(0, 5*time.Second),
			func() { l.queueReport(sched.InstanceFetched{Name: o.Name, Err: l.fetch(o)}) })
	}
}

// createInstance runs the create command, unless another dispatcher owns the run.
func (l *dispatcher) createInstance(name string) {
	w, by, err := l.w, 0, error(nil)
	created := func(err string) sched.Event { return sched.InstanceCreated{Name: name, Err: err} }
	switch {
	case l.survives(func() { by, err = l.journal.Fenced() }):
	case by > 0 || err != nil:
		l.queueReport(created("it may be another dispatcher's run"))
	default:
		w.checkCreate(name)
		l.runProviderCommand(name, w.cloud.spec.Startup/2, func() { w.create(name) }, created)
	}
}

// runProviderCommand runs a provider's command. A command may fail with or without its effect, and
// may succeed without its effect. If the dispatcher dies, the effect may still come.
func (l *dispatcher) runProviderCommand(name string, takes time.Duration, effect func(),
	answer func(err string) sched.Event) {
	w := l.w
	does, err := true, ""
	switch {
	case w.now < w.cloud.failsUntil:
		does, err = false, "exit status 1"
	case w.oneInWhileFaults(8):
		does, err = w.choices.Draw(2) == 1, "exit status 1"
	case w.oneInWhileFaults(12):
		takes, err = 2*time.Minute, "it did not end"
	case w.oneInWhileFaults(12):
		does = false
	}
	outlives := w.choices.Draw(2) == 1
	at := w.between(0, takes)
	w.after(at, func() {
		if does && (!l.dead || outlives) {
			w.cloud.lateInstances[name] = l.dead || l.epoch != w.ledger.epoch
			effect()
		}
	})
	l.later(at+time.Millisecond, func() { l.queueReport(answer(err)) })
}

// create creates an instance. It answers some time later, or never.
func (w *World) create(name string) {
	if w.cloud.instances[name] != nil {
		return
	}
	h, address := w.newMachine(name, w.cloud.spec.Host.GPUs)
	spec := w.cloud.spec.Host
	spec.Name, spec.Addresses = name, []string{address}
	h.refusesUntil = w.now + w.between(0, 2*w.cloud.spec.Startup)
	if w.oneInWhileFaults(8) {
		h.refusesUntil = never
	}
	w.logf("the instance %s exists", name)
	in := &instance{h: h, spec: &spec}
	w.cloud.instances[name] = in
	if most := w.cloud.spec.MaxTime(); most > 0 {
		in.endsAt = w.now + most
		w.after(most, func() {
			if w.cloud.instances[name] == in {
				w.destroy(name)
			}
		})
	}
}

// destroy ends an instance and everything on it.
func (w *World) destroy(name string) {
	in := w.cloud.instances[name]
	if in == nil {
		return
	}
	w.logf("the instance %s is no more", name)
	delete(w.cloud.instances, name)
	h := in.h
	h.reboot(0)
	h.spool, h.heldAttempts, h.keptFiles, h.refusesUntil = nil, nil, nil, never
}

// vanishInstance ends an instance without a command.
func vanishInstance(w *World) bool {
	if w.cloud == nil {
		return false
	}
	for _, h := range w.hosts {
		if w.cloud.instances[h.name] != nil && w.choices.Draw(2) == 1 {
			w.destroy(h.name)
			return true
		}
	}
	return false
}

// failCommands makes the provider's commands fail for a time.
func failCommands(w *World) bool {
	if w.cloud == nil {
		return false
	}
	w.cloud.failsUntil = w.now + w.longDuration()
	return true
}

// list returns the result of the list command. It may omit an instance, but no dispatcher gets two
// such lists in a row.
func (l *dispatcher) list(provider string) sched.Event {
	w := l.w
	ev := sched.InstancesListed{Provider: provider, Hosts: map[string][]*hosts.Host{}, Left: map[string]time.Duration{}}
	if w.now < w.cloud.failsUntil || w.oneInWhileFaults(10) {
		ev.Err = "exit status 1"
		return ev
	}
	for _, h := range w.hosts { // w.hosts, because a map has no order
		if w.cloud.instances[h.name] != nil && !slices.Contains(ev.Names, h.name) {
			ev.Names = append(ev.Names, h.name)
			ev.Hosts[h.name] = []*hosts.Host{w.cloud.instances[h.name].spec}
			if ends := w.cloud.instances[h.name].endsAt; ends > 0 {
				ev.Left[h.name] = ends - w.now
			}
		}
	}
	if lacks := l.omittedInstance; len(ev.Names) > 0 && w.oneInWhileFaults(15) && ev.Names[0] != lacks {
		l.omittedInstance, ev.Names = ev.Names[0], ev.Names[1:]
	} else {
		l.omittedInstance = ""
	}
	return ev
}

// fetch copies outputs that exist only on an instance.
func (l *dispatcher) fetch(o sched.FetchInstance) string {
	w := l.w
	in := w.cloud.instances[o.Name]
	if in == nil || !in.h.reachable(l.m) || w.now < in.h.refusesUntil || w.oneInWhileFaults(6) {
		return errors.New("it cannot be reached").Error()
	}
	for _, id := range o.Attempts {
		w.cloud.fetched[id] = true
	}
	return ""
}

// checkCreate checks that an instance is recorded before it is created.
func (w *World) checkCreate(name string) {
	if w.ledger.instances[name] != jobs.InstanceCreating {
		w.fail(InstanceRecorded, "%s is created, and the journal says of it %q", name, w.ledger.instances[name])
	}
}

// checkTerminate checks that a terminated instance has nothing that is still needed.
func (w *World) checkTerminate(name string) {
	g := &w.ledger
	if g.instances[name] != jobs.InstanceTerminating {
		w.fail(InstanceRecorded, "%s is terminated, and the journal says of it %q", name, g.instances[name])
	}
	in := w.cloud.instances[name]
	if in == nil {
		return
	}
	for i := range g.jobs {
		for n, e := range g.jobs[i].attempts {
			id := jobs.AttemptID{Job: jobs.ID(i + 1), N: n + 1}
			if e.host != name {
				continue
			}
			if e.open {
				w.fail(InstanceUnused, "%s is terminated, and %s is open there", name, id)
			}
			if e.hasOutcome && !in.h.shared && !w.cloud.fetched[id] {
				w.fail(InstanceUnused, "%s is terminated, and what %s has written was not fetched", name, id)
			}
		}
	}
}

// checkCloud checks that no instance is left at the end, unless people removed the provider from
// the file and did not restore it.
func (w *World) checkCloud() {
	if w.cloud == nil || len(w.providers) == 0 {
		return
	}
	for _, h := range w.hosts {
		if w.cloud.instances[h.name] != nil && !w.cloud.lateInstances[h.name] {
			w.fail(InstancesGo, "the instance %s is left", h.name)
		}
	}
}

// isHost reports whether a name is that of a host. Instances that are not in use yet, or no longer,
// are listed among the hosts but are not hosts.
func (l *dispatcher) isHost(name string) bool {
	_, instance := l.w.ledger.instances[name]
	return !instance || l.agent(name) != nil ||
		slices.ContainsFunc(l.core.HostSpecs(), func(s *hosts.Host) bool { return s.Name == name })
}

// changeProvider changes the provider in the inventory file: the number or the size of its
// instances. It may also remove the provider for a time.
func changeProvider(w *World) bool {
	if w.cloud == nil {
		return false
	}
	give := func(list ...*hosts.Provider) {
		w.providers = list
		inv := w.inventory()
		for l := range w.liveDispatchers() {
			l.enqueue(func() {
				if len(list) > 0 && l.core.Table().Ended { // too late for the instances that are left
					for name := range w.cloud.instances {
						w.cloud.lateInstances[name] = true
					}
				}
				l.step(sched.SetInventory{Inventory: inv})
			})
		}
	}
	p := *w.cloud.spec
	p.Max, p.Idle = 1+w.choices.Draw(4), w.between(20*time.Second, 2*time.Minute)
	p.Host.Slots.Fixed = 1 + w.choices.Draw(3)
	w.cloud.spec = &p
	if w.choices.Draw(3) == 0 {
		give()
		w.after(w.longDuration(), func() {
			for l := range w.liveDispatchers() {
				if l.finish != nil && l.finish.How == sched.AllDone {
					return // too late for the instances that are left
				}
			}
			give(w.cloud.spec)
		})
		return true
	}
	give(&p)
	return true
}
