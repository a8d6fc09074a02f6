//go:build linux

package remote

import (
	"strings"
	"time"

	"dcs-tui/jobs"
)

// A process of a job may run outside of the tree of the job's supervisor: a service of the host has
// started it with the job's environment, as at does. Only a scan of all processes finds it. Many
// supervisors may end their jobs at the same time, so they share such scans through the control page:
// one of them scans, and the result is valid for all that began to wait before.

const (
	searchLease    = 3 * time.Second // for one search
	searchTimeout  = 2 * searchLease // after which a supervisor looks for itself
	searchInterval = 5 * time.Millisecond
)

// isElsewhere reports whether a process of a running attempt may run outside of the tree of its
// supervisor. id is the attempt of this supervisor.
func (s *slot) isElsewhere(id jobs.AttemptID) bool {
	return s.control.shareSearch(uptime(), func() bool { return s.search(id) })
}

// shareSearch returns the result of a search that began after the given time, by this process or by
// another one. Without a result in time it returns true.
func (c *control) shareSearch(after time.Duration, search func() (found bool)) (found bool) {
	for now := after; now < after+searchTimeout; now = uptime() {
		if found, known := c.searchedSince(after); known {
			return found
		}
		reserved := c.word(ctlSearching)
		until := reserved.Load()
		isReserved := now < time.Duration(until) && time.Duration(until) <= now+searchLease
		if mine := int64(now + searchLease); !isReserved && reserved.CompareAndSwap(until, mine) {
			found, known := c.searchedSince(after) // another search may have ended since
			if !known {
				began := uptime()
				found = search()
				c.recordSearch(began, found)
			}
			reserved.CompareAndSwap(mine, 0)
			return found
		}
		time.Sleep(searchInterval)
	}
	return true
}

// searchedSince returns the result of the last search if it began after the given time.
func (c *control) searchedSince(after time.Duration) (found, known bool) {
	began, found := parseSearch(c.word(ctlSearched).Load())
	return found, after <= began && began <= uptime()
}

// recordSearch stores the result of a search unless that of a later one is stored. A search that
// begins in the future is of another boot, or damaged.
func (c *control) recordSearch(began time.Duration, found bool) {
	result := int64(began) << 1
	if found {
		result |= 1
	}
	for w := c.word(ctlSearched); ; {
		old := w.Load()
		if last, _ := parseSearch(old); old >= result && last <= uptime() || w.CompareAndSwap(old, result) {
			return
		}
	}
}

func parseSearch(word int64) (began time.Duration, found bool) {
	return time.Duration(word >> 1), word&1 != 0
}

// search scans all processes for those that have the cookie of a running attempt and are no
// descendants of its supervisor.
func (s *slot) search(id jobs.AttemptID) (found bool) {
	var holders map[jobs.AttemptID]holder
	if !withTimeout(searchLease, func() { holders, _ = s.spool.takenAttempts() }) || holders == nil {
		return true
	}
	holders[id] = s.holder
	t := scan(nil)
	for pid, attempt := range t.attempts(s.cookiePrefix) {
		if by, runs := holders[attempt]; runs && !t.isBelow(pid, by.PID) && !isBelowNow(t[pid], by.PID) {
			return true
		}
	}
	return len(hungProcs.ownProcs()) > 0
}

// attempts returns the attempts of the processes whose cookies begin with prefix, by pid.
func (t table) attempts(prefix string) map[int]jobs.AttemptID {
	var pids []int
	for pid, p := range t {
		if isEndable(p) {
			pids = append(pids, pid)
		}
	}
	found := map[int]jobs.AttemptID{}
	for pid, m := range cookiesOf(pids) {
		if name, ok := strings.CutPrefix(m.cookie, prefix); ok {
			if id, err := jobs.ParseAttemptID(name); err == nil {
				found[pid] = id
			}
		}
	}
	return found
}

// maxDepth bounds the way from a process to its ancestors, because a snapshot with reused pids may
// have cycles.
const maxDepth = 1000

// isBelow reports whether root is an ancestor of a process.
func (t table) isBelow(pid, root int) bool {
	for range maxDepth {
		p, ok := t[pid]
		if !ok || p.ppid == root {
			return ok
		}
		pid = p.ppid
	}
	return false
}

// isBelowNow is isBelow for the present, for a process whose ancestors have ended since the
// snapshot. It also returns true if p has ended.
func isBelowNow(p proc, root int) bool {
	for range 3 { // ancestors may end while we look
		t := table{}
		for pid := p.pid; pid > 0 && len(t) < maxDepth; pid = t[pid].ppid {
			q, ok := readProc(pid)
			if pid == p.pid && (!ok || q.start != p.start || !isEndable(q)) {
				return true
			}
			t[pid] = q
			if q.ppid == root {
				return true
			}
		}
	}
	return false
}
