//go:build linux

package remote

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// probe reports the state of attempts.
func (h *helper) probe(m *hosts.Probe) {
	if !h.isFenced(m.Epoch, m.Attempts) {
		h.answerProbe(m.Attempts)
	}
}

// answerProbe reports the state of each attempt. Those that neither wait nor run here are
// examined in another goroutine, because file systems may hang.
func (h *helper) answerProbe(ids []jobs.AttemptID) {
	known, rest := h.splitKnown(ids)
	h.sendProbed(known)
	if len(rest) == 0 {
		return
	}
	accepted := h.probes.do(func() {
		var found []hosts.ProbedJob
		for _, id := range rest {
			found = append(found, h.settleFate(id, pgroup{}))
		}
		h.sendResults(found)
	})
	if !accepted {
		var unknown []hosts.ProbedJob
		for _, id := range rest {
			unknown = append(unknown, hosts.ProbedJob{Attempt: id, Why: whyHangs})
		}
		h.sendProbed(unknown)
	}
}

// sendResults reports the results of examinations. Outcomes are also sent as Exits.
func (h *helper) sendResults(found []hosts.ProbedJob) {
	var exits []hosts.ExitedJob
	for _, p := range found {
		if p.Answer == hosts.HasExited {
			exits = append(exits, hosts.ExitedJob{Attempt: p.Attempt, Slot: p.Slot, Outcome: *p.Outcome})
		}
	}
	if len(exits) > 0 {
		h.outbox.send(&hosts.Exits{Jobs: exits})
	}
	h.sendProbed(found)
}

// settleFate finds out what happened to an attempt from its files: a sentinel, a living
// supervisor, or a claim. It returns "never started" only after it has created the status
// file itself, and "dead" only when no process of the attempt is left. job is the attempt's
// process group, as far as it is known.
func (h *helper) settleFate(id jobs.AttemptID, job pgroup) hosts.ProbedJob {
	return h.findFate(id, job, true)
}

// findFate is settleFate that creates a tombstone only if mayEntomb is true. Otherwise an attempt
// without a claim stays unknown.
func (h *helper) findFate(id jobs.AttemptID, job pgroup, mayEntomb bool) hosts.ProbedJob {
	p := hosts.ProbedJob{Attempt: id}
	// Read taken/ first: what is not held any more has its sentinel by then.
	taken, err := h.spool.takenAttempts()
	if err != nil {
		p.Why = err.Error()
		return p
	}
	by, holds := taken[id]
	held := holds && by.isAlive()
	f, err := h.readFate(id)
	switch {
	case f.State == attempts.Finished: // its supervisor may not have reported that yet
		p.Answer, p.Slot, p.Started, p.Outcome = hosts.HasExited, f.Slot, f.Outcome.Started, &f.Outcome
		return p
	case held:
		p.Answer, p.Slot, p.Started = hosts.IsRunning, by.Slot, h.takenAt(id, by)
		return p
	case err != nil:
		p.Why = err.Error()
		return p
	}
	started := job.id != 0
	if !holds && (f.State == attempts.Nothing || f.State == attempts.Claimed) {
		by, runs, some := h.findProcesses(id)
		if runs {
			return h.hold(p, f, by)
		}
		started = started || some
	}
	// A job can remove its status file. Look for other evidence of a start before making a
	// tombstone. Such evidence outweighs any tombstone.
	if !started {
		if started, err = h.hasFiles(id); err != nil {
			p.Why = err.Error()
			return p
		}
	}
	if f.State == attempts.Nothing && mayEntomb {
		switch err := h.tombstone(id); {
		case errors.Is(err, errClaimed):
			return h.findFate(id, job, false)
		case err != nil:
			p.Why = err.Error()
			return p
		}
		f.State = attempts.NeverStarts
	}
	switch {
	case f.State == attempts.Nothing && !started:
		p.Why = "it was not claimed"
		return p
	case f.State == attempts.NeverStarts && (!started || f.Claim.Tombstone && !isByProber(f.Claim)):
		if holds { // a dead supervisor held it, and there is no evidence of a start
			if left := h.endAttempt(id, pgroup{}); len(left) > 0 {
				p.Why = notEnded + listProcs(left)
				return p
			}
		}
		p.Answer = hosts.NeverStarted
		return p
	}
	return h.confirmDead(p, f, job)
}

