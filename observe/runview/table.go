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

// TableQuery asks for the results table of finished jobs. Its window is that of the list of jobs,
// except that Filter may name metrics, Sort is ignored, and Reverse reverses By.
type TableQuery struct {
	JobsWindow
	// Metrics beyond the declared ones, each NAME or NAME=HOW; the last one of a name counts.
	Metrics []string
	By      string   // column to sort by; "": the number of the job
	Best    string   // COLUMN:max or COLUMN:min; "": no row is the best
	Group   []string // one row for each group of jobs with equal values in these columns
	MinSize int      // groups with fewer successful jobs are omitted
	Heat    bool     // a heat map instead of rows
	// The heat map's down, across, and metric or metric:measure; nil: two parameters that vary.
	Pivot []string
}

// The limits of a Table, in addition to MaxRows.
const (
	MaxTableGroups = 300 // rows of groups
	MaxTableNames  = 50  // columns of a TableQuery, in each of its lists
	MaxTableNotes  = 10
	MaxHeat        = 64  // rows, and columns, of a heat map
	MaxTableCell   = 200 // bytes
)

// HeatLevels is the number of levels of a heat map.
const HeatLevels = 5

// Table is the result of a TableQuery.
type Table struct {
	// Plain reports whether there is nothing to tabulate: no job has a parameter, and no metric was
	// declared or requested. No other field is set then.
	Plain bool
	// Ready reports whether the table has been computed. It is being computed otherwise.
	Ready bool

	Wrong string   // error in the query, a sentence
	Notes []string // metrics that are missing, a sentence each

	Read, Jobs int // number of finished jobs whose metrics are known, and of all finished jobs

	Columns []TableColumn // available columns, in the order of display
	// The window of rows; with Group or Heat, only the number of matching jobs.
	Page         Page
	Values       [][]string // values of each row of Page, in the order of the metrics in Columns
	NamesMetrics bool       // the filter names metrics, which Match does not know

	Groups *TableGroups // set for a query with Group
	Heat   *Heat        // set for a query with Heat
	Best   jobs.ID      // best job among the rows; 0: none
	Value  string       // value of the best job
	Ties   int          // number of further rows with the same value
	BestOf string       // how many rows have been compared, as in Heat.Basis
	Course []float64    // see results.Table.BestOverTime
}

// TableColumn is a column that can be sorted and grouped by.
type TableColumn struct {
	Name string
	Role results.Role
	Vary bool // a parameter that has several values
}

// TableGroups holds the rows of groups, at most MaxTableGroups.
type TableGroups struct {
	Columns []TableColumn
	Rows    [][]string
	Partial bool // jobs are missing in some groups
	More    int  // number of groups that were cut off
	Best    int  // index into Rows; -1: none
}

// Heat is a metric over two columns, cut to MaxHeat on both sides.
type Heat struct {
	Down, Across, Metric  string // Metric with its measure: "acc, mean"
	Rows, Columns         []string
	MoreRows, MoreColumns int
	Cells                 [][]string
	Levels                [][]int8 // 0 to HeatLevels-1; -1: no number
	// How many jobs each cell is based on, as "2 of 5 jobs: 3 not over"; "": no job is missing.
	Basis    [][]string
	Min, Max string // of all cells; "": there is none
}

// Tables of finished jobs are computed in a separate goroutine, which also reads outputs and lives
// while somebody requests a table. A Snapshot waits for it only for firstTable.

const (
	// A request expires after this time; an open view repeats it more often.
	requestTTL = 3 * time.Second
	firstTable = 50 * time.Millisecond  // a Snapshot waits this long for a new request
	remakeWait = 500 * time.Millisecond // minimum time between updates of a growing table
	remakePart = 20                     // updates take at most 1/remakePart of the time
)

// tables computes the table that the screen has requested last.
type tables struct {
	v    *View
	ctx  context.Context
	wake chan struct{} // holds a signal: there may be something to do

	mu      sync.Mutex
	request *tableRequest // nil: none yet
	working bool
	broken  string // a panic has ended the work for good

	// The fields below belong to the goroutine.
	done    finishedJobs
	open    openJobs
	metrics *tableMetrics // of the request; nil: none yet
	changes int           // of done and metrics
}

