package runview

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/results"
)

// TableAsk asks for the table of what the jobs that are over gave. The window
// is one of the list of jobs, but for its order: Filter may name figures, too, Sort means
// nothing, and Reverse turns By round.
type TableAsk struct {
	JobsWindow
	Figures []string // beyond those declared, each NAME or NAME=HOW; of one name the later counts
	By      string   // column to sort by; "": the number of the job
	Best    string   // COLUMN:max or COLUMN:min; "": no row is the best
	Group   []string // a row a group of jobs that have the same in these columns
	MinSize int      // groups with fewer jobs that succeeded are left out
	Heat    bool     // a heat map instead of rows
	Pivot   []string // of the heat map: down, across, figure or figure:measure; nil: the two parameters that vary
}

// The bounds of a Table, beside MaxRows.
const (
	MaxTableGroups = 300 // rows of groups
	MaxTableNames  = 50  // columns of a TableAsk, in each of its lists
	MaxTableNotes  = 10
	MaxHeat        = 64  // rows, and columns, of a heat map
	MaxTableCell   = 200 // bytes
)

// HeatLevels is how many levels a heat map has.
const HeatLevels = 5

// Table is what came of a TableAsk.
type Table struct {
	// Plain reports whether there is nothing to tabulate: no job has a parameter, no figure was
	// declared or asked for. Nothing else is then set.
	Plain bool
	// Ready reports whether the rest answers this very ask; it is being made otherwise, and
	// nothing but the counts of what was read is set.
	Ready bool

	Wrong string   // what is wrong with the ask, a sentence
	Notes []string // what the figures lack, a sentence each

	Read, Jobs int // jobs that are over whose figures are known, and all that are over

	Columns []TableColumn // what can be asked for, in the order in which it is shown
	Page    Page          // the window of rows; of a Group or Heat only how many jobs match
	Figures [][]string    // of each row of Page, in the order of the columns that are Figures
	Figured bool          // the filter names figures, of which Match knows nothing

	Groups *TableGroups // of a Group
	Heat   *Heat        // of a Heat
	Best   jobs.ID      // of the rows; 0: none
	Value  string       // what the best has
	Ties   int          // further rows that have the same
	Course []float64    // of the best, from 1, the first, down to 0
}

// TableColumn is a column that can be sorted and grouped by.
type TableColumn struct {
	Name string
	Role results.Role
	Vary bool // a parameter that has several values
}

// TableGroups are groups, a row each, at most MaxTableGroups.
type TableGroups struct {
	Columns []TableColumn
	Rows    [][]string
	More    int // groups that there was no room for
	Best    int // index into Rows; -1: none
}

// Heat is a figure over two columns, cut to MaxHeat on both sides.
type Heat struct {
	Down, Across, Figure  string // Figure with its measure: "acc, mean"
	Rows, Columns         []string
	MoreRows, MoreColumns int
	Cells                 [][]string
	Levels                [][]int8 // 0 to HeatLevels-1; -1: no number
	Min, Max              string   // of all cells; "": there is none
}

// The table of what finished jobs gave. Outputs are read and figures computed
// in a goroutine of its own, which lives while somebody asks for a table: neither the
// engine nor a Look waits for it.

const (
	wanted     = 3 * time.Second        // an open view asks at least so often
	firstTable = 50 * time.Millisecond  // for which a Look waits for a table that nobody has asked for before
	remakeWait = 500 * time.Millisecond // tables that only grow are made no more often, …
	remakePart = 20                     // … and take no more than this part of the time
)

// tables makes the table that the screen has asked for last.
type tables struct {
	v    *View
	ctx  context.Context
	poke chan struct{} // room for one: there may be something to do

	mu      sync.Mutex
	tabular bool  // there is something to tabulate beyond the jobs themselves
	wish    *wish // nil: none yet
	working bool
	broken  string // a panic has ended the work for good

	done    finished // of the goroutine alone, as what follows
	figures *figures // of the wish; nil: none yet
}

// wish is a table that somebody asks for.
type wish struct {
	key   string
	ask   TableAsk // without its window
	asked time.Time
	made  *made         // the newest; nil: none yet
	told  bool          // that there is one
	ready chan struct{} // closed then
}

func (t *tables) init(v *View) {
	t.v = v
	t.ctx = v.ctx
	t.poke = make(chan struct{}, 1)
}

// boundTable keeps what is requested within what it may cost, and tells apart what is
// asked for and which part of it is shown.
func boundTable(a TableAsk) TableAsk {
	few := func(list []string) []string { return list[:min(len(list), MaxTableNames)] }
	a.Figures, a.Group, a.Pivot = few(a.Figures), few(a.Group), few(a.Pivot)
	a.JobsWindow = JobsWindow{Filter: a.Filter, Reverse: a.Reverse}
	return a
}

