// Package onfile puts into the words of the hosts what the files of attempts tell (X2):
// for a helper that is asked about another host, for the dispatcher on its own mount,
// and for the simulator of both. It reads as jobs/attempts does, and decides nothing.
package onfile

import (
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// Look answers what dir shows of attempts of a host that cannot be asked itself. What
// counts is what that host wrote, of this run and these attempts: a file proves nothing
// by its name. What could not be read is in Why; the rest of the answer holds.
func Look(d rundir.Disk, dir, run, host string, ids []jobs.AttemptID) *hosts.Looked {
	seen, err := attempts.OfHost(d, dir, run, host, ids)
	m := &hosts.Looked{Host: host, Runs: seen.Claimed, Never: seen.Never, Beat: seen.Beat}
	for _, f := range seen.Finished {
		m.Jobs = append(m.Jobs, hosts.ExitedJob{Attempt: f.Attempt, Slot: f.Slot, Outcome: f.Outcome})
	}
	if err != nil {
		m.Why = err.Error()
	}
	return m
}

// Probed is what files tell of an attempt that has started; ok is false when they do not
// say that it has, or not on which host.
func Probed(f attempts.Fate) (p hosts.ProbedJob, ok bool) {
	p = hosts.ProbedJob{Attempt: f.Attempt, Slot: f.Slot}
	switch f.State {
	case attempts.Finished:
		p.Answer, p.Started, p.Outcome = hosts.HasExited, f.Outcome.Started, &f.Outcome
	case attempts.Claimed:
		p.Answer, p.Started = hosts.IsRunning, f.Claim.At
	default:
		return p, false
	}
	return p, f.Host != ""
}
