package cli

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

func (a *app) cancelCmd() *cobra.Command {
	var f runFlags
	var sel selection
	var opt askOptions
	cmd := &cobra.Command{
		Use:     "cancel [flags] RUN [JOBS...]",
		GroupID: groupRun,
		Short:   "End jobs of a run, or all of them",
		Long: `End jobs of a run: queued ones are taken out, running ones are ended with all their
processes. Jobs that are over are left alone and counted.

JOBS are numbers and ranges, such as 3 9-17; with --where those that are not over and
have what it says. Without either every job is meant, and the dispatcher ends with them.

A dispatcher that is alive is asked, on whatever machine it is; without one this command takes the run over, ends what was asked, and leaves. A
dispatcher of another machine counts as dead when its sign of life in the run directory
has not changed for half a minute. --force takes the run over from one that hangs.

RUN is a name in ./dcs-runs or a run directory, and must be given.`,
		Example: `dcs-tui cancel sweep-20260314-1502 --yes
dcs-tui cancel sweep-20260314-1502 3 9-17
dcs-tui cancel sweep-20260314-1502 --where state=queued,name='big*'`,
		Args:              runAndJobs,
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runCancel(cmd, &f, args, &sel, opt)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&sel.all, "all", false, "every job, as without JOBS")
	selectFlags(cmd, &sel, &opt)
	fs.StringVar(&f.hosts, "hosts", "", "inventory FILE to use instead of the run's own")
	sshFlags(fs, &f.SSHConfig, &f.AcceptNew)
	fs.BoolVar(&f.force, "force", false, "take the run over though its dispatcher may be alive; that one can then do no harm")
	return cmd
}

// exactlyOneRun requires RUN: commands that end jobs have no default.
func exactlyOneRun(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.Usagef("%s needs the run: a name in ./dcs-runs or a run directory", cmd.CommandPath()).
			WithAdvice("dcs-tui runs list shows them")
	}
	return nil
}

func (a *app) runCancel(cmd *cobra.Command, f *runFlags, args []string, sel *selection, opt askOptions) error {
	if err := sel.parseNamed(args[1:]); err != nil {
		return err
	}
	run, err := a.openRun(args[:1])
	if err != nil {
		return err
	}
	some := sel.named != nil || len(sel.where) > 0
	switch {
	case some && sel.all:
		return exit.Usagef("--all says everything: leave the rest out")
	case some:
		return a.cancelSome(cmd, f, run, sel, opt)
	case opt.json:
		return exit.Usagef("--json says what became of some jobs: of all of them status --json does")
	}
	table, _, err := journal.Replay(run)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	waiting, _, err := run.RequestNames()
	if err != nil {
		return exit.Usagef("%w", err)
	}
	stored := len(table.Specs) - len(table.Jobs)
	if table.Unfinished()+stored+len(waiting) == 0 { // a waiting requeue would open jobs again
		a.con.Line("nothing to cancel: all jobs of " + console.CleanLine(run.Name()) + " are done")
		return nil
	}
	if err := a.agree(opt.yes, "cancel", allOpenText(run, table, stored)); err != nil {
		return err
	}
	owner, err := journal.ReadOwner(run)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	if owner != nil && owner.Life() != journal.Dead && !f.force {
		gone, err := a.askOwner(cmd.Context(), run, owner)
		if err != nil || !gone {
			return err
		}
		f.force = true // its heartbeats have stopped
	}
	return a.cancelOurselves(cmd, f, run)
}

// allOpenText describes what a cancel of all jobs would end.
func allOpenText(run *rundir.Run, t *jobs.Table, stored int) string {
	handed := runview.HandedOver(t)
	what := "end " + jobs.Plural(t.Counts[jobs.Running]-handed, "running job")
	if handed > 0 {
		what += ", " + strconv.Itoa(handed) + " handed over"
	}
	return what + " and " + jobs.Plural(t.Counts[jobs.Queued]+stored, "queued job") + " of " + console.CleanLine(run.Name())
}

// agree asks a person for confirmation, unless yes is set.
func (a *app) agree(yes bool, command, what string) error {
	if yes {
		return nil
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return exit.Usagef("%s would %s; it asks first", command, what).WithAdvice("--yes answers for you")
	}
	a.con.Line(what + "? (y/n)")
	line, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return exit.Usagef("nothing was done")
}