func keyOfTable(a *TableAsk) string {
	return fmt.Sprintf("%q %v %q %q %q %q %d %v %q", a.Filter, a.Reverse, a.Figures, a.By, a.Best, a.Group, a.MinSize, a.Heat, a.Pivot)
}

// want requests a table and has it made.
func (t *tables) want(ask *TableAsk) *wish {
	a := boundTable(*ask)
	key := keyOfTable(&a)
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.wish
	if w == nil || w.key != key {
		w = &wish{key: key, ask: a, ready: make(chan struct{})}
		t.wish = w
	}
	w.asked = time.Now()
	if !t.working && t.broken == "" && t.ctx.Err() == nil {
		t.working = true
		go t.work()
	}
	select {
	case t.poke <- struct{}{}:
	default:
	}
	return w
}

// await gives a table that was not asked for before a moment to be made: a key then
// shows at once what it asks for.
func (t *tables) await(ctx context.Context, ask *TableAsk) {
	t.mu.Lock()
	known := t.tabular && t.broken == ""
	t.mu.Unlock()
	if !known { // nor whether there is any
		return
	}
	late := time.NewTimer(firstTable)
	defer late.Stop()
	select {
	case <-t.want(ask).ready:
	case <-late.C:
	case <-t.ctx.Done():
	case <-ctx.Done():
	}
}

// active returns the wish while somebody still has it. Without one the work ends.
func (t *tables) active() *wish {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.wish.asked) >= wanted || t.ctx.Err() != nil {
		t.working = false
		return nil
	}
	return t.wish
}

// work makes tables until nobody asks for one any more.
func (t *tables) work() {
	defer func() {
		if p := recover(); p != nil { // a view must not end the run
			t.mu.Lock()
			t.working, t.broken = false, fmt.Sprintf("the table cannot be made, a defect of ours: %v", p)
			t.mu.Unlock()
			t.tell()
		}
	}()
	for {
		w := t.active()
		if w == nil {
			return
		}
		next, err := t.step(w)
		if err != nil { // the board is being closed, or its dispatcher has gone
			t.mu.Lock()
			t.working = false
			t.mu.Unlock()
			return
		}
		if next <= 0 {
			continue
		}
		timer := time.NewTimer(min(next, wanted))
		select {
		case <-t.poke:
		case <-timer.C:
		case <-t.ctx.Done():
		}
		timer.Stop()
	}
}

// step handles what has changed, reads a piece of what is to be read and makes the
// table if it is due. It returns when there is more to do.
func (t *tables) step(w *wish) (next time.Duration, err error) {
	if next = t.gather(); t.ctx.Err() != nil {
		return 0, t.ctx.Err()
	}
	f := t.figuresOf(w.ask.Figures)
	if w.made == nil { // before all reading
		unread := f.unread(&t.done)
		t.publish(w, unread == 0 || unread > outputsPiece) // else it is whole in a moment, as far as one can know
	}
	more, err := f.read(t)
	if err != nil {
		return 0, err
	}
	next = min(next, more)
	if w.made.changes == t.done.changes && w.made.figures == f.changes {
		t.confirm(w)
		return next, nil
	}
	whole := f.known == len(t.done.list) && w.made.read < w.made.of
	if due := time.Until(w.made.at.Add(max(remakeWait, remakePart*w.made.took))); due > 0 && !whole {
		return min(next, due), nil
	}
	t.publish(w, true)
	return next, nil
}

// confirm reports for a table that nothing it shows has changed, whatever else has.
func (t *tables) confirm(w *wish) {
	if w.made.current.Equal(t.done.at) {
		return
	}
	m := *w.made
	m.current, m.edition = t.done.at, t.done.edition
	t.mu.Lock()
	defer t.mu.Unlock()
	w.made = &m
}

// publish makes a table; who waits for it is told at once, or finds it when next looking.
func (t *tables) publish(w *wish, tell bool) {
	m := t.make(&w.ask)
	t.mu.Lock()
	w.made = m
	t.mu.Unlock()
	if !tell {
		return
	}
	if !w.told {
		w.told = true
		close(w.ready)
	}
	t.tell()
}

// tell wakes those who look.
func (t *tables) tell() {
	t.v.mu.Lock()
	defer t.v.mu.Unlock()
	t.v.changed()
}

