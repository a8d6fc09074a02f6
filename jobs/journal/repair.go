package journal

import "dcs-tui/jobs"

// fold applies a record. Once a line has been lost, a record that does not fit
// is tried again after the facts that it proves: a job that was launched had been
// accepted, an attempt that exited had been launched. Nothing else is made up,
// least of all the end of a job.
func (p *replayer) fold(r *jobs.Record) error {
	err := jobs.Fold(p.table, r)
	if err == nil || !p.report.Damaged {
		return err
	}
	for _, m := range implied(p.table, r) {
		if jobs.Fold(p.table, &m) != nil {
			return err
		}
		p.report.warn("assumed, because a later record needs it: %s of job %d (attempt %d)", m.Kind, m.Job, m.N)
	}
	return jobs.Fold(p.table, r)
}

// implied returns the records that must have stood before r and are not in t.
func implied(t *jobs.Table, r *jobs.Record) []jobs.Record {
	var missing []jobs.Record
	last := r.Job
	if r.Kind == jobs.KindAccepted {
		last--
	}
	if n := len(t.Jobs); int(last) > n && int(last) <= len(t.Specs) {
		missing = append(missing, jobs.Record{Kind: jobs.KindAccepted, At: r.At, Job: jobs.ID(n + 1), Count: int(last) - n})
	}
	switch r.Kind {
	case jobs.KindLaunching, jobs.KindRunning, jobs.KindExited, jobs.KindLost, jobs.KindSuperseded, jobs.KindCancelled:
	default:
		return missing
	}
	known, state, open := 0, jobs.Queued, 0
	if j := t.Job(r.Job); j != nil {
		known, state, open = len(j.Attempts), j.State, len(j.Open())
	}
	if r.N-known > 1000 || r.N <= known {
		return missing // not one lost line
	}
	if state.Terminal() {
		missing = append(missing, jobs.Record{Kind: jobs.KindRound, At: r.At, Job: r.Job})
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
