package sched

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// A run that has had a mirror (a copy of its directory, with which a standby on another
// machine can continue) has voters: hosts that lease the run to one dispatcher at a time, and
// record which directories may go on with it. Nothing is launched, and no lease of what is
// buffered is extended, unless more than half of them lease the run to this dispatcher.
//
// A host takes another record only from a dispatcher whose directory stands in the one that
// it has, or for which the voters have agreed on a newer one. So this dispatcher may do
// without its mirror when more than half of them have recorded that there is none: the
// mirror can never get as many any more. Until then its journal waits for the mirror.

// RunLease is how long a host leases the run to a dispatcher from each Ping on. It is
// shorter than the silence after which a standby takes over.
const RunLease = 20 * time.Second

// majority is what the core knows of the voters.
type majority struct {
	voters  []voter      // as the table names them
	copies  hosts.Copies // that they are to record; N 0: the run has no voters
	host    string       // of the mirror
	settled bool         // they have agreed once: this directory may go on with the run
	heldAt  time.Duration
	told    bool // that nothing is launched
	send    []Command
}

type voter struct {
	name   string
	until  time.Duration // Time.Mono: it leases the run to us at least until then
	copies hosts.Copies  // that it has recorded
}

// beginMajority goes on with a run that has voters.
func (c *Core) beginMajority() {
	if len(c.table.Voters) > 0 {
		c.setVoters()
		c.propose("", 0, false)
	}
}

func (c *Core) setVoters() {
	m := &c.majority
	m.heldAt = c.now.Mono
	for _, name := range c.table.Voters {
		m.voters = append(m.voters, voter{name: name})
	}
}

// propose tells the voters to record this directory and a mirror. above is a number that
// one of them has already.
func (c *Core) propose(mirror string, above int64, first bool) {
	m := &c.majority
	m.copies = hosts.Copies{N: max(above, m.copies.N) + 1, Home: c.cfg.Copy, Mirror: mirror}
	m.send = append(m.send, SetCopies{m.copies, first})
}

func (c *Core) mirrorUp(e MirrorUp) {
	m := &c.majority
	if m.copies.Mirror != "" || m.copies.N > 0 && !m.copies.Agreed {
		return // the journal waits for it in vain until it has come again
	}
	first := len(c.table.Voters) == 0
	if first {
		var names []string
		for _, h := range c.hosts {
			if h.inst == nil {
				names = append(names, h.spec.Name)
			}
		}
		if len(names) == 0 { // only instances, which may all be gone tomorrow
			m.send = append(m.send, Protected{})
			return
		}
		c.emit(jobs.Record{Kind: jobs.KindVoters, Reason: strings.Join(names, " ")})
		c.setVoters()
		m.settled = true // no other directory could have gone on so far
	}
	m.host = e.Host
	c.propose(e.ID, 0, first)
}

func (c *Core) mirrorDown(e MirrorDown) {
	m := &c.majority
	if e.ID == "" || m.copies.Mirror != e.ID {
		return
	}
	c.say("", 0, "the mirror of the run on %s is not used any more (%s); jobs are launched again when more than half of the run's hosts have recorded that", m.host, e.Why)
	c.propose("", 0, false)
}

// runLeased records that a host leases the run to this dispatcher, and what it has recorded.
func (c *Core) runLeased(e Leased) {
	for i := range c.majority.voters {
		if v := &c.majority.voters[i]; v.name == e.Host {
			v.until, v.copies = max(v.until, e.Pinged+RunLease-leaseMargin), e.Copies
			c.recorded(e.Copies)
			c.agree()
		}
	}
}

// recorded handles the epoch that a host has recorded: a lower number than that would be ignored there.
func (c *Core) recorded(has hosts.Copies) {
	if m := &c.majority; m.copies.N > 0 && has.N >= m.copies.N && !has.Equal(m.copies) {
		c.propose(m.copies.Mirror, has.N, false)
	}
}

// refusedLease handles the epoch recorded by a host that leases the run to nobody or to another.
func (c *Core) refusedLease(err error) {
	var leased *hosts.LeasedError
	if errors.As(err, &leased) {
		c.recorded(leased.Copies)
	}
}

// agree draws what follows when more than half of the voters have recorded the same.
func (c *Core) agree() {
	m := &c.majority
	n := 0
	for _, v := range m.voters {
		if v.copies.Equal(m.copies) {
			n++
		}
	}
	if m.copies.Agreed || 2*n <= len(m.voters) {
		return
	}
	m.copies.Agreed, m.settled = true, true
	m.send = append(m.send, SetCopies{Copies: m.copies}, Protected{m.copies.Mirror})
	if m.copies.Mirror == c.table.Mirror {
		return
	}
	r := jobs.Record{Kind: jobs.KindMirror, Reason: m.copies.Mirror}
	if r.Reason != "" {
		r.Host = m.host
		c.say("", 0, "a standby on %s protects the run", m.host)
	} else {
		c.say("", 0, "no standby protects the run")
	}
	c.emit(r)
}

// Holds reports whether more than half of the voters lease the run to this dispatcher. A
// run without voters needs no lease.
func (c *Core) Holds() bool { return 2*c.leases() > len(c.table.Voters) || len(c.table.Voters) == 0 }

func (c *Core) leases() int {
	n := 0
	for _, v := range c.majority.voters {
		if c.now.Mono < v.until {
			n++
		}
	}
	return n
}

// Unleased returns why the run's voters let nothing be launched; "": they do not.
func (c *Core) Unleased() string {
	switch {
	case !c.Holds():
		return fmt.Sprintf("only %d of %d hosts lease the run to this dispatcher; it launches nothing", c.leases(), len(c.table.Voters))
	case len(c.table.Voters) > 0 && !c.majority.settled:
		return "more than half of the run's hosts must first record that this dispatcher goes on with the run"
	}
	return ""
}

// tellMajority reports when the voters let nothing be launched for longer than it takes to
// connect again, and when that is over.
func (c *Core) tellMajority() {
	m := &c.majority
	if len(m.voters) == 0 {
		return
	}
	why := c.Unleased()
	switch {
	case why == "" && m.told:
		c.say("", 0, "more than half of its hosts lease the run to this dispatcher again; the run goes on")
		fallthrough
	case why == "":
		m.heldAt, m.told = c.now.Mono, false
	case !m.told && c.now.Mono-m.heldAt >= SuspectAfter:
		m.told = true
		c.say("", 0, "%s", why)
	}
}

// slept forgets the leases: they may have run out while no clock of ours went on.
func (c *Core) slept() {
	for i := range c.majority.voters {
		c.majority.voters[i].until = 0
	}
}
