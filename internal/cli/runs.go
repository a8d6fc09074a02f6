package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
	"dcs-tui/tui"
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

// runAlone is dcs-tui without a command: on a terminal it shows the runs, if there are any,
// and does what is chosen.
func (a *app) runAlone(cmd *cobra.Command, args []string) error {
	for {
		list, err := rundir.List(rundir.Base)
		if len(args) > 0 || err != nil || len(list) == 0 || !term.IsTerminal(int(a.stdout.Fd())) {
			return needsCommand(cmd, args)
		}
		keys, err := a.keyboard()
		if err != nil || plainTerminal() {
			return a.runRunsList(defaultLimit)
		}
		rows, older := runRows(list, defaultLimit)
		footer := "enter attach  r resume  p prune  q leave   dcs-tui --help lists the commands"
		if older > 0 {
			footer = fmt.Sprintf("and %d older  %s", older, footer)
		}
		o := tui.Options{In: keys, Out: a.stdout, ASCII: a.con.OnlyASCII(), NoColor: os.Getenv("NO_COLOR") != ""}
		row, key, err := tui.Choose(context.Background(), o, rows[0], rows[1:], footer, "enter", "r", "p")
		keys.Close()
		if err != nil {
			return exit.Usagef("%w", err)
		}
		switch key {
		case "":
			return nil
		case "enter":
			return a.again("attach", list[row].Dir)
		case "r":
			return a.again("resume", list[row].Dir)
		}
		if err := a.again("runs", "prune", list[row].Dir); err != nil { // it asks first
			a.complain(err)
		}
	}
}

// again carries out another command line in this process.
func (a *app) again(args ...string) error {
	a.args = args
	root := a.root()
	root.SetArgs(args)
	return root.Execute()
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
	rows, older := runRows(runs, limit)
	for _, row := range rows {
		if _, err := fmt.Fprintln(a.stdout, row); err != nil {
			return err
		}
	}
	if older > 0 {
		a.con.Line(fmt.Sprintf("and %d older; --limit 0 lists all", older))
	}
	return nil
}

// runRows returns a title and a row for each run, and the number of runs beyond the limit.
func runRows(runs []rundir.Entry, limit int) (rows []string, older int) {
	if limit > 0 && len(runs) > limit {
		runs, older = runs[:limit], len(runs)-limit
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tMADE\tDISPATCHED\tJOBS")
	for _, e := range runs {
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
	w.Flush() // a strings.Builder takes everything
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), older
}
