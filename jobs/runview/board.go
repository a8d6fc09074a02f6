package runview

import (
	"context"
	"sync"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/results/column"
	"dcs-tui/jobs/results/outputs"
)

// Options are what only the owner of a board knows.
type Options struct {
	// Run names the run; of a live board what is empty comes from the dispatcher.
	Run Run
	// Act carries out what a board cannot: DrainRun, StopRun, CancelRun and Reply, of a
	// table every action. Its error is given to whoever asked; *Refused says that it
	// makes no sense. nil: such actions are refused.
	Act func(context.Context, Action) (*Answer, error)
	// Figures are the columns of results that were declared when the run was made, and
	// Outputs makes what reads any columns; nil: no figures are read.
	Figures []*column.Column
	Outputs func([]*column.Column) *outputs.Reader
}

// Past says what is known of a run whose dispatcher has gone, beside its table.
type Past struct {
	Options
	Life     Life              // Ended or Dead
	Unasked  string            // the machine of a dispatcher that has the run and was not asked; "": nobody dispatches it
	Over     string            // how it ended, in a sentence
	Trouble  []string          // hosts that were of no use, a sentence each
	Hosts    []*hosts.Host     // of the inventory as it was; nil: those of the attempts
	HostDirs map[string]string // "host:dir" of hosts that do not share the run directory
	Tries    int               // of a job that says nothing itself; 0: the default
	More     bool              // more jobs were to come
	// Here says of an attempt of such a host that its files have been brought into the run
	// directory; nil: of none.
	Here func(jobs.AttemptID) bool
	// Far reads a piece of a file that only that host has, and the size of all of it; nil:
	// nobody can, and where it is is told.
	Far func(ctx context.Context, host string, r Read) (data []byte, size int64, err error)
}

// Board is a Source. Its methods may be called from any goroutine.
type Board struct {
	opt  Options
	from source

	turn chan struct{} // holds a token: whoever has it owns the fields below
	list
	events  eventLog
	page    orders
	queue   line
	status  status
	tables  tables
	version uint64
	changed chan struct{} // closed and replaced with each version
	takenAt time.Time     // when changes were last taken
	agedAt  time.Time     // when what only ages last made a version
	stale   bool          // something has aged since

	mu       sync.Mutex // guards what others set
	inbox    inbox
	question *live.Question
	told     bool // question has changed
	asked    chan struct{}
	closed   bool
}

var _ Source = (*Board)(nil)

// FromDispatcher makes a board over a dispatcher that runs in this process. From now on the
// dispatcher gathers what changes; rows are fetched when somebody looks. When the
// dispatcher has ended, every method returns ErrGone.
func FromDispatcher(d *dispatch.Dispatcher, o Options) *Board {
	uid, name, dir, created, epoch := d.Run()
	r := &o.Run
	if r.UID == "" {
		r.UID = uid
	}
	if r.Name == "" {
		r.Name = name
	}
	if r.Dir == "" {
		r.Dir = dir
	}
	if r.Created.IsZero() {
		r.Created = created
	}
	if r.Epoch == 0 {
		r.Epoch = epoch
	}
	b := newBoard(o)
	b.from = &liveSource{d: d, dir: dir, watch: d.Watch(Notable)}
	return b
}

// FromTable makes a board over the table of a run that nobody dispatches. The table
// is the board's from now on.
func FromTable(t *jobs.Table, p Past) *Board {
	b := newBoard(p.Options)
	b.from = newReplayed(t, p)
	return b
}

func newBoard(o Options) *Board {
	b := &Board{opt: o, turn: make(chan struct{}, 1), changed: make(chan struct{}), version: 1}
	b.asked = make(chan struct{})
	b.list.init()
	for _, c := range o.Figures {
		b.known.figures = append(b.known.figures, c.Name)
	}
	b.tables.init(b)
	b.turn <- struct{}{}
	return b
}

// Close lets go of the dispatcher. Looks that wait return ErrGone.
func (b *Board) Close() {
	b.mu.Lock()
	first := !b.closed
	if first {
		b.closed = true
		close(b.asked)
	}
	b.mu.Unlock()
	b.tables.stop()
	if first { // not under mu: the engine may be waiting for that
		b.from.close()
	}
}

// over says that there is nothing to look at any more.
func (b *Board) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed || isClosed(b.from.ended())
}

// SetQuestion shows a question, or none with nil. It is answered through Options.Act.
func (b *Board) SetQuestion(q *live.Question) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.question, b.told = q, true
	b.rouse()
}

// AddEarlier gives the board, once, what was recorded before it was made. It is the
// board's from now on.
func (b *Board) AddEarlier(e *Earlier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inbox.older = e
	b.told = true
	b.rouse()
}

// rouse wakes those who wait, for a reason that does not come from the engine. mu is held.
func (b *Board) rouse() {
	if !b.closed {
		close(b.asked)
		b.asked = make(chan struct{})
	}
}

// take waits for the turn; false when ctx has ended.
func (b *Board) take(ctx context.Context) bool {
	select {
	case <-b.turn:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *Board) give() { b.turn <- struct{}{} }
