package results

import (
	"fmt"
	"slices"
	"strings"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
)

// Role is the kind of a column.
type Role uint8

// The roles.
const (
	Fact   Role = iota // fact of a job: its number, state, host …
	Param              // parameter of the grid
	Metric             // metric in an output of the job
	Stat               // statistic of several jobs
)

// Column is a column of a Table.
type Column struct {
	Name string // unique in the table
	Role Role
	Type query.Type

	value func(i int) query.Value // value of row i of the original table
	kind  func(i int) string      // FailureKind of row i or ""; nil except for causes of jobs
	basis func(i int) Basis       // see Table.CellBasis; nil: none

	unit    func() string            // unit of the numbers of a metric; nil for other columns
	suggest func(text string) string // see TableInput.Suggest; nil: none
}

// fact returns the name of a fact as in `results --json`, or "" for another column. The column has
// another name if a parameter or a metric has that of the fact.
func (c *Column) fact() string {
	return text.If(c.Role == Fact, strings.TrimPrefix(c.Name, "dcs."))
}

// Table holds results in rows and columns. It is immutable.
type Table struct {
	Columns []Column

	shown  []int // columns that are shown unless others are requested
	rows   []int32
	job    func(i int) jobs.ID // job of row i; nil: rows are not jobs
	over   func(i int) bool    // whether the job of row i has ended; nil: all have
	solved func(i int) bool    // whether row i counts in statistics; nil: all rows do

	numElsewhere int    // number of further jobs, which are not over and have no row
	unit         string // what a row is, for messages: "job", "group"
}

// Len returns the number of rows.
func (s *Table) Len() int { return len(s.rows) }

// At returns a cell. The Value of a number also has a text.
func (s *Table) At(row, column int) query.Value {
	v := s.Columns[column].value(int(s.rows[row]))
	v.Text = v.String()
	return v
}

// NumberUnit returns the unit of the numbers of a column as jobs printed it, such as ms, or "".
func (s *Table) NumberUnit(column int) string {
	if unit := s.Columns[column].unit; unit != nil {
		return unit()
	}
	return ""
}

// Job returns the job of a row, or 0 if rows are not jobs.
func (s *Table) Job(row int) jobs.ID {
	if s.job == nil {
		return 0
	}
	return s.job(int(s.rows[row]))
}

// Solved reports whether a row counts in statistics because its job succeeded.
func (s *Table) Solved(row int) bool { return s.solved == nil || s.solved(int(s.rows[row])) }

func (s *Table) isOver(row int) bool { return s.over == nil || s.over(int(s.rows[row])) }

// Over returns the rows of jobs that have ended.
func (s *Table) Over() *Table { return s.Keep(s.isOver) }

// ShownColumns returns the columns to show unless others are requested.
func (s *Table) ShownColumns() []int { return slices.Clone(s.shown) }

// Unit returns what a row stands for: job, group, or value.
func (s *Table) Unit() string { return s.unit }

// Column finds a column by its name, which is not case-sensitive. Unless another column
// has that name, "time" means elapsed_seconds, other names that the screen shows for
// facts work in the same way, and acc of groups means acc_mean. A parameter may be in
// brackets, as in a template.
func (s *Table) Column(name string) (int, error) {
	name = strings.TrimSpace(name)
	meant := []string{name}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		meant = append(meant, strings.TrimSuffix(inner, "]"))
	}
	first, measure, of := strings.Cut(strings.ToLower(name), "_")
	if fact := onScreen[first]; fact != "" {
		fact += text.If(of, "_"+measure)
		meant = append(meant, fact)
	}
	for _, find := range []func(string) int{s.find, s.findFold} {
		for _, suffix := range []string{"", "_" + Mean.String()} {
			for _, m := range meant {
				if i := find(m + suffix); i >= 0 && (suffix == "" || s.unit == "group") {
					return i, nil
				}
			}
		}
	}
	return 0, query.Unknown("column", name, s.names())
}

// Heading returns a column's name as shown to people: time, not elapsed_seconds.
func (s *Table) Heading(column int) string {
	name, role := s.Columns[column].Name, s.Columns[column].Role
	if rest, ok := strings.CutPrefix(name, elapsedColumn); ok && (role == Fact || role == Stat) &&
		s.find("time"+rest) < 0 {
		return "time" + rest
	}
	return name
}

