package runview

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// TableQuery asks for the table of results of the jobs that are over. The window is that of
// the list of jobs, but its Filter may name figures, too, Sort is ignored, and Reverse
// reverses By.
type TableQuery struct {
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
	MaxTableNames  = 50  // columns of a TableQuery, in each of its lists
	MaxTableNotes  = 10
	MaxHeat        = 64  // rows, and columns, of a heat map
	MaxTableCell   = 200 // bytes
)

// HeatLevels is how many levels a heat map has.
const HeatLevels = 5

// Table is what came of a TableQuery.
type Table struct {
	// Plain reports whether there is nothing to tabulate: no job has a parameter, no figure was
	// declared or asked for. Nothing else is then set.
	Plain bool
	// Ready reports whether the table has been made. Otherwise it is being made.
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

// Tables of finished jobs are made in a goroutine of their own, which also reads outputs and
// lives while somebody asks for a table. A Snapshot never waits for it, except for firstTable.

const (
	requestTTL = 3 * time.Second        // an open view asks at least so often
	firstTable = 50 * time.Millisecond  // a Snapshot waits so long for a table that nobody has asked for before
	remakeWait = 500 * time.Millisecond // between remakes of a growing table, at least …
	remakePart = 20                     // … and remakes take at most this part of the time
)

// tables makes the table that the screen has asked for last.
type tables struct {
	v    *View
	ctx  context.Context
	wake chan struct{} // holds a signal: there may be something to do

	mu      sync.Mutex
	request *tableRequest // nil: none yet
	working bool
	broken  string // a panic has ended the work for good

	// What follows belongs to the goroutine.
	done    finished
	figures *figures // of the request; nil: none yet
	changes int      // of done and figures
}

// tableRequest is a table that somebody asks for.
type tableRequest struct {
	ask       TableQuery // without its window
	asked     time.Time
	made      *made         // the newest; nil: none yet
	announced bool          // that there is one
	ready     chan struct{} // closed when announced
}

func (t *tables) init(v *View) { t.v, t.ctx, t.wake = v, v.ctx, make(chan struct{}, 1) }

// want requests a table and has it made.
func (t *tables) want(ask *TableQuery) *tableRequest {
	a, few := *ask, func(list []string) []string { return list[:min(len(list), MaxTableNames)] }
	a.Figures, a.Group, a.Pivot = few(a.Figures), few(a.Group), few(a.Pivot)
	a.JobsWindow = JobsWindow{Filter: a.Filter, Reverse: a.Reverse}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.request
	if w == nil || !reflect.DeepEqual(w.ask, a) {
		w = &tableRequest{ask: a, ready: make(chan struct{})}
		t.request = w
	}
	w.asked = time.Now()
	if !t.working && t.broken == "" && t.ctx.Err() == nil {
		t.working = true
		go t.work()
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return w
}

// await waits a moment for a table that was not asked for before, so that a key shows at
// once what it asks for.
func (t *tables) await(ctx context.Context, ask *TableQuery) {
	t.v.mu.Lock()
	none := t.v.version == 0 || t.plain(ask) // no job has a row yet, or there is nothing to tabulate
	t.v.mu.Unlock()
	if none {
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

// plain reports whether no job has a parameter and no figure is requestTTL. View.mu is held.
func (t *tables) plain(ask *TableQuery) bool {
	return len(t.v.opt.Figures)+len(t.v.known.params)+len(ask.Figures) == 0
}

// work makes tables until nobody asks for one any more.
func (t *tables) work() {
	defer func() {
		if p := recover(); p != nil { // a defect here must not end the program
			t.mu.Lock()
			t.working, t.broken = false, fmt.Sprintf("the table cannot be made, a defect of ours: %v", p)
			t.mu.Unlock()
			t.notify()
		}
	}()
	for next := time.Duration(0); ; {
		t.mu.Lock()
		w := t.request
		t.working = next >= 0 && time.Since(w.asked) < requestTTL && t.ctx.Err() == nil
		working := t.working
		t.mu.Unlock()
		if !working {
			return
		}
		if next = t.step(w); next <= 0 {
			continue
		}
		timer := time.NewTimer(min(next, requestTTL))
		select {
		case <-t.wake:
		case <-timer.C:
		case <-t.ctx.Done():
		}
		timer.Stop()
	}
}

// step handles what has changed, reads some outputs, and makes the table if it is due. It
// returns when there is more to do; a negative duration means never.
func (t *tables) step(w *tableRequest) (next time.Duration) {
	next = t.gather()
	f := t.figuresOf(w.ask.Figures)
	unread := f.unread(&t.done)
	if w.made == nil { // before reading; if little is to be read, the whole table comes in a moment
		t.publish(w, len(unread), len(unread) == 0 || len(unread) > outputsPiece)
	}
	left, more, err := f.read(t, unread)
	if err != nil { // the View is being closed
		return -1
	}
	next = min(next, more)
	m := w.made
	if m.changes == t.changes {
		t.confirm(w)
		return next
	}
	whole := left == 0 && m.table.Read < m.table.Jobs
	if due := time.Until(m.at.Add(max(remakeWait, remakePart*m.took))); due > 0 && !whole {
		return min(next, due)
	}
	t.publish(w, left, true)
	return next
}

// confirm records that what a table shows is current, whatever else has changed.
func (t *tables) confirm(w *tableRequest) {
	if w.made.current.Equal(t.done.madeAt) {
		return
	}
	m := *w.made
	m.current, m.edition = t.done.madeAt, t.done.edition
	t.mu.Lock()
	defer t.mu.Unlock()
	w.made = &m
}

// publish makes a table. With tell, those who wait are woken; otherwise they find it when
// they look next.
func (t *tables) publish(w *tableRequest, unread int, tell bool) {
	m := t.make(&w.ask, unread)
	t.mu.Lock()
	w.made = m
	t.mu.Unlock()
	if !tell {
		return
	}
	if !w.announced {
		w.announced = true
		close(w.ready)
	}
	t.notify()
}

// tell wakes those who look.
func (t *tables) notify() {
	t.v.mu.Lock()
	defer t.v.mu.Unlock()
	t.v.changed()
}

// tableOf returns the newest table of an ask, with the rows in its window as they are now.
// mu is held.
func (v *View) tableOf(ask *TableQuery) *Table {
	t := &v.tables
	if t.plain(ask) {
		return &Table{Plain: true}
	}
	w := t.want(ask)
	t.mu.Lock()
	m, broken := w.made, t.broken
	t.mu.Unlock()
	out := Table{}
	if m != nil {
		out = m.table
	}
	page := &out.Page
	page.Filter, page.Sort, page.Reverse, page.Cursor = ask.Filter, ask.Sort, ask.Reverse, -1
	out.Wrong = cmp.Or(broken, out.Wrong)
	if m == nil {
		return &out
	}
	if m.edition != v.edition {
		page.Settled = time.Since(m.current)
	}
	if out.Groups != nil || out.Heat != nil {
		return &out
	}
	for row := 0; ask.Cursor > 0 && row < m.rows.Len() && page.Cursor < 0; row++ {
		if m.rows.Job(row) == ask.Cursor {
			page.Cursor = row
		}
	}
	first, n := placeWindow(m.rows.Len(), page.Cursor, &ask.JobsWindow)
	page.First, out.Figures = first, make([][]string, n)
	for i := range n {
		page.Rows = append(page.Rows, v.row(m.rows.Job(first+i)))
		for _, c := range m.cells {
			out.Figures[i] = append(out.Figures[i], cell(m.rows, first+i, c))
		}
	}
	return &out
}
