package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// lifetime holds the state of the run as a whole, and what ends it.
type lifetime struct {
	begun    bool
	beganAt  jobs.Stamp
	last     bool   // no more jobs will be submitted
	holds    Holder // reasons of the program to launch nothing
	drain    string // why nothing more is launched; "": the run does not drain
	stopped  bool
	stopWhy  string
	finished bool
	fenced   bool
	halt     halt
	anyUp    time.Duration // when a host was last usable, for Config.GiveUp
	// Until when the end waits for the fate of lost attempts; 0: the run does not end yet.
	waitLostUntil time.Duration
}

// finishRun finishes the run when nothing is left to do.
func (c *Core) finishRun() {
	if c.fenced {
		c.finishWith(Fenced, "another dispatcher owns the run now")
		return
	}
	if c.finished || c.stopped || len(c.requests) > 0 {
		return
	}
	left := c.table.Unfinished()
	if c.last && left == 0 {
		c.giveUpLosers()
	}
	if left > 0 {
		c.waitLostUntil = 0
	}
	if left > 0 && c.drain == "" {
		c.provisions.endBy = 0
	}
	switch {
	case c.last && left == 0 && len(c.inFlight) == 0:
		if c.waitsForLost() || c.waitsForInstances() {
			return
		}
		left := joinTexts(c.leftBehind(), c.instancesLeft())
		if !c.table.Ended {
			c.emit(jobs.Record{Kind: jobs.KindEnded, Reason: left})
		}
		c.finishWith(AllDone, left)
	case c.drain != "" && len(c.inFlight) == 0:
		if !c.waitsForInstances() {
			c.finishWith(Drained, joinTexts(c.drain, c.instancesLeft()))
		}
	case left > 0 && c.hasNoUsableHost():
		c.finishWith(NoHosts, joinTexts(c.whyNoHosts(), c.instancesLeft()))
	}
}

// waitLostTime is how long the end of a run waits until hosts that respond have reported the fate
// of lost attempts.
const waitLostTime = time.Minute

// waitsForLost reports whether lost attempts may still be alive on hosts that respond.
func (c *Core) waitsForLost() bool {
	if c.waitLostUntil == 0 {
		c.waitLostUntil = c.now.Mono + waitLostTime
	}
	return c.now.Mono < c.waitLostUntil && slices.ContainsFunc(c.hosts, func(h *host) bool { return h.linked && len(h.orphans) > 0 })
}

// IsOutdated reports whether work was added while f waited for the journal. The core returns
// another Finish when that work is done.
func (c *Core) IsOutdated(f Finish) bool {
	return f.How == AllDone && c.drain == "" && c.table.Unfinished() > 0
}

// finishWith returns a Finish from this Step, unless there was one.
func (c *Core) finishWith(how Finished, why string) {
	if !c.finished {
		c.finished = true
		c.finish = append(c.finish, Finish{How: how, Why: why})
	}
}

// hasNoUsableHost reports whether no host could be used for Config.GiveUp. It returns true
// immediately if every host waits for a person and no attempt is open.
func (c *Core) hasNoUsableHost() bool {
	if c.instancesMayCome() {
		c.anyUp = c.now.Mono
		return false
	}
	// The set of hosts cannot change.
	hopeless := len(c.hosts) > 0 && c.failUnsatisfiableAt == 0 && len(c.provisions.providers) == 0
	for _, h := range c.hosts {
		if h.isAnswering() && !h.removed {
			c.anyUp = c.now.Mono
			return false
		}
		hopeless = hopeless && (h.state == Disabled && !h.known || h.ineligible != "")
	}
	return hopeless && len(c.inFlight) == 0 || c.now.Mono-c.anyUp >= c.cfg.GiveUp
}

func (c *Core) whyNoHosts() string {
	var why []string
	for _, p := range c.provisions.providers {
		if p.problem != "" {
			why = append(why, p.problem)
		}
	}
	if len(c.hosts) == 0 && why == nil {
		return "there is no host"
	}
	for _, h := range c.hosts {
		if h.reason != "" && len(why) < 3 {
			why = append(why, h.reason)
		}
	}
	if more := len(c.hosts) + len(c.provisions.providers) - len(why); more > 0 && len(why) > 0 {
		why = append(why, fmt.Sprintf("and %d more", more))
	}
	return "no host could be used: " + strings.Join(why, "; ")
}

// leftBehind names the attempts that may still be alive: lost ones whose hosts have not reported
// their fate.
func (c *Core) leftBehind() string {
	var parts []string
	for _, h := range c.everyHost() {
		if len(h.orphans) == 0 {
			continue
		}
		ids := make([]string, 0, 5)
		for i, id := range h.orphans {
			if i == 4 {
				ids = append(ids, "…")
				break
			}
			ids = append(ids, id.String())
		}
		parts = append(parts, strings.Join(ids, ", ")+" on "+h.spec.Name)
	}
	if parts == nil {
		return ""
	}
	return "processes of lost attempts may still be alive: " + strings.Join(parts, "; ")
}

