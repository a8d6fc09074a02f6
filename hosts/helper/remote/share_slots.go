//go:build linux

package remote

import (
	mathrand "math/rand/v2"
	"time"

	"dcs-tui/hosts"
)

// holdSlots makes the supervisor hold n slots. It publishes them, counts those of others, and
// releases all if that exceeds the slots of the host. If the shared directory cannot be used, slots
// are not shared and hold succeeds. The helper reports that.
func (s *slot) holdSlots(n int) bool {
	number := s.control.share()
	held := s.claim.text.held
	text := claimText{run: s.config.Run, group: claimGroup(s.config.Run, s.config.Host), name: s.config.RunName,
		slots: number.Rule, held: n}
	switch {
	case number.Slots == 0 || n == held:
		return true
	case n < held:
		s.claim.update(text)
		return true
	}
	dir := s.config.ShareDir
	dirfd, err := openShare(dir, true)
	if err != nil {
		return true
	}
	defer closeFile(dirfd, dir)
	if s.claim.write(dirfd, dir, text) != nil {
		return true
	}
	if hasOnly(dirfd, dir, claimPrefix, claimFiles(text.group)) {
		return true // nobody else is here; our own limit is enforced elsewhere
	}
	claims, _, err := readClaims(dirfd, dir, text.group, s.config.Run, nil)
	me := indexOfOwn(claims, text.group)
	if err != nil || me < 0 {
		return true
	}
	list := plainClaims(claims)
	slots := hosts.SharedSlots(number, list)
	if hosts.SlotsFit(slots, list, me, int(s.control.word(ctlLast).Load())) {
		return true
	}
	s.releaseSlots()
	return false
}

// releaseSlots releases all slots. The claim stays, and records that it holds none.
func (s *slot) releaseSlots() {
	text := s.claim.text
	text.held, text.memory = 0, 0
	s.claim.update(text)
}

// holdMemory publishes how many bytes the job of this supervisor may use (0: none). Errors are
// ignored, as in holdSlots.
func (s *slot) holdMemory(bytes int64) {
	if text := s.claim.text; text.held > 0 {
		text.memory = bytes
		s.claim.update(text)
	}
}

// awaitSlots waits until it holds n slots. It returns false at the time until, or when the
// supervisor should take nothing more.
func (s *slot) awaitSlots(n int, until time.Duration) bool {
	for !s.holdSlots(n) {
		if s.isSuperfluous() || uptime() > until {
			return false
		}
		// A random time, so that two supervisors do not keep each other waiting.
		time.Sleep(holdPause/2 + time.Duration(mathrand.Int64N(int64(holdPause))))
	}
	return true
}

// holdPause is the mean time between two tries of awaitSlots.
const holdPause = 100 * time.Millisecond
