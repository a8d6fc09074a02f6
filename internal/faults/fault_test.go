//go:build linux

package faults

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// faultKind is a kind of fault: its weight in the random choice, and the function that makes it.
// make returns what it hit, or "" if there was nothing to hit.
type faultKind struct {
	name   string
	weight int
	make   func(d *director) string
	net    bool // only in labs where each machine has its own client of the shared directory
}

var kindsOfFault = []faultKind{
	{name: "kill sshd", weight: 4, make: func(d *director) string { return d.killSSHD(isListener) }},
	{name: "kill sshd sessions", weight: 6, make: func(d *director) string { return d.killProcesses(isSession) }},
	{name: "kill helper", weight: 8, make: func(d *director) string { return d.killProcesses(isHelper) }},
	{name: "kill supervisor", weight: 8, make: func(d *director) string { return d.killOne(isSupervisor) }},
	{name: "kill dispatcher", weight: 6, make: (*director).killDispatcher},
	{name: "stop sshd", weight: 2, make: func(d *director) string { return d.pauseProcesses(isListener) }},
	{name: "stop sshd sessions", weight: 4, make: func(d *director) string { return d.pauseProcesses(isSession) }},
	{name: "stop helper", weight: 5, make: func(d *director) string { return d.pauseProcesses(isHelper) }},
	{name: "stop supervisor", weight: 5, make: func(d *director) string { return d.pauseProcesses(isSupervisor) }},
	{name: "stop dispatcher", weight: 3, make: (*director).pauseDispatcher},
	{name: "stop dispatcher, take over, wake it", weight: 2, make: (*director).takeOverWhileStopped},
	{name: "link down", weight: 6, make: (*director).linkDown},
	{name: "black hole", weight: 4, make: (*director).blackhole},
	{name: "flapping link", weight: 2, make: (*director).flapLink},
	{name: "reboot", weight: 4, make: (*director).reboot},
	{name: "SIGTERM to dispatcher", weight: 2, make: (*director).terminateDispatcher},
	{name: "desk unplugged", weight: 3, make: (*director).unplugDesk},
	{name: "power cut of a desk", weight: 2, make: (*director).cutDeskPower},
	{name: "all links down", weight: 1, make: func(d *director) string { return d.linksDown(4) }},
	{name: "half the lab gone", weight: 2, make: func(d *director) string { return d.linksDown(2) }},
	{name: "gateway killed", weight: 2, make: (*director).killGateway},
	{name: "disk full", weight: 2, make: (*director).fillShared},
	{name: "read-only", weight: 3, make: (*director).mountReadOnly},
	{name: "hanging file system", weight: 4, make: onRandomClient((*director).hangCalls), net: true},
	{name: "failing calls", weight: 5, make: onRandomClient((*director).failCalls), net: true},
	{name: "lost replies", weight: 3, make: onRandomClient((*director).loseReplies), net: true},
	{name: "over quota", weight: 3, make: onRandomClient((*director).exceedQuota), net: true},
}

// makeFault makes a random fault and returns its kind, or "" if there was nothing to hit.
func (d *director) makeFault() string {
	possible, sum := kindsOfFault, 0
	if d.inventory == cloudHosts {
		possible = slices.Concat(kindsOfFault, cloudFaults)
	}
	for _, k := range possible {
		if d.lab.nfs != nil || !k.net {
			sum += k.weight
		}
	}
	n := d.rand.IntN(sum)
	for _, k := range possible {
		if d.lab.nfs == nil && k.net {
			continue
		}
		if n -= k.weight; n >= 0 {
			continue
		}
		on := k.make(d)
		if on == "" {
			return ""
		}
		d.logEvent("%s: %s", k.name, on)
		return k.name
	}
	return ""
}

// randomSeconds returns a random duration between two limits in seconds.
func (d *director) randomSeconds(from, to float64) time.Duration {
	return time.Duration((from + (to-from)*d.rand.Float64()) * float64(time.Second))
}

// repairAfter ends a fault after a while.
func (d *director) repairAfter(after time.Duration, what string, do func()) {
	d.repairs = append(d.repairs, repair{time.Now().Add(after), what, do})
}

// repairAfterRandom ends a fault after a random time between two limits in seconds. It returns that
// time in words.
func (d *director) repairAfterRandom(from, to float64, what string, end func()) string {
	after := d.randomSeconds(from, to)
	d.repairAfter(after, what, end)
	return "for " + after.Round(time.Millisecond).String()
}

// isActive reports whether a fault of that name is still active.
func (d *director) isActive(what string) bool {
	return slices.ContainsFunc(d.repairs, func(h repair) bool { return h.what == what })
}

// awayFault returns the name of the fault that takes a host off the network. A host has at most one
// such fault at a time.
func awayFault(m *machine) string { return m.name + " away" }

// randomHost returns a random host that has power.
func (d *director) randomHost() *machine {
	list := d.lab.hosts
	if d.inventory == cloudHosts {
		list = slices.Concat(d.lab.hosts, d.lab.vms)
	}
	m := list[d.rand.IntN(len(list))]
	if m.running.Load() == nil {
		return nil
	}
	return m
}

