package hosts

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// LookOnDisk answers what dir shows of attempts of a host that cannot be asked itself. What
// counts is what that host wrote, of this run and these attempts: a file proves nothing
// by its name. What could not be read is in Why; the rest of the answer holds.
func LookOnDisk(d rundir.Disk, dir, run, host string, ids []jobs.AttemptID) *Looked {
	seen, err := attempts.OfHost(d, dir, run, host, ids)
	m := &Looked{Host: host, Runs: seen.Claimed, Never: seen.Never, Beat: seen.Beat}
	for _, f := range seen.Finished {
		m.Jobs = append(m.Jobs, ExitedJob{Attempt: f.Attempt, Slot: f.Slot, Outcome: f.Outcome})
	}
	if err != nil {
		m.Why = err.Error()
	}
	return m
}

// ProbedOnDisk is what files tell of an attempt that has started; ok is false when they do not
// say that it has, or not on which host.
func ProbedOnDisk(f attempts.Fate) (p ProbedJob, ok bool) {
	p = ProbedJob{Attempt: f.Attempt, Slot: f.Slot}
	switch f.State {
	case attempts.Finished:
		p.Answer, p.Started, p.Outcome = HasExited, f.Outcome.Started, &f.Outcome
	case attempts.Claimed:
		p.Answer, p.Started = IsRunning, f.Claim.At
	default:
		return p, false
	}
	return p, f.Host != ""
}