// takeOver takes the run over to end jobs. It starts none.
func (a *app) takeOver(cmd *cobra.Command, f *runFlags, run *rundir.Run) (*dispatching, *run.Owned, error) {
	if err := absoluteFlags(cmd.Flags()); err != nil {
		return nil, nil, err
	}
	if err := restoreFlags(cmd.Flags(), run.Asked.Options); err != nil {
		return nil, nil, err
	}
	inv, err := a.cancelInventory(f, run)
	if err != nil {
		return nil, nil, err
	}
	o, err := a.own(run, f.force)
	if err != nil {
		return nil, nil, err
	}
	a.removeStopFiles(run, func(string) {})
	d := a.dispatching(f, inv, nil)
	d.opts.EndOnly = true
	return d, o, nil
}

// cancelInventory returns the inventory that was given, or that of the run, which
// includes hosts that the inventory file no longer has.
func (a *app) cancelInventory(f *runFlags, run *rundir.Run) (*loadedInventory, error) {
	inv, err := a.storedInventory(run)
	if f.hosts != "" {
		inv, err = a.loadInventory(f.hosts)
	}
	if err != nil {
		return nil, err
	}
	return inv, a.checkSSH(&f.options, inv.Hosts)
}

// cancelOurselves takes the run over and ends all jobs.
func (a *app) cancelOurselves(cmd *cobra.Command, f *runFlags, run *rundir.Run) error {
	d, o, err := a.takeOver(cmd, f, run)
	if err != nil {
		return err
	}
	d.opts.CancelAll = "cancelled by a person"
	d.opening = "ending every job"
	a.code, err = d.drive(o)
	if a.code == exit.Cancelled || a.code == exit.Failed {
		a.code = exit.OK // the jobs have ended, as requested
	}
	return err
}

// cancelSome ends some jobs of a run. It asks the dispatcher or, if there is none, takes
// the run over, ends the jobs, and starts none.
func (a *app) cancelSome(cmd *cobra.Command, f *runFlags, run *rundir.Run, sel *selection, opt askOptions) error {
	table, err := wholeTable(run)
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
	if len(ids) == 0 || running+queued == 0 && len(waiting) == 0 { // a waiting requeue would be carried out after this
		return a.tellCancelled(run, &ask.Request{Trace: ask.Trace{Answered: true, Left: over}}, opt.json)
	}
	what := jobs.Plural(running, "job") + " that " + jobs.Verb(running, "is", "are") + " running or handed over and " + jobs.Plural(queued, "queued job")
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
		f.force = owner != nil && owner.Life() != journal.Dead // its heartbeats have stopped
	}
	if err := a.cancelSomeOurselves(cmd, f, run, e, table); err != nil {
		return err
	}
	return a.tellCancelled(run, e, opt.json)
}

// cancelSomeOurselves takes the run over until the waiting requests are carried out and
// the jobs of this one have ended.
func (a *app) cancelSomeOurselves(cmd *cobra.Command, f *runFlags, dir *rundir.Run, e *ask.Request, table *jobs.Table) error {
	d, o, err := a.takeOver(cmd, f, dir)
	if err != nil {
		return err
	}
	d.opening = "nobody dispatches it; ending what was asked"
	d.brief, f.OnDone = true, ""
	for _, id := range e.Jobs().IDs(jobs.ID(len(table.Jobs))) {
		if !table.Job(id).State.Terminal() {
			e.Await(id) // includes jobs that were being ended before
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

// tellCancelled reports the result of a cancel.
func (a *app) tellCancelled(run *rundir.Run, e *ask.Request, asJSON bool) error {
	if e.Refused != "" {
		return exit.Usagef("%s", console.CleanLine(e.Refused))
	}
	still := append([]jobs.ID{}, slices.Sorted(maps.Keys(e.Ending))...) // not nil: JSON has a list
	if len(still) > 0 {
		a.code = exit.Left
	}
	done := e.Done - e.EndedItself - len(still)
	if asJSON {
		return a.printJSON(askedJSON(run, rundir.DoCancel, e, done, still))
	}
	if !e.Answered {
		return nil // has been reported
	}
	text := jobs.Plural(done, "job") + " cancelled"
	if e.Done == 0 {
		text = "nothing to cancel"
	}
	if e.EndedItself > 0 {
		text += fmt.Sprintf(", %d ended before that", e.EndedItself)
	}
	if e.Left > 0 {
		text += fmt.Sprintf(", %d %s already over", e.Left, jobs.Verb(e.Left, "was", "were"))
	}
	lines := []string{text}
	if n := len(still); n > 0 {
		lines = append(lines, console.Shorten(jobsText(still))+": "+jobs.Verb(n,
			"its processes have not ended yet, or its host cannot be reached; it stays marked, and is ended as soon as that is possible",
			"their processes have not ended yet, or their hosts cannot be reached; they stay marked, and are ended as soon as that is possible"))
	}
	a.con.Line(lines...)
	return nil
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
