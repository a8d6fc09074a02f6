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

// startDrain stops launching until endDrain, and withdraws what is buffered on hosts. It
// returns why it does nothing, "" if it does.
func (c *Core) startDrain(why string) (refused string) {
	switch {
	case c.drain != "":
		return "the run drains already: " + c.drain
	case c.stopped:
		return stoppedAlready
	}
	c.drain = reasonOr(why, "asked to drain")
	c.say("", 0, "draining: %s", c.drain)
	for _, h := range c.hosts {
		h.withdrawAll()
	}
	return ""
}

// Reasons to refuse what people ask for.
const (
	notHeldBack    = "nothing holds launching back"
	drainIsOver    = "the drain is over and the dispatcher is ending; resume the run to continue it"
	pausedAlready  = "launching is paused already"
	stoppedAlready = "the dispatcher is being stopped already"
)

// endDrain continues launching, unless the drain has finished. The failures for --halt
// are counted from zero again; otherwise the run would drain again at once. It returns
// why it does nothing.
func (c *Core) endDrain(e EndDrain) (refused string) {
	switch {
	case c.drain == "" || e.Of != "" && e.Of != c.drain:
		return notHeldBack
	case c.finished || c.stopped:
		return drainIsOver
	}
	c.drain, c.halt = "", halt{}
	c.say("", 0, "launching continues: %s", reasonOr(e.Why, "asked to continue"))
	return ""
}

// stop ends the dispatcher and leaves what runs running. It returns why it does nothing.
func (c *Core) stop(why string) (refused string) {
	if c.stopped {
		return stoppedAlready
	}
	c.stopped, c.stopWhy = true, reasonOr(why, "asked to stop")
	c.conclude(Stopped, c.stopWhy)
	return ""
}

// Stopped returns why a person has stopped the dispatcher, false if none has.
func (c *Core) Stopped() (why string, stopped bool) { return c.stopWhy, c.stopped }
