package sched

import (
	"fmt"

	"dcs-tui/jobs"
)

// haltLeast is how many jobs must have ended before a share of failures counts.
const haltLeast = 10

// halt counts the results of this dispatcher, for --halt. A resumed run counts
// afresh, or it would stop at once again.
type halt struct {
	ok, bad int
	near    bool // see nearHalt, at the last look
}

func (h *halt) count(s jobs.JobState) {
	switch s {
	case jobs.Succeeded:
		h.ok++
	case jobs.Failed, jobs.TimedOut:
		h.bad++
	}
}

// checkHalt drains the run when too many jobs have failed: before the slot of the
// one that failed is given to another.
func (c *Core) checkHalt() {
	if c.drain != "" {
		return
	}
	if n := c.cfg.HaltFailures; n > 0 && c.halt.bad >= n {
		c.startDrain(fmt.Sprintf("%s %s failed", jobs.Plural(c.halt.bad, "job"), jobs.Verb(c.halt.bad, "has", "have")))
		return
	}
	if all := c.halt.ok + c.halt.bad; c.tooMany(c.halt.bad, all) {
		c.startDrain(fmt.Sprintf("%d of %d jobs %s failed", c.halt.bad, all, jobs.Verb(c.halt.bad, "has", "have")))
		return
	}
	if was := c.halt.near; !was && c.nearHalt() {
		for _, h := range c.hosts {
			h.withdrawAll()
		}
	}
	c.halt.near = c.nearHalt()
}

// tooMany says that a share of failures halts the run.
func (c *Core) tooMany(bad, all int) bool {
	p := c.cfg.HaltPercent
	return p > 0 && all >= haltLeast && float64(bad)*100 >= p*float64(all)
}

// nearHalt says that one more failure halts the run. Then hosts hold nothing ahead of
// need: they would start the next job before we have heard of the failure. Who asked
// for --buffer wants them supplied all the same.
func (c *Core) nearHalt() bool {
	if c.cfg.Buffer > 0 || c.drain != "" {
		return false
	}
	n := c.cfg.HaltFailures
	return n > 0 && c.halt.bad+1 >= n || c.tooMany(c.halt.bad+1, c.halt.ok+c.halt.bad+1)
}

// startDrain stops launching until endDrain, and withdraws what is buffered on hosts.
func (c *Core) startDrain(why string) {
	if c.drain != "" {
		return
	}
	c.drain = reasonOr(why, "asked to drain")
	c.say("", 0, "draining: %s", c.drain)
	for _, h := range c.hosts {
		h.withdrawAll()
	}
}

// endDrain continues launching, unless the drain has finished. The failures for --halt
// are counted from zero again; otherwise the run would drain again at once.
func (c *Core) endDrain(e EndDrain) {
	if c.drain == "" || c.finished || c.stopped || e.Of != "" && e.Of != c.drain {
		return
	}
	c.drain, c.halt = "", halt{}
	c.say("", 0, "launching continues: %s", reasonOr(e.Why, "asked to continue"))
}

func (c *Core) stop(why string) {
	c.stopped = true
	c.conclude(Stopped, reasonOr(why, "asked to stop"))
}
