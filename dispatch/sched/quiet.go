package sched

import (
	"fmt"
	"time"

	"dcs-tui/hosts"
)

// Quiet hours. In the quiet hours of a host, in its local time, no jobs start there. Running jobs
// continue, and buffered jobs are withdrawn for other hosts. The zone is that of the latest heartbeat,
// so a change to or from daylight saving time takes effect within seconds.

const oneDay = 24 * time.Hour

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
			h.quietEnd = clockTime(at+left, left)
		}
		switch {
		case h.isQuiet && !was:
			h.reserved = nil
			h.withdrawAll()
			goesOn := ""
			if h.runningSlots > 0 {
				goesOn = "; its running jobs continue"
			}
			c.logf(h.spec.Name, 0, "%s %s%s", h.spec.Name, h.quietText(), goesOn)
		case was && !h.isQuiet:
			c.logf(h.spec.Name, 0, "%s is used again: its quiet hours are over", h.spec.Name)
		}
	}
}

// clockTime formats the end of quiet hours in the host's local time ("06:00"). It returns "" if
// they have no end.
func clockTime(at, left time.Duration) string {
	if left >= oneDay {
		return ""
	}
	at %= oneDay
	return fmt.Sprintf("%02d:%02d", at/time.Hour, at%time.Hour/time.Minute)
}

func (h *host) quietText() string {
	if h.quietEnd == "" {
		return "starts nothing all day (quiet hours)"
	}
	return "starts nothing until " + h.quietEnd + " (quiet hours)"
}
