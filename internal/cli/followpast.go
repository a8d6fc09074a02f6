package cli

import (
	"fmt"

	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results/column"
	"dcs-tui/jobs/results/outputs"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// past is the stage of a run that nobody dispatches; owner did last, nil: nobody ever.
// With unasked, a machine, it is what the files show while a dispatcher there has the run.
func (f *follower) past(owner *journal.Owner, unasked string) *stage {
	b, err := f.app.pastBoard(f.run, owner, unasked, f.act, f.far)
	if err != nil {
		return newStage(err, owner)
	}
	st := newStage(nil, owner)
	st.source, st.close = b, b.Close
	return st
}

// pastBoard makes a board of what the run directory shows.
func (a *app) pastBoard(run *rundir.Run, owner *journal.Owner, unasked string, act actor, far farReader) (*runview.Board, error) {
	var past runview.Earlier
	words := map[string]standing.HostWord{}
	reader := journal.Follow(run)
	limit, _, _, _ := journal.Observe(run)
	if _, err := reader.Poll(limit, func(_ int, r *jobs.Record) {
		standing.Hear(words, r)
		if r.Kind != jobs.KindAcked {
			past.Add(r)
		}
	}); err != nil {
		return nil, err
	}
	table := reader.Table()
	table.AcceptStored()
	at := outputs.Locations(run)
	p := runview.Past{
		Options:  boardOptions(run, runView(run, a.labName(run), nil), act),
		HostDirs: at.HostDirs, Here: at.Here, Far: far, Tries: triesOf(run),
	}
	p.Options.Run.Epoch = table.Epoch
	p.Life, p.Over = howOver(table, owner)
	p.Unasked = unasked
	p.Trouble = standing.HostsOfNoUse(table, words)
	if had, err := run.ReadInput(); err == nil && had.Cut() {
		p.Over += "; " + standing.InputText(had, table)
	}
	if inv, err := a.storedInventory(run); err == nil {
		p.Hosts = inv.Hosts
	}
	b := runview.FromTable(table, p)
	b.AddEarlier(&past)
	return b, nil
}

// boardOptions are those of a board of a run; figures that run.toml declares wrongly
// are left out, `results` says which.
func boardOptions(run *rundir.Run, v runview.Run, act actor) runview.Options {
	figures, _ := outputs.Declared(run.Asked)
	return runview.Options{Run: v, Act: act, Figures: figures,
		Outputs: func(columns []*column.Column) *outputs.Reader { return outputs.New(run, columns) }}
}

// howOver says how a run that nobody dispatches came to that.
func howOver(t *jobs.Table, owner *journal.Owner) (runview.Life, string) {
	left := t.Unfinished()
	switch {
	case left == 0 && len(t.Jobs) == 0:
		return runview.Ended, "no job came"
	case left == 0 && standing.AllSucceeded(t):
		return runview.Ended, "all jobs succeeded"
	case left == 0 && t.Counts[jobs.Cancelled] > 0:
		return runview.Ended, "over: " + standing.Counts(t, false)
	case left == 0:
		return runview.Ended, "some jobs did not succeed"
	case owner == nil || owner.Left:
		return runview.Ended, "stopped with " + jobs.Plural(left, "job") + " left"
	}
	return runview.Dead, fmt.Sprintf("%s has died or cannot be seen any more; what it started runs on", owner)
}

// runView names a run to a screen; owner nil: nobody dispatches it.
func runView(run *rundir.Run, lab string, owner *journal.Owner) runview.Run {
	v := runview.Run{Name: run.Name(), UID: run.UID(), Dir: run.Dir, Lab: lab, Created: run.Asked.Created}
	if owner != nil {
		v.Owner, v.Machine, v.Epoch = owner.String(), owner.Host, owner.Epoch
	}
	return v
}

// labName is what people call the hosts of a run.
func (a *app) labName(run *rundir.Run) string { return labOf(run.Asked.InventoryFile) }

func labOf(file string) string {
	if file == "" {
		return "this machine"
	}
	return standing.Path(file)
}

// triesOf is --tries of the run.
func triesOf(run *rundir.Run) int {
	n := 0
	if text, ok := run.Asked.Options["tries"].(string); ok {
		fmt.Sscan(text, &n)
	}
	return n
}
