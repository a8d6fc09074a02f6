package cli

import (
	"cmp"
	"context"
	"slices"

	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/places"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/column"
	"dcs-tui/jobs/results/outputs"
	"dcs-tui/jobs/results/sheet"
	"dcs-tui/jobs/rundir"
)

// parseWhere reads --where, given once or more: all must hold.
func parseWhere(texts []string) ([]*sheet.Filter, error) {
	var filters []*sheet.Filter
	for _, text := range texts {
		f, err := sheet.ParseFilter(text)
		if err != nil {
			return nil, exit.Usagef("--where: %w", err)
		}
		filters = append(filters, f)
	}
	return filters, nil
}

// jobsWhere finds the jobs for which the filters hold, as `results --all --where` finds
// them: what that shows is what requeue and cancel take. Of a job that is not over, host,
// exit and signal are those of its last attempt. Outputs are read only when a filter
// names a figure that was declared.
func (a *app) jobsWhere(ctx context.Context, run *rundir.Run, t *jobs.Table, filters []*sheet.Filter) (map[jobs.ID]bool, error) {
	at := places.Of(run)
	in := sheet.Input{Jobs: append(at.Since(t, 0), at.Unfinished(t)...), Params: paramNames(t)}
	for i := range in.Jobs {
		r := &in.Jobs[i]
		if j := t.Job(r.Job); !j.State.Terminal() {
			if last := j.Last(); last != nil {
				r.Host = cmp.Or(r.Host, last.Host)
			}
			r.Outcome = standing.LastOutcome(j)
		}
	}
	columns := a.resultColumns(run, nil)
	in.Names = columnNames(columns)
	named, others := namedFigures(sheet.New(in), columns, filters)
	if len(named) > 0 {
		found, err := outputs.New(run, named).Read(ctx, in.Jobs, cwdsOf(t, in.Jobs))
		if err != nil {
			return nil, err
		}
		a.note(found.Notes...)
		in.Figures = found.Values
	}
	in.Names = columnNames(slices.Concat(named, others)) // of the others there are no values, and nobody asks
	s, odd, err := sheet.New(in).WhereAll(filters)
	if err != nil {
		return nil, exit.Usagef("--where: %w", err)
	}
	a.note(odd...)
	which := make(map[jobs.ID]bool, s.Len())
	for row := range s.Len() {
		which[s.Job(row)] = true
	}
	return which, nil
}

// namedFigures are the columns of which a filter speaks, as s, which has them all,
// understands it, and the others.
func namedFigures(s *sheet.Sheet, columns []*column.Column, filters []*sheet.Filter) (named, others []*column.Column) {
	meant := map[int]bool{}
	for _, f := range filters {
		for _, name := range f.Columns() {
			if at, err := s.Column(name); err == nil { // else it is told when the filter is used
				meant[at] = true
			}
		}
	}
	for k, at := range s.Figures() {
		if meant[at] {
			named = append(named, columns[k])
		} else {
			others = append(others, columns[k])
		}
	}
	return named, others
}

func columnNames(columns []*column.Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

// paramNames are the parameters of all jobs, over or not: a table has the same columns
// from the beginning of a run to its end.
func paramNames(t *jobs.Table) []string {
	var names []string
	had := map[string]bool{}
	for i := range t.Jobs {
		for k, p := range t.Jobs[i].Spec.Params {
			if k < len(names) && names[k] == p.Name || had[p.Name] {
				continue // as nearly always
			}
			had[p.Name] = true
			names = append(names, p.Name)
		}
	}
	return names
}

// cwdsOf gives outputs.Reader the directories of jobs that have one of their own.
func cwdsOf(t *jobs.Table, list []results.Result) func(i int) string {
	return func(i int) string {
		if s := t.Job(list[i].Job).Spec; s.Options != nil {
			return s.Cwd
		}
		return ""
	}
}
