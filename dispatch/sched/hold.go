package sched

import (
	"fmt"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// hold is the reason why a host that is up may not use any slot.
type hold uint8

const (
	notHeld    hold = iota
	wedged          // its file system does not respond
	owned           // a person uses it, or wants it to be left alone
	unmeasured      // it has a limit, and has not sent a measurement yet
	receiving       // the files that every job gets are still being sent
	atLoad
	lowMemory
	lowDisk
	unknownDisk // min_disk_free is set, and its file system has not responded yet
	sharing     // other runs and users have all slots
	yielding    // others use it, or our own jobs use more than a core each
)

// holdState holds the reasons why a host that is up starts nothing.
type holdState struct {
	hold           hold
	reportedHold   hold          // last reported hold
	holdReportedAt time.Duration // 0: never

	measured           bool  // a heartbeat came over the current link, possibly the early one
	diskFree           int64 // bytes, last known over the current link; -1: not known
	memUnknownReported bool  // it was reported that min_mem_free has no effect

	quiet         bool
	quietEnd      string        // local time of the host; "": it has no end
	quietChangeAt time.Duration // next beginning or end of quiet hours
}

// wedgeAfter is how long the file system of a host's attempts may take to respond before the host
// starts no more jobs. A job could not even write its claim.
const wedgeAfter = 10 * time.Second

// limitingHold returns which of the host's limits prevents it from starting jobs. A host with
// limits is held until its first measurement. Otherwise all its slots would be filled before. If
// its free disk space is not reported in time, it is assumed to be unchanged.
func (h *host) limitingHold() hold {
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

// storeMeasurement stores a heartbeat.
func (h *host) storeMeasurement(b *hosts.Heartbeat) {
	h.heartbeat, h.measured = *b, true
	if b.DiskFree >= 0 {
		h.diskFree = b.DiskFree
	}
}

// holdWhy describes why the host is held, as a continuation of its name. It returns "" if it is not
// held.
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
		why = "the file system of its attempts has not answered for " + formatDuration(b.FSDelay)
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
		why = fmt.Sprintf("its free memory of %s is below min_mem_free %s", formatBytes(b.MemFree), formatBytes(s.MinMemFree))
	case lowDisk:
		why = fmt.Sprintf("its free disk space of %s is below min_disk_free %s", formatBytes(h.diskFree), formatBytes(s.MinDiskFree))
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

// reportInterval is the shortest time between two reports of a host's holds.
const reportInterval = time.Minute

// reportHolds reports when a host stops or resumes starting jobs that wait for it. A change that is
// reversed within reportInterval is not reported.
func (c *Core) reportHolds() {
	for _, h := range c.hosts {
		// These holds also affect running jobs, so they are reported even if nothing more is
		// launched.
		wedge := (h.hold == wedged || h.reportedHold == wedged || h.hold == owned || h.reportedHold == owned) && h.linked && h.open > 0
		if h.hold == h.reportedHold || h.hold == unmeasured || h.hold == receiving || !wedge && (c.isLaunchingClosed() || !h.acceptsJobs()) ||
			h.holdReportedAt > 0 && c.now.Mono-h.holdReportedAt < reportInterval || h.hold != notHeld && !wedge && !c.isWanted(h) {
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

// isWanted reports whether a ready job could run on the host.
func (c *Core) isWanted(h *host) bool {
	return slices.ContainsFunc(c.queue.list, func(cl *class) bool {
		c.updateFits(cl)
		return cl.fits[h.index]
	})
}
