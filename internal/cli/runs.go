package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

func (a *app) runsCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "runs",
		GroupID: groupLook,
		Short:   "List and prune the runs kept in ./dcs-runs",
		Long:    "The runs kept in ./dcs-runs; without a command they are listed.",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return a.runRunsList(defaultLimit)
		},
	}
	var limit int
	list := &cobra.Command{
		Use:   "list [flags]",
		Short: "List runs, the newest first",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.runRunsList(limit) },
	}
	list.Flags().IntVar(&limit, "limit", defaultLimit, "at most so many; 0 lists all")
	cmd.AddCommand(list, a.pruneCmd())
	return cmd
}

// runAlone is dcs-tui without a command: on a terminal it lists the runs, if there are any.
func (a *app) runAlone(cmd *cobra.Command, args []string) error {
	runs, err := rundir.List(rundir.Base)
	if len(args) > 0 || err != nil || len(runs) == 0 || !term.IsTerminal(int(a.stdout.Fd())) {
		return needsCommand(cmd, args)
	}
	if err := a.runRunsList(defaultLimit); err != nil {
		return err
	}
	a.con.Line("", "  dcs-tui attach NAME   the screen of a run", "  dcs-tui resume NAME   continue a run that was stopped",
		"  dcs-tui runs prune    remove old runs", "  dcs-tui --help        all commands")
	return nil
}

// defaultLimit is how many runs are listed: each is counted from its journal.
const defaultLimit = 20

func (a *app) runRunsList(limit int) error {
	runs, err := rundir.List(rundir.Base)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	if len(runs) == 0 {
		a.con.Line("there are no runs in ./" + rundir.Base)
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tMADE\tDISPATCHED\tJOBS")
	for i, e := range runs {
		if limit > 0 && i == limit {
			w.Flush()
			a.con.Line(fmt.Sprintf("and %d older; --limit 0 lists all", len(runs)-limit))
			return nil
		}
		dispatched, counts := "", ""
		run, err := rundir.Open(e.Dir)
		if err == nil {
			if o, oerr := journal.ReadOwner(run); oerr == nil && o != nil && o.Life() != journal.Dead {
				dispatched = "on " + console.CleanLine(o.Host)
			}
			if t, rerr := wholeTable(run); rerr == nil {
				counts = runview.Counts(t, dispatched != "")
				if had, herr := run.ReadInput(); herr == nil && had.Cut() {
					counts += ", input not read to its end"
				}
			} else {
				err = rerr
			}
		}
		if err != nil {
			counts = console.CleanLine(firstLine(err.Error()))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", console.CleanLine(e.Name), e.Made.Local().Format("2006-01-02 15:04"), dispatched, counts)
	}
	return w.Flush()
}
