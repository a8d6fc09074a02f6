package dispatch

import (
	"context"
	"time"

	"dcs-tui/hosts"
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

// PackOnHosts lets hosts that keep the files of attempts themselves pack those of ids, which are in one
// directory and in order. Recorded must have returned them, longer ago than its Lease. PackOnHosts does
// not wait for the hosts. A host that misses the request packs at the end of the run.
func (d *Dispatcher) PackOnHosts(ctx context.Context, ids []jobs.AttemptID) error {
	return d.call(ctx, func(e *engine) {
		of := map[string][]jobs.AttemptID{}
		for _, id := range ids {
			if at := e.core.Table().Attempt(id); at != nil {
				of[at.Host] = append(of[at.Host], id)
			}
		}
		for host, ids := range of {
			a := e.agents[host]
			if a == nil || len(a.commands) > maxCommands/2 { // more important ones must fit
				continue
			}
			if hello := a.hello.Load(); hello != nil && !hello.Shared {
				a.enqueue(hosts.Pack{Epoch: a.epoch(), Attempts: ids})
			}
		}
	})
}
