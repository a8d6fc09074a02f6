package results

import (
	"encoding/binary"
	"fmt"
	"slices"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// Grouping describes how rows are put together.
type Grouping struct {
	By       []int // columns; rows with the same texts in them are a group
	Metrics  []int // columns to compute with
	Measures []Measure
	// MinSize leaves out groups with fewer solved members; 0 keeps all.
	MinSize int
}

// Group makes a row a group, in the order of their first members: what they have in
// common, how many jobs there are and how many of them solved (succeeded), and the
// measures of each metric over the solved. notes are sentences about what was left out.
func (s *Table) Group(g Grouping) (grouped *Table, notes []string) {
	groups := s.gather(g.By, g.Metrics)
	var odd oddities
	columns := make([]Column, 0, len(g.By)+2+len(g.Metrics)*len(g.Measures))
	var taken []string
	add := func(name string, role Role, typ query.Type) {
		name = unique(taken, name, "group.")
		taken = append(taken, name)
		columns = append(columns, Column{Name: name, Role: role, Type: typ})
	}
	for _, c := range g.By {
		add(s.Columns[c].Name, s.Columns[c].Role, s.Columns[c].Type)
	}
	add("jobs", Stat, query.NumberType)
	add("solved", Stat, query.NumberType)
	for _, c := range g.Metrics {
		for _, m := range g.Measures {
			typ := s.Columns[c].Type
			if m == Count {
				typ = query.NumberType
			}
			add(s.Columns[c].Name+"_"+m.String(), Stat, typ)
		}
	}
	var cells [][]query.Value
	small := 0
	for _, e := range groups {
		if e.solved < g.MinSize {
			small++
			continue
		}
		row := make([]query.Value, 0, len(columns))
		for _, c := range g.By {
			row = append(row, s.At(e.first, c))
		}
		row = append(row, query.NumberValue(float64(e.members)), query.NumberValue(float64(e.solved)))
		for k := range g.Metrics {
			odd.merge(k, &e.odd[k])
			stats := StatsOf(e.numbers[k])
			for _, m := range g.Measures {
				row = append(row, stats.Value(m))
			}
		}
		cells = append(cells, row)
	}
	if len(groups) > 0 && !slices.ContainsFunc(groups, func(e *gathered) bool { return e.solved > 0 }) {
		notes = append(notes, noneSolved)
	}
	if small > 0 {
		notes = append(notes, fmt.Sprintf("%s with fewer than %d solved %ss left out", jobs.Plural(small, "group"), g.MinSize, s.unit))
	}
	return literal("group", columns, cells), append(notes, odd.notes(s, g.Metrics)...)
}

const noneSolved = "only jobs that succeeded count, and none of these has"

// gathered are the members of a group.
type gathered struct {
	first           int // row
	members, solved int
	numbers         [][]float64 // of the solved, by metric
	odd             []oddity
}

// gather puts rows together, in the order of their first members.
func (s *Table) gather(by, metrics []int) []*gathered {
	var groups []*gathered
	byKey := map[string]*gathered{}
	var key []byte
	for row := range s.rows {
		key = key[:0]
		for _, c := range by {
			text := s.At(row, c).Text
			key = append(binary.AppendUvarint(key, uint64(len(text))), text...)
		}
		e := byKey[string(key)]
		if e == nil {
			e = &gathered{first: row, numbers: make([][]float64, len(metrics)), odd: make([]oddity, len(metrics))}
			byKey[string(key)] = e
			groups = append(groups, e)
		}
		e.members++
		if !s.Solved(row) {
			continue
		}
		e.solved++
		for k, c := range metrics {
			if v := s.At(row, c); v.Kind == query.Number {
				e.numbers[k] = append(e.numbers[k], v.Number)
			} else {
				e.odd[k].add(v, s.Job(row))
			}
		}
	}
	return groups
}

// oddity counts the cells that are no number where one is wanted.
type oddity struct {
	empty, texts      int
	emptyJob, textJob jobs.ID // the first
	text              string  // of textJob
	last              jobs.ID // counted last: one job counts once
}

func (o *oddity) add(v query.Value, job jobs.ID) {
	if job != 0 && job == o.last {
		return
	}
	o.last = job
	if v.Kind == query.Absent {
		if o.empty++; o.empty == 1 {
			o.emptyJob = job
		}
		return
	}
	if o.texts++; o.texts == 1 {
		o.textJob, o.text = job, v.Text
	}
}

// oddities are those of several columns.
type oddities struct{ of []oddity }

func (o *oddities) merge(k int, e *oddity) {
	for len(o.of) <= k {
		o.of = append(o.of, oddity{})
	}
	t := &o.of[k]
	if t.empty == 0 || e.empty > 0 && e.emptyJob < t.emptyJob {
		t.emptyJob = e.emptyJob
	}
	if t.texts == 0 || e.texts > 0 && e.textJob < t.textJob {
		t.textJob, t.text = e.textJob, e.text
	}
	t.empty, t.texts = t.empty+e.empty, t.texts+e.texts
}

// notes reports for each column what was left out of the numbers.
func (o *oddities) notes(s *Table, columns []int) (notes []string) {
	for k := range o.of {
		e, name := &o.of[k], s.Columns[columns[k]].Name
		if e.texts > 0 {
			notes = append(notes, fmt.Sprintf("%s of %s is not a number and left out%s", name, jobs.Plural(e.texts, s.unit), example(e.textJob, e.text)))
		}
		if e.empty > 0 {
			what := s.unit
			if s.solved != nil {
				what = "solved " + what
			}
			notes = append(notes, fmt.Sprintf("%s %s no %s%s", jobs.Plural(e.empty, what), jobs.Verb(e.empty, "has", "have"), name, example(e.emptyJob, "")))
		}
	}
	return notes
}

func example(job jobs.ID, text string) string {
	switch {
	case job == 0:
		return ""
	case text == "":
		return fmt.Sprintf(" (job %d)", job)
	}
	return fmt.Sprintf(" (job %d: %q)", job, jobs.Clean(text, 40))
}
