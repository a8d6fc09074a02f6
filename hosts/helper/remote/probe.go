//go:build linux

package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// probe answers what is known of attempts.
func (h *helper) probe(m *hosts.Probe) {
	if by := h.fence(m.Epoch); by != 0 {
		h.refuseFenced(m.Attempts, by)
		return
	}
	h.answer(m.Attempts)
}

// answer says of each attempt where it stands, looking into the attempt files
// for those that are not in our hands. It does not wait for file systems.
func (h *helper) answer(ids []jobs.AttemptID) {
	if len(ids) == 0 {
		return
	}
	now := &hosts.Probed{}
	var rest []jobs.AttemptID
	h.mu.Lock()
	for _, id := range ids {
		if p, ok := h.knownLocked(id); ok {
			now.Jobs = append(now.Jobs, p)
		} else {
			rest = append(rest, id)
		}
	}
	h.mu.Unlock()
	if len(now.Jobs) > 0 {
		h.out.send(now)
	}
	if len(rest) == 0 {
		return
	}
	if h.probes.do(func() {
		var found []hosts.ProbedJob
		for _, id := range rest {
			found = append(found, h.examine(id, pgroup{}))
		}
		h.tell(found)
	}) {
		return
	}
	unknown := &hosts.Probed{}
	for _, id := range rest {
		unknown.Jobs = append(unknown.Jobs, hosts.ProbedJob{Attempt: id, Why: "the file system does not answer"})
	}
	h.out.send(unknown)
}

// tell sends answers; outcomes go as exits.
func (h *helper) tell(found []hosts.ProbedJob) {
	exits, probed := &hosts.Exits{}, &hosts.Probed{}
	for _, p := range found {
		if p.Answer == hosts.HasExited {
			exits.Jobs = append(exits.Jobs, hosts.ExitedJob{Attempt: p.Attempt, Slot: p.Slot, Outcome: *p.Outcome})
		}
		probed.Jobs = append(probed.Jobs, p)
	}
	if len(exits.Jobs) > 0 {
		h.out.send(exits)
	}
	h.out.send(probed)
}

// examine finds out what became of an attempt from the files alone: a sentinel,
// held by a living supervisor, a claim. "Never started" it says only after it
// has made the claim itself; "dead" only when nothing of the attempt is left.
// job is its process group, as far as it is known.
func (h *helper) examine(id jobs.AttemptID, job pgroup) hosts.ProbedJob {
	return h.inspect(id, job, true)
}

// inspect is examine. Unless it may settle the matter by a tombstone, what was not
// claimed stays unknown.
func (h *helper) inspect(id jobs.AttemptID, job pgroup, settle bool) hosts.ProbedJob {
	p := hosts.ProbedJob{Attempt: id}
	// In this order: what is not held any more has its sentinel by now.
	taken, err := h.spool.taken()
	if err != nil {
		p.Why = err.Error()
		return p
	}
	by, holds := taken[id]
	held := holds && by.alive()
	torn, err := h.sentinel(&p)
	switch {
	case p.Answer == hosts.HasExited:
		return p // held or not: its supervisor may be busy with the next before it says so
	case held:
		p.Answer, p.Slot, p.Started = hosts.IsRunning, by.slot, h.takenAt(id, by)
		return p
	case err != nil:
		p.Why = err.Error()
		return p
	}
	// A job can remove its claim. What shows that it was started is looked for
	// before a tombstone is made, and outweighs it ever after.
	started := job.id != 0
	if !started {
		if started, err = h.leftFiles(id); err != nil {
			p.Why = err.Error()
			return p
		}
	}
	c, answer, err := h.readClaim(id, settle)
	switch {
	case err != nil:
		p.Why = err.Error()
		return p
	case answer == hosts.Unknown && !started:
		p.Why = "it was not claimed"
		return p
	case answer == hosts.NeverStarted && (!started || c.Tombstone && !byProber(c)):
		if left := h.endHeld(id, holds); len(left) > 0 {
			p.Why = notEnded + name(left)
			return p
		}
		p.Answer = answer
		return p
	}
	return h.bodies(p, c, torn, job)
}

// byProber says that a tombstone was made by someone who found no claim, not by the
// supervisor that had claimed the attempt and could not start it.
func byProber(c attempts.Claim) bool { return strings.HasPrefix(c.By, "0.") }

// endHeld ends what there may be of an attempt that a supervisor held and that has
// nothing to show that it was started.
func (h *helper) endHeld(id jobs.AttemptID, held bool) []proc {
	if !held {
		return nil
	}
	return h.endAttempt(id, pgroup{})
}

const notEnded = "processes of it could not be ended: "

