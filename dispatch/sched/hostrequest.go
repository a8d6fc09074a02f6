package sched

import (
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// hostRequest holds the requests of people about a host. Like those about the whole run, they remain
// in effect until they are withdrawn. They are recorded, and the next dispatcher applies them.
type hostRequest struct {
	asked jobs.HostSetting
	// When the jobs of a stopped host are ended, after their warning; 0: not planned.
	warnBy time.Duration
}

// isDrained reports whether a person took the host out of use.
func (h *host) isDrained() bool { return h.asked.Use != jobs.HostUsed }

// isStopped reports whether a person also ended the jobs of the host.
func (h *host) isStopped() bool { return h.asked.Use == jobs.HostStopped }

// recordHostRequest records the current requests about a host, unless they are recorded already.
func (c *Core) recordHostRequest(h *host) {
	if h.asked != c.table.Hosts[h.spec.Name] {
		c.emit(jobs.Record{Kind: jobs.KindHost, Host: h.spec.Name, Count: int(h.asked.Use), Slot: int(h.asked.Slots)})
	}
}

func (e Pause) carryOut(c *Core) (refused string) {
	r := jobs.Record{Kind: jobs.KindPause}
	switch {
	case e.On && c.table.Paused:
		return whyPausedAlready
	case e.On:
		r.Count = 1
	case !c.table.Paused:
		return whyNotPaused
	}
	c.emit(r)
	return ""
}

// applyHostRequests applies the recorded requests when a dispatcher begins. It reports them, so
// that a host that is up and accepts no jobs does not surprise anyone.
func (c *Core) applyHostRequests() {
	if c.table.Paused {
		c.logf("", 0, "launching is still paused, as a person asked")
	}
	for h := range c.everyHost() {
		c.applyHostRequest(h)
	}
}

// applyHostRequest applies the requests about a host.
func (c *Core) applyHostRequest(h *host) {
	h.asked = c.table.Hosts[h.spec.Name]
	h.asked.Slots = min(h.asked.Slots, jobs.MaxSlots)
	var still []string
	switch h.asked.Use {
	case jobs.HostDrained:
		still = append(still, "is still drained")
	case jobs.HostStopped:
		still = append(still, "is still stopped")
	}
	if n := int(h.asked.Slots); n > 0 {
		still = append(still, "still has "+text.Plural(n, "slot"))
	}
	if still != nil {
		c.logf(h.spec.Name, 0, "%s %s, as a person asked", h.spec.Name, strings.Join(still, " and "))
	}
}

// carryOut drains a host, stops it, or uses it again.
func (e DrainHost) carryOut(c *Core) (refused string) {
	h := c.byName[e.Host]
	switch {
	case h == nil:
		return c.noHostText(e.Host)
	case !e.On && !h.isDrained():
		return e.Host + " is in use already"
	case e.On && e.Now && h.isStopped():
		return e.Host + " is stopped already"
	case e.On && !e.Now && h.isDrained():
		return e.Host + " starts nothing already"
	}
	switch {
	case !e.On:
		h.asked.Use = jobs.HostUsed
	case e.Now:
		h.asked.Use = jobs.HostStopped
	default:
		h.asked.Use = jobs.HostDrained
	}
	c.recordHostRequest(h)
	if !e.On {
		return ""
	}
	h.reserved = nil
	h.withdrawAll()
	if !e.Now {
		return ""
	}
	if !h.linked && h.numOpen > 0 {
		c.logf(h.spec.Name, 0, "%s is stopped; %s", h.spec.Name, c.silentText(h))
	}
	h.warnBy = c.now.Mono
	if c.cfg.WarnTime > 0 {
		h.warnAttempts()
		h.warnBy += c.cfg.WarnTime
	}
	c.endWarned(h)
	return ""
}

// endWarned ends the jobs of a stopped host when the time after their warning is over.
func (c *Core) endWarned(h *host) {
	if h.isStopped() && h.warnBy <= c.now.Mono {
		c.endAttempts(h, "the host is being drained")
	}
}

// endAttempts ends the attempts of a host. Their jobs are queued again, without charging a try.
func (c *Core) endAttempts(h *host, why string) {
	for f := h.oldest; f != nil; f = f.nextOnHost {
		c.endAttempt(f, why)
	}
}

// endAttempt ends one attempt like endAttempts. It ignores an attempt that is being withdrawn,
// which has probably not started.
func (c *Core) endAttempt(f *inFlight, why string) {
	if !f.killed && !f.withdrawn {
		f.runElsewhere = true
		c.killAttempt(f, why)
	}
}

// SetSlots gives a host a number of slots instead of that of its rule. 0 restores the rule. Running
// jobs beyond that number continue. The request remains in effect until it is withdrawn, even under
// later dispatchers.
type SetSlots struct {
	Host     string
	Slots    int
	Relative bool   // Slots is added to the number of slots that the host has
	By       string // who asked, for the event log; may be ""
}

func (e SetSlots) carryOut(c *Core) (refused string) {
	h := c.byName[e.Host]
	if h == nil {
		return c.noHostText(e.Host)
	}
	n := min(max(e.Slots, 0), jobs.MaxSlots)
	if e.Relative {
		if _, isDone := c.table.Adjusted[c.cause]; isDone {
			return "" // by an earlier dispatcher, which has not answered
		}
		if h.slots() == 0 {
			return e.Host + " has not reported yet how many slots it has"
		}
		n = min(h.slots()+e.Slots, jobs.MaxSlots)
		if n < 1 {
			return e.Host + " needs at least 1 slot; drain it to start nothing there"
		}
	}
	switch {
	case n == int(h.asked.Slots) && n == 0:
		return e.Host + " has the slots of the inventory already"
	case n == int(h.asked.Slots):
		return e.Host + " has " + text.Plural(n, "slot") + " already"
	}
	was := h.slots()
	h.asked.Slots = int32(n)
	by := ""
	if e.By != "" {
		by = ": asked for by " + e.By
	}
	switch now := h.slots(); {
	case n == 0 && h.hello == nil:
		c.logf(h.spec.Name, 0, "%s gets the slots of the inventory again%s", h.spec.Name, by)
	case n == 0:
		c.logf(h.spec.Name, 0, "%s gets the slots of the inventory again, %d%s", h.spec.Name, now, by)
	case was == 0:
		c.logf(h.spec.Name, 0, "%s gets %s%s", h.spec.Name, text.Plural(now, "slot"), by)
	case was == now:
		c.logf(h.spec.Name, 0, "%s keeps its %s%s", h.spec.Name, text.Plural(now, "slot"), by)
	default:
		c.logf(h.spec.Name, 0, "%s gets %s instead of %d%s", h.spec.Name, text.Plural(now, "slot"), was, by)
	}
	c.recordHostRequest(h)
	c.queue.capacityChanged(h)
	return ""
}

// noHostText returns the error text for a host that is not in the inventory.
func (c *Core) noHostText(name string) string {
	return hosts.UnknownText(name, text.Each(c.hosts, func(h *host) string { return h.spec.Name }))
}
