package cli

import (
	"bufio"
	"errors"
	"sort"
	"syscall"

	"github.com/spf13/cobra"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

func (a *app) resultsCmd() *cobra.Command {
	var asJSON, failed bool
	cmd := &cobra.Command{
		Use:     "results [flags] [RUN]",
		GroupID: groupLook,
		Short:   "What became of the jobs of a run",
		Long: `What became of the jobs of a run, a line a finished job in the order of the jobs
file; with --json an object a job in the order in which they ended, those that were
acknowledged before included. No dispatcher is needed, none is disturbed.

` + runHelp,
		Example: `dcs-tui results --failed
dcs-tui results sweep-20260314-1502 --json | jq -r 'select(.exit == 3) | .stderr'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runResults(args, asJSON, failed)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a job")
	cmd.Flags().BoolVar(&failed, "failed", false, "only jobs that failed or timed out")
	return cmd
}

func (a *app) runResults(args []string, asJSON, failed bool) error {
	l, err := a.look(args)
	if err != nil {
		return err
	}
	list := finished(l.run, l.table)
	if failed {
		kept := list[:0]
		for _, r := range list {
			if r.State == jobs.Failed || r.State == jobs.TimedOut {
				kept = append(kept, r)
			}
		}
		list = kept
	}
	if !asJSON {
		sort.SliceStable(list, func(i, k int) bool { return list[i].Job < list[k].Job })
	}
	if err := a.writeResults(list, asJSON); err != nil && !errors.Is(err, syscall.EPIPE) {
		return usagef("%w", err)
	}
	return nil
}

func (a *app) writeResults(list []results.Result, asJSON bool) error {
	w := bufio.NewWriterSize(a.stdout, 64<<10)
	style := newConsole(a.stdout)
	var buf []byte
	for i := range list {
		buf = buf[:0]
		if asJSON {
			buf = list[i].AppendJSON(buf)
		} else {
			buf = append(append(buf, style.jobLine(&list[i])...), '\n')
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return w.Flush()
}
