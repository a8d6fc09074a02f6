//go:build linux

package remote

import (
	"bytes"
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

// adopt takes over what an earlier helper left in the spool: what waits is fed
// again under our generation or, if it has lapsed, taken back; what runs is ours
// to report on.
func (h *helper) adopt() {
	h.mu.Lock()
	ended := h.ctl.at(ctlEnd).Swap(0) != 0
	rebooted := h.wasRebooted()
	if ended || rebooted {
		h.ctl.at(ctlAllowed).Store(0)
	}
	if n := h.ctl.at(ctlAllowed).Load(); n > 0 {
		// It counts until the dispatcher says what it allows now: what waits here would start
		// at once.
		h.limit = int(min(n-1, maxSlots))
	}
	lapsed := rebooted || uptime() > h.ctl.lease()
	if rebooted {
		h.ctl.at(ctlLease).Store(0) // it was counted in the clock of another boot
		h.ctl.at(ctlBeat).Store(0)
		h.ctl.at(ctlSuspendTo).Store(0)
	}
	h.ctl.at(ctlLimit).Store(int64(h.limit))
	h.forwardLogsLocked()
	h.lapsed = lapsed
	h.requeueLocked()
	h.reconcileTakenLocked()
	h.startSupervisorsLocked()
	h.wakePipe.send()
	var started []hosts.StartedJob
	for id, r := range h.running {
		started = append(started, hosts.StartedJob{Attempt: id, Slot: r.by.Slot, At: r.at})
	}
	h.mu.Unlock()
	if len(started) > 0 {
		slices.SortFunc(started, func(a, b hosts.StartedJob) int { return compareAttempts(a.Attempt, b.Attempt) })
		h.out.send(&hosts.Started{Jobs: started})
	}
}

// wasRebooted notes the boot in the spool and reports whether the machine was
// rebooted since the spool was last used.
func (h *helper) wasRebooted() (rebooted bool) {
	was, err := readFile(h.spool.path(fileBoot))
	// What cannot be read may be of another boot.
	rebooted = !errors.Is(err, fs.ErrNotExist) && strings.TrimSpace(string(was)) != h.cfg.Boot
	if err != nil || rebooted {
		if err := writeFile(h.spool.path(fileBoot), []byte(h.cfg.Boot+"\n")); err != nil {
			h.trouble("spool: %v", err)
		}
	}
	return rebooted
}

// requeueLocked renames waiting specs into our generation, which takes them away
// from old tokens, and sends tokens for them in the order of their ids. What has lapsed or
// is not whole is withdrawn.
func (h *helper) requeueLocked() {
	names, err := h.spool.list(dirIn)
	if err != nil {
		h.trouble("%v", err)
		h.requeueFailed = true
		return
	}
	h.requeueFailed = false
	ours := specName(h.generation, jobs.AttemptID{})
	ours = ours[:strings.IndexByte(ours, '-')+1]
	var gone []jobs.AttemptID
	type spec struct {
		name string
		id   jobs.AttemptID
	}
	var specs []spec
	for _, n := range names {
		if id, ok := parseSpecName(n); ok && !strings.HasPrefix(n, ours) {
			specs = append(specs, spec{n, id})
		}
	}
	slices.SortFunc(specs, func(a, b spec) int {
		return cmp.Or(compareAttempts(a.id, b.id), strings.Compare(a.name, b.name))
	})
	for _, s := range specs {
		job, err := h.wholeSpec(s.name, s.id)
		switch {
		case err == nil && (h.lapsed || job == nil): // torn: its helper died writing it, no token was sent
			if err = unlinkat(h.in, s.name, 0); err == nil {
				gone = append(gone, s.id)
			}
		case err == nil:
			if err = renameat(h.in, s.name, h.in, specName(h.generation, s.id)); err == nil {
				h.waiting[s.id] = true
				if !h.holdLocked(job) {
					h.wakePipe.add(s.id)
				}
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			h.requeueFailed = true
			h.trouble("spool: taking over %s: %v; tried again", s.id, err)
		}
	}
	if h.lapsed {
		h.sendWithdrawn(gone, whyLapsed)
	} else {
		h.sendWithdrawn(gone, "it was not whole in the spool")
	}
}

// wholeSpec reads a waiting spec; nil: it is not whole.
func (h *helper) wholeSpec(name string, id jobs.AttemptID) (*hosts.LaunchJob, error) {
	b, err := readFile(h.spool.path(dirIn, name))
	if err != nil {
		return nil, err
	}
	j, err := parseSpec(b)
	if err != nil || j.Attempt != id {
		return nil, nil
	}
	return j, nil
}

// reconcileTakenLocked brings what we believe to run into line with taken/: attempts of
// living supervisors run, those of dead ones are looked into. So are those of one
// that holds several: it runs one at a time, so the others are over, though it
// has not come to say so.
func (h *helper) reconcileTakenLocked() {
	taken, err := h.spool.taken()
	if err != nil {
		if !h.hasEnded() { // then the spool is being removed
			h.trouble("%v", err)
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
		case by.alive():
			delete(h.waiting, id)
			if known == nil {
				known = &run{by: by, at: h.takenAt(id, by), over: make(chan struct{})}
				h.running[id] = known
			}
			if holds[by] > 1 {
				h.resolveLocked(id, by, known.job)
			}
		case known != nil:
			h.resolveLocked(id, by, known.job)
		default:
			h.resolveLocked(id, by, pgroup{})
		}
	}
	for id, r := range h.running {
		if _, ok := taken[id]; !ok {
			h.resolveLocked(id, r.by, r.job) // it has ended and its report was lost
		}
	}
}

// takenAt returns when a spec was taken: renaming sets the change time.
func (h *helper) takenAt(id jobs.AttemptID, by holder) jobs.Stamp {
	var st unix.Stat_t
	if statat(h.taken, takenName(id, by), &st, 0) != nil {
		return 0
	}
	return jobs.Stamp(st.Ctim.Nano())
}

// resolveLocked finds out, apart from all else, what happened to an attempt whose
// supervisor holds it no more or is dead.
func (h *helper) resolveLocked(id jobs.AttemptID, by holder, job pgroup) {
	if h.resolved[id] {
		return
	}
	h.resolved[id] = true
	go func() {
		p := h.examine(id, job)
		h.mu.Lock()
		delete(h.resolved, id)
		if p.Answer != hosts.IsRunning && p.Answer != hosts.Unknown {
			h.overLocked(id)
			unlinkat(h.taken, takenName(id, by), 0)
		}
		h.mu.Unlock()
		h.sendResults([]hosts.ProbedJob{p})
	}()
}

// Each helper notes itself in the spool: helpers/GENERATION.PID.START. One that
// is stopped, or stuck, hears of no successor and would stay for ever; so the
// successor ends it.

// olderTimeout is how long an earlier helper has to leave by itself, in which it can
// still tell its dispatcher why.
const olderTimeout = time.Second

func (h *helper) noteName() string {
	return fmt.Sprintf("%d.%d.%d", h.generation, h.self.pid, h.self.start)
}

// holder is this process, where a supervisor would stand.
func (h *helper) holder() holder { return holder{0, h.self.pid, h.self.start} }

// register notes this helper in the spool.
func (h *helper) register() error {
	if err := writeFile(h.spool.path(dirHelpers, h.noteName()), nil); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

func (h *helper) deregister() { remove(h.spool.path(dirHelpers, h.noteName())) }

// endOlder ends the helpers of this spool that are older than we, and returns
// those that do not die. With grace 0 they are not woken first. It takes a few
// seconds at most.
func (h *helper) endOlder(grace time.Duration) (left []proc) {
	names, _ := h.spool.list(dirHelpers)
	old := map[int]uint64{} // pid: start
	for _, n := range names {
		by, ok := parseHolder(n) // the generation stands where a slot would
		if !ok || int64(by.Slot) >= h.generation {
			continue
		}
		if by.alive() && isHelper(by.PID) {
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
			if p, ok := t[pid]; ok && p.start == start && endable(p) {
				out = append(out, p)
			}
		}
		return out
	}
	if !withTimeout(3*olderTimeout, func() { endAll(there, grace) }) {
		left = there(scan(nil)) // stuck in the kernel; the KILL is on its way
	}
	return left
}

// isHelper reports whether a process is a helper, by its command line: start times
// repeat from one boot to the next.
func isHelper(pid int) bool {
	words := bytes.Split(procFile(pid, "cmdline"), []byte{0})
	return len(words) > 1 && string(words[1]) == wordHost
}

// maxTries bounds how often the spool is made again because an earlier helper
// removed it under us: it was ending the run.
const maxTries = 5

// takeSpool makes the spool ours: no earlier helper is at work in it afterwards.
// It returns a higher epoch that has it already, else 0.
func (h *helper) takeSpool(base string) (fencedBy int, warning string, err error) {
	for range maxTries {
		h.spool, err = makeSpool(base, h.open.Run, h.open.Host)
		if errors.Is(err, fs.ErrNotExist) {
			continue // whoever leaves has removed a directory above it
		}
		if err != nil {
			return 0, "", fmt.Errorf("making the spool: %w", err)
		}
		if h.ctl, err = openControl(h.spool.dir); err != nil {
			return 0, "", err
		}
		if was := raise(h.ctl.at(ctlEpoch), int64(h.open.Epoch)); was > int64(h.open.Epoch) {
			return int(was), "", nil
		}
		h.generation = h.ctl.at(ctlGeneration).Add(1)
		if err = h.register(); err == nil {
			if left := h.endOlder(olderTimeout); len(left) > 0 {
				warning = "an earlier helper of this run could not be ended: " + name(left)
			}
			if h.ctl.inPlace(h.spool.dir) {
				// Once more, for what an earlier one had removed when it was ended.
				if h.spool, err = makeSpool(base, h.open.Run, h.open.Host); err == nil {
					return 0, warning, h.register()
				}
			}
		}
		unix.Munmap(h.ctl.mem)
	}
	if err == nil {
		err = fmt.Errorf("the spool %s is being removed again and again", h.spool.dir)
	}
	return 0, "", err
}