// joinTexts joins two texts, each of which may be empty.
func joinTexts(a, b string) string {
	if a != "" && b != "" {
		a += "; "
	}
	return a + b
}

// Halt describes when the run stops launching because of its results. The zero value means never.
type Halt struct {
	Of      HaltOf
	Jobs    int     // number of results that count; 0: see Percent
	Percent float64 // share of results that count among all results, 0 to 100
	Now     bool    // running attempts are ended, too; their jobs are queued again
}

// HaltOf selects the results that count for a Halt.
type HaltOf uint8

const (
	HaltOfFailures  HaltOf = iota // failed and timed-out jobs
	HaltOfSuccesses               // succeeded jobs
	HaltOfAll                     // all of these
)

// minHaltResults is the number of results from which a percentage counts.
const minHaltResults = 10

// halt counts the results of this dispatcher. A resumed run counts from zero; otherwise it would
// halt again at once.
type halt struct {
	ok, bad int
	near    bool // nearHalt after the last event
	now     bool // running attempts were ended, as --halt now requires
}

func (h *halt) count(s jobs.JobState) {
	switch s {
	case jobs.Succeeded:
		h.ok++
	case jobs.Failed, jobs.TimedOut:
		h.bad++
	}
}

// counted returns the number of results that count, and a noun for them.
func (h *halt) counted(of HaltOf) (n int, what string) {
	switch of {
	case HaltOfSuccesses:
		return h.ok, "succeeded"
	case HaltOfAll:
		return h.ok + h.bad, "ended"
	}
	return h.bad, "failed"
}

// runHalted is the reason for ending attempts by --halt now.
const runHalted = "the run was halted"

// checkHalt drains the run when its Halt is reached, before the slot of the job that has just
// ended is used again.
func (c *Core) checkHalt() {
	if c.drain != "" {
		return
	}
	if n, what := c.halt.counted(c.cfg.Halt.Of); c.hasReachedHalt(n, c.halt.ok+c.halt.bad) {
		why := fmt.Sprintf("%s %s %s", jobs.Plural(n, "job"), jobs.Verb(n, "has", "have"), what)
		if c.cfg.Halt.Jobs == 0 {
			why = fmt.Sprintf("%d of %d jobs %s %s", n, c.halt.ok+c.halt.bad, jobs.Verb(n, "has", "have"), what)
		}
		Drain{why}.carryOut(c)
		if c.cfg.Halt.Now {
			c.halt.now = true
			for _, h := range c.hosts {
				c.endAttempts(h, runHalted)
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

// hasReachedHalt reports whether n results that count, of all results, halt the run.
func (c *Core) hasReachedHalt(n, all int) bool {
	h := &c.cfg.Halt
	return h.Jobs > 0 && n >= h.Jobs || h.Percent > 0 && all >= minHaltResults && float64(n)*100 >= h.Percent*float64(all)
}

// nearHalt reports whether one more result halts the run. Hosts then get no jobs ahead of need,
// because they would start the next job before that result arrives here. With --buffer they get
// them nevertheless.
func (c *Core) nearHalt() bool {
	if c.cfg.Buffer > 0 || c.drain != "" {
		return false
	}
	n, _ := c.halt.counted(c.cfg.Halt.Of)
	return c.hasReachedHalt(n+1, c.halt.ok+c.halt.bad+1)
}

// carryOut stops launching until an EndDrain, and withdraws buffered jobs.
func (e Drain) carryOut(c *Core) (refused string) {
	switch {
	case c.drain != "":
		return "the run drains already: " + c.drain
	case c.stopped:
		return stoppedAlready
	}
	c.drain = cmp.Or(e.Why, "asked to drain")
	c.logf("", 0, "draining: %s", c.drain)
	for _, h := range c.hosts {
		h.withdrawAll()
	}
	return ""
}

// The reasons for refusing requests of people.
const (
	notHeldBack    = "nothing holds launching back"
	drainIsOver    = "the drain is over and the dispatcher is ending; resume the run to continue it"
	pausedAlready  = "launching is paused already"
	stoppedAlready = "the dispatcher is being stopped already"
)

// carryOut continues launching, unless the drain has finished. The results for --halt are counted
// from zero again; otherwise the run would drain again at once.
func (e EndDrain) carryOut(c *Core) (refused string) {
	switch {
	case c.drain == "" || e.Of != "" && e.Of != c.drain:
		return notHeldBack
	case c.finished || c.stopped:
		return drainIsOver
	}
	c.drain, c.halt = "", halt{}
	c.logf("", 0, "launching continues: %s", cmp.Or(e.Why, "asked to continue"))
	return ""
}

// carryOut ends the dispatcher and leaves attempts running.
func (e Stop) carryOut(c *Core) (refused string) {
	if c.stopped {
		return stoppedAlready
	}
	c.stopped, c.stopWhy = true, cmp.Or(e.Why, "asked to stop")
	c.finishWith(Stopped, c.stopWhy)
	return ""
}

// Stopped reports whether a person has stopped the dispatcher, and why.
func (c *Core) Stopped() (why string, stopped bool) { return c.stopWhy, c.stopped }
