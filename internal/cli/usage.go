package cli

import (
	"sync"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
)

// usage adds up how many slots there were to use, for the efficiency in the
// summary: each sample counts for the time since the one before.
type usage struct {
	mu    sync.Mutex
	last  time.Time
	slots int     // at the last sample
	most  int     // ever
	avail float64 // slot-seconds
}

// note takes a sample. limit is --max-slots, 0 for none.
func (u *usage) note(at time.Time, s *dispatch.Snapshot, limit int) {
	slots := 0
	for _, h := range s.Hosts {
		switch h.State {
		case sched.Up, sched.Suspect, sched.Draining:
			slots += h.Slots
		}
	}
	if limit > 0 {
		slots = min(slots, limit)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.last.IsZero() {
		u.avail += at.Sub(u.last).Seconds() * float64(max(u.slots, slots))
	}
	u.last, u.slots, u.most = at, slots, max(u.most, slots)
}

// total returns the slot-seconds and the most slots seen at once.
func (u *usage) total() (slotSeconds float64, most int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.avail, u.most
}
