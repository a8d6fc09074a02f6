package sched

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// end sees whether the core has nothing left to do.
func (c *Core) end() {
	if c.fenced {
		c.conclude(Fenced, "another dispatcher owns the run now")
		return
	}
	if c.finished || c.stopped || len(c.asked) > 0 {
		return
	}
	left := c.table.Unfinished()
	if c.last && left == 0 {
		c.giveUpLosers()
	}
	if left > 0 {
		c.clearUntil = 0
	}
	if left > 0 && c.drain == "" {
		c.provisions.endBy = 0
	}
	switch {
	case c.last && left == 0 && len(c.flights) == 0:
		if c.clearing() || c.instancesGo() {
			return
		}
		left := joined(c.leftBehind(), c.instancesLeft())
		if !c.table.Ended {
			c.emit(jobs.Record{Kind: jobs.KindEnded, Reason: left})
		}
		c.conclude(AllDone, left)
	case c.drain != "" && len(c.flights) == 0:
		if !c.instancesGo() {
			c.conclude(Drained, joined(c.drain, c.instancesLeft()))
		}
	case left > 0 && c.unusable():
		c.conclude(NoHosts, joined(c.whyNoHosts(), c.instancesLeft()))
	}
}

// clearingTime is how long the end of a run waits for hosts that answer to say
// what became of attempts that had been given up as lost.
const clearingTime = time.Minute

// clearing says that such an attempt may still be there (promise 4).
func (c *Core) clearing() bool {
	if c.clearUntil == 0 {
		c.clearUntil = c.now.Mono + clearingTime
	}
	for _, h := range c.hosts {
		if h.linked && len(h.missing) > 0 && c.now.Mono < c.clearUntil {
			return true
		}
	}
	return false
}

// Outdated reports whether more work was added while f waited for the journal. The core
// returns another Finish when that work is done.
func (c *Core) Outdated(f Finish) bool {
	return f.How == AllDone && c.drain == "" && c.table.Unfinished() > 0
}

func (c *Core) conclude(how Finished, why string) {
	if !c.finished {
		c.finished = true
		c.finish = append(c.finish, Finish{How: how, Why: why})
	}
}

// unusable says that no host could be used for as long as the run puts up with
// that; at once when each waits for a person and nothing of ours is out there.
func (c *Core) unusable() bool {
	if c.instancesMayCome() {
		c.anyUp = c.now.Mono
		return false
	}
	hopeless := len(c.hosts) > 0 && c.neverAt == 0 && len(c.provisions.providers) == 0 // else somebody sees to the hosts
	for _, h := range c.hosts {
		if h.answers() && !h.removed {
			c.anyUp = c.now.Mono
			return false
		}
		hopeless = hopeless && (h.state == Disabled && !h.known || h.barred != "")
	}
	return hopeless && len(c.flights) == 0 || c.now.Mono-c.anyUp >= c.cfg.GiveUp
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

// leftBehind names what may still be alive: attempts given up as lost whose
// hosts did not come back or did not say.
func (c *Core) leftBehind() string {
	var parts []string
	for _, h := range c.everyHost() {
		if len(h.missing) == 0 {
			continue
		}
		ids := make([]string, 0, 5)
		for i, id := range h.missing {
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

// joined puts two texts after each other.
func joined(a, b string) string {
	if a != "" && b != "" {
		a += "; "
	}
	return a + b
}