// isByProber reports whether a tombstone was made by a prober that found no claim, and not by
// the supervisor that had claimed the attempt and could not start it.
func isByProber(c attempts.Claim) bool { return strings.HasPrefix(c.By, "0.") }

const notEnded = "processes of it could not be ended: "

// hasFiles reports whether the attempt has files that are created after the claim.
func (h *helper) hasFiles(id jobs.AttemptID) (bool, error) {
	for _, f := range []jobs.File{jobs.FileOut, jobs.FileErr} {
		if _, err := stat(jobs.AttemptFile(h.dir, id, f)); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// confirmDead handles an attempt that was claimed, is held by nobody, and has no sentinel.
// It is dead once none of its processes is left.
func (h *helper) confirmDead(p hosts.ProbedJob, f attempts.Fate, job pgroup) hosts.ProbedJob {
	c := f.Claim
	if c.Host != "" && c.Host != h.config.Host {
		p.Why = "it was claimed by host " + c.Host
		return p
	}
	if left := h.endAttempt(p.Attempt, job); len(left) > 0 {
		p.Why = notEnded + listProcs(left)
		return p
	}
	if hang := hungProcs.ownProcs(); len(hang) > 0 {
		p.Why = "processes hang, cannot be inspected, and may belong to it: " + listProcs(hang)
		return p
	}
	by, _ := parseHolder(c.By)
	p.Answer = hosts.Dead
	switch {
	case c.Boot != "" && c.Boot != h.config.Boot:
		p.Why = "the host was rebooted while it ran"
	case c.Run == "":
		p.Why = "its claim is damaged: its writing was interrupted, or a job or the disk damaged it"
	case f.Damaged:
		p.Why = "its sentinel is damaged"
	case by.isAlive():
		p.Why = "its supervisor could not start it"
	default:
		p.Why = "its supervisor died"
	}
	return p
}

// endAttempt is endProcesses for one attempt.
func (h *helper) endAttempt(id jobs.AttemptID, job pgroup) []proc {
	return h.endProcesses([]jobs.AttemptID{id}, job)
}

// endProcesses ends every process with the cookie of one of the attempts or in the process group, and
// all orphans, because they may belong to one. It returns what could not be ended.
func (h *helper) endProcesses(ids []jobs.AttemptID, job pgroup) []proc {
	cookies := map[string]bool{}
	for _, id := range ids {
		cookies[cookie(h.config.Run, h.config.Host, id.String())] = true
	}
	pick := withCookie(func(s string) bool { return cookies[s] }, job, nil, h.isOrphan)
	return endChasing(pick, h.isOrphan, min(h.config.Grace, 2*time.Second))
}

// readFate reads the status file of an attempt, or the copy that the spool keeps if the file
// could not be written. The copy is read first, because it is removed after the file has
// been written. An error is from reading the status file.
func (h *helper) readFate(id jobs.AttemptID) (f attempts.Fate, err error) {
	h.tombstoneMu.RLock()
	defer h.tombstoneMu.RUnlock()
	for _, path := range []string{h.spool.path(dirDone, id.String()), jobs.AttemptFile(h.dir, id, jobs.FileStatus)} {
		var b []byte
		b, err = readPlain(path, attempts.StatusBytes+1)
		if errors.Is(err, fs.ErrNotExist) {
			b, _, err = rundir.ReadPart(readOnlyOS, path, 0, attempts.StatusBytes+1) // it may be in a pack
		}
		if err != nil {
			f = attempts.Fate{Attempt: id}
			continue
		}
		f = attempts.Decode(b, h.config.Run, id)
		if f.State == attempts.Finished {
			if !f.Outcome.OK() {
				f.Outcome.LastLine = lastLineOf(jobs.AttemptFile(h.dir, id, jobs.FileErr))
			}
			return f, nil
		}
	}
	// What is in a pack was recorded before, so a dispatcher asks about it only if its journal has lost that
	// record. So what a job put into the place of a pack leaves no attempt unknown.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, rundir.ErrDamagedPack) {
		err = nil
	}
	return f, err
}

func lastLineOf(path string) string {
	b, _, _ := rundir.ReadPart(readOnlyOS, path, -attempts.LastBytes, attempts.LastBytes) // it may be in a pack
	return attempts.LastLine(b)
}

// tombstone creates the status file of an attempt, which then can never start.
func (h *helper) tombstone(id jobs.AttemptID) error {
	return h.claim(&attempts.Claim{
		Tombstone: true, Run: h.config.Run, Attempt: id, Host: h.config.Host,
		By: h.holder().String(), Boot: h.config.Boot, At: wallClock(),
	})
}

// claim creates the status file of an attempt.
func (h *helper) claim(c *attempts.Claim) error {
	dir := filepath.Dir(jobs.AttemptFile(h.dir, c.Attempt, jobs.FileStatus))
	if err := makeDirs(dir); err != nil {
		return err
	}
	fd, err := openDir(dir)
	if err != nil {
		return err
	}
	defer closeFile(fd, dir)
	h.tombstoneMu.Lock()
	defer h.tombstoneMu.Unlock()
	status, err := makeClaim(fd, h.config.claimTemp(h.holder()), c)
	if err != nil {
		return err
	}
	return closeFile(status, dir)
}

// listPiece is the number of attempts in one Listed. A run may have a million attempts.
const listPiece = 500

// list reports every attempt of which this host has anything. After damage to the journal
// the dispatcher may not know of some.
func (h *helper) list(m *hosts.List) {
	if !h.isFenced(m.Epoch, nil) {
		h.listQueue.add("", 0, func() { h.listAll(m) })
	}
}

var errListFenced = errors.New("a newer dispatcher owns this run")

// listAll sends one list in pieces.
func (h *helper) listAll(m *hosts.List) {
	piece := &hosts.Listed{}
	add := func(p hosts.ProbedJob) {
		piece.Jobs = append(piece.Jobs, p)
		if len(piece.Jobs) == listPiece {
			h.outbox.send(piece)
			piece = &hosts.Listed{}
		}
	}
	ids, err := h.listSpooled()
	told := make(map[jobs.AttemptID]bool, len(ids))
	for _, id := range ids {
		told[id] = true
		h.mu.Lock()
		p, known := h.knownLocked(id)
		h.mu.Unlock()
		if !known {
			p = h.findFate(id, pgroup{}, false)
		}
		add(p)
	}
	err2 := attempts.EachFate(readOnlyOS, h.dir, h.config.Run, h.config.Host, m.Jobs, func(f attempts.Fate) error {
		if h.newerEpoch(m.Epoch) != 0 {
			return errListFenced
		}
		if !told[f.Attempt] {
			add(h.listedJob(f))
		}
		return nil
	})
	if err = cmp.Or(err, err2); err != nil {
		piece.Why = err.Error()
	}
	piece.Last, piece.All = true, len(m.Jobs) == 0
	h.outbox.send(piece)
}

// listedJob returns the state of an attempt that is not in the spool, from its status file if
// that is sufficient.
func (h *helper) listedJob(f attempts.Fate) hosts.ProbedJob {
	switch f.State {
	case attempts.Finished:
		return hosts.ProbedJob{Attempt: f.Attempt, Answer: hosts.HasExited, Slot: f.Slot, Started: f.Outcome.Started,
			Outcome: &f.Outcome}
	case attempts.NeverStarts:
		return hosts.ProbedJob{Attempt: f.Attempt, Answer: hosts.NeverStarted}
	}
	return h.findFate(f.Attempt, pgroup{}, false)
}

// listSpooled returns the attempts of which the spool has something: waiting, held, or ended
// with an outcome that could not be written to its place.
func (h *helper) listSpooled() ([]jobs.AttemptID, error) {
	var ids []jobs.AttemptID
	var first error
	// Read the directories in the order in which attempts move, so that none is missed.
	for _, dir := range []string{dirIn, dirTaken, dirDone} {
		names, err := h.spool.list(dir)
		first = cmp.Or(first, err)
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
	slices.SortFunc(ids, jobs.AttemptID.Compare)
	return slices.Compact(ids), first
}

const (
	inspectHang = 5 * time.Second // while an inspection takes longer, others are refused
	whyHangs    = "the file system does not answer"
)

// inspectShared reads what the shared directory shows of another host that cannot be reached.
func (h *helper) inspectShared(m *hosts.Inspect) {
	answer := func() { h.outbox.send(hosts.InspectDisk(h.disk, h.dir, h.config.Run, m.Host, m.Attempts)) }
	if !h.inspectionQueue.add(m.Host, inspectHang, answer) {
		h.outbox.send(&hosts.Inspected{Host: m.Host, Why: whyHangs})
	}
}
