package cli

import (
	"errors"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/journal"
)

// look reads what the run directory, as this machine sees it, shows of the attempts
// of a host that cannot be asked (X2).
func (o *owned) look(host string, ids []jobs.AttemptID) *hosts.Looked {
	seen, err := attempts.OfHost(o.run.Disk, o.run.Dir, o.run.UID(), host, ids)
	m := &hosts.Looked{Host: host, Runs: seen.Claimed, Never: seen.Never, Beat: seen.Beat}
	for _, f := range seen.Finished {
		m.Jobs = append(m.Jobs, hosts.ExitedJob{Attempt: f.Attempt, Slot: f.Slot, Outcome: f.Outcome})
	}
	if err != nil {
		m.Why = err.Error()
	}
	return m
}

// found reads every claim and sentinel of the run directory when records of the
// journal are missing: they tell of attempts that nothing else tells of.
func (o *owned) found() (all []sched.Found, err error) {
	if !o.table.Damaged {
		return nil, nil
	}
	alive := time.Now()
	err = attempts.Each(o.run.Disk, o.run.Dir, o.run.UID(), "", func(f attempts.Fate) error {
		// There may be a million: nobody is to take us for dead meanwhile.
		if time.Since(alive) >= journal.BeatEvery {
			alive = time.Now()
			if err := o.journal.Beat(); errors.Is(err, journal.ErrFenced) {
				return err
			}
		}
		if a := o.table.Attempt(f.Attempt); a != nil && !a.State.Open() && a.State != jobs.AttemptLost {
			return nil // it has its record
		}
		p := hosts.ProbedJob{Attempt: f.Attempt, Slot: f.Slot}
		switch f.State {
		case attempts.Finished:
			p.Answer, p.Started, p.Outcome = hosts.HasExited, f.Outcome.Started, &f.Outcome
		case attempts.Claimed:
			p.Answer, p.Started = hosts.IsRunning, f.Claim.At
		default:
			return nil
		}
		if f.Host != "" {
			all = append(all, sched.Found{Host: f.Host, ProbedJob: p})
		}
		return nil
	})
	return all, err
}