// tableOf shows the newest table of an ask, the rows in its window as they are now. mu is
// held.
func (v *View) tableOf(ask *TableAsk) *Table {
	t := &v.tables
	if t.plain(ask) {
		return &Table{Plain: true}
	}
	w := t.want(ask)
	t.mu.Lock()
	m, broken := w.made, t.broken
	t.mu.Unlock()
	page := Page{Filter: ask.Filter, Sort: ask.Sort, Reverse: ask.Reverse, Cursor: -1}
	if m == nil {
		return &Table{Page: page, Wrong: broken}
	}
	out := m.table
	if broken != "" {
		out.Wrong = broken
	}
	page.Wrong, page.Matched = m.table.Page.Wrong, m.matched
	if m.edition != v.edition {
		page.Settled = time.Since(m.current)
	}
	out.Page = page
	if out.Groups != nil || out.Heat != nil {
		return &out
	}
	first, n, cursor := tableWindow(m.rows, &ask.JobsWindow)
	out.Page.First, out.Page.Cursor = first, cursor
	ids := make([]jobs.ID, n)
	out.Figures = make([][]string, n)
	for i := range n {
		ids[i] = m.rows.Job(first + i)
		for _, c := range m.cells {
			out.Figures[i] = append(out.Figures[i], cell(m.rows, first+i, c))
		}
	}
	for _, id := range ids {
		out.Page.Rows = append(out.Page.Rows, v.row(id))
	}
	return &out
}

// tableWindow is window of a table.
func tableWindow(s *results.Table, w *JobsWindow) (first, rows, cursor int) {
	cursor = -1
	for row := 0; w.Cursor > 0 && row < s.Len() && cursor < 0; row++ {
		if s.Job(row) == w.Cursor {
			cursor = row
		}
	}
	first, rows = placeWindow(s.Len(), cursor, w)
	return first, rows, cursor
}

// heat makes a heat map.
func (m *made) heat(s *results.Table, ask *TableAsk) error {
	switch {
	case s.Len() > 0 || len(ask.Pivot) > 0:
	case m.of == 0:
		return errors.New("no job is over yet: there is nothing to draw")
	default:
		return errors.New("no job that is over matches the filter: there is nothing to draw")
	}
	words := ask.Pivot
	if len(words) == 0 {
		var err error
		if words, err = varying(m.table.Columns); err != nil {
			return err
		}
	}
	names, err := results.ParsePivot(words)
	if err != nil {
		return err
	}
	p, notes, err := s.PivotBy(names, ask.MinSize)
	if err != nil {
		return fmt.Errorf("%s", strings.ReplaceAll(err.Error(), "--where", "a filter"))
	}
	m.table.Notes = append(slices.Clip(notes), m.table.Notes...)
	level, lowest, highest := p.Heat(HeatLevels)
	rows, columns := min(len(p.Rows), MaxHeat), min(len(p.Columns), MaxHeat)
	h := &Heat{Down: p.Down, Across: p.Across, Figure: p.Metric + ", " + p.Measure.String(),
		MoreRows: len(p.Rows) - rows, MoreColumns: len(p.Columns) - columns}
	unit := results.Column{Role: results.Stat, Type: p.Type}
	side := func(name string) *results.Column {
		at, err := s.Column(name)
		if err != nil {
			return &results.Column{}
		}
		return &s.Columns[at]
	}
	down, across := side(p.Down), side(p.Across)
	for _, v := range p.Columns[:columns] {
		h.Columns = append(h.Columns, person(across, v))
	}
	for i, v := range p.Rows[:rows] {
		h.Rows = append(h.Rows, person(down, v))
		texts, levels := make([]string, columns), make([]int8, columns)
		for k := range columns {
			texts[k], levels[k] = person(&unit, p.Cells[i][k]), level[i][k]
		}
		h.Cells, h.Levels = append(h.Cells, texts), append(h.Levels, levels)
	}
	if !math.IsNaN(lowest) {
		h.Min, h.Max = person(&unit, query.NumberValue(lowest)), person(&unit, query.NumberValue(highest))
	}
	m.table.Heat = h
	return nil
}

// repeating are the names of parameters that only repeat a job.
var repeating = []string{"seed", "rep", "repeat", "repetition", "trial", "fold", "run", "instance"}

// varying returns the two parameters that have several values, besides those that repeat
// jobs: the mean is over these.
func varying(columns []TableColumn) ([]string, error) {
	var words []string
	for _, c := range columns {
		if c.Vary {
			words = append(words, c.Name)
		}
	}
	if len(words) > 2 {
		words = slices.DeleteFunc(words, func(name string) bool { return slices.Contains(repeating, strings.ToLower(name)) })
	}
	names := jobs.Clean(strings.Join(words, ", "), 100)
	switch n := len(words); n {
	case 2:
		return words, nil
	case 0:
		names = "no parameter has several values"
	case 1:
		names = "only " + names + " has several values"
	default:
		names = fmt.Sprintf("%d parameters have several values (%s)", n, names)
	}
	return nil, fmt.Errorf("%s: :pivot C gamma acc says what goes down, what across and what is shown; over the rest is averaged", names)
}
