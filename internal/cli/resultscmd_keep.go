package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/places"
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

// onHosts are the results of a run whose outputs only these hosts have, as far as its
// files show: an earlier dispatcher may have died before it had kept their figures.
func onHosts(hs []*hosts.Host, o *owned) (list []results.Result) {
	at, known := places.Of(o.run), map[string]bool{}
	for _, h := range hs {
		known[h.Name] = true
	}
	for i := range o.table.Jobs {
		j := &o.table.Jobs[i]
		if a := results.Counted(j); j.State.Terminal() && a != nil && at.HostDirs[a.Host] != "" && known[a.Host] {
			list = append(list, at.Result(j))
		}
	}
	return list
}

// awaitWithin is how long a run is held open for hosts that have what an earlier
// dispatcher has not kept: it may have nothing else to do.
const awaitWithin = 30 * time.Second

// awaitFigures waits until the hosts that have such outputs are there, and have been asked.
func (s *session) awaitFigures(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, awaitWithin)
	defer cancel()
	said := false
	for names := s.figures.Lacking(ctx); len(names) > 0 && ctx.Err() == nil; {
		if snap := s.d.Snapshot(); snap != nil && canBeAsked(snap.Hosts, names) {
			s.figures.Again()
			s.figures.Lacking(ctx)
			return
		}
		if !said {
			said = true
			s.say(func() string {
				return "waiting for " + console.Shorten(console.CleanLine(strings.Join(names, ", "))) + ": figures of earlier jobs are not kept yet"
			})
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// canBeAsked says whether all of these hosts have come up. That a link to them is made is
// not enough: whoever asks before the dispatcher has taken it over is told that there is none.
func canBeAsked(views []sched.HostView, names []string) bool {
	up := 0
	for _, v := range views {
		if v.Hello != nil && v.Hello.Error == "" && slices.Contains(names, v.Name) {
			up++
		}
	}
	return up == len(names)
}

// keepFigures waits until the figures are kept, while the hosts are still there, and
// says what is not.
func (s *session) keepFigures(k *outputs.Keeper) {
	ctx, cancel := context.WithTimeout(context.Background(), keepWithin)
	defer cancel()
	for _, note := range k.Close(ctx) {
		s.app.warn("%s", console.CleanLine(note))
	}
}