func (s *Table) find(name string) int {
	return slices.IndexFunc(s.Columns, func(c Column) bool { return c.Name == name })
}

// findFold is a case-insensitive find. The screen shows the names of facts in capitals, so if two
// columns match, it returns the fact.
func (s *Table) findFold(name string) int {
	if i := slices.IndexFunc(s.Columns, func(c Column) bool {
		return c.Role == Fact && strings.EqualFold(c.fact(), name)
	}); i >= 0 {
		return i
	}
	return slices.IndexFunc(s.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
}

// onScreen maps the shorter names on the screen to facts.
var onScreen = map[string]string{"id": "job", "time": elapsedColumn, "cpu": "cpu_seconds", "mem": "max_rss_bytes"}

func (s *Table) names() []string { return namesOf(s.Columns) }

func namesOf(columns []Column) []string {
	return text.Each(columns, func(c Column) string { return c.Name })
}

// FindColumns parses a list of names, such as "C,acc".
func (s *Table) FindColumns(names []string) ([]int, error) {
	var found []int
	for _, n := range names {
		i, err := s.Column(n)
		if err != nil {
			return nil, err
		}
		if slices.Contains(found, i) {
			return nil, fmt.Errorf("the column %s is named twice", text.Clean(n, 40))
		}
		found = append(found, i)
	}
	return found, nil
}

// Metrics returns the columns that hold metrics.
func (s *Table) Metrics() []int {
	var found []int
	for i, c := range s.Columns {
		if c.Role == Metric {
			found = append(found, i)
		}
	}
	return found
}

// withRows returns a table with the same columns and other rows.
func (s *Table) withRows(rows []int32) *Table {
	t := *s
	t.rows = rows
	return &t
}

// Keep returns the rows for which keep is true.
func (s *Table) Keep(keep func(row int) bool) *Table {
	var rows []int32
	for row := range s.rows {
		if keep(row) {
			rows = append(rows, s.rows[row])
		}
	}
	return s.withRows(rows)
}

// Show returns the table with only these columns shown.
func (s *Table) Show(columns []int) *Table {
	t := *s
	t.shown = slices.Clone(columns)
	return &t
}

// AlsoShow returns the table with these facts shown after the other columns.
func (s *Table) AlsoShow(facts ...string) *Table {
	shown := s.ShownColumns()
	for i, c := range s.Columns {
		if slices.Contains(facts, c.fact()) {
			shown = append(shown, i)
		}
	}
	return s.Show(shown)
}

// Sort returns the table with its rows sorted by a column. Equal rows keep their order. Numbers
// come before NaN, texts, and nothing, in both directions.
func (s *Table) Sort(column int, desc bool) *Table {
	keys := make([]query.Value, len(s.rows))
	order := make([]int32, len(s.rows))
	for row := range s.rows {
		keys[row], order[row] = s.At(row, column), int32(row)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return query.Compare(keys[a], keys[b], desc) })
	for i, row := range order {
		order[i] = s.rows[row]
	}
	return s.withRows(order)
}

// SortBy sorts by several columns, of which the first counts most.
func (s *Table) SortBy(orders ...Order) (*Table, error) {
	for i := range orders {
		o := orders[len(orders)-1-i]
		at, err := s.Column(o.Column)
		if err != nil {
			return s, err
		}
		s = s.Sort(at, o.Desc)
	}
	return s, nil
}

// computedTable makes a table of computed cells, given as cells[row][column].
func computedTable(unit string, columns []Column, cells [][]query.Value) *Table {
	s := &Table{Columns: columns, unit: unit, rows: make([]int32, len(cells)), shown: make([]int, len(columns))}
	for i := range columns {
		s.shown[i] = i
		s.Columns[i].value = func(row int) query.Value { return cells[row][i] }
	}
	for i := range cells {
		s.rows[i] = int32(i)
	}
	return s
}

// uniqueName returns name, or name with prefix if another column already has that name.
func uniqueName(taken []string, name, prefix string) string {
	for slices.Contains(taken, name) {
		name = prefix + name
	}
	return name
}
