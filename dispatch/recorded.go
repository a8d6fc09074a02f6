package dispatch

import (
	"context"
	"time"

	"dcs-tui/jobs"
)

// Recorded lists attempts whose outcomes are recorded.
type Recorded struct {
	Attempts []jobs.AttemptID // in order
	NumJobs  int              // number of jobs of the run
	// Lease is for how long after its record a launch of this run can be carried out by a host.
	Lease time.Duration
}

// Recorded returns the attempts of the jobs from first to last whose outcomes are recorded. It returns
// an error after the end of ctx or of the dispatcher.
func (d *Dispatcher) Recorded(ctx context.Context, first, last jobs.ID) (Recorded, error) {
	return query(ctx, d, func(e *engine) Recorded {
		table := e.core.Table()
		var rows jobs.RowReader
		r := Recorded{NumJobs: table.NumJobs(), Lease: e.core.LongestLease()}
		for id := first; id <= min(last, jobs.ID(r.NumJobs)); id++ {
			if job := rows.Job(table, id); job != nil {
				r.Attempts = job.AppendRecorded(r.Attempts)
			}
		}
		return r
	})
}
