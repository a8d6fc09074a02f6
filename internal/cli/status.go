package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/standing"
)

func (a *app) statusCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status [flags] [RUN]",
		GroupID: groupLook,
		Short:   "How a run stands",
		Long: `How a run stands, from its journal: no dispatcher is needed, none is disturbed.

` + runHelp,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runStatus(args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

func (a *app) runStatus(args []string, asJSON bool) error {
	l, err := a.look(args)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(l.JSON())
	}
	out := console.New(a.stdout)
	out.Line(l.Lines(out)...)
	return nil
}

// printJSON writes one object on a line of standard output.
func (a *app) printJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(append(b, '\n'))
	return err
}

// look reads the run that the arguments name without owning it.
func (a *app) look(args []string) (*standing.Look, error) {
	run, err := a.openRun(args)
	if err != nil {
		return nil, err
	}
	return standing.Read(run, a.warn)
}
