package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/report"
)

// stdoutFile is the name of standard output as a file.
const stdoutFile = "-"

func (a *app) reportCmd() *cobra.Command {
	var output string
	var asked []*metrics.Metric
	var strict bool
	cmd := &cobra.Command{
		Use:   "report [flags] [RUN]",
		Short: "Write a report of a run as one HTML file",
		Long: `Write a report of a run as one HTML file, which needs no network and no other file: a summary, failures
by cause, charts of a grid, of the slots, and of the hosts, and a table of all jobs, without their outputs. ` + runHelp,
		Example: `dcs-tui report --result acc=json:test.accuracy
dcs-tui report server:sweep -o - > report.html`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runReport(cmd.Context(), args, output, asked, strict)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write `FILE` (default RUN.html); - is standard output")
	cmd.Flags().Var(newListFlag(&asked, metrics.Parse), "result", resultHelp)
	cmd.Flags().BoolVar(&strict, "strict", false, strictHelp)
	cmd.RegisterFlagCompletionFunc("result", cobra.NoFileCompletions)
	return cmd
}

func (a *app) runReport(ctx context.Context, args []string, output string, asked []*metrics.Metric, strict bool) error {
	run, err := a.openRun(args)
	if err != nil {
		return err
	}
	ended, last := map[jobs.AttemptID]jobs.Stamp{}, jobs.Stamp(0)
	state := newRunState(run)
	err = a.updateState(state, func(r *jobs.Record) {
		last = max(last, r.At)
		switch r.Kind {
		case jobs.KindExited, jobs.KindLost, jobs.KindSuperseded, jobs.KindCanceled:
			if r.Outcome == nil {
				ended[r.Attempt()] = r.At
			}
		}
	})
	if err != nil {
		return err
	}
	output = cmp.Or(output, run.Name()+".html")
	if err := checkOutput(output); err != nil {
		return err
	}
	now := time.Now()
	known := now
	if !state.IsDispatched() {
		known = last.Time() // the state of running jobs is not known after this time
	}
	rows := metrics.Locations(run).Rows(state.Table, nil)
	table, notes, err := readResultTable(ctx, run, state.Table, rows, a.resultColumns(run, asked), nil)
	if err != nil {
		return err
	}
	missing := table.MissingValues(table.Metrics())
	if err := checkStrict(missing); strict && err != nil {
		return err
	}
	notes = slices.Concat(missing.Basis, notes, missing.Others)
	var b bytes.Buffer
	if err := report.Write(&b, &report.Input{Run: run.Name(), Dir: run.Dir, Program: "dcs-tui " + version(),
		Created: run.Settings.Created,
		At:      now, Known: known, Dispatched: state.IsDispatched(), Jobs: state.Table, Table: table, Ended: ended,
		Loads: live.ReadSamples(run, 0), Notes: notes}); err != nil {
		return err
	}
	if output == stdoutFile {
		if _, err := a.stdout.Write(b.Bytes()); err != nil && !errors.Is(err, syscall.EPIPE) {
			return err
		}
		return nil
	}
	if err := rundir.Replace(rundir.OS, output, b.Bytes()); err != nil {
		return text.Errorf("write the report: %w", err)
	}
	a.con.Line(fmt.Sprintf("%s: %s, %s", text.Line(output), text.Plural(state.Table.NumJobs(), "job"),
		text.Size(int64(b.Len()))))
	return nil
}

// checkOutput refuses to replace anything other than a regular file, such as a link or /dev/null.
func checkOutput(path string) error {
	if path == stdoutFile {
		return nil
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return text.Errorf("write the report: %w", err)
	case !info.Mode().IsRegular():
		return text.Errorf("%s is not a regular file and is not replaced",
			text.Line(path)).WithAdvice("-o - writes to standard output")
	}
	return nil
}
