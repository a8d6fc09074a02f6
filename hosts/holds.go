package hosts

import (
	"fmt"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// LimitReached returns which of max_load, min_mem_free, and min_disk_free keeps the host from starting jobs,
// by a measurement. diskFree is its free disk space, -1 if it is not known.
func (h *Host) LimitReached(b *Heartbeat, diskFree int64) jobs.HostHold {
	switch {
	case h.MaxLoad > 0 && b.Load[0] >= h.MaxLoad:
		return jobs.HeldByLoad
	case h.MinMemFree > 0 && b.MemFree >= 0 && b.MemFree < h.MinMemFree:
		return jobs.HeldByMemory
	case h.MinDiskFree > 0 && diskFree < 0:
		return jobs.HeldByUnknownDisk
	case h.MinDiskFree > 0 && diskFree < h.MinDiskFree:
		return jobs.HeldByDisk
	}
	return jobs.NotHeld
}

// LimitText describes a result of LimitReached, as a continuation of "starts nothing: ". It returns "" for
// other holds.
func (h *Host) LimitText(hold jobs.HostHold, b *Heartbeat, diskFree int64) string {
	switch hold {
	case jobs.HeldByLoad:
		relation := "over"
		if b.Load[0]-h.MaxLoad < 0.05 {
			relation = "at"
		}
		return fmt.Sprintf("its load of %.1f is %s max_load %g", b.Load[0], relation, h.MaxLoad)
	case jobs.HeldByMemory:
		return fmt.Sprintf("its free memory of %s is below min_mem_free %s", text.Size(b.MemFree),
			text.Size(h.MinMemFree))
	case jobs.HeldByDisk:
		return fmt.Sprintf("its free disk space of %s is below min_disk_free %s", text.Size(diskFree),
			text.Size(h.MinDiskFree))
	case jobs.HeldByUnknownDisk:
		return "its free disk space is not known yet (min_disk_free)"
	}
	return ""
}

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

// QuietText describes quiet hours that last for left from a time of day on, as a continuation of "starts
// nothing: ".
func QuietText(at, left time.Duration) string {
	if left >= oneDay {
		return "its quiet hours last all day"
	}
	at = (at + left) % oneDay
	return fmt.Sprintf("its quiet hours last until %02d:%02d", at/time.Hour, at%time.Hour/time.Minute)
}
