package cli

import (
	"bufio"
	"cmp"
	"errors"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
)

// resultsFlags holds the flags of results.
type resultsFlags struct {
	json, failed bool
	table        tableFlags
}

// tableFlags holds the flags that ask for a table.
type tableFlags struct {
	results []string // NAME or NAME=HOW
	where   []string
	columns []string
	sort    []string
	best    string
	group   []string
	stats   []string
	minSize int
	pivot   pivotValue
	pivotOf []string // its three names; nil: no pivot
	format  string
	all     bool
}

func (a *app) resultsCmd() *cobra.Command {
	f := &resultsFlags{table: tableFlags{format: string(results.TableFormat)}}
	cmd := &cobra.Command{
		Use:     "results [flags] [RUN]",
		GroupID: groupLook,
		Short:   "What became of the jobs of a run; the table of a grid",
		Long: `What became of the jobs of a run, a line a finished job in the order of the jobs
file; with --json an object a job in the order in which they ended, those that were
acknowledged before included. No dispatcher is needed, none is disturbed.

A run with parameters, or any flag but --json and --failed, gives a table: parameters,
metrics found in what the jobs printed, state, time and host. A metric is NAME (the last
NAME=VALUE or NAME: VALUE that a job printed), NAME=json:PATH (of its last line of JSON),
NAME='re:EXPR' (the last match, one group), or NAME=file:PATH:HOW (in a file that it
wrote). Groups, pivots and --best are over jobs that succeeded. docs/results.md explains
everything.

` + runHelp,
		Example: `dcs-tui results --failed
dcs-tui results sweep-20260314-1502 --json | jq -r 'select(.exit == 3) | .stderr'
dcs-tui results --result acc --sort acc:desc
dcs-tui results --result 'acc=re:Accuracy: ([0-9.]+)' --group C,gamma --min-group-size 3
dcs-tui results --result acc=json:test.accuracy --pivot C gamma acc
dcs-tui results --result acc --where 'C>=0.1 and host=ws*' --format csv`,
		Args: func(_ *cobra.Command, args []string) error {
			_, rest, err := f.table.pivot.split(args)
			if err == nil && len(rest) > 1 {
				err = exit.Usagef("one RUN is wanted, not %s", console.Shorten(strings.Join(rest, " ")))
			}
			return err
		},
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if f.table.pivotOf, args, err = f.table.pivot.split(args); err != nil {
				return err
			}
			return a.runResults(cmd, args, f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON object a job")
	cmd.Flags().BoolVar(&f.failed, "failed", false, "only jobs that failed or timed out")
	f.table.add(cmd)
	return cmd
}

const resultHelp = "metric to show: NAME, NAME=json:PATH, NAME=re:EXPR, NAME=key:OTHER or NAME=file:PATH:HOW; may be given several times"

func (f *tableFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.pivot.flags = fs
	fs.StringArrayVar(&f.results, "result", nil, resultHelp)
	fs.StringArrayVar(&f.where, "where", nil, "only jobs that match this filter, such as: C>=0.1 and state=succeeded; may be given several times")
	fs.StringSliceVar(&f.columns, "columns", nil, "COLUMNS to show; with --group: the metrics to summarize")
	fs.StringSliceVar(&f.sort, "sort", nil, "sort by COLUMN, or by COLUMN:desc in descending order")
	fs.StringVar(&f.best, "best", "", "only the best job, or group: COLUMN:max or COLUMN:min")
	fs.StringSliceVar(&f.group, "group", nil, "one row for all jobs with the same values in these COLUMNS, with measures of each metric")
	fs.StringSliceVar(&f.stats, "stats", nil, "measures of a group: count,mean,sd,min,max,median (all)")
	fs.IntVar(&f.minSize, "min-group-size", 0, "leave out groups with fewer than N jobs that succeeded")
	fs.Var(&f.pivot, "pivot", "table of a metric over two columns: ROWS COLUMNS METRIC, or ROWS,COLUMNS,METRIC:MEASURE (mean)")
	fs.Var(newChoice(&f.format, results.Formats...), "format", "format of the table: table, csv, tsv, jsonl or markdown")
	fs.BoolVar(&f.all, "all", false, "also jobs that are not over")
	for _, name := range []string{"result", "columns", "sort", "best", "group", "min-group-size"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// given returns the first flag that asks for a table, or "".
func (f *tableFlags) given(fs *pflag.FlagSet) (name string) {
	fs.Visit(func(g *pflag.Flag) {
		if name == "" && g.Name != "json" && g.Name != "failed" {
			name = g.Name
		}
	})
	return name
}

// check refuses flags that cannot be combined.
func (f *tableFlags) check(fs *pflag.FlagSet) error {
	has := fs.Changed
	for _, pair := range [][2]string{{"pivot", "group"}, {"pivot", "sort"}, {"pivot", "best"}, {"pivot", "stats"}, {"pivot", "columns"}, {"best", "sort"}} {
		if has(pair[0]) && has(pair[1]) {
			return exit.Usagef("--%s and --%s do not go together", pair[0], pair[1])
		}
	}
	switch {
	case has("stats") && !has("group"):
		return exit.Usagef("--stats are those of groups: --group COLUMNS says which")
	case has("min-group-size") && !has("group") && !has("pivot"):
		return exit.Usagef("--min-group-size needs --group or --pivot")
	case f.minSize < 0:
		return exit.Usagef("--min-group-size %d: a number from 0 is wanted", f.minSize)
	}
	return nil
}

func (a *app) runResults(cmd *cobra.Command, args []string, f *resultsFlags) error {
	wants := f.table.given(cmd.Flags())
	if f.json && wants != "" {
		return exit.Usagef("--json prints whole results, --%s asks for a table: --format jsonl prints that as JSON", wants)
	}
	if err := f.table.check(cmd.Flags()); err != nil {
		return err
	}
	q, err := f.table.ask()
	if err != nil {
		return err
	}
	l, err := a.look(args)
	if err != nil {
		return err
	}
	at := metrics.Locations(l.Run)
	list := at.Since(l.Table, 0)
	if f.table.all {
		list = append(list, at.Unfinished(l.Table)...)
	}
	if f.failed {
		list = slices.DeleteFunc(list, func(r results.Result) bool { return r.State != jobs.Failed && r.State != jobs.TimedOut })
	}
	if f.json { // by end; otherwise by job number
		slices.SortStableFunc(list, func(a, b results.Result) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	columns := a.resultColumns(l.Run, q.columns)
	params := slices.ContainsFunc(l.Table.Jobs, func(j jobs.Job) bool { return len(j.Spec.Params) > 0 })
	if wants != "" || !f.json && !f.failed && (params || len(columns) > 0) {
		err = a.runTable(cmd.Context(), l, list, columns, q)
	} else {
		err = a.writeResults(list, f.json)
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

func (a *app) writeResults(list []results.Result, asJSON bool) error {
	w := bufio.NewWriterSize(a.stdout, 64<<10)
	style := console.New(a.stdout)
	var buf []byte
	for i := range list {
		buf = buf[:0]
		if asJSON {
			buf = list[i].AppendJSON(buf)
		} else {
			buf = append(append(buf, style.JobLine(&list[i])...), '\n')
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
	}
	return w.Flush()
}

// pivotValue is --pivot ROWS COLUMNS METRIC. pflag takes only the first word as the value;
// the other two are the arguments that follow. One word with commas is allowed, too.
type pivotValue struct {
	flags *pflag.FlagSet
	names []string // all three, or ROWS alone
	at    int      // number of arguments before the flag
}

func (v *pivotValue) String() string { return strings.Join(v.names, ",") }
func (v *pivotValue) Type() string   { return "rows columns metric" }
func (v *pivotValue) Set(s string) error {
	v.names, v.at = strings.Split(s, ","), v.flags.NArg()
	if len(v.names) != 1 && len(v.names) != 3 {
		return exit.Usagef("%q does not name rows, columns and a metric, such as C,gamma,acc", console.Shorten(s))
	}
	return nil
}

// split returns the three names, and the arguments that are not part of the flag.
func (v *pivotValue) split(args []string) (names, rest []string, err error) {
	switch {
	case len(v.names) != 1:
		return v.names, args, nil
	case len(args) < v.at+2:
		return nil, nil, exit.Usagef("--pivot wants rows, columns and a metric: --pivot C gamma acc")
	}
	return append(v.names[:1:1], args[v.at:v.at+2]...), slices.Concat(args[:v.at], args[v.at+2:]), nil
}