type tableRequest struct {
	ask       TableQuery // the query without its window
	asked     time.Time
	made      *madeTable    // the newest; nil: none yet
	announced bool          // that the first table was announced
	ready     chan struct{} // closed when announced
}

func (t *tables) init(v *View) { t.v, t.ctx, t.wake = v, v.ctx, make(chan struct{}, 1) }

// recordRequest records a request for a table and starts the goroutine if necessary.
func (t *tables) recordRequest(ask *TableQuery) *tableRequest {
	a, few := *ask, func(list []string) []string { return list[:min(len(list), MaxTableNames)] }
	a.Metrics, a.Group, a.Pivot = few(a.Metrics), few(a.Group), few(a.Pivot)
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
		go t.computeTables()
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return w
}

// awaitFirst waits for at most firstTable for a table that was not requested before, so that a key
// press shows it immediately.
func (t *tables) awaitFirst(ctx context.Context, ask *TableQuery) {
	t.v.mu.Lock()
	// No job has a row yet, or there is nothing to tabulate.
	none := t.v.version == 0 || t.isPlain(ask)
	t.v.mu.Unlock()
	if none {
		return
	}
	select {
	case <-t.recordRequest(ask).ready:
	case <-time.After(firstTable):
	case <-t.ctx.Done():
	case <-ctx.Done():
	}
}

// isPlain reports whether no job has a parameter and no metric is declared or requested. View.mu is
// held.
func (t *tables) isPlain(ask *TableQuery) bool {
	return len(t.v.opt.Metrics)+len(t.v.known.params.Values)+len(ask.Metrics) == 0
}

// computeTables computes tables until nobody requests one any more.
func (t *tables) computeTables() {
	defer func() {
		if p := recover(); p != nil { // a bug here must not end the program
			t.mu.Lock()
			t.working, t.broken = false, fmt.Sprintf("internal error: the table cannot be made: %v", p)
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
		next = t.step(w)
		if next <= 0 {
			continue
		}
		select {
		case <-t.wake:
		case <-time.After(min(next, requestTTL)):
		case <-t.ctx.Done():
		}
	}
}

// step handles changes, reads some outputs, and computes the table if it is due. It returns the
// time until there is more to do. A negative duration means never.
func (t *tables) step(w *tableRequest) (next time.Duration) {
	next = t.gather()
	f := t.metricsOf(w.ask.Metrics)
	unread := f.unread(&t.done)
	if w.made == nil { // before reading: if little is to be read, the whole table follows soon
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

// confirm records that the table is current although other things have changed.
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

// publish computes a table. If tell is set, it wakes waiting readers. Otherwise they find the table
// at their next look.
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

// notify wakes waiting readers.
func (t *tables) notify() {
	t.v.mu.Lock()
	defer t.v.mu.Unlock()
	t.v.changed()
}

// tableOf returns the newest table of a query, with the current rows of its window. mu is held.
func (v *View) tableOf(ask *TableQuery) *Table {
	t := &v.tables
	if t.isPlain(ask) {
		return &Table{Plain: true}
	}
	w := t.recordRequest(ask)
	t.mu.Lock()
	m, broken := w.made, t.broken
	t.mu.Unlock()
	out := Table{}
	if m != nil {
		out = m.table
	}
	page := &out.Page
	page.Filter, page.Sort, page.Reverse, page.Cursor = ask.Filter, ask.Sort, ask.Reverse, ask.Cursor
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
	cursor := m.rows.Len() - 1
	for cursor >= 0 && m.rows.Job(cursor) != ask.Cursor {
		cursor--
	}
	first, n := placeWindow(m.rows.Len(), cursor, &ask.JobsWindow)
	page.First, out.Values = first, make([][]string, n)
	for i := range n {
		page.Rows = append(page.Rows, v.row(m.rows.Job(first+i)))
		for _, c := range m.cells {
			out.Values[i] = append(out.Values[i], cell(m.rows, first+i, c))
		}
	}
	return &out
}
