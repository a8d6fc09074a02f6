package results

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// Grouping describes how rows are grouped.
type Grouping struct {
	By       []string       // columns; rows with the same texts in them form a group
	Metrics  []string       // columns to compute statistics of; none: the metrics, or the time if there are none
	Measures []Measure      // Count is always added
	MinSize  int            // groups with fewer solved members are left out; 0 keeps all
	Started  bool           // groups are left out unless a member has ended
	Where    []*query.Query // groups that do not match all of them are left out
}

// Group returns a row for each group, in the order of their first members: what the
// members have in common, the number of jobs, how many of them are solved (succeeded),
// and the measures of each metric over the solved ones.
func (s *Table) Group(g Grouping) (grouped *Table, notes Notes, err error) {
	by, err := s.FindColumns(g.By)
	if err != nil {
		return nil, notes, err
	}
	metrics, err := s.measuredColumns(g.Metrics)
	if err != nil {
		return nil, notes, err
	}
	if !slices.Contains(g.Measures, Count) {
		g.Measures = slices.Concat([]Measure{Count}, g.Measures)
	}
	all := s.gather(by)
	started, numUnstarted := all, 0
	if g.Started {
		started, numUnstarted = startedGroups(all)
	}
	groups, left := s.largeEnough(started, g.MinSize, "group", "out")
	var columns []Column
	var taken []string
	add := func(name string, role Role, typ query.Type) {
		name = uniqueName(taken, name, "group.")
		taken = append(taken, name)
		columns = append(columns, Column{Name: name, Role: role, Type: typ})
	}
	for _, c := range by {
		add(s.Columns[c].Name, s.Columns[c].Role, s.Columns[c].Type)
	}
	add("jobs", Stat, query.NumberType)
	add("solved", Stat, query.NumberType)
	for _, c := range metrics {
		for _, m := range g.Measures {
			add(s.Columns[c].Name+"_"+m.String(), Stat, m.typeOf(&s.Columns[c]))
		}
	}
	bad, bases := make([]unusableCells, len(metrics)), make([]Basis, len(metrics))
	cells := make([][]query.Value, len(groups))
	for i, e := range groups {
		row := make([]query.Value, 0, len(columns))
		for _, c := range by {
			row = append(row, s.At(e.members[0], c))
		}
		row = append(row, query.NumberValue(float64(len(e.members))), query.NumberValue(float64(len(e.solved))))
		for k, c := range metrics {
			stats, basis := s.statsOf(e, c, &bad[k])
			bases[k].merge(&basis)
			for _, m := range g.Measures {
				row = append(row, stats.Value(m))
			}
		}
		cells[i] = row
	}
	for k, c := range metrics {
		bases[k].Missing[NotOver] += int32(s.numElsewhere + numUnstarted)
		notes.Basis = append(notes.Basis, bases[k].notes(s.Heading(c), s.unit)...)
		notes.Others = append(notes.Others, s.unusableNotes(&bad[k], c)...)
	}
	notes.Others = slices.Concat(left, notes.Others)
	grouped, more, err := computedTable("group", columns, cells).Where(g.Where...)
	notes.Others = append(notes.Others, more...)
	return grouped, notes, err
}

// KeepGroups returns the rows whose group has at least minSize solved members, and a note about the
// other groups. Rows with the same texts in the columns by form a group.
func (s *Table) KeepGroups(by []string, minSize int) (kept *Table, notes []string, err error) {
	columns, err := s.FindColumns(by)
	if err != nil {
		return nil, nil, err
	}
	groups, notes := s.largeEnough(s.gather(columns), minSize, "group", "out")
	keep := make([]bool, s.Len())
	for _, e := range groups {
		for _, row := range e.members {
			keep[row] = true
		}
	}
	return s.Keep(func(row int) bool { return keep[row] }), notes, nil
}

// measuredColumns finds the columns to compute statistics of: by default the metrics, or the time
// if there are none.
func (s *Table) measuredColumns(names []string) ([]int, error) {
	if metrics := s.Metrics(); len(names) == 0 && len(metrics) > 0 {
		return metrics, nil
	}
	if len(names) == 0 {
		names = []string{"time"}
	}
	return s.FindColumns(names)
}

// gathered holds the members of a group.
type gathered struct {
	members []int // rows
	over    int   // number of the members that have ended
	solved  []int // rows of the members that are solved
}

// gather groups rows with the same texts in some columns, in the order of their first members.
func (s *Table) gather(by []int) []*gathered {
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
			e = &gathered{}
			byKey[string(key)] = e
			groups = append(groups, e)
		}
		e.members = append(e.members, row)
		if s.isOver(row) {
			e.over++
		}
		if s.Solved(row) {
			e.solved = append(e.solved, row)
		}
	}
	return groups
}

// largeEnough returns the groups with at least minSize solved members, and notes about the others.
// noun is the name of a group, and left describes what happens to the others.
func (s *Table) largeEnough(groups []*gathered, minSize int, noun, left string) (kept []*gathered, notes []string) {
	solved := 0
	for _, e := range groups {
		solved += len(e.solved)
		if len(e.solved) >= minSize {
			kept = append(kept, e)
		}
	}
	if len(groups) > 0 && solved == 0 && s.over != nil {
		notes = append(notes, "only jobs that succeeded count, and none of these has")
	}
	if n := len(groups) - len(kept); n > 0 {
		notes = append(notes, fmt.Sprintf("%s with fewer than %d solved %ss left %s", text.Plural(n, noun), minSize,
			s.unit, left))
	}
	return kept, notes
}

