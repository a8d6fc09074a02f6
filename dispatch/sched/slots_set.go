package sched

import "dcs-tui/jobs"

// SetSlots gives a host so many slots from now on, more or fewer than its rule says (D7);
// 0 gives it back to its rule. What runs beyond them goes on. It holds until it is taken
// back: when the host comes back, and for every later dispatcher.
type SetSlots struct {
	Host  string
	Slots int
	By    string // who asked, for the event log; "": is not said
}

func (SetSlots) event() {}

// setSlots returns why it does nothing, "" if it does.
func (c *Core) setSlots(e SetSlots) (refused string) {
	h := c.byName[e.Host]
	n := min(max(e.Slots, 0), jobs.MaxSlots)
	switch {
	case h == nil:
		return c.noHost(e.Host)
	case n == h.given && n == 0:
		return e.Host + " has the slots of its rule already"
	case n == h.given:
		return e.Host + " has " + jobs.Plural(n, "slot") + " already"
	}
	was := h.slots()
	h.given = n
	by := ""
	if e.By != "" {
		by = ": asked for by " + e.By
	}
	switch {
	case n == 0 && h.hello == nil:
		c.say(h.spec.Name, 0, "%s gets the slots of its rule again%s", h.spec.Name, by)
	case n == 0:
		c.say(h.spec.Name, 0, "%s gets the slots of its rule again, %d%s", h.spec.Name, h.slots(), by)
	case was == 0:
		c.say(h.spec.Name, 0, "%s gets %s%s", h.spec.Name, jobs.Plural(n, "slot"), by)
	default:
		c.say(h.spec.Name, 0, "%s gets %s instead of %d%s", h.spec.Name, jobs.Plural(n, "slot"), was, by)
	}
	c.keepWish(h)
	c.queue.capacityChanged()
	return ""
}

// most is how many slots the host has at most, by its rule or as it was given: a job that
// needs more than it has for a time waits, and does not fail. 0: not known.
func (h *host) most() int {
	rule := h.rule()
	if rule == 0 {
		return 0
	}
	return max(rule, h.given)
}
