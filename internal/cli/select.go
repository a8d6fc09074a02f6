package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// selection selects the jobs of a run that meet all of its conditions.
type selection struct {
	named  jobs.Ranges    // JOBS; nil: all
	all    bool           // --all
	failed bool           // --failed
	where  []*query.Query // --where

	// Set by selectJobs if there are other conditions than --all: number of other jobs that meet
	// them, but whose state does not fit.
	numUnfit int
}

func (s *selection) addWhereFlag(fs *pflag.FlagSet) {
	fs.Var(newListFlag(&s.where, query.Parse), "where",
		"only jobs that match `QUERY`, such as 'exit=137 and host=ws*' or 'state=timed_out or state=skipped'; "+
			"dcs-tui help query explains queries")
}

// parseNamed parses JOBS: "3", "3-17", "3,9-12".
func (s *selection) parseNamed(args []string) error {
	if len(args) == 0 {
		return nil
	}
	named, err := jobs.ParseRanges(strings.Join(args, ","))
	if err != nil {
		return adviseByName(err, args, "", " selects jobs by name")
	}
	s.named = named
	return nil
}

// adviseByName adds advice to the error for words that are no job numbers: before and after enclose
// a --where that selects by the name that was probably given.
func adviseByName(err error, words []string, before, after string) error {
	isName := func(word string) bool { return strings.ContainsFunc(word, unicode.IsLetter) }
	i := slices.IndexFunc(words, isName)
	if i < 0 {
		return err
	}
	where := "'name=big*'" // a word that a query would have to quote
	if text.ShellWord(words[i]) == words[i] && !strings.ContainsAny(words[i], ",=%+@:") {
		where = "name=" + words[i]
	}
	return (&text.Error{Err: err}).WithAdvice("%s--where %s%s", before, where, after)
}

// parseJobsFlag parses the value of a flag for jobs, of a command without --where.
func parseJobsFlag(s string) (jobs.Ranges, error) {
	named, err := jobs.ParseRanges(s)
	if err != nil {
		err = adviseByName(err, []string{s}, "dcs-tui results --all ",
			" lists the numbers of jobs of the newest run")
	}
	return named, err
}

// selectJobs returns the selected jobs. If the selection has only numbers, it returns these jobs in
// any state, and the dispatcher counts those that it leaves alone. Otherwise the states must
// satisfy fit.
func (a *app) selectJobs(ctx context.Context, run *rundir.Run, table *jobs.Table, s *selection,
	fit func(jobs.JobState) bool) ([]jobs.ID, error) {
	if last := s.named.Last(); int(last) > table.NumJobs() {
		return nil, noJobError(run, last, table.NumJobs())
	}
	if s.named != nil && len(s.where) == 0 && !s.failed {
		return s.named.IDs(jobs.ID(table.NumJobs())), nil
	}
	var which []bool // by job; nil: all
	if len(s.where) > 0 {
		var err error
		if which, err = a.matchingJobs(ctx, run, table, s.where); err != nil {
			return nil, err
		}
	}
	var ids []jobs.ID
	for i := range table.NumJobs() {
		id := jobs.ID(i + 1)
		state := table.State(id)
		switch {
		case s.named != nil && !s.named.Has(id), which != nil && !which[id]:
		case s.failed && state != jobs.Failed && state != jobs.TimedOut:
		case fit(state):
			ids = append(ids, id)
		case !s.all:
			s.numUnfit++
		}
	}
	return ids, nil
}

// whyEmpty returns why no job of a run meets the conditions.
func (s *selection) whyEmpty(table *jobs.Table) string {
	subject, conditions := "no job", []string(nil)
	if s.named != nil {
		subject = "none of these jobs"
	}
	if s.all {
		conditions = append(conditions, "has ended without success")
	}
	if s.failed {
		conditions = append(conditions, "has failed or timed out")
	}
	for _, q := range s.where {
		conditions = append(conditions, "matches "+text.Shorten(text.Line(q.String())))
	}
	if len(conditions) == 0 {
		return "the run has no jobs"
	}
	why := subject + " " + strings.Join(conditions, " and ")
	if slices.Contains(queriedNames(s.where), "name") {
		why += "; " + someNames(table)
	}
	return why
}

// someNames describes the names of the jobs of a run.
func someNames(table *jobs.Table) string {
	var names []string
	for j := range table.Rows() {
		if name := j.Spec.Name; name != "" && !slices.Contains(names, name) {
			names = append(names, strings.Clone(name)) // the row is valid until the next one
		}
		if len(names) > maxNamedJobs {
			break
		}
	}
	switch n := len(names); {
	case n == 0:
		return "no job of the run has a name, so name is the command"
	case n > maxNamedJobs:
		return "names are, for example, " + text.Shorten(text.Line(strings.Join(names[:maxNamedJobs], ", ")))
	default:
		return "the only " + text.Noun(n, "name") + " " + text.Verb(n, "is", "are") + " " +
			text.Shorten(text.Line(strings.Join(names, ", ")))
	}
}

// maxNamedJobs is the maximum number of names of jobs in a message.
const maxNamedJobs = 3

// matchingJobs returns for each job whether it matches the filters, like results --all --where. The host, exit
// code, and signal of an unfinished job are those of its last attempt. Outputs are read only if a
// filter names a declared metric.
func (a *app) matchingJobs(ctx context.Context, run *rundir.Run, t *jobs.Table,
	filters []*query.Query) ([]bool, error) {
	rows := metrics.Locations(run).Rows(t, nil)
	rows.Amend(func(j *jobs.Job, r *results.Result) {
		if last := j.Last(); last != nil {
			r.Host = cmp.Or(r.Host, last.Host)
		}
		r.Outcome = runview.LastOutcome(j)
	})
	table, notes, err := readResultTable(ctx, run, t, rows, a.resultColumns(run, nil), queriedNames(filters))
	if err != nil {
		return nil, err
	}
	a.printNotes(notes...)
	s, warnings, err := table.Where(filters...)
	if err != nil {
		return nil, text.Errorf("--where: %w", err)
	}
	a.printNotes(warnings...)
	which := make([]bool, t.NumJobs()+1)
	for row := range s.Len() {
		which[s.Job(row)] = true
	}
	return which, nil
}

func queriedNames(filters []*query.Query) []string {
	names := []string{}
	for _, f := range filters {
		names = append(names, f.Names(true)...)
	}
	return names
}

// namedMetrics returns the metrics that some names mean, and the others. s has all columns.
func namedMetrics(s *results.Table, columns []*metrics.Metric, names []string) (named, others []*metrics.Metric) {
	meant := map[int]bool{}
	for _, name := range names {
		if at, err := s.Column(name); err == nil { // otherwise the table returns the error
			meant[at] = true
		}
	}
	for k, at := range s.Metrics() {
		if meant[at] {
			named = append(named, columns[k])
		} else {
			others = append(others, columns[k])
		}
	}
	return named, others
}

// completeWhere completes the columns that --where names most, and the states.
func completeWhere(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	before := prefix[:strings.LastIndexAny(prefix, ", (")+1]
	var words []string
	if strings.HasPrefix(prefix, before+"state=") {
		for st := jobs.Queued; st <= jobs.Skipped; st++ {
			words = append(words, before+"state="+st.String())
		}
	} else {
		words = text.Each([]string{"state", "exit", "signal", "host", "name", "queue"},
			func(column string) string { return before + column + "=" })
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
