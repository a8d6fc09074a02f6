package faults

import (
	"fmt"
	"slices"
	"syscall"
	"time"
)

// kind is a kind of fault: its weight in the random choice, and the function that makes it. make
// returns what it hit, or "" if there was nothing to hit.
type kind struct {
	name   string
	weight int
	make   func(d *director) string
	net    bool // only in labs where each machine has its own client of the shared directory
}

var kindsOfFault = []kind{
	{name: "kill sshd", weight: 4, make: func(d *director) string { return d.killSSHD(isListener) }},
	{name: "kill sshd sessions", weight: 6, make: func(d *director) string { return d.kill(isSession) }},
	{name: "kill helper", weight: 8, make: func(d *director) string { return d.kill(isHelper) }},
	{name: "kill supervisor", weight: 8, make: func(d *director) string { return d.killOne(isSupervisor) }},
	{name: "kill dispatcher", weight: 6, make: (*director).killDispatcher},
	{name: "stop sshd", weight: 2, make: func(d *director) string { return d.pause(isListener) }},
	{name: "stop sshd sessions", weight: 4, make: func(d *director) string { return d.pause(isSession) }},
	{name: "stop helper", weight: 5, make: func(d *director) string { return d.pause(isHelper) }},
	{name: "stop supervisor", weight: 5, make: func(d *director) string { return d.pause(isSupervisor) }},
	{name: "stop dispatcher", weight: 3, make: (*director).pauseDispatcher},
	{name: "stop dispatcher, take over, wake it", weight: 2, make: (*director).usurp},
	{name: "link down", weight: 6, make: (*director).linkDown},
	{name: "black hole", weight: 4, make: (*director).blackhole},
	{name: "flapping link", weight: 2, make: (*director).flap},
	{name: "reboot", weight: 4, make: (*director).reboot},
	{name: "SIGTERM to dispatcher", weight: 2, make: (*director).terminate},
	{name: "desk unplugged", weight: 3, make: (*director).unplugDesk},
	{name: "power cut of a desk", weight: 2, make: (*director).deskDies},
	{name: "all links down", weight: 1, make: func(d *director) string { return d.linksDown(4) }},
	{name: "half the lab gone", weight: 2, make: func(d *director) string { return d.linksDown(2) }},
	{name: "gateway killed", weight: 2, make: (*director).killGateway},
	{name: "disk full", weight: 2, make: (*director).fill},
	{name: "read-only", weight: 3, make: (*director).readOnly},
	{name: "hanging file system", weight: 4, make: onClient((*director).wedge), net: true},
	{name: "failing calls", weight: 5, make: onClient((*director).failCalls), net: true},
	{name: "lost replies", weight: 3, make: onClient((*director).loseReplies), net: true},
	{name: "over quota", weight: 3, make: onClient((*director).overQuota), net: true},
}

// fault makes a random fault and returns its kind, or "" if there was nothing to hit.
func (d *director) fault() string {
	possible, sum := kindsOfFault, 0
	if d.inventory == cloudHosts {
		possible = slices.Concat(kindsOfFault, cloudFaults)
	}
	for _, k := range possible {
		if d.l.nfs != nil || !k.net {
			sum += k.weight
		}
	}
	n := d.rnd.IntN(sum)
	for _, k := range possible {
		if d.l.nfs == nil && k.net {
			continue
		}
		if n -= k.weight; n >= 0 {
			continue
		}
		on := k.make(d)
		if on == "" {
			return ""
		}
		d.note("%s: %s", k.name, on)
		return k.name
	}
	return ""
}

// seconds returns a random duration between two limits in seconds.
func (d *director) seconds(from, to float64) time.Duration {
	return time.Duration((from + (to-from)*d.rnd.Float64()) * float64(time.Second))
}

// later ends a fault after a while.
func (d *director) later(after time.Duration, what string, do func()) {
	d.heals = append(d.heals, heal{time.Now().Add(after), what, do})
}

// lasts ends a fault after a random time between two limits in seconds. It returns that time in
// words.
func (d *director) lasts(from, to float64, what string, end func()) string {
	after := d.seconds(from, to)
	d.later(after, what, end)
	return "for " + after.Round(time.Millisecond).String()
}

// busy reports whether a fault of that name is still active.
func (d *director) busy(what string) bool {
	return slices.ContainsFunc(d.heals, func(h heal) bool { return h.what == what })
}

// away returns the name of the fault that takes a host off the network. A host has at most one such
// fault at a time.
func away(m *machine) string { return m.name + " away" }

// host returns a random host that has power.
func (d *director) host() *machine {
	list := d.l.hosts
	if d.inventory == cloudHosts {
		list = slices.Concat(d.l.hosts, d.l.vms)
	}
	m := list[d.rnd.IntN(len(list))]
	if m.now.Load() == nil {
		return nil
	}
	return m
}

