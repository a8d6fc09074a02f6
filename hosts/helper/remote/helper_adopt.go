//go:build linux

package remote

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// adoptSpool takes over what an earlier helper left in the spool. Waiting specs are queued again
// under our generation or, if their lease has run out, withdrawn. The dispatcher asks about attempts
// that supervisors hold.
func (h *helper) adoptSpool() {
	h.mu.Lock()
	ended := h.control.word(ctlEnd).Swap(0) != 0
	rebooted := h.wasRebooted()
	if ended || rebooted {
		h.control.word(ctlAllowed).Store(0)
	}
	if n := h.control.word(ctlAllowed).Load(); n > 0 {
		// Keep the earlier limit until the dispatcher sets one: waiting specs could start at once.
		h.limit = int(min(n-1, maxSlots))
	}
	lapsed := rebooted || uptime() > h.control.lease()
	if rebooted {
		h.control.word(ctlLease).Store(0) // these times belong to the clock of another boot
		h.control.word(ctlHeartbeat).Store(0)
		h.control.word(ctlSuspendTo).Store(0)
		h.control.word(ctlSearching).Store(0)
		h.control.word(ctlSearched).Store(0)
	}
	if h.open.ShareWeight == 0 { // else the earlier share applies until the dispatcher sends one
		h.control.setShare(hosts.Share{})
	}
	h.control.word(ctlLimit).Store(int64(h.limit))
	h.forwardLogsLocked()
	h.requeueLapsed = lapsed
	h.requeueLocked()
	h.reconcileTakenLocked()
	h.startSupervisorsLocked()
	h.wakePipe.send()
	h.mu.Unlock()
}

// wasRebooted records the boot in the spool and reports whether the machine was rebooted
// since the spool was last used.
func (h *helper) wasRebooted() (rebooted bool) {
	was, err := readFile(h.spool.path(fileBoot))
	// An unreadable file may be of another boot.
	rebooted = !errors.Is(err, fs.ErrNotExist) && strings.TrimSpace(string(was)) != h.config.Boot
	if err != nil || rebooted {
		if err := writeFile(h.spool.path(fileBoot), []byte(h.config.Boot+"\n")); err != nil {
			h.reportTrouble("spool: %v", err)
		}
	}
	return rebooted
}

