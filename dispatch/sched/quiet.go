package sched

import (
	"fmt"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Quiet hours. In the quiet hours of a host, in its local time, no jobs start there. Running jobs
// continue, and buffered jobs are withdrawn for other hosts. The zone is that of the latest heartbeat,
// so a change to or from daylight saving time takes effect within seconds.

const (
	oneDay       = 24 * time.Hour
	noQuietAhead = time.Duration(-1)
)

// timeOfDay returns the time since midnight in a zone that is the given number of seconds east of
// UTC.
func timeOfDay(at jobs.Stamp, zone int) time.Duration {
	d := (time.Duration(at)%oneDay + time.Duration(zone)*time.Second) % oneDay
	return (d + oneDay) % oneDay
}

// quietLeft returns how long quiet hours last from a time of day on. Adjoining spans count as one.
// It is 0 outside of quiet hours, and a day if they never end.
func quietLeft(spans []hosts.Quiet, at time.Duration) time.Duration {
	var left time.Duration
	for left < oneDay {
		more := time.Duration(0)
		for _, q := range spans {
			more = max(more, spanLeft(q, (at+left)%oneDay))
		}
		if more == 0 {
			return left
		}
		left += more
	}
	return oneDay
}

// spanLeft returns how much of a span is left, or 0 outside of it.
func spanLeft(q hosts.Quiet, at time.Duration) time.Duration {
	switch {
	case q.From < q.To && at >= q.From && at < q.To:
		return q.To - at
	case q.From > q.To && at >= q.From: // over midnight
		return oneDay - at + q.To
	case q.From > q.To && at < q.To:
		return q.To - at
	}
	return 0
}

// untilQuiet returns the time until the next span begins, or noQuietAhead.
func untilQuiet(spans []hosts.Quiet, at time.Duration) time.Duration {
	next := noQuietAhead
	for _, q := range spans {
		if d := (q.From - at + 2*oneDay) % oneDay; q.From != q.To && (next < 0 || d < next) {
			next = d
		}
	}
	return next
}

// updateQuietHours begins and ends quiet hours.
func (c *Core) updateQuietHours() {
	for h := range c.visits() {
		if len(h.spec.Quiet) == 0 || !h.isAnswering() {
			continue
		}
		at := timeOfDay(c.now.Wall, h.hello.ZoneSeconds)
		left := quietLeft(h.spec.Quiet, at)
		was := h.isQuiet
		h.isQuiet, h.quietChangeAt = left > 0, c.now.Mono+left
		if !h.isQuiet {
			h.quietChangeAt = c.now.Mono + untilQuiet(h.spec.Quiet, at)
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
