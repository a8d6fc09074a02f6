package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/dispatch/control"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

func (a *app) whyCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "why [flags] [RUN] JOB",
		GroupID: groupLook,
		Short:   "Why a job is not running, or what it is doing",
		Long: `Say in a sentence why a job is not running, or what it is doing. The run's dispatcher is
asked, on another machine through ssh, with your ssh configuration; without one, and when
it cannot be asked, it is what the run directory shows.

` + runHelp,
		Example: `dcs-tui why 17
dcs-tui why sweep-20260314-1502 17`,
		Args:              jobOfRun,
		ValidArgsFunction: completeRuns,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runWhy(args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// jobOfRun: a job, and before it the run if it is not the newest.
func jobOfRun(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return exit.Usagef("%s needs the number of one job", cmd.CommandPath()).WithAdvice("%s [RUN] JOB", cmd.CommandPath())
	}
	return nil
}

// openJob finds the run and the number that the arguments name, in either order: the
// help of the command line's library names what is not optional first.
func (a *app) openJob(args []string) (*rundir.Run, jobs.ID, error) {
	number := func(word string) int { n, _ := strconv.Atoi(word); return max(0, n) }
	word, rest := args[len(args)-1], args[:len(args)-1]
	if len(args) == 2 && number(word) == 0 && number(args[0]) > 0 {
		word, rest = args[0], args[1:]
	}
	if number(word) == 0 {
		return nil, 0, exit.Usagef("%q is not the number of a job", console.Shorten(word))
	}
	run, err := a.openRun(rest)
	return run, jobs.ID(number(word)), err
}

// commandPatience bounds what a command asks of a dispatcher.
const commandPatience = 30 * time.Second

// followHere follows a run for a command: through the dispatcher when it is on this
// machine and answers, else through the run directory.
func (a *app) followHere(run *rundir.Run, far farReader) (*follower, error) {
	return (&follower{app: a, run: run, reach: reachHere(run), files: true, far: far}).forCommand()
}

// followAnywhere is followHere for what only the dispatcher knows: on another machine it
// is asked, too.
func (a *app) followAnywhere(run *rundir.Run, f *attachFlags) (*follower, error) {
	return (&follower{app: a, run: run, reach: within(askFarWithin, a.reachAnywhere(run, f)), files: true, abroad: true}).forCommand()
}

func (f *follower) forCommand() (*follower, error) {
	f.begin()
	if err := f.first(); err != nil {
		f.Close()
		return nil, exit.Usagef("%w", err)
	}
	return f, nil
}

// askFarWithin bounds reaching a dispatcher on another machine for a command that can do
// without.
const askFarWithin = 15 * time.Second

func within(d time.Duration, reach reacher) reacher {
	return func(ctx context.Context, owner *journal.Owner) (*control.Client, error) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return reach(ctx, owner)
	}
}

// detail looks a job up.
func detail(src runview.Source, run *rundir.Run, id jobs.ID) (*runview.Picture, *runview.Detail, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandPatience)
	defer cancel()
	pic, err := src.Look(ctx, runview.Ask{Focus: id})
	if err != nil {
		return nil, nil, exit.Usagef("%w", err)
	}
	if pic.Detail == nil {
		return nil, nil, exit.Usagef("the run %s has no job %d; it has %s", run.Name(), id, jobs.Plural(pic.Total, "job"))
	}
	return pic, pic.Detail, nil
}

// whyJSON is what `why --json` prints.
type whyJSON struct {
	V       int     `json:"v"`
	Run     string  `json:"run"`
	UID     string  `json:"uid"`
	Job     jobs.ID `json:"job"`
	Phase   string  `json:"phase"` // the word of the screen's list: run, queue, retry, waits, …
	Why     string  `json:"why"`
	Live    bool    `json:"live"` // a dispatcher said so
	Host    *string `json:"host"`
	Attempt int     `json:"attempt"` // number of the newest; 0: none
}

func (a *app) runWhy(args []string, asJSON bool) error {
	run, id, err := a.openJob(args)
	if err != nil {
		return err
	}
	f, err := a.followAnywhere(run, new(attachFlags))
	if err != nil {
		return err
	}
	defer f.Close()
	pic, d, err := detail(f, run, id)
	if err != nil {
		return err
	}
	if asJSON {
		j := whyJSON{V: 1, Run: run.Name(), UID: run.UID(), Job: id, Phase: d.Row.Phase.String(), Why: d.Why,
			Live: pic.Life == runview.Live, Attempt: d.Row.Attempt}
		if d.Row.Host != "" {
			j.Host = &d.Row.Host
		}
		return a.printJSON(j)
	}
	out := console.New(a.stdout)
	out.Line(out.Paint(console.Bold, "job "+strconv.Itoa(int(id)))+"  "+console.Shorten(console.CleanLine(d.Row.Title)), console.CleanLine(d.Why))
	return nil
}