// leftFiles says whether the attempt has files that are made after the claim.
func (h *helper) leftFiles(id jobs.AttemptID) (bool, error) {
	for _, f := range []jobs.File{jobs.FileReserved, jobs.FileOut} {
		if _, err := stat(jobs.AttemptFile(h.dir, id, f)); !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}

// bodies decides about an attempt that was claimed, is held by nobody, and has
// no sentinel: it is dead once nothing of it is left.
func (h *helper) bodies(p hosts.ProbedJob, c attempts.Claim, torn bool, job pgroup) hosts.ProbedJob {
	if c.Host != "" && c.Host != h.cfg.Host {
		p.Why = "it was claimed by host " + c.Host
		return p
	}
	if left := h.endAttempt(p.Attempt, job); len(left) > 0 {
		p.Why = notEnded + name(left)
		return p
	}
	if hang := hungProcs.ours(); len(hang) > 0 {
		p.Why = "processes hang so that nothing can be learned of them, and may be of it: " + name(hang)
		return p
	}
	by, _ := parseHolder(c.By)
	p.Answer = hosts.Dead
	switch {
	case c.Boot != "" && c.Boot != h.cfg.Boot:
		p.Why = "the host was rebooted while it ran"
	case torn:
		p.Why = "its sentinel is damaged"
	case c.Run == "":
		p.Why = "its claim is damaged: it was cut short before it could start, or a job or a disk spoilt it"
	case by.alive():
		p.Why = "its supervisor could not start it"
	default:
		p.Why = "its supervisor died"
	}
	err := again(func() error { return remove(jobs.AttemptFile(h.dir, p.Attempt, jobs.FileReserved)) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.trouble(p.Attempt, fmt.Sprintf("tidying up after %s: %v", p.Attempt, err))
	}
	return p
}

// endAttempt ends every process that carries the attempt's cookie or is in its
// process group, and the strays of supervisors that died: it may have been theirs.
// It returns what could not be ended.
func (h *helper) endAttempt(id jobs.AttemptID, job pgroup) []proc {
	mine := cookie(h.cfg.Run, h.cfg.Host, id.String())
	marked := withCookie(func(s string) bool { return s == mine }, job, nil)
	return endChasing(func(t table) []proc { return append(marked(t), h.strays(t)...) }, h.stray, min(h.cfg.Grace, 2*time.Second))
}

// sentinel looks for an outcome, where it belongs and in the spool. torn: there
// is a file, but not a whole sentinel.
func (h *helper) sentinel(p *hosts.ProbedJob) (torn bool, err error) {
	for _, path := range []string{jobs.AttemptFile(h.dir, p.Attempt, jobs.FileExit), h.spool.path(dirDone, p.Attempt.String())} {
		b, rerr := readPlain(path, jobs.SentinelBytes+1)
		if rerr != nil {
			if err == nil && !errors.Is(rerr, fs.ErrNotExist) {
				err = rerr // and what is in the spool counts all the same
			}
			continue
		}
		o, _, slot, derr := jobs.DecodeSentinel(b, h.cfg.Run, p.Attempt)
		if derr != nil {
			torn = true
			continue
		}
		if !o.OK() {
			o.LastLine = lastLineOf(jobs.AttemptFile(h.dir, p.Attempt, jobs.FileErr))
		}
		p.Answer, p.Slot, p.Started, p.Outcome = hosts.HasExited, slot, o.Started, &o
		return false, nil
	}
	return torn, err
}

func lastLineOf(path string) string {
	fd, err := openPlain(path)
	if err != nil {
		return ""
	}
	defer closeFile(fd, path)
	return lastLine(fd, path)
}

// maxClaim is more than a claim can have, in bytes.
const maxClaim = 512

// readClaim reads the claim, or makes it as a tombstone if there is none: then
// the attempt can never start. Dead here means: claimed by somebody. c is zero
// when there was no whole claim.
func (h *helper) readClaim(id jobs.AttemptID, settle bool) (c attempts.Claim, a hosts.Answer, err error) {
	path := jobs.AttemptFile(h.dir, id, jobs.FileClaim)
	for range 2 {
		b, err := readPlain(path, maxClaim)
		if err == nil {
			if c, err = attempts.ParseClaim(b); err != nil {
				return attempts.Claim{}, hosts.Dead, nil // cut short: its maker died before it started anything, or the machine did
			}
			if c.Tombstone {
				return c, hosts.NeverStarted, nil
			}
			return c, hosts.Dead, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return c, hosts.Unknown, err
		}
		if !settle {
			return c, hosts.Unknown, nil
		}
		if err := h.tombstone(id); err == nil {
			return c, hosts.NeverStarted, nil
		} else if !errors.Is(err, errClaimed) {
			return c, hosts.Unknown, err
		}
	}
	return c, hosts.Unknown, errClaimed
}

func (h *helper) tombstone(id jobs.AttemptID) error {
	dir := jobs.AttemptFile(h.dir, id, jobs.FileClaim)
	dir = dir[:len(dir)-len(id.String()+".claim")]
	if err := makeDirs(dir); err != nil {
		return err
	}
	fd, err := openDir(dir)
	if err != nil {
		return err
	}
	defer closeFile(fd, dir)
	return makeClaim(fd, h.cfg.claimTemp(h.holder()), &attempts.Claim{
		Tombstone: true, Run: h.cfg.Run, Attempt: id, Host: h.cfg.Host,
		By: h.holder().String(), Boot: h.cfg.Boot, At: wall(),
	})
}
