//go:build linux

package remote

import (
	"cmp"
	"errors"
	"fmt"
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
	var known []hosts.ProbedJob
	var rest []jobs.AttemptID
	h.mu.Lock()
	for _, id := range ids {
		if p, ok := h.knownLocked(id); ok {
			known = append(known, p)
		} else {
			rest = append(rest, id)
		}
	}
	h.mu.Unlock()
	h.sendProbed(known)
	if len(rest) == 0 {
		return
	}
	if !h.probes.do(func() { h.sendResults(h.findFates(rest, pgroup{}, true)) }) {
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

// settleFate is findFates for one attempt, which may get a tombstone.
func (h *helper) settleFate(id jobs.AttemptID, job pgroup) hosts.ProbedJob {
	return h.findFates([]jobs.AttemptID{id}, job, true)[0]
}

// findFates finds out what happened to attempts from their files: sentinels, living supervisors, and
// claims. It reports "never started" only after it has created the status file itself, and "dead" only
// when no process of the attempt is left. job is the process group of the attempt if there is only
// one, as far as it is known. Unless mayEntomb is true, no tombstone is created, and an attempt without
// a claim stays unknown.
func (h *helper) findFates(ids []jobs.AttemptID, job pgroup, mayEntomb bool) []hosts.ProbedJob {
	found, open := make([]hosts.ProbedJob, len(ids)), make([]openFate, len(ids))
	// Read taken/ first: what is not held any more has its sentinel by then.
	taken, err := h.spool.takenAttempts()
	scans := false
	for i, id := range ids {
		p, o := &found[i], &open[i]
		p.Attempt = id
		if err != nil {
			p.Why = err.Error()
			continue
		}
		o.by, o.holds = taken[id]
		o.held = o.holds && o.by.isAlive()
		o.isOpen = h.readAnswer(p, o)
		if o.isOpen {
			scans = scans || o.held || !o.holds && (o.f.State == attempts.Nothing || o.f.State == attempts.Claimed)
		}
	}
	var runs map[jobs.AttemptID]holder
	if scans {
		runs = h.findProcesses() // reads all of /proc, so all attempts share it
	}
	for i := range found {
		if open[i].isOpen {
			h.conclude(&found[i], &open[i], runs, job, mayEntomb)
		}
	}
	return found
}

// openFate is what the files of an attempt show. isOpen reports whether that is no answer.
type openFate struct {
	isOpen bool
	f      attempts.Fate
	by     holder // according to taken/
	holds  bool   // there is one
	held   bool   // and it is alive
}

// readAnswer sets the answer for an attempt if its files are one. It reports whether they are not.
func (h *helper) readAnswer(p *hosts.ProbedJob, o *openFate) (isOpen bool) {
	f, err := h.readFate(p.Attempt)
	o.f = f
	switch {
	case f.State == attempts.Finished: // its supervisor may not have reported that yet
		p.Answer, p.Slot, p.Started, p.Outcome = hosts.HasExited, f.Slot, f.Outcome.Started, &f.Outcome
	case o.held && f.State == attempts.Claimed:
		h.setRunning(p, o.by)
	case err != nil && !o.held:
		p.Why = err.Error()
	default:
		return true
	}
	return false
}

// setRunning sets the answer for an attempt that a living supervisor has claimed.
func (h *helper) setRunning(p *hosts.ProbedJob, by holder) {
	p.Answer, p.Slot, p.Started = hosts.IsRunning, by.Slot, h.takenAt(p.Attempt, by)
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.running[p.Attempt]; r != nil {
		r.claimed = true
	}
}

// conclude sets the answer for an attempt whose files are none. runs is a result of findProcesses.
func (h *helper) conclude(p *hosts.ProbedJob, o *openFate, runs map[jobs.AttemptID]holder, job pgroup, mayEntomb bool) {
	id, f := p.Attempt, o.f
	by, some := runs[id]
	if o.held {
		// It was taken, but not claimed, unless that has changed during the scan. On a full disk it will
		// be refused. But somebody may also have deleted the claim of a running attempt.
		if h.readAnswer(p, o) {
			p.Answer = hosts.Buffered
			if some {
				h.setRunning(p, o.by)
			}
		}
		return
	}
	started := job.id != 0
	if !o.holds && (f.State == attempts.Nothing || f.State == attempts.Claimed) {
		if by.PID > 0 {
			*p = h.hold(*p, f, by)
			return
		}
		started = started || some
	}
	// A job can remove its status file. Look for other evidence of a start before making a
	// tombstone. Such evidence outweighs any tombstone.
	var err error
	if !started {
		started, err = h.hasFiles(id)
	}
	if err == nil && f.State == attempts.Nothing && mayEntomb {
		if err = h.tombstone(id); errors.Is(err, errClaimed) {
			*p = h.findFates([]jobs.AttemptID{id}, job, false)[0]
			return
		}
		f.State = attempts.NeverStarts
	}
	switch {
	case err != nil:
		p.Why = err.Error()
	case f.State == attempts.Nothing && !started:
		p.Why = "it was not claimed"
	case f.State == attempts.NeverStarts && (!started || f.Claim.Tombstone && !isByProber(f.Claim)):
		if o.holds { // a dead supervisor held it, and there is no evidence of a start
			if left := h.endAttempt(id, pgroup{}); len(left) > 0 {
				p.Why = notEnded + listProcs(left)
				return
			}
		}
		p.Answer = hosts.NeverStarted
	default:
		*p = h.confirmDead(*p, f, job)
	}
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
			b, _, err = rundir.ReadPart(h.disk, path, 0, attempts.StatusBytes+1) // it may be in a pack
		}
		if err != nil {
			f = attempts.Fate{Attempt: id}
			continue
		}
		f = attempts.Decode(b, h.config.Run, id)
		if f.State == attempts.Finished {
			if !f.Outcome.OK() {
				f.Outcome.LastLine = h.lastLine(id)
			}
			return f, nil
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case rundir.LacksPack(err):
		// Its sentinel may be in there, so it must not count as never started.
		err = fmt.Errorf("%w; make it whole and readable, or move it away if such attempts may run again", err)
	}
	return f, err
}

func (h *helper) lastLine(id jobs.AttemptID) string {
	path := jobs.AttemptFile(h.dir, id, jobs.FileErr)
	b, _, _ := rundir.ReadPart(h.disk, path, -attempts.LastBytes, attempts.LastBytes) // it may be in a pack
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
	var rest []jobs.AttemptID // examined together
	examine := func(most int) {
		if len(rest) > most {
			for _, p := range h.findFates(rest, pgroup{}, false) {
				add(p)
			}
			rest = nil
		}
	}
	ids, err := h.listSpooled()
	told := make(map[jobs.AttemptID]bool, len(ids))
	for _, id := range ids {
		told[id] = true
		h.mu.Lock()
		p, known := h.knownLocked(id)
		h.mu.Unlock()
		if known {
			add(p)
		} else {
			rest = append(rest, id)
		}
	}
	examine(0)
	err2 := attempts.EachFate(h.disk, h.dir, h.config.Run, h.config.Host, m.Jobs, func(f attempts.Fate) error {
		switch {
		case h.newerEpoch(m.Epoch) != 0:
			return errListFenced
		case told[f.Attempt]:
		case f.State == attempts.Finished:
			add(hosts.ProbedJob{Attempt: f.Attempt, Answer: hosts.HasExited, Slot: f.Slot, Started: f.Outcome.Started,
				Outcome: &f.Outcome})
		case f.State == attempts.NeverStarts:
			add(hosts.ProbedJob{Attempt: f.Attempt, Answer: hosts.NeverStarted})
		default:
			rest = append(rest, f.Attempt)
			examine(listPiece)
		}
		return nil
	})
	examine(0)
	if err = cmp.Or(err2, err); err != nil { // a pack must be reported
		piece.Why = err.Error()
	}
	piece.Last, piece.All, piece.LacksPack = true, len(m.Jobs) == 0, rundir.LacksPack(err)
	h.outbox.send(piece)
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
