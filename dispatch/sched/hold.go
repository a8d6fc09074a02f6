package sched

import (
	"fmt"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// hold is why a host that is up may have no slot busy at all.
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

// wedgeAfter is how long the file system of a host's attempts may take to answer
// before the host starts nothing more: a job could not even make its claim.
const wedgeAfter = 10 * time.Second

// floored names the floor that a host is below. A host that has a floor is held
// until it has measured: all its slots would be filled before the first beat. Free disk
// space that is not known in time is taken to be what it was.
func (h *host) floored() hold {
	s, b := h.spec, &h.beat
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

// take keeps what a beat says for the floors.
func (h *host) take(b *hosts.Beat) {
	h.beat, h.measured = *b, true
	if b.DiskFree >= 0 {
		h.diskFree = b.DiskFree
	}
}

// holdWhy says for people what holds the host, to follow its name; "" if nothing does.
func (h *host) holdWhy() string {
	s, b := h.spec, &h.beat
	why := ""
	switch h.hold {
	case notHeld:
		return ""
	case yielding:
		if h.others < 0.5 {
			why = fmt.Sprintf("our jobs there use %.1f cores more than one a slot", h.excess)
			break
		}
		if h.hello != nil && h.hello.Cores > 0 {
			return fmt.Sprintf("yields: others use %.1f of its %s", h.others, jobs.Plural(h.hello.Cores, "core"))
		}
		return fmt.Sprintf("yields: others use %.1f cores", h.others)
	case sharing:
		return h.sharedWhy()
	case wedged:
		why = "the file system of its attempts has not answered for " + short(b.FSDelay)
	case unmeasured:
		why = "its first measurement is not here yet"
	case owned:
		if why = b.Owner.Who; b.Owner.Suspend {
			why += "; jobs there are suspended"
		}
	case receiving:
		if why = "it " + b.Files; b.Files == "" {
			why = "the files that its jobs get are not there yet"
		}
	case atLoad:
		why = fmt.Sprintf("its load of %.1f is %s max_load %g", b.Load[0], overOrAt(b.Load[0], s.MaxLoad), s.MaxLoad)
	case lowMemory:
		why = fmt.Sprintf("its free memory of %s is below min_mem_free %s", size(b.MemFree), size(s.MinMemFree))
	case lowDisk:
		why = fmt.Sprintf("its free disk space of %s is below min_disk_free %s", size(h.diskFree), size(s.MinDiskFree))
	case unknownDisk:
		why = "its free disk space is not known yet (min_disk_free)"
	}
	return "starts nothing: " + why
}

func overOrAt(load, limit float64) string {
	if load-limit < 0.05 {
		return "at"
	}
	return "over"
}

// holdEvery is how seldom a host's holds are told.
const holdEvery = time.Minute

// tellHolds says when a host begins or ceases to start nothing while jobs wait for
// it. What has changed back within holdEvery is not told.
func (c *Core) tellHolds() {
	for _, h := range c.hosts {
		// These matter to what runs there, too, and when nothing more is launched.
		wedge := (h.hold == wedged || h.holdSaid == wedged || h.hold == owned || h.holdSaid == owned) && h.linked && h.open > 0
		if h.hold == h.holdSaid || h.hold == unmeasured || h.hold == receiving || !wedge && (c.closed() || !h.takes()) ||
			h.holdAt > 0 && c.now.Mono-h.holdAt < holdEvery || h.hold != notHeld && !wedge && !c.wanted(h) {
			continue
		}
		h.holdSaid, h.holdAt = h.hold, max(c.now.Mono, 1)
		what := h.holdWhy()
		if what == "" {
			what = "starts jobs again"
		}
		c.say(h.spec.Name, 0, "%s %s", h.spec.Name, what)
	}
}

// wanted says whether a ready job could run on the host.
func (c *Core) wanted(h *host) bool {
	for _, cl := range c.queue.list {
		if cl.epoch != c.queue.epoch {
			c.fit(cl)
		}
		if cl.fits[h.idx] {
			return true
		}
	}
	return false
}
