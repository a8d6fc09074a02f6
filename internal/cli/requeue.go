package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/ask"
	"dcs-tui/jobs/rundir"
)

func (a *app) requeueCmd() *cobra.Command {
	var sel selection
	var opt askOptions
	var change changeFlags
	var files []string
	cmd := &cobra.Command{
		Use:     "requeue [flags] RUN [JOBS...]",
		GroupID: groupRun,
		Short:   "Run jobs again that are over",
		Long: `Run jobs again that are over, whatever became of them: each gets a new round, with
all its tries and a new result. Jobs that are queued or running are left alone.

JOBS are numbers and ranges, such as 3 9-17. --failed means the jobs that failed or
timed out, --all those as well that were cancelled or skipped; only --where
state=succeeded and JOBS reach jobs that succeeded. --timeout, --mem, --tries and --slots
change what they ask for, from now on.

--file compares the run with its jobs file, which was changed since: jobs are the same
when command and parameters are, and the place among equal ones. What matches, what is new
and what is gone is printed first. Matches that succeeded are not run again, those that
failed are, with the options of the file; new ones are added; queued ones that are gone
are cancelled.

A dispatcher that is alive begins at once, on whatever machine it is. Without one the
request waits in the run directory, and the next resume carries it out.

RUN is a name in ./dcs-runs or a run directory, and must be given.`,
		Example: `dcs-tui requeue sweep-20260314-1502 3 9-17
dcs-tui requeue sweep-20260314-1502 --failed --timeout 4h --mem 8G
dcs-tui requeue sweep-20260314-1502 --where exit=137,host=ws04
dcs-tui requeue sweep-20260314-1502 --where 'state=timed_out or state=skipped' --timeout 4h
dcs-tui requeue sweep-20260314-1502 --file jobs.txt`,
		Args:              runAndJobs,
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) > 0 {
				if len(args) > 1 || sel.failed || sel.all || len(sel.where) > 0 || change.change() != nil {
					return exit.Usagef("--file says which jobs and which options: leave the rest out")
				}
				return a.requeueFiles(args, files, opt)
			}
			return a.runRequeue(cmd.Context(), args, &sel, opt, &change)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&sel.failed, "failed", false, "the jobs that failed or timed out")
	fs.BoolVar(&sel.all, "all", false, "every job that is over and did not succeed")
	fs.StringArrayVar(&sel.where, "where", nil, whereHelp)
	opt.flags(cmd)
	change.flags(fs)
	fs.StringArrayVar(&files, "file", nil, "bring the run up to date with its jobs FILE or template (several: once for each)")
	return cmd
}

// changeFlags holds the flags that change options of jobs.
type changeFlags struct {
	timeout      time.Duration
	mem          int64
	tries, slots int
}

func (c *changeFlags) flags(fs *pflag.FlagSet) {
	fs.Var(durationFlag(&c.timeout), "timeout", "end them after this TIME from now on, such as 90s, 30m, 2h")
	fs.Var(sizeFlag(&c.mem), "mem", "their hosts must have SIZE of memory free from now on, such as 8G")
	fs.Var(countFlag(&c.tries), "tries", "at most N attempts of each in all from now on")
	fs.Var(countFlag(&c.slots), "slots", "they use N cores from now on")
}

// change returns nil if no flag was given.
func (c *changeFlags) change() *jobs.Change {
	j := new(jobs.Change)
	if c.timeout != 0 {
		j.Timeout = &c.timeout
	}
	if c.mem != 0 {
		j.MemBytes = &c.mem
	}
	if c.tries != 0 {
		j.Tries = &c.tries
	}
	if c.slots != 0 {
		j.Slots = &c.slots
	}
	if j.Empty() {
		return nil
	}
	return j
}

func (a *app) runRequeue(ctx context.Context, args []string, sel *selection, opt askOptions, flags *changeFlags) error {
	if err := sel.parseNamed(args[1:]); err != nil {
		return err
	}
	switch {
	case sel.all && (sel.named != nil || sel.failed || len(sel.where) > 0):
		return exit.Usagef("--all says everything: leave the rest out")
	case !sel.all && !sel.failed && sel.named == nil && len(sel.where) == 0:
		return exit.Usagef("which jobs?").WithAdvice("their numbers, --failed, --where state=skipped or --all")
	}
	run, err := a.openRun(args[:1])
	if err != nil {
		return err
	}
	table, err := wholeTable(run)
	if err != nil {
		return err
	}
	ids, err := a.pick(ctx, run, table, sel, func(st jobs.JobState) bool {
		return st.Terminal() && (st != jobs.Succeeded || len(sel.where) > 0)
	})
	if err != nil {
		return err
	}
	var ended []jobs.ID
	for _, id := range ids {
		if table.Job(id).State.Terminal() {
			ended = append(ended, id)
		}
	}
	over := len(ended)
	if over == 0 {
		return a.tellRequeued(&answers{run: run, alive: true, parts: []*ask.Request{{Trace: ask.Trace{Answered: true, Left: len(ids)}}}}, len(ids), opt.json)
	}
	if sel.named == nil { // job numbers need no confirmation
		if err := a.agree(opt.yes, "requeue", "run "+jobs.Plural(over, "job")+" of "+console.CleanLine(run.Name())+" again"); err != nil {
			return err
		}
	}
	q := &rundir.Request{Do: rundir.DoRequeue, Jobs: jobs.RangesOf(ids), Spare: spared(table, ended)}
	if change := flags.change(); change != nil {
		if err := change.Check(); err != nil {
			return exit.Usagef("%w", err)
		}
		q.Do, q.Edit = rundir.DoEdit, change
		q.Jobs = jobs.RangesOf(ended) // an edit would change queued ones as well
	}
	s, err := a.ask(ctx, run, q)
	if err != nil {
		return err
	}
	s.parts[0].LeftOut = len(ids) - q.Jobs.Count()
	return a.tellRequeued(s, len(ids)-over, opt.json)
}

// spared returns SpareSucceeded if none of the jobs has succeeded: then the request leaves
// alone those that have succeeded when it is carried out.
func spared(t *jobs.Table, over []jobs.ID) string {
	if slices.ContainsFunc(over, func(id jobs.ID) bool { return t.Job(id).State == jobs.Succeeded }) {
		return ""
	}
	return rundir.SpareSucceeded
}

// tellRequeued reports the result of a requeue. open is the number of its jobs that were
// not over before.
func (a *app) tellRequeued(s *answers, open int, asJSON bool) error {
	e := s.parts[0]
	switch {
	case asJSON:
		return a.printAsked(s.run, rundir.DoRequeue, e, e.Done, nil)
	case !e.Answered:
		a.tellWaits(s, "the request for "+jobs.Plural(e.Jobs().Count(), "job")+" waits")
		return nil
	}
	text := jobs.Plural(e.Done, "job") + " queued again"
	if e.Done == 0 {
		text = "nothing to requeue"
	}
	left := e.Left + e.LeftOut
	if n := min(left, open); n > 0 {
		text += fmt.Sprintf(", %d %s not over", n, jobs.Verb(n, "was", "were"))
	}
	if n := left - open; n > 0 {
		text += fmt.Sprintf(", %d left alone: begun again or succeeded meanwhile", n)
	}
	a.con.Line(text)
	if !s.alive && e.Done > 0 { // it died just after
		a.con.Line("nobody dispatches the run now:", "  dcs-tui resume "+refTo(s.run))
	}
	return nil
}