// statsOf returns the statistics of a column over the solved members of a group. It adds cells that
// are not numbers to bad.
func (s *Table) statsOf(e *gathered, column int, bad *unusableCells) (stats groupStats, b Basis) {
	numbers := make([]float64, 0, len(e.solved))
	for _, row := range e.solved {
		v, ok := s.count(&b, row, column, bad)
		if !ok {
			continue
		}
		if len(numbers) == 0 || query.Compare(v, stats.least, false) < 0 {
			stats.least = v
		}
		if len(numbers) == 0 || query.Compare(v, stats.most, true) < 0 {
			stats.most = v
		}
		numbers = append(numbers, v.Number)
	}
	stats.Stats = StatsOf(numbers)
	b.Missing[NotOver] += int32(len(e.members) - e.over)
	b.Missing[NotSolved] += int32(e.over - len(e.solved))
	return stats, b
}

// groupStats are the statistics of a group. Its least and its largest number are exact.
type groupStats struct {
	Stats
	least, most query.Value
}

// Value returns a measure as a cell with its text. A large extreme, and one that no float has, is
// written as its job wrote it.
func (s *groupStats) Value(m Measure) query.Value {
	v := s.Stats.Value(m)
	extreme := v
	switch m {
	case Min:
		extreme = s.least
	case Max:
		extreme = s.most
	}
	isLarge := math.Abs(v.Number) >= 1<<53 // where not every whole number is a float
	if v.Kind == query.Number && !math.IsNaN(v.Number) && (isLarge || query.Compare(v, extreme, false) != 0) {
		return extreme
	}
	return v
}

// startedGroups returns the groups of which a member has ended, and the number of members of the
// others.
func startedGroups(all []*gathered) (started []*gathered, unstarted int) {
	for _, e := range all {
		if e.over > 0 {
			started = append(started, e)
		} else {
			unstarted += len(e.members)
		}
	}
	return started, unstarted
}

// Tally counts jobs and keeps the one with the lowest number as an example, so that a message does
// not depend on their order.
type Tally struct {
	Count int
	Job   jobs.ID
	Text  string // of Job

	last jobs.ID
}

// Add counts a job once, even if it is added several times in a row. Rows that are not jobs have
// the id 0, and each of them counts.
func (t *Tally) Add(job jobs.ID, text string) {
	if job != 0 && job == t.last {
		return
	}
	t.last = job
	t.Merge(&Tally{Count: 1, Job: job, Text: text})
}

// Merge adds the jobs of o.
func (t *Tally) Merge(o *Tally) {
	if t.Count == 0 || o.Count > 0 && o.Job < t.Job {
		t.Job, t.Text = o.Job, o.Text
	}
	t.Count += o.Count
}

// Example names the job: "job 5" if it is the only one, and "such as job 5" if it is not.
func (t *Tally) Example() string {
	if t.Count == 1 {
		return fmt.Sprintf("job %d", t.Job)
	}
	return fmt.Sprintf("such as job %d", t.Job)
}

// example returns the example in parentheses, to follow a sentence. It returns "" for rows that are
// not jobs.
func (t *Tally) example() string {
	switch {
	case t.Job == 0:
		return ""
	case t.Text == "":
		return " (" + t.Example() + ")"
	}
	return fmt.Sprintf(" (%s: %q)", t.Example(), text.Clean(t.Text, 40))
}

// unusableCells counts the cells of a column that could not be used: empty ones, texts, and numbers
// with another unit where a number is wanted, and numbers that < or > compared with a text.
type unusableCells struct{ empty, texts, otherUnits, numbers Tally }

func (o *unusableCells) add(c *Column, v query.Value, job jobs.ID) {
	switch v.Kind {
	case query.Absent:
		o.empty.Add(job, "")
	case query.Text:
		if n, _ := ParseMetric(v.Text); c.unit != nil && n.Kind == query.Number {
			o.otherUnits.Add(job, v.Text)
			return
		}
		o.texts.Add(job, v.Text)
	default:
		o.numbers.Add(job, v.String())
	}
}

// unusableNotes returns sentences about the cells of a column that could not be used.
func (s *Table) unusableNotes(o *unusableCells, column int) (notes []string) {
	c := &s.Columns[column]
	name := c.Name
	if n := o.texts.Count; n > 0 {
		note := fmt.Sprintf("%s of %s is not a number and left out%s", name, text.Plural(n, s.unit), o.texts.example())
		if c.suggest != nil {
			if how := c.suggest(o.texts.Text); how != "" {
				note += fmt.Sprintf("; --result '%s' finds the number", how)
			}
		}
		notes = append(notes, note)
	}
	if n := o.otherUnits.Count; n > 0 {
		others := "no unit"
		if unit := c.unit(); unit != "" {
			others = "the unit " + unit
		}
		notes = append(notes, fmt.Sprintf("%s of %s has another unit and is left out%s: most others have %s", name,
			text.Plural(n, s.unit), o.otherUnits.example(), others))
	}
	if n := o.numbers.Count; n > 0 {
		notes = append(notes, fmt.Sprintf("%s of %s is a number and left out: it was compared with a text%s", name,
			text.Plural(n, s.unit), o.numbers.example()))
	}
	if n := o.empty.Count; n > 0 {
		what := s.unit
		if s.solved != nil {
			what = "solved " + what
		}
		notes = append(notes, fmt.Sprintf("%s %s no %s%s", text.Plural(n, what), text.Verb(n, "has", "have"), name,
			o.empty.example()))
	}
	return notes
}
