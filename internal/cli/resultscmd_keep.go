package cli

import (
	"context"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/outputs"
	"dcs-tui/jobs/rundir"
)

const (
	fetchWithin = 20 * time.Second // one output of a host
	keepWithin  = 15 * time.Second // at the end, all that is not kept yet
)

// figureKeeper keeps the figures that a run has declared of outputs that only their host
// has: after the run nobody asks it. nil when none are declared.
func figureKeeper(run *rundir.Run, d *dispatch.Dispatcher) *outputs.Keeper {
	columns, _ := outputs.Declared(run.Asked) // `results` says what is wrong with one
	if len(columns) == 0 {
		return nil
	}
	r := outputs.New(run, columns)
	r.Fetch = func(ctx context.Context, res *results.Result, n int64) ([]byte, int64, error) {
		ctx, cancel := context.WithTimeout(ctx, fetchWithin)
		defer cancel()
		n = min(n, hosts.MaxChunk)
		return d.Output(ctx, res.Attempt, jobs.FileOut, -n, int(n))
	}
	return outputs.NewKeeper(r)
}

// onHosts are the results of a run whose outputs only hosts have, as far as its files show:
// an earlier dispatcher may have died before it had kept their figures.
func onHosts(run *rundir.Run, t *jobs.Table) (list []results.Result) {
	places := readPlaces(run)
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if a := results.Counted(j); j.State.Terminal() && a != nil && places[a.Host] != "" {
			list = append(list, resultOf(run, places, j))
		}
	}
	return list
}

// keepFigures waits until the figures are kept, while the hosts are still there, and
// says what is not.
func (s *session) keepFigures(k *outputs.Keeper) {
	ctx, cancel := context.WithTimeout(context.Background(), keepWithin)
	defer cancel()
	for _, note := range k.Close(ctx) {
		s.app.warn("%s", cleanLine(note))
	}
}
