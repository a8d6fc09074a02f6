package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// cancelSome ends single jobs of a run (K9): the dispatcher that is alive is asked;
// without one this command takes the run over, ends them, launches nothing and leaves.
func (a *app) cancelSome(cmd *cobra.Command, f *runFlags, run *rundir.Run, sel *selection, opt askOptions) error {
	table, err := standing.WholeTable(run)
	if err != nil {
		return err
	}
	ids, err := a.pick(cmd.Context(), run, table, sel, func(st jobs.JobState) bool { return !st.Terminal() })
	if err != nil {
		return err
	}
	waiting, _, err := run.RequestNames()
	if err != nil {
		return exit.Usagef("%w", err)
	}
	running, queued, over := 0, 0, 0
	for _, id := range ids {
		switch st := table.Job(id).State; {
		case st == jobs.Running:
			running++
		case st == jobs.Queued:
			queued++
		default:
			over++
		}
	}
	if len(ids) == 0 || running+queued == 0 && len(waiting) == 0 { // a requeue that waits would come after us
		return a.tellCancelled(run, &ask.Request{Trace: ask.Trace{Answered: true, Left: over}}, opt.json)
	}
	what := jobs.Plural(running, "job") + " that are running or handed over and " + jobs.Plural(queued, "queued job")
	if running == 1 {
		what = "1 job that is running or handed over and " + jobs.Plural(queued, "queued job")
	}
	if err := a.agree(opt.yes, "cancel", "end "+what+" of "+console.CleanLine(run.Name())); err != nil {
		return err
	}
	q := &rundir.Request{Do: rundir.DoCancel, Jobs: jobs.RangesOf(ids)}
	owner, err := journal.ReadOwner(run)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	var e *ask.Request
	if f.force {
		q.By, q.At = dispatch.Asker(), time.Now()
		if e, err = ask.Leave(run, q); err != nil {
			return exit.Usagef("%w", err)
		}
	} else {
		waits := false
		if e, waits, err = a.ask(cmd.Context(), run, q); err != nil {
			return err
		}
		if !waits {
			if !e.Answered && e.Refused == "" {
				a.con.Line("  " + forceText(run))
			}
			return a.tellCancelled(run, e, opt.json)
		}
		f.force = owner != nil && owner.Life() != journal.Dead // we have seen for ourselves that it is gone
	}
	if err := a.cancelSomeOurselves(cmd, f, run, e, table); err != nil {
		return err
	}
	return a.tellCancelled(run, e, opt.json)
}

// cancelSomeOurselves takes the run over for as long as it takes to carry the
// requests out that wait, ours with them, and to end those jobs.
func (a *app) cancelSomeOurselves(cmd *cobra.Command, f *runFlags, dir *rundir.Run, e *ask.Request, table *jobs.Table) error {
	d, o, err := a.takeOver(cmd, f, dir)
	if err != nil {
		return err
	}
	d.opening = "nobody dispatches it; ending what was asked"
	d.brief, f.OnDone = true, ""
	for _, id := range e.Jobs().IDs(jobs.ID(len(table.Jobs))) {
		if !table.Job(id).State.Terminal() {
			e.Await(id) // also of those that were being ended before
		}
	}
	d.opts.StopWhen = func(ctx context.Context) string {
		late := time.After(cancelWait)
		every := time.NewTicker(50 * time.Millisecond)
		defer every.Stop()
		for e.Poll(); !e.Over() || e.Awaits(); e.Poll() {
			select {
			case <-ctx.Done():
				return "the run is over"
			case <-late:
				return "not everything has ended in time"
			case <-every.C:
			}
		}
		return "what was asked is done"
	}
	if a.code, err = d.drive(o); err != nil {
		return err
	}
	if e.Poll(); e.Answered && a.code != exit.NoHosts {
		a.code = exit.OK
	}
	return nil
}

// tellCancelled says what became of a cancel.
func (a *app) tellCancelled(run *rundir.Run, e *ask.Request, asJSON bool) error {
	if e.Refused != "" {
		return exit.Usagef("%s", console.CleanLine(e.Refused))
	}
	still := make([]jobs.ID, 0, len(e.Ending))
	for id := range e.Ending {
		still = append(still, id)
	}
	slices.Sort(still)
	if len(still) > 0 {
		a.code = exit.Left
	}
	done := e.Done - e.EndedItself - len(still)
	if asJSON {
		return a.printJSON(askedJSON(run, rundir.DoCancel, e, done, still))
	}
	if !e.Answered {
		return nil // was said
	}
	text := jobs.Plural(done, "job") + " cancelled"
	if e.Done == 0 {
		text = "nothing to cancel"
	}
	if e.EndedItself > 0 {
		text += fmt.Sprintf(", %d ended before that", e.EndedItself)
	}
	if e.Left > 0 {
		text += fmt.Sprintf(", %d %s already over", e.Left, were(e.Left))
	}
	lines := []string{text}
	if n := len(still); n > 0 {
		what := "its processes have not ended yet, or its host cannot be reached; it stays marked, and is ended as soon as that is possible"
		if n > 1 {
			what = "their processes have not ended yet, or their hosts cannot be reached; they stay marked, and are ended as soon as that is possible"
		}
		lines = append(lines, console.Shorten(jobsText(still))+": "+what)
	}
	a.con.Line(lines...)
	return nil
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// jobsText is "job 3" or "jobs 3-5,9".
func jobsText(ids []jobs.ID) string {
	if len(ids) == 1 {
		return "job " + strconv.Itoa(int(ids[0]))
	}
	return "jobs " + jobs.RangesOf(ids).String()
}

func askedJSON(run *rundir.Run, do string, e *ask.Request, done int, still []jobs.ID) asked {
	j := asked{V: 1, Run: run.Name(), UID: run.UID(), Do: do, Answered: e.Answered, Jobs: done, Left: e.Left + e.LeftOut,
		Ended: e.EndedItself, Ending: still}
	if e.Name != "" {
		j.Request = &e.Name
	}
	return j
}
