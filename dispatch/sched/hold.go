package sched

import (
	"fmt"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// holdState holds the reasons why a host that is up starts nothing.
type holdState struct {
	hold           jobs.HostHold // why a host that is up may not use any slot
	reportedHold   jobs.HostHold // last reported hold
	holdReportedAt time.Duration // 0: never

	isMeasured         bool  // a heartbeat came over the current link, possibly the early one
	diskFree           int64 // bytes, last known over the current link; -1: not known
	memUnknownReported bool  // it was reported that min_mem_free has no effect

	isQuiet       bool
	quietText     string        // as a continuation of its name
	quietChangeAt time.Duration // next beginning or end of quiet hours
}

// hungDiskAfter is how long the file system of a host's attempts may take to respond before the
// host starts no more jobs. A job could not even write its claim.
const hungDiskAfter = 10 * time.Second

// limitingHold returns which of the host's limits prevents it from starting jobs. A host with
// limits is held until its first measurement. Otherwise all its slots would be filled before. If
// its free disk space is not reported in time, it is assumed to be unchanged.
func (h *host) limitingHold() jobs.HostHold {
	s, b := h.spec, &h.heartbeat
	switch {
	case h.unleased:
		return jobs.HeldUnleased
	case b.FSDelay >= hungDiskAfter:
		return jobs.HeldByHungDisk
	case b.Owner.Who != "":
		return jobs.HeldByOwner
	case b.Receives || !h.isMeasured && h.hello != nil && h.hello.Receives:
		return jobs.HeldReceivingFiles
	case s.MaxLoad <= 0 && s.MinMemFree <= 0 && s.MinDiskFree <= 0:
		return jobs.NotHeld
	case !h.isMeasured:
		return jobs.HeldUnmeasured
	}
	return s.LimitReached(b, h.diskFree)
}

// storeMeasurement stores a heartbeat.
func (h *host) storeMeasurement(b *hosts.Heartbeat) {
	h.heartbeat, h.isMeasured = *b, true
	if b.DiskFree >= 0 {
		h.diskFree = b.DiskFree
	}
}

// suspendsJobs reports whether the jobs that run on the host are suspended for its owner.
func (h *host) suspendsJobs() bool { return h.linked && h.heartbeat.Owner.Suspend }

// isSuspended reports whether an attempt is suspended. The host continues one that it ends.
func (f *inFlight) isSuspended() bool { return f.started && !f.killed && f.host.suspendsJobs() }

// publicHold returns the hold that is shown to people. It tells the load of others from our own.
func (h *host) publicHold() jobs.HostHold {
	if h.hold == jobs.HeldByOthersLoad && h.othersLoad < 0.5 {
		return jobs.HeldByOwnLoad
	}
	return h.hold
}

// whyHeld describes why the host is held, as a continuation of its name. It returns "" if it is not
// held.
func (h *host) whyHeld() string {
	s, b := h.spec, &h.heartbeat
	why := ""
	switch h.hold {
	case jobs.NotHeld:
		return ""
	case jobs.HeldByOthersLoad:
		if h.publicHold() == jobs.HeldByOwnLoad {
			why = fmt.Sprintf("our jobs there use %.1f cores more than one per slot", h.excessCores)
			break
		}
		if h.hello != nil && h.hello.Cores > 0 {
			return fmt.Sprintf("reduces its slots: others use %.1f of its %s", h.othersLoad,
				text.Plural(h.hello.Cores, "core"))
		}
		return fmt.Sprintf("reduces its slots: others use %.1f cores", h.othersLoad)
	case jobs.HeldByOtherRuns:
		return h.whyShared()
	case jobs.HeldByHungDisk:
		why = "the file system of its attempts has not answered for " + text.Span(b.FSDelay)
	case jobs.HeldUnleased:
		why = "the run directory responds too slowly to confirm that this dispatcher still owns the run"
	case jobs.HeldUnmeasured:
		why = "its first measurement has not arrived yet"
	case jobs.HeldByOwner:
		why = b.Owner.Who
		if b.Owner.Suspend {
			why += "; jobs there are suspended"
		}
	case jobs.HeldReceivingFiles:
		why = "the files that its jobs get are not there yet"
		if b.Files != "" {
			why = "it " + b.Files
		}
	default:
		why = s.LimitText(h.hold, b, h.diskFree)
	}
	return "starts nothing: " + why
}

// reportInterval is the shortest time between two reports of a host's holds.
const reportInterval = time.Minute

// reportHolds reports when a host stops or resumes starting jobs that wait for it. A change that is
// reversed within reportInterval is not reported.
func (c *Core) reportHolds() {
	for h := range c.visits() {
		// Reported even if nothing more is launched.
		affectsRunning := h.linked && h.numOpen > 0 && (stopsJobs(h.hold) || stopsJobs(h.reportedHold))
		switch {
		case !c.isHoldUnreported(h),
			!affectsRunning && (c.isLaunchingClosed() || !h.acceptsJobs()),
			h.holdReportedAt > 0 && c.now.Mono-h.holdReportedAt < reportInterval,
			h.hold != jobs.NotHeld && !affectsRunning && !c.hasReadyJobFor(h):
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

// stopsJobs reports whether a hold also affects running jobs.
func stopsJobs(h jobs.HostHold) bool { return h == jobs.HeldByHungDisk || h == jobs.HeldByOwner }

// isHoldUnreported reports whether a hold will be reported as soon as a job is ready for the host.
func (c *Core) isHoldUnreported(h *host) bool {
	return h.hold != h.reportedHold && h.hold != jobs.HeldUnmeasured && h.hold != jobs.HeldReceivingFiles
}

// hasReadyJobFor reports whether a ready job could run on the host.
func (c *Core) hasReadyJobFor(h *host) bool {
	return slices.ContainsFunc(c.queue.list, func(cl *class) bool {
		c.updateFits(cl)
		return cl.fitsOn(h)
	})
}
