package sched

import "dcs-tui/hosts"

// Quiet hours. In the quiet hours of a host, in its local time, no jobs start there. Running jobs
// continue, and buffered jobs are withdrawn for other hosts. The zone is that of the latest heartbeat,
// so a change to or from daylight saving time takes effect within seconds.

// updateQuietHours begins and ends quiet hours.
func (c *Core) updateQuietHours() {
	for h := range c.visits() {
		if len(h.spec.Quiet) == 0 || !h.isAnswering() {
			continue
		}
		at := hosts.TimeOfDay(c.now.Wall, h.hello.ZoneSeconds)
		left := hosts.QuietLeft(h.spec.Quiet, at)
		was := h.isQuiet
		h.isQuiet, h.quietChangeAt = left > 0, c.now.Mono+left
		if !h.isQuiet {
			h.quietChangeAt = c.now.Mono + hosts.UntilQuiet(h.spec.Quiet, at)
		}
		if h.isQuiet {
			h.quietText = "starts nothing: " + hosts.QuietText(at, left)
		}
		switch {
		case h.isQuiet && !was:
			h.reserved = nil
			h.withdrawAll()
			goesOn := ""
			if h.runningSlots > 0 {
				goesOn = "; its running jobs continue"
			}
			c.logf(h.spec.Name, 0, "%s %s%s", h.spec.Name, h.quietText, goesOn)
		case was && !h.isQuiet:
			c.logf(h.spec.Name, 0, "%s is used again: its quiet hours are over", h.spec.Name)
		}
	}
}
