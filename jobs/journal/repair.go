package journal

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// fold applies a record. Once a line has been lost, a record that does not fit
// is tried again after the facts that it proves: a job that was launched had been
// accepted, an attempt that exited had been launched. Nothing else is made up,
// least of all the end of a job.
func (f *Follower) fold(r *jobs.Record) error {
	err := jobs.Fold(f.table, r)
	if err == nil || !f.report.Damaged {
		return err
	}
	for _, m := range implied(f.table, r) {
		if jobs.Fold(f.table, &m) != nil {
			return err
		}
		f.report.warn("assumed, because a later record needs it: %s of job %d (attempt %d)", m.Kind, m.Job, m.N)
	}
	return jobs.Fold(f.table, r)
}

// mostLost bounds what a record may prove to be lost: jobs of jobs.jsonl, and
// attempts of a job.
const (
	mostLostJobs     = 1 << 20
	mostLostAttempts = 1000
)

// missingSpecs puts jobs that were accepted and whose specifications are gone
// into their places: their attempts and results stand, but they cannot be run.
func (f *Follower) missingSpecs(e epochFile, no int, r *jobs.Record) {
	have, last := f.table.NumSpecs(), int(r.Job)-1+r.Count
	if r.Job < 1 || r.Count < 1 || last < int(r.Job) || last <= have || last-have > mostLostJobs {
		return
	}
	f.damage("%s has lost jobs %d to %d, which %s:%d says are part of the run", rundir.SpecsFile, have+1, last, e.label(), no)
	var lost []*jobs.Spec
	for id := have + 1; id <= last; id++ {
		lost = append(lost, jobs.LostSpec(jobs.ID(id), rundir.SpecsFile+": the line is missing"))
	}
	f.table.SetSpecs(have, lost)
	f.run.MissingSpecs(last)
}

// implied returns the records that must have stood before r and are not in t.
func implied(t *jobs.Table, r *jobs.Record) []jobs.Record {
	var missing []jobs.Record
	last := r.Job
	if r.Kind == jobs.KindAccepted {
		last--
	}
	if n := t.NumJobs(); int(last) > n && int(last) <= t.NumSpecs() {
		missing = append(missing, jobs.Record{Kind: jobs.KindAccepted, At: r.At, Job: jobs.ID(n + 1), Count: int(last) - n})
	}
	known, state, open := 0, jobs.Queued, 0
	if j := t.Job(r.Job); j != nil {
		known, state, open = len(j.Attempts), j.State, len(j.Open())
	}
	anew := jobs.Record{Kind: jobs.KindRound, At: r.At, Job: r.Job}
	switch r.Kind {
	case jobs.KindLaunching, jobs.KindRunning, jobs.KindExited, jobs.KindLost, jobs.KindSuperseded, jobs.KindCancelled:
	case jobs.KindRound, jobs.KindEdited: // no attempt of it could start any more
		if j := t.Job(r.Job); j != nil && !(state.Terminal() && r.Kind == jobs.KindRound) {
			for _, a := range j.Open() {
				next := jobs.Running
				if open--; open == 0 {
					next = jobs.Queued
				}
				if state.Terminal() {
					next = state
				}
				missing = append(missing, jobs.Record{Kind: jobs.KindLost, At: r.At, Job: r.Job, N: a.ID.N, Host: a.Host, Next: next,
					Reason: "the journal's record of its end is damaged"})
			}
		}
		return missing
	case jobs.KindJob, jobs.KindCancelling:
		if state.Terminal() { // it ended again, or was to end: it had begun again
			missing = append(missing, anew)
		}
		return missing
	default:
		return missing
	}
	if r.N-known > mostLostAttempts || r.N <= known {
		return missing // not one lost line
	}
	if state.Terminal() {
		missing = append(missing, anew)
	}
	for n := known + 1; n < r.N; n++ {
		next := jobs.Queued
		if open > 0 {
			next = jobs.Running
		}
		missing = append(missing,
			jobs.Record{Kind: jobs.KindLaunching, At: r.At, Job: r.Job, N: n},
			jobs.Record{Kind: jobs.KindLost, At: r.At, Job: r.Job, N: n, Next: next, Reason: "the journal's record of it is damaged"})
	}
	if r.Kind != jobs.KindLaunching {
		missing = append(missing, jobs.Record{Kind: jobs.KindLaunching, At: r.At, Job: r.Job, N: r.N, Host: r.Host})
	}
	return missing
}
