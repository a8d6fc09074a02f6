package runview

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/results"
)

// fleet holds the phase of jobs that have started on each host that can be reached: Running or
// Suspended. It is nil if nobody dispatches the run.
type fleet map[string]Phase

// fleetOf returns the hosts of what the dispatcher published; nil: nobody dispatches the run.
func fleetOf(s *live.State) fleet {
	if s == nil {
		return nil
	}
	f := fleet{}
	for i := range s.Hosts {
		switch h := &s.Hosts[i]; {
		case h.Linked && h.Suspended > 0:
			f[h.Name] = Suspended
		case h.Linked:
			f[h.Name] = Running
		}
	}
	return f
}

// attemptPhase returns the phase of an attempt that may be alive: Running, Suspended, Away, or Sent.
func (f fleet) attemptPhase(a *jobs.Attempt) Phase {
	phase, isLinked := f[a.Host]
	started := a.State == jobs.AttemptRunning
	switch {
	case isLinked && started:
		return phase
	case !isLinked && (started || f != nil):
		return Away
	}
	return Sent
}

// jobPhase returns the phase of a job with attempts that may be alive, which is that of the one that
// makes the most progress.
func (f fleet) jobPhase(j *jobs.Job) Phase {
	best := Sent
	for _, a := range j.Open() {
		best = min(best, f.attemptPhase(a))
	}
	return best
}

// CountIdle counts the running jobs that do not run at the moment. s is what the dispatcher
// published; nil: nobody dispatches the run.
func CountIdle(t *jobs.Table, s *live.State) (n results.Idle) {
	f := fleetOf(s)
	for j := range t.RowsIn(jobs.Running) {
		switch {
		case OpenAttempt(j).State == jobs.AttemptLaunching:
			n.Sent++
		case f.isSuspended(t, j):
			n.Suspended++
		}
	}
	return n
}

// isSuspended reports whether a running job is suspended. One that is being canceled is not.
func (f fleet) isSuspended(t *jobs.Table, j *jobs.Job) bool {
	_, ending := t.Cancels[j.Spec.ID]
	return !ending && f.jobPhase(j) == Suspended
}

// SuspendedJobs returns a function that reports whether a running job is suspended. s is as in
// CountIdle.
func SuspendedJobs(t *jobs.Table, s *live.State) func(*jobs.Job) bool {
	f := fleetOf(s)
	return func(j *jobs.Job) bool { return f.isSuspended(t, j) }
}
