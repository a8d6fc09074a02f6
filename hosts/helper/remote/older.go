//go:build linux

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// Each helper notes itself in the spool: helpers/GENERATION.PID.START. One that
// is stopped, or stuck, hears of no successor and would stay for ever; so the
// successor ends it.

// olderTime is how long an earlier helper has to leave by itself, in which it can
// still tell its dispatcher why.
const olderTime = time.Second

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
		if !ok || int64(by.slot) >= h.generation {
			continue
		}
		if by.alive() && isHelper(by.pid) {
			old[by.pid] = by.start
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
	if !within(3*olderTime, func() { endAll(there, grace) }) {
		left = there(scan(nil)) // stuck in the kernel; the KILL is on its way
	}
	return left
}

// isHelper says whether a process is a helper, by its command line: start times
// repeat from one boot to the next.
func isHelper(pid int) bool {
	words := bytes.Split(procFile(pid, "cmdline"), []byte{0})
	return len(words) > 1 && string(words[1]) == wordHost
}

// maxTries bounds how often the spool is made anew because an earlier helper
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
			if left := h.endOlder(olderTime); len(left) > 0 {
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
