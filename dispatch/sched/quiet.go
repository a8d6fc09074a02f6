package sched

import (
	"fmt"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Quiet hours (B7): in the host's own local time nothing is started there; what
// runs goes on, and what is buffered comes back for the others. The host's zone is
// that of its latest hello, so that a change of the clocks counts from the next one.

const (
	day       = 24 * time.Hour
	mostZone  = 14 * 60 * 60 // seconds
	noQuieter = time.Duration(-1)
)

// timeOfDay returns how long ago midnight was in a zone so many seconds east of UTC.
func timeOfDay(at jobs.Stamp, zone int) time.Duration {
	d := (time.Duration(at)%day + time.Duration(zone)*time.Second) % day
	return (d + day) % day
}

// quietLeft returns for how long it is quiet from a time of day on, spans that
// follow on each other taken together: 0 when it is not, a day when it always is.
func quietLeft(spans []hosts.Quiet, at time.Duration) time.Duration {
	var left time.Duration
	for left < day {
		more := time.Duration(0)
		for _, q := range spans {
			more = max(more, spanLeft(q, (at+left)%day))
		}
		if more == 0 {
			return left
		}
		left += more
	}
	return day
}

// spanLeft returns how much of one span is left, 0 outside of it.
func spanLeft(q hosts.Quiet, at time.Duration) time.Duration {
	switch {
	case q.From < q.To && at >= q.From && at < q.To:
		return q.To - at
	case q.From > q.To && at >= q.From: // over midnight
		return day - at + q.To
	case q.From > q.To && at < q.To:
		return q.To - at
	}
	return 0
}

// untilQuiet returns how long it is to the next beginning of a span; noQuieter
// when there is none.
func untilQuiet(spans []hosts.Quiet, at time.Duration) time.Duration {
	next := noQuieter
	for _, q := range spans {
		if d := (q.From - at + 2*day) % day; q.From != q.To && (next < 0 || d < next) {
			next = d
		}
	}
	return next
}

// keepQuiet lets quiet hours begin and end.
func (c *Core) keepQuiet() {
	for _, h := range c.hosts {
		if len(h.spec.Quiet) == 0 || !h.answers() {
			continue
		}
		at := timeOfDay(c.now.Wall, h.hello.ZoneSeconds)
		left := quietLeft(h.spec.Quiet, at)
		was := h.quiet
		h.quiet, h.quietTurn = left > 0, c.now.Mono+left
		if !h.quiet {
			h.quietTurn = c.now.Mono + untilQuiet(h.spec.Quiet, at)
		}
		if h.quiet {
			h.quietEnd = clockTime(at+left, left)
		}
		switch {
		case h.quiet && !was:
			h.reserved = nil
			h.withdrawAll()
			goesOn := ""
			if h.running > 0 {
				goesOn = "; its running jobs go on"
			}
			c.say(h.spec.Name, 0, "%s %s%s", h.spec.Name, h.restsUntil(), goesOn)
		case was && !h.quiet:
			c.say(h.spec.Name, 0, "%s is used again: its quiet hours are over", h.spec.Name)
		}
	}
}

// clockTime writes the end of a rest, the host's local time: "06:00"; "" when the
// rest has no end.
func clockTime(at, left time.Duration) string {
	if left >= day {
		return ""
	}
	at %= day
	return fmt.Sprintf("%02d:%02d", at/time.Hour, at%time.Hour/time.Minute)
}

func (h *host) restsUntil() string {
	if h.quietEnd == "" {
		return "rests all day (quiet hours)"
	}
	return "rests until " + h.quietEnd + " (quiet hours)"
}
