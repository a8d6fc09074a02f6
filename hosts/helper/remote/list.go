//go:build linux

package remote

import (
	"errors"
	"slices"
	"sync/atomic"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// listPiece is how many attempts one Listed holds: a run may have a million.
const listPiece = 500

// lister makes lists, one at a time. What is asked meanwhile is answered by one
// more.
type lister struct {
	asked atomic.Int32
	last  atomic.Pointer[hosts.List] // the newest of those asked for
}

// list answers with every attempt that this host has anything of: after damage
// to the journal the dispatcher knows of some by nothing else (DESIGN 6).
func (h *helper) list(m *hosts.List) {
	if by := h.fence(m.Epoch); by != 0 {
		h.refuseFenced(nil, by)
		return
	}
	h.lists.last.Store(m)
	if h.lists.asked.Add(1) > 1 {
		return // made once more when the present one is done
	}
	go func() {
		for {
			n := h.lists.asked.Load()
			h.listAll(h.lists.last.Load())
			if h.lists.asked.Add(-n) == 0 {
				return
			}
		}
	}()
}

var errListFenced = errors.New("a newer dispatcher owns this run")

// listAll sends one list, in pieces.
func (h *helper) listAll(m *hosts.List) {
	piece := &hosts.Listed{}
	add := func(p hosts.ProbedJob) {
		if piece.Jobs = append(piece.Jobs, p); len(piece.Jobs) == listPiece {
			h.out.send(piece)
			piece = &hosts.Listed{}
		}
	}
	ids, err := h.spooled()
	for _, id := range ids {
		h.mu.Lock()
		p, known := h.knownLocked(id)
		h.mu.Unlock()
		if !known {
			p = h.inspect(id, pgroup{}, false)
		}
		add(p)
	}
	told := make(map[jobs.AttemptID]bool, len(ids))
	for _, id := range ids {
		told[id] = true
	}
	err2 := attempts.Each(onlyRead, h.dir, h.cfg.Run, h.cfg.Host, m.Jobs, func(f attempts.Fate) error {
		if h.fence(m.Epoch) != 0 {
			return errListFenced
		}
		if !told[f.Attempt] {
			add(h.listed(f))
		}
		return nil
	})
	if err == nil {
		err = err2
	}
	if err != nil {
		piece.Why = err.Error()
	}
	piece.Last, piece.All = true, len(m.Jobs) == 0
	h.out.send(piece)
}

// listed says of an attempt that is not in the spool what its files say, looking
// closer where they leave it open.
func (h *helper) listed(f attempts.Fate) hosts.ProbedJob {
	switch f.State {
	case attempts.Finished:
		return hosts.ProbedJob{Attempt: f.Attempt, Answer: hosts.HasExited, Slot: f.Slot, Started: f.Outcome.Started, Outcome: &f.Outcome}
	case attempts.NeverStarts:
		return hosts.ProbedJob{Attempt: f.Attempt, Answer: hosts.NeverStarted}
	}
	return h.inspect(f.Attempt, pgroup{}, false)
}

// spooled returns the attempts of which the spool has something: handed over,
// held, or ended with an outcome that could not be put where it belongs.
func (h *helper) spooled() ([]jobs.AttemptID, error) {
	var ids []jobs.AttemptID
	var first error // a message is one line
	// In the order in which an attempt moves, so that none is missed on its way.
	for _, dir := range []string{dirIn, dirTaken, dirDone} {
		names, err := h.spool.list(dir)
		if first == nil {
			first = err
		}
		for _, n := range names {
			id, ok := parseSpecName(n)
			if dir == dirTaken {
				id, _, ok = parseTakenName(n)
			} else if dir == dirDone {
				var err error
				id, err = jobs.ParseAttemptID(n)
				ok = err == nil
			}
			if ok {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, compareAttempts)
	return slices.Compact(ids), first
}