// requeueLocked renames waiting specs into our generation, which invalidates older tokens,
// and sends tokens for them in the order of their ids. It withdraws specs that have lapsed
// or are incomplete.
func (h *helper) requeueLocked() {
	if h.control.private {
		return // nothing can be renamed, and no supervisor can take a spec
	}
	names, err := h.spool.list(dirIn)
	if err != nil {
		h.reportTrouble("%v", err)
		h.requeueFailed = true
		return
	}
	h.requeueFailed = false
	ours := specName(h.generation, jobs.AttemptID{})
	ours = ours[:strings.IndexByte(ours, '-')+1]
	var gone []jobs.AttemptID
	slices.SortFunc(names, func(a, b string) int {
		x, _ := parseSpecName(a)
		y, _ := parseSpecName(b)
		return cmp.Or(x.Compare(y), strings.Compare(a, b))
	})
	for _, name := range names {
		id, ok := parseSpecName(name)
		if !ok || strings.HasPrefix(name, ours) {
			continue
		}
		job, err := h.wholeSpec(name, id)
		switch {
		case err == nil && (h.requeueLapsed || job == nil): // an incomplete spec never had a token
			if err = unlinkat(h.in, name, 0); err == nil {
				gone = append(gone, id)
			}
		case err == nil:
			if err = renameat(h.in, name, h.in, specName(h.generation, id)); err == nil {
				h.waiting[id] = true
				if !h.holdLocked(job) {
					h.wakePipe.add(id)
				}
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.requeueFailed = true
			h.reportTrouble("spool: taking over %s: %v; tried again", id, err)
		}
	}
	if h.requeueLapsed {
		h.sendWithdrawn(gone, whyLapsed)
	} else {
		h.sendWithdrawn(gone, "it was not whole in the spool")
	}
}

// wholeSpec reads a waiting spec. It returns nil if the spec is incomplete, or is something else.
func (h *helper) wholeSpec(name string, id jobs.AttemptID) (*hosts.LaunchJob, error) {
	b, err := readFile(h.spool.path(dirIn, name))
	if isNotPlain(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j, err := parseSpec(b)
	if err != nil || j.Attempt != id {
		return nil, nil
	}
	return j, nil
}

// reconcileTakenLocked makes running agree with taken/. Attempts of living supervisors
// run; those of dead ones are examined. So are attempts of a supervisor that holds several:
// it runs one at a time, so the others have ended, though it has not reported that yet.
func (h *helper) reconcileTakenLocked() {
	taken, err := h.spool.takenAttempts()
	if err != nil {
		if !h.hasEnded() { // otherwise the spool is being removed
			h.reportTrouble("%v", err)
		}
		return
	}
	holds := map[holder]int{}
	for _, by := range taken {
		holds[by]++
	}
	for id, by := range taken {
		known := h.running[id]
		switch {
		case by.isAlive():
			delete(h.waiting, id)
			if known == nil {
				known = &heldAttempt{holder: by, takenAt: h.takenAt(id, by), ended: make(chan struct{})}
				h.running[id] = known
			}
			if holds[by] > 1 {
				h.resolveLocked(id, by, known.group)
			}
		case known != nil:
			h.resolveLocked(id, by, known.group)
		default:
			h.resolveLocked(id, by, pgroup{})
		}
	}
	for id, r := range h.running {
		if _, ok := taken[id]; !ok {
			h.resolveLocked(id, r.holder, r.group) // it has ended, and its report was lost
		}
	}
}

// takenAt returns the time at which a spec was taken: renaming sets the change time.
func (h *helper) takenAt(id jobs.AttemptID, by holder) jobs.Stamp {
	var st unix.Stat_t
	if statat(h.taken, takenName(id, by), &st, 0) != nil {
		return 0
	}
	return jobs.Stamp(st.Ctim.Nano())
}

// resolveLocked examines, in its own goroutine, an attempt whose supervisor has released it
// or died.
func (h *helper) resolveLocked(id jobs.AttemptID, by holder, job pgroup) {
	if h.resolved[id] {
		return
	}
	h.resolved[id] = true
	go func() {
		p := h.settleFate(id, job)
		h.mu.Lock()
		delete(h.resolved, id)
		switch p.Answer {
		case hosts.HasExited, hosts.NeverStarted, hosts.Dead:
			h.removeEndedLocked(id)
			unlinkat(h.taken, takenName(id, by), 0)
		}
		h.mu.Unlock()
		h.sendResults([]hosts.ProbedJob{p})
	}()
}

// Each helper registers in the spool as helpers/GENERATION.PID.START. A stopped or stuck
// helper would never notice its successor, so the successor ends it.

// olderTimeout is the time in which an earlier helper can leave by itself and tell its
// dispatcher why.
const olderTimeout = time.Second

func (h *helper) recordName() string {
	return fmt.Sprintf("%d.%d.%d", h.generation, h.self.pid, h.self.start)
}

// holder identifies this process where a supervisor would be named.
func (h *helper) holder() holder { return holder{0, h.self.pid, h.self.start} }

// register records this helper in the spool.
func (h *helper) register() error {
	if err := writeFile(h.spool.path(dirHelpers, h.recordName()), nil); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

func (h *helper) deregister() { remove(h.spool.path(dirHelpers, h.recordName())) }

// endOlder ends the earlier helpers of this spool and returns those that do not die. With
// grace 0 they get no SIGTERM and SIGCONT first. It takes a few seconds at most.
func (h *helper) endOlder(grace time.Duration) (left []proc) {
	names, _ := h.spool.list(dirHelpers)
	old := map[int]uint64{} // pid: start
	for _, n := range names {
		by, ok := parseHolder(n) // with the generation in place of the slot
		if !ok || int64(by.Slot) >= h.generation {
			continue
		}
		if by.isAlive() && isHelper(by.PID) {
			old[by.PID] = by.Start
		} else {
			remove(h.spool.path(dirHelpers, n))
		}
	}
	if len(old) == 0 {
		return nil
	}
	there := func(t table) (out []proc) {
		for pid, start := range old {
			if p, ok := t[pid]; ok && p.start == start && isEndable(p) {
				out = append(out, p)
			}
		}
		return out
	}
	if !withTimeout(3*olderTimeout, func() { endAll(there, grace) }) {
		left = there(scan(nil)) // stuck in the kernel; SIGKILL is pending
	}
	return left
}

// isHelper reports whether a process is a helper, by its command line: after a reboot
// another process may have the same pid and start time.
func isHelper(pid int) bool { return isOurs(pid, wordHost) }

// maxTries bounds how often the spool is created again because an earlier helper that was
// ending the run removed it.
const maxTries = 5

// takeSpool takes the spool over: when it returns, no earlier helper works in it. If a
// dispatcher of a higher epoch owns the spool, it returns that epoch.
func (h *helper) takeSpool(base string) (fencedBy int, warning string, err error) {
	for range maxTries {
		h.spool, err = makeSpool(base, h.open.Run, h.open.Host)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a leaving helper has removed a parent directory
		}
		if err != nil {
			return 0, "", fmt.Errorf("making the spool: %w", err)
		}
		h.control, err = openControl(h.spool.dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the spool has moved away
		}
		if err != nil {
			return 0, "", err
		}
		if was := raiseWord(h.control.word(ctlEpoch), int64(h.open.Epoch)); was > int64(h.open.Epoch) {
			return int(was), "", nil
		}
		// If the spool was deleted, supervisors of its earlier helpers may live. Their tokens and
		// files must not look like ours.
		h.madeSpool = h.control.word(ctlGeneration).CompareAndSwap(0, int64(uptime()/time.Millisecond))
		h.generation = h.control.word(ctlGeneration).Add(1)
		// If it cannot be written, no successor ends this helper, which then leaves when it sees that one.
		if err = h.register(); !errors.Is(err, fs.ErrNotExist) && (err == nil || !h.madeSpool) {
			if left := h.endOlder(olderTimeout); len(left) > 0 {
				warning = "an earlier helper of this run could not be ended: " + listProcs(left)
			}
			if h.control.inPlace(h.spool.dir) {
				// Create again what an earlier helper removed before it was ended.
				if h.spool, err = makeSpool(base, h.open.Run, h.open.Host); err == nil {
					_ = h.register() // see checkSpool
					return 0, warning, nil
				}
			}
		}
		unix.Munmap(h.control.mem)
	}
	if err == nil {
		err = fmt.Errorf("the spool %s is being removed again and again", h.spool.dir)
	}
	return 0, "", err
}
