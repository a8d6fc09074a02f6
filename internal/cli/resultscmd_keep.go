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

// keepWithin is for all that is not kept yet at the end.
const keepWithin = 15 * time.Second

// figureKeeper keeps the figures that a run has declared of outputs that only their host
// has: after the run nobody asks it. nil when none are declared.
func figureKeeper(run *rundir.Run, d *dispatch.Dispatcher) *outputs.Keeper {
	columns, _ := outputs.Declared(run.Asked) // `results` says what is wrong with one
	if len(columns) == 0 {
		return nil
	}
	r := outputs.New(run, columns)
	r.Fetch = outputs.Fetching(hosts.MaxChunk, func(ctx context.Context, id jobs.AttemptID, n int) ([]byte, int64, error) {
		return d.Output(ctx, id, jobs.FileOut, -int64(n), n)
	})
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
