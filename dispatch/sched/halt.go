package sched

import (
	"fmt"

	"dcs-tui/jobs"
)

// Halt says when the run starts no more jobs because of its results. The zero value says never.
type Halt struct {
	Of      HaltOf
	Jobs    int     // after so many results that count; 0: after a share of them
	Percent float64 // after this share of results that count among all results, 0 to 100
	Now     bool    // running attempts are ended, too; their jobs are queued again
}

// HaltOf says which results count for a Halt.
type HaltOf uint8

const (
	HaltOfFailures  HaltOf = iota // failed and timed-out jobs
	HaltOfSuccesses               // succeeded jobs
	HaltOfAll                     // all of these
)

// haltLeast is the number of results from which on a share of them counts.
const haltLeast = 10

// halt counts the results of this dispatcher for Halt. A resumed run counts
// from zero, or it would halt at once again.
type halt struct {
	ok, bad int
	near    bool // nearHalt after the last event
}

func (h *halt) count(s jobs.JobState) {
	switch s {
	case jobs.Succeeded:
		h.ok++
	case jobs.Failed, jobs.TimedOut:
		h.bad++
	}
}

// counted returns the number of results that count, and what is said of them.
func (h *halt) counted(of HaltOf) (n int, what string) {
	switch of {
	case HaltOfSuccesses:
		return h.ok, "succeeded"
	case HaltOfAll:
		return h.ok + h.bad, "ended"
	}
	return h.bad, "failed"
}

// checkHalt drains the run when its Halt is reached: before the slot of the job that
// has just ended is given to another.
func (c *Core) checkHalt() {
	if c.drain != "" {
		return
	}
	if n, what := c.halt.counted(c.cfg.Halt.Of); c.reached(n, c.halt.ok+c.halt.bad) {
		why := fmt.Sprintf("%s %s %s", jobs.Plural(n, "job"), jobs.Verb(n, "has", "have"), what)
		if c.cfg.Halt.Jobs == 0 {
			why = fmt.Sprintf("%d of %d jobs %s %s", n, c.halt.ok+c.halt.bad, jobs.Verb(n, "has", "have"), what)
		}
		c.startDrain(why)
		if c.cfg.Halt.Now {
			for _, h := range c.hosts {
				c.endAttempts(h, "the run was halted")
			}
		}
		return
	}
	if was := c.halt.near; !was && c.nearHalt() {
		for _, h := range c.hosts {
			h.withdrawAll()
		}
	}
	c.halt.near = c.nearHalt()
}

// reached reports whether n results that count, of all, halt the run.
func (c *Core) reached(n, all int) bool {
	h := &c.cfg.Halt
	return h.Jobs > 0 && n >= h.Jobs || h.Percent > 0 && all >= haltLeast && float64(n)*100 >= h.Percent*float64(all)
}

// nearHalt reports whether one more result halts the run. Then hosts hold nothing ahead of
// need: they would start the next job before we have heard of the result. Who asked
// for --buffer wants them supplied all the same.
func (c *Core) nearHalt() bool {
	if c.cfg.Buffer > 0 || c.drain != "" {
		return false
	}
	n, _ := c.halt.counted(c.cfg.Halt.Of)
	return c.reached(n+1, c.halt.ok+c.halt.bad+1)
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
