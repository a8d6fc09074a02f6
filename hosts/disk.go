package hosts

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/rundir"
)

// InspectDisk returns what files in dir prove about attempts of a host that cannot be queried. Only
// files of this run, host, and attempt count. Why describes what could not be read; the rest is
// valid nevertheless.
func InspectDisk(d rundir.Disk, dir, run, host string, ids []jobs.AttemptID) *Inspected {
	seen, err := attempts.ReadHostAttempts(d, dir, run, host, ids)
	m := &Inspected{Host: host, Runs: seen.Claimed, Never: seen.Never, Heartbeat: seen.Heartbeat, Machine: seen.Machine}
	for _, f := range seen.Finished {
		m.Jobs = append(m.Jobs, ExitedJob{Attempt: f.Attempt, Slot: f.Slot, Outcome: f.Outcome})
	}
	if err != nil {
		m.Why = err.Error()
	}
	return m
}

// ProbedOnDisk returns what files prove about an attempt that has started. ok is false if
// they do not prove that it has started, or on which host.
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
