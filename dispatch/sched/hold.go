package sched

import (
	"fmt"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// hold is a reason why a host that is up may not use any slot.
type hold uint8

const (
	notHeld    hold = iota
	wedged          // its file system does not answer
	owned           // a person uses it, or asks that it is left alone
	unmeasured      // it has a floor and has not measured yet
	receiving       // files that every job gets are not there yet
	atLoad
	lowMemory
	lowDisk
	unknownDisk // min_disk_free, and no answer of its file system yet
	sharing     // other runs and users have all slots
	yielding    // others use it, or our own jobs use more than a core each
)

// holdState is what decides whether a host that is up starts nothing.
type holdState struct {
	hold           hold
	reportedHold   hold          // as last reported
	holdReportedAt time.Duration // 0: never

	measured           bool  // a heartbeat came over the present link, be it the early one
	diskFree           int64 // bytes, last known over the present link; -1: not known
	memUnknownReported bool  // min_mem_free has no effect, and that was reported

	quiet         bool
	quietEnd      string        // local time of the host; "": it has no end
	quietChangeAt time.Duration // when quiet hours begin or end next
}

// wedgeAfter is how long the file system of a host's attempts may take to answer
// before the host starts nothing more: a job could not even make its claim.
const wedgeAfter = 10 * time.Second

// floored names the floor that a host is below. A host that has a floor is held
// until it has measured: all its slots would be filled before the first heartbeat. Free disk
// space that is not known in time is assumed to be unchanged.
func (h *host) floor() hold {
	s, b := h.spec, &h.heartbeat
	switch {
	case b.FSDelay >= wedgeAfter:
		return wedged
	case b.Owner.Who != "":
		return owned
	case b.Receives || !h.measured && h.hello != nil && h.hello.Receives:
		return receiving
	case s.MaxLoad <= 0 && s.MinMemFree <= 0 && s.MinDiskFree <= 0:
		return notHeld
	case !h.measured:
		return unmeasured
	case s.MaxLoad > 0 && b.Load[0] >= s.MaxLoad:
		return atLoad
	case s.MinMemFree > 0 && b.MemFree >= 0 && b.MemFree < s.MinMemFree:
		return lowMemory
	case s.MinDiskFree > 0 && h.diskFree < 0:
		return unknownDisk
	case s.MinDiskFree > 0 && h.diskFree < s.MinDiskFree:
		return lowDisk
	}
	return notHeld
}

// take keeps what a heartbeat says for the floors.
func (h *host) storeMeasurement(b *hosts.Beat) {
	h.heartbeat, h.measured = *b, true
	if b.DiskFree >= 0 {
		h.diskFree = b.DiskFree
	}
}

// holdWhy describes for people what holds the host, to follow its name; "" if nothing does.
func (h *host) holdWhy() string {
	s, b := h.spec, &h.heartbeat
	why := ""
	switch h.hold {
	case notHeld:
		return ""
	case yielding:
		if h.others < 0.5 {
			why = fmt.Sprintf("our jobs there use %.1f cores more than one per slot", h.excess)
			break
		}
		if h.hello != nil && h.hello.Cores > 0 {
			return fmt.Sprintf("reduces its slots: others use %.1f of its %s", h.others, jobs.Plural(h.hello.Cores, "core"))
		}
		return fmt.Sprintf("reduces its slots: others use %.1f cores", h.others)
	case sharing:
		return h.sharedWhy()
	case wedged:
		why = "the file system of its attempts has not answered for " + short(b.FSDelay)
	case unmeasured:
		why = "its first measurement has not arrived yet"
	case owned:
		if why = b.Owner.Who; b.Owner.Suspend {
			why += "; jobs there are suspended"
		}
	case receiving:
		if why = "it " + b.Files; b.Files == "" {
			why = "the files that its jobs get are not there yet"
		}
	case atLoad:
		why = fmt.Sprintf("its load of %.1f is %s max_load %g", b.Load[0], compareWord(b.Load[0], s.MaxLoad), s.MaxLoad)
	case lowMemory:
		why = fmt.Sprintf("its free memory of %s is below min_mem_free %s", size(b.MemFree), size(s.MinMemFree))
	case lowDisk:
		why = fmt.Sprintf("its free disk space of %s is below min_disk_free %s", size(h.diskFree), size(s.MinDiskFree))
	case unknownDisk:
		why = "its free disk space is not known yet (min_disk_free)"
	}
	return "starts nothing: " + why
}

func compareWord(load, limit float64) string {
	if load-limit < 0.05 {
		return "at"
	}
	return "over"
}

// holdEvery is the least time between two reports of a host's holds.
const reportInterval = time.Minute

// tellHolds reports when a host begins or ceases to start nothing while jobs wait for
// it. What has changed back within holdEvery is not told.
func (c *Core) reportHolds() {
	for _, h := range c.hosts {
		// These matter to what runs there, too, and when nothing more is launched.
		wedge := (h.hold == wedged || h.reportedHold == wedged || h.hold == owned || h.reportedHold == owned) && h.linked && h.open > 0
		if h.hold == h.reportedHold || h.hold == unmeasured || h.hold == receiving || !wedge && (c.closed() || !h.acceptsJobs()) ||
			h.holdReportedAt > 0 && c.now.Mono-h.holdReportedAt < reportInterval || h.hold != notHeld && !wedge && !c.wanted(h) {
			continue
		}
		h.reportedHold, h.holdReportedAt = h.hold, max(c.now.Mono, 1)
		what := h.holdWhy()
		if what == "" {
			what = "starts jobs again"
		}
		c.logf(h.spec.Name, 0, "%s %s", h.spec.Name, what)
	}
}

// wanted reports whether a ready job could run on the host.
func (c *Core) wanted(h *host) bool {
	for _, cl := range c.queue.list {
		if cl.epoch != c.queue.epoch {
			c.fit(cl)
		}
		if cl.fits[h.index] {
			return true
		}
	}
	return false
}

// Quiet hours: in the host's own local time nothing is started there; what
// runs continues, and what is buffered comes back for the others. The host's zone is
// that of its latest hello, so that a change of the clocks counts from the next one.

const (
	day          = 24 * time.Hour
	maxZone      = 14 * 60 * 60 // seconds
	noQuietAhead = time.Duration(-1)
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
	next := noQuietAhead
	for _, q := range spans {
		if d := (q.From - at + 2*day) % day; q.From != q.To && (next < 0 || d < next) {
			next = d
		}
	}
	return next
}

// keepQuiet lets quiet hours begin and end.
func (c *Core) updateQuietHours() {
	for _, h := range c.hosts {
		if len(h.spec.Quiet) == 0 || !h.answers() {
			continue
		}
		at := timeOfDay(c.now.Wall, h.hello.ZoneSeconds)
		left := quietLeft(h.spec.Quiet, at)
		was := h.quiet
		h.quiet, h.quietChangeAt = left > 0, c.now.Mono+left
		if !h.quiet {
			h.quietChangeAt = c.now.Mono + untilQuiet(h.spec.Quiet, at)
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
				goesOn = "; its running jobs continue"
			}
			c.logf(h.spec.Name, 0, "%s %s%s", h.spec.Name, h.quietText(), goesOn)
		case was && !h.quiet:
			c.logf(h.spec.Name, 0, "%s is used again: its quiet hours are over", h.spec.Name)
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

func (h *host) quietText() string {
	if h.quietEnd == "" {
		return "starts nothing all day (quiet hours)"
	}
	return "rests until " + h.quietEnd + " (quiet hours)"
}
