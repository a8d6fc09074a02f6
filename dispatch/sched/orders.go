package sched

import "dcs-tui/jobs"

// outbox gathers what one step wants of a host, so that it leaves in one message
// of each kind (P5, B3).
type outbox struct {
	disconnect, connect bool
	spec                bool // its specification has changed
	limit               bool
	share               bool
	list                bool
	probe               []jobs.AttemptID
	kill                []Kill
	warn                []jobs.AttemptID
	withdraw            []jobs.AttemptID
	launch              []Placed
	urgent              bool // a slot waits for one of launch
}

// collect turns the outboxes into orders, host by host in inventory order. A
// host gets leave to start something (SetLimit) after it has heard what it must
// not start, and that it may start nothing before that. One that is not linked gets only connection orders: what else it must be
// told follows from its answer to the Probe when it is back.
func (c *Core) collect() []Order {
	var orders []Order
	for _, h := range c.hosts {
		o := &h.out
		if o.disconnect {
			orders = append(orders, Disconnect{h.spec.Name})
		}
		if o.spec {
			orders = append(orders, Configure{h.spec.Name, h.spec})
		}
		if o.connect {
			orders = append(orders, Connect{h.spec.Name})
		}
		if h.linked {
			if o.share {
				orders = append(orders, SetShare{h.spec.Name, h.toldShare})
			}
			none := o.limit && h.limit == 0
			if none { // or some of what is to come back could start before it is told
				orders = append(orders, SetLimit{h.spec.Name, 0})
			}
			if o.list {
				orders = append(orders, List{h.spec.Name, c.toList()})
			}
			if len(o.probe) > 0 {
				orders = append(orders, Probe{h.spec.Name, o.probe})
			}
			if len(o.warn) > 0 {
				orders = append(orders, Warn{h.spec.Name, o.warn})
			}
			for _, k := range o.kill {
				orders = append(orders, k)
			}
			if len(o.withdraw) > 0 {
				orders = append(orders, Withdraw{h.spec.Name, o.withdraw})
			}
			if o.limit && !none {
				orders = append(orders, SetLimit{h.spec.Name, h.limit})
			}
			if len(o.launch) > 0 {
				orders = append(orders, Launch{h.spec.Name, o.launch, o.urgent})
			}
		}
		h.out = outbox{}
	}
	return orders
}

// kill asks for the end of an attempt on a host.
func (h *host) kill(id jobs.AttemptID, why string) {
	if !h.linked {
		return
	}
	if n := len(h.out.kill); n > 0 && h.out.kill[n-1].Why == why {
		h.out.kill[n-1].Attempts = append(h.out.kill[n-1].Attempts, id)
		return
	}
	h.out.kill = append(h.out.kill, Kill{h.spec.Name, []jobs.AttemptID{id}, why})
}

// warnAttempts warns what runs on a host that its end is near, each attempt once.
func (h *host) warnAttempts() {
	for f := h.head; f != nil; f = f.next {
		if f.started && !f.killed && !f.warned && h.linked {
			f.warned = true
			h.out.warn = append(h.out.warn, f.id)
		}
	}
}

// killFlight asks for the end of an open attempt; repeated after a lost link.
func (c *Core) killFlight(f *flight, why string) {
	f.killed = true
	f.h.kill(f.id, why)
}

// withdraw asks a buffered attempt back.
func (h *host) withdraw(f *flight) {
	if f.waiting() && h.linked {
		f.withdrawn = true
		h.out.withdraw = append(h.out.withdraw, f.id)
	}
}

// withdrawAll asks back whatever has not started.
func (h *host) withdrawAll() {
	for f := h.head; f != nil; f = f.next {
		h.withdraw(f)
	}
}