// randomProcesses returns a random host and its processes that are selected by meant.
func (d *director) randomProcesses(meant func(process) bool) (*machine, []process) {
	m := d.randomHost()
	if m == nil {
		return nil, nil
	}
	return m, m.find(meant)
}

// killProcesses kills all processes of a random host that are selected by meant.
func (d *director) killProcesses(meant func(process) bool) string {
	m, list := d.randomProcesses(meant)
	if len(list) == 0 {
		return ""
	}
	signalAll(list, syscall.SIGKILL)
	return fmt.Sprintf("%s, %d processes", m.name, len(list))
}

// killOne kills one process of a random host.
func (d *director) killOne(meant func(process) bool) string {
	m, list := d.randomProcesses(meant)
	if len(list) == 0 {
		return ""
	}
	one := list[d.rand.IntN(len(list))]
	signalAll([]process{one}, syscall.SIGKILL)
	return m.name + ": " + one.String()
}

// killSSHD kills the ssh server, which is started again after some seconds.
func (d *director) killSSHD(meant func(process) bool) string {
	m := d.randomHost()
	if m == nil || d.isActive(m.name+" sshd") {
		return ""
	}
	return d.restart(m, meant)
}

func (d *director) restart(m *machine, meant func(process) bool) string {
	list := m.find(meant)
	if len(list) == 0 {
		return ""
	}
	signalAll(list, syscall.SIGKILL)
	return m.name + " " + d.repairAfterRandom(0.5, 8, m.name+" sshd", func() { d.must(m.startSSHD()) })
}

// killGateway kills the whole ssh server of ws3, the gateway to ws4.
func (d *director) killGateway() string {
	m := d.lab.hosts[2]
	if m.running.Load() == nil || d.isActive(m.name+" sshd") {
		return ""
	}
	return d.restart(m, func(p process) bool { return isListener(p) || isSession(p) })
}

// pauseProcesses stops processes for a while.
func (d *director) pauseProcesses(meant func(process) bool) string {
	m, list := d.randomProcesses(func(p process) bool { return meant(p) && !p.stopped })
	if len(list) == 0 {
		return ""
	}
	if d.rand.IntN(2) == 0 {
		list = list[d.rand.IntN(len(list)):][:1]
	}
	signalAll(list, syscall.SIGSTOP)
	boot := m.running.Load()
	return fmt.Sprintf("%s %v ", m.name, list) +
		d.repairAfterRandom(1, 30, fmt.Sprintf("%s stopped %s", m.name, list[0]), func() {
			if m.running.Load() == boot { // otherwise the numbers may belong to other processes now
				signalAll(list, syscall.SIGCONT)
			}
		})
}

// linkDown disconnects a host's network cable.
func (d *director) linkDown() string {
	return d.cutLink(func(m *machine) error { return m.setLink(false) },
		func(m *machine) error { return m.setLink(true) })
}

// blackhole drops all packets of a host while its network card has a link.
func (d *director) blackhole() string {
	return d.cutLink(func(m *machine) error { return m.setBlackhole(true) },
		func(m *machine) error { return m.setBlackhole(false) })
}

func (d *director) cutLink(cut, mend func(*machine) error) string {
	m := d.randomHost()
	if m == nil || d.isActive(awayFault(m)) {
		return ""
	}
	d.must(cut(m))
	return m.name + " " + d.repairAfterRandom(2, 40, awayFault(m), func() { d.must(mend(m)) })
}

// flapLink cuts a link several times for short periods.
func (d *director) flapLink() string {
	m := d.randomHost()
	if m == nil || d.isActive(awayFault(m)) {
		return ""
	}
	times := 3 + d.rand.IntN(6)
	up := true
	var turn func()
	turn = func() {
		up = !up
		d.must(m.setLink(up))
		if !up || times > 0 {
			times--
			d.repairAfter(d.randomSeconds(0.1, 1.2), awayFault(m), turn)
		}
	}
	turn()
	return m.name
}

// linksDown disconnects n hosts at once.
func (d *director) linksDown(n int) string {
	after := d.randomSeconds(5, 30)
	var names []string
	for _, i := range d.rand.Perm(len(d.lab.hosts))[:n] {
		m := d.lab.hosts[i]
		if m.running.Load() == nil || d.isActive(awayFault(m)) {
			continue
		}
		d.must(m.setLink(false))
		d.repairAfter(after, awayFault(m), func() { d.must(m.setLink(true)) })
		names = append(names, m.name)
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%v for %s", names, after.Round(time.Millisecond))
}

// reboot cuts a host's power for a while. In half of the cases, its peers are not told that their
// connections are gone.
func (d *director) reboot() string {
	m := d.randomHost()
	if m == nil || d.isActive(awayFault(m)) || m.instance != "" {
		return ""
	}
	silent := d.rand.IntN(2) == 0
	m.powerOff(silent)
	return fmt.Sprintf("%s, silent %v, ", m.name, silent) + d.repairAfterRandom(0.2, 15, awayFault(m),
		func() { d.must(m.boot()) })
}

// must ends the test if the lab itself does not work.
func (d *director) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("the lab: %v", err)
	}
}
