package cli

import (
	"errors"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/onfile"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/journal"
)

// look reads what the run directory, as this machine sees it, shows of the attempts
// of a host that cannot be asked (X2).
func (o *owned) look(host string, ids []jobs.AttemptID) *hosts.Looked {
	return onfile.Look(o.run.Disk, o.run.Dir, o.run.UID(), host, ids)
}

// found reads the claims and sentinels in the run directory of attempts without a
// record. After damage to the journal it returns all that no record has settled.
// Otherwise it reads those of unfinished jobs only, and finds some only if records are
// missing.
func (o *owned) found() (all []sched.Found, err error) {
	if o.table.Epoch < 2 {
		return nil, nil
	}
	alive := time.Now()
	err = attempts.Each(o.run.Disk, o.run.Dir, o.run.UID(), "", sched.Unfinished(o.table), func(f attempts.Fate) error {
		// There may be a million: nobody is to take us for dead meanwhile.
		if time.Since(alive) >= journal.BeatEvery {
			alive = time.Now()
			if err := o.journal.Beat(); errors.Is(err, journal.ErrFenced) {
				return err
			}
		}
		a := o.table.Attempt(f.Attempt)
		known := a != nil && a.Host == f.Host
		if o.table.Damaged {
			known = a != nil && !a.State.Open() && a.State != jobs.AttemptLost
		}
		if known {
			return nil
		}
		if p, ok := onfile.Probed(f); ok {
			all = append(all, sched.Found{Host: f.Host, ProbedJob: p})
		}
		return nil
	})
	return all, err
}

// fromSource counts the jobs that a run has from its own source; those that were
// submitted later are no part of that.
func (o *owned) fromSource() int {
	n := 0
	if o.run.Asked.Options[standing.OptionSource] == nil {
		return len(o.table.Specs) + len(o.waiting) // nobody asks
	}
	for _, list := range [][]*jobs.Spec{o.table.Specs, o.waiting} {
		for _, s := range list {
			if s == nil || s.Options == nil || s.Request == "" {
				n++
			}
		}
	}
	return n
}