// find returns a random host and its processes that are selected by meant.
func (d *director) find(meant func(proc) bool) (*machine, []proc) {
	m := d.host()
	if m == nil {
		return nil, nil
	}
	return m, m.find(meant)
}

// kill kills all processes of a random host that are selected by meant.
func (d *director) kill(meant func(proc) bool) string {
	m, list := d.find(meant)
	if len(list) == 0 {
		return ""
	}
	signal(list, syscall.SIGKILL)
	return fmt.Sprintf("%s, %d processes", m.name, len(list))
}

// killOne kills one process of a random host.
func (d *director) killOne(meant func(proc) bool) string {
	m, list := d.find(meant)
	if len(list) == 0 {
		return ""
	}
	one := list[d.rnd.IntN(len(list))]
	signal([]proc{one}, syscall.SIGKILL)
	return m.name + ": " + one.String()
}

// killSSHD kills the ssh server, which is started again after some seconds.
func (d *director) killSSHD(meant func(proc) bool) string {
	m := d.host()
	if m == nil || d.busy(m.name+" sshd") {
		return ""
	}
	return d.restart(m, meant)
}

func (d *director) restart(m *machine, meant func(proc) bool) string {
	list := m.find(meant)
	if len(list) == 0 {
		return ""
	}
	signal(list, syscall.SIGKILL)
	return m.name + " " + d.lasts(0.5, 8, m.name+" sshd", func() { d.must(m.startSSHD()) })
}

// killGateway kills the whole ssh server of ws3, the gateway to ws4.
func (d *director) killGateway() string {
	m := d.l.hosts[2]
	if m.now.Load() == nil || d.busy(m.name+" sshd") {
		return ""
	}
	return d.restart(m, func(p proc) bool { return isListener(p) || isSession(p) })
}

// pause stops processes for a while.
func (d *director) pause(meant func(proc) bool) string {
	m, list := d.find(func(p proc) bool { return meant(p) && !p.stopped })
	if len(list) == 0 {
		return ""
	}
	if d.rnd.IntN(2) == 0 {
		list = list[d.rnd.IntN(len(list)):][:1]
	}
	signal(list, syscall.SIGSTOP)
	boot := m.now.Load()
	return fmt.Sprintf("%s %v ", m.name, list) + d.lasts(1, 30, fmt.Sprintf("%s stopped %s", m.name, list[0]), func() {
		if m.now.Load() == boot { // otherwise the numbers may belong to other processes now
			signal(list, syscall.SIGCONT)
		}
	})
}

// linkDown disconnects a host's network cable.
func (d *director) linkDown() string {
	return d.cut(func(m *machine) error { return m.link(false) }, func(m *machine) error { return m.link(true) })
}

// blackhole drops all packets of a host while its network card has a link.
func (d *director) blackhole() string {
	return d.cut(func(m *machine) error { return m.blackhole(true) }, func(m *machine) error { return m.blackhole(false) })
}

func (d *director) cut(cut, mend func(*machine) error) string {
	m := d.host()
	if m == nil || d.busy(away(m)) {
		return ""
	}
	d.must(cut(m))
	return m.name + " " + d.lasts(2, 40, away(m), func() { d.must(mend(m)) })
}

// flap cuts a link several times for short periods.
func (d *director) flap() string {
	m := d.host()
	if m == nil || d.busy(away(m)) {
		return ""
	}
	times := 3 + d.rnd.IntN(6)
	up := true
	var turn func()
	turn = func() {
		up = !up
		d.must(m.link(up))
		if !up || times > 0 {
			times--
			d.later(d.seconds(0.1, 1.2), away(m), turn)
		}
	}
	turn()
	return m.name
}

// linksDown disconnects n hosts at once.
func (d *director) linksDown(n int) string {
	after := d.seconds(5, 30)
	var names []string
	for _, i := range d.rnd.Perm(len(d.l.hosts))[:n] {
		m := d.l.hosts[i]
		if m.now.Load() == nil || d.busy(away(m)) {
			continue
		}
		d.must(m.link(false))
		d.later(after, away(m), func() { d.must(m.link(true)) })
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
	m := d.host()
	if m == nil || d.busy(away(m)) || m.instance != "" {
		return ""
	}
	silent := d.rnd.IntN(2) == 0
	m.powerOff(silent)
	return fmt.Sprintf("%s, silent %v, ", m.name, silent) + d.lasts(0.2, 15, away(m), func() { d.must(m.boot()) })
}

// must ends the test if the lab itself does not work.
func (d *director) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("the lab: %v", err)
	}
}
