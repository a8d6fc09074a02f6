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
	notHeld            hold = iota
	heldByHungDisk          // its file system does not respond
	heldByOwner             // a person uses it, or wants it to be left alone
	heldUnmeasured          // it has a limit, and has not sent a measurement yet
	heldReceivingFiles      // the files that every job gets are still being sent
	heldByLoad
	heldByMemory
	heldByDisk
	heldByUnknownDisk // min_disk_free is set, and its file system has not responded yet
	heldByOtherRuns   // other runs and users have all slots
	heldByOthersLoad  // others use it, or our own jobs use more than a core each
)

// holdState holds the reasons why a host that is up starts nothing.
type holdState struct {
	hold           hold
	reportedHold   hold          // last reported hold
	holdReportedAt time.Duration // 0: never

	isMeasured         bool  // a heartbeat came over the current link, possibly the early one
	diskFree           int64 // bytes, last known over the current link; -1: not known
	memUnknownReported bool  // it was reported that min_mem_free has no effect

	isQuiet       bool
	quietEnd      string        // local time of the host; "": it has no end
	quietChangeAt time.Duration // next beginning or end of quiet hours
}

// hungDiskAfter is how long the file system of a host's attempts may take to respond before the
// host starts no more jobs. A job could not even write its claim.
const hungDiskAfter = 10 * time.Second

// limitingHold returns which of the host's limits prevents it from starting jobs. A host with
// limits is held until its first measurement. Otherwise all its slots would be filled before. If
// its free disk space is not reported in time, it is assumed to be unchanged.
func (h *host) limitingHold() hold {
	s, b := h.spec, &h.heartbeat
	switch {
	case b.FSDelay >= hungDiskAfter:
		return heldByHungDisk
	case b.Owner.Who != "":
		return heldByOwner
	case b.Receives || !h.isMeasured && h.hello != nil && h.hello.Receives:
		return heldReceivingFiles
	case s.MaxLoad <= 0 && s.MinMemFree <= 0 && s.MinDiskFree <= 0:
		return notHeld
	case !h.isMeasured:
		return heldUnmeasured
	case s.MaxLoad > 0 && b.Load[0] >= s.MaxLoad:
		return heldByLoad
	case s.MinMemFree > 0 && b.MemFree >= 0 && b.MemFree < s.MinMemFree:
		return heldByMemory
	case s.MinDiskFree > 0 && h.diskFree < 0:
		return heldByUnknownDisk
	case s.MinDiskFree > 0 && h.diskFree < s.MinDiskFree:
		return heldByDisk
	}
	return notHeld
}

// storeMeasurement stores a heartbeat.
func (h *host) storeMeasurement(b *hosts.Heartbeat) {
	h.heartbeat, h.isMeasured = *b, true
	if b.DiskFree >= 0 {
		h.diskFree = b.DiskFree
	}
}

// whyHeld describes why the host is held, as a continuation of its name. It returns "" if it is not
// held.
func (h *host) whyHeld() string {
	s, b := h.spec, &h.heartbeat
	why := ""
	switch h.hold {
	case notHeld:
		return ""
	case heldByOthersLoad:
		if h.othersLoad < 0.5 {
			why = fmt.Sprintf("our jobs there use %.1f cores more than one per slot", h.excessCores)
			break
		}
		if h.hello != nil && h.hello.Cores > 0 {
			return fmt.Sprintf("reduces its slots: others use %.1f of its %s", h.othersLoad, jobs.Plural(h.hello.Cores, "core"))
		}
		return fmt.Sprintf("reduces its slots: others use %.1f cores", h.othersLoad)
	case heldByOtherRuns:
		return h.whyShared()
	case heldByHungDisk:
		why = "the file system of its attempts has not answered for " + formatDuration(b.FSDelay)
	case heldUnmeasured:
		why = "its first measurement has not arrived yet"
	case heldByOwner:
		if why = b.Owner.Who; b.Owner.Suspend {
			why += "; jobs there are suspended"
		}
	case heldReceivingFiles:
		if why = "it " + b.Files; b.Files == "" {
			why = "the files that its jobs get are not there yet"
		}
	case heldByLoad:
		why = fmt.Sprintf("its load of %.1f is %s max_load %g", b.Load[0], compareWord(b.Load[0], s.MaxLoad), s.MaxLoad)
	case heldByMemory:
		why = fmt.Sprintf("its free memory of %s is below min_mem_free %s", formatBytes(b.MemFree), formatBytes(s.MinMemFree))
	case heldByDisk:
		why = fmt.Sprintf("its free disk space of %s is below min_disk_free %s", formatBytes(h.diskFree), formatBytes(s.MinDiskFree))
	case heldByUnknownDisk:
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
		affectsRunning := (h.hold == heldByHungDisk || h.reportedHold == heldByHungDisk || h.hold == heldByOwner || h.reportedHold == heldByOwner) && h.linked && h.numOpen > 0
		if h.hold == h.reportedHold || h.hold == heldUnmeasured || h.hold == heldReceivingFiles || !affectsRunning && (c.isLaunchingClosed() || !h.acceptsJobs()) ||
			h.holdReportedAt > 0 && c.now.Mono-h.holdReportedAt < reportInterval || h.hold != notHeld && !affectsRunning && !c.hasReadyJobFor(h) {
			continue
		}
		h.reportedHold, h.holdReportedAt = h.hold, max(c.now.Mono, 1)
		what := h.whyHeld()
		if what == "" {
			what = "starts jobs again"
		}
		c.logf(h.spec.Name, 0, "%s %s", h.spec.Name, what)
	}
}

// hasReadyJobFor reports whether a ready job could run on the host.
func (c *Core) hasReadyJobFor(h *host) bool {
	return slices.ContainsFunc(c.queue.list, func(cl *class) bool {
		c.updateFits(cl)
		return cl.fits[h.index]
	})
}
