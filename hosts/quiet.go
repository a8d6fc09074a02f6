package hosts

import (
	"time"

	"dcs-tui/jobs"
)

// Quiet is a daily time without launches, in the host's local time. It may span midnight.
type Quiet struct{ From, To time.Duration }

const (
	oneDay = 24 * time.Hour
	// NoQuietAhead is the result of UntilQuiet for a host without quiet hours.
	NoQuietAhead = time.Duration(-1)
)

// TimeOfDay returns the time since midnight in a zone that is the given number of seconds east of
// UTC.
func TimeOfDay(at jobs.Stamp, zone int) time.Duration {
	d := (time.Duration(at)%oneDay + time.Duration(zone)*time.Second) % oneDay
	return (d + oneDay) % oneDay
}

// QuietLeft returns how long quiet hours last from a time of day on. Adjoining spans count as one.
// It is 0 outside of quiet hours, and a day if they never end.
func QuietLeft(spans []Quiet, at time.Duration) time.Duration {
	var left time.Duration
	for left < oneDay {
		more := time.Duration(0)
		for _, q := range spans {
			more = max(more, q.left((at+left)%oneDay))
		}
		if more == 0 {
			return left
		}
		left += more
	}
	return oneDay
}

// left returns how much of the time is left, or 0 outside of it.
func (q Quiet) left(at time.Duration) time.Duration {
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

// UntilQuiet returns the time until the next span begins, or NoQuietAhead.
func UntilQuiet(spans []Quiet, at time.Duration) time.Duration {
	next := NoQuietAhead
	for _, q := range spans {
		if d := (q.From - at + 2*oneDay) % oneDay; q.From != q.To && (next < 0 || d < next) {
			next = d
		}
	}
	return next
}
