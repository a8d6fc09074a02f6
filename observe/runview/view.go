// Package runview reads a run for the screen and the commands that observe it, without dispatching
// it. They use it through the interface Source. Open returns a View, which implements Source. The
// package also computes summaries (CountQueues, UselessHosts) and texts of records (Text, EventOf)
// for the commands.
//
// A View keeps a short row of each job (list.go), from which it computes phases, orders, filters
// (filter.go), and failures by cause. Whole rows, details, and attempts are made only for the jobs
// that are shown.
//
// The package makes no decisions (package sched does) and draws nothing (package tui does). It does
// not clean texts of jobs and hosts: those who show them must.
package runview

import (
	"cmp"
	"context"
	"encoding/json"
	"runtime/debug"
	"sync"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/ask"
)

// Options hold the data that a View cannot read from the run directory. All are optional.
type Options struct {
	Lab   string        // name of the inventory, for display
	Hosts []*hosts.Host // hosts of the inventory; nil: only those that have had attempts are shown
	By    string        // name of the requester, for the dispatcher's records

	// Metrics are the metrics that were declared when the run was created. Outputs makes a reader
	// of any metrics; nil: no metrics are read.
	Metrics []*metrics.Metric
	Outputs func([]*metrics.Metric) *metrics.Reader

	// Socket connects to the dispatcher that owner names. nil: only files are read.
	Socket func(ctx context.Context, owner *journal.Owner) (Conn, error)
	// Far reads a part of a file that only its host has, and returns the size of the file. nil:
	// such files cannot be read.
	Far func(ctx context.Context, host string, r Read) (data []byte, size int64, err error)
	// Act carries out actions on a run that nobody dispatches. silent is the owner whose silence the view
	// has observed for journal.StaleAfter, nil if there is none. A *Refused means that the action makes no
	// sense. nil: all such actions are refused.
	Act func(ctx context.Context, q action.Request, silent *journal.Owner) (*Answer, error)
}

// Conn is a connection to a dispatcher; *socket.Client implements it.
type Conn interface {
	Follow(ctx context.Context, durable func(live.Durable), state func(*live.State)) error
	Why(ctx context.Context, job jobs.ID) (string, error)
	Read(ctx context.Context, r socket.Read) (*socket.Piece, error)
	Reply(ctx context.Context, question int64, text string) error
	Request(ctx context.Context, name string, body json.RawMessage) error
	Done() <-chan struct{}
	Close()
}

// View follows a run and is a Source. Its methods are safe for concurrent use.
//
// Only its own goroutines read the run directory and wait for the dispatcher. They hold no lock
// while they do so. A Snapshot is therefore answered even while the disk hangs.
type View struct {
	run   *rundir.Run
	opt   Options
	files *rundir.FileReader

	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	wake   chan struct{} // holds a signal to read the run
	ready  chan struct{} // closed when the run has been read for the first time

	follower follower // used only by the goroutine follow

	mu sync.Mutex // guards the fields below; not held while waiting for the disk or a connection
	list
	table  *jobs.Table // changes only while mu is held
	reader jobs.RowReader
	// Number of specifications that are shown, including those that no record accepts yet.
	stored int
	facts  facts
	// State of the current dispatcher; nil: nobody dispatches the run, or nothing is known.
	state       *live.State
	seenAt      time.Time        // when state was received, by our clock
	clockOffset time.Duration    // difference of the dispatcher's clock to ours; 0: same machine
	past        []live.Host      // hosts while nobody dispatches the run, as of pastAt
	pastAt      uint64           // edition for which past was computed
	place       *results.RunInfo // locations of attempts' files
	events      eventLog
	page        *order
	queue       queue
	tables      tables
	version     uint64
	news        chan struct{} // closed and replaced after each change
	dirty       bool          // something has changed since version
	polls       int           // number of polls that have read everything
	madeAt      time.Time     // time of version
	began       time.Time     // start of the current read; zero: none is in progress
	closed      bool
	ended       *journal.Reader // see Reader; nil: the View has not ended
	link        link
	host        hostHistory
	focus       jobs.ID // job whose detail was requested last
	// Attempts of that job whose files have been copied from their hosts.
	fetched map[jobs.AttemptID]bool
	traces  map[string]*ask.Trace // indexed by request
}

var _ Source = (*View)(nil)

const (
	pollInterval = time.Second            // between reads of the run directory
	readInterval = 200 * time.Millisecond // minimum between reads of the journal
	wakeInterval = 100 * time.Millisecond // minimum between versions
	hungAfter    = 5 * time.Second        // a read that takes longer is a problem
)

// Open starts to follow a run.
func Open(run *rundir.Run, o Options) *View {
	v := newView(run, o)
	v.follower.Reader = journal.NewReader(run, journal.Follow(run).Packed().SetGuard(&v.mu))
	v.all.Go(v.follow)
	return v
}

// FromTable returns a View of a table that does not change, for tests and benchmarks.
func FromTable(run *rundir.Run, t *jobs.Table, o Options) *View {
	v := newView(run, o)
	v.table, v.stored, v.facts.left = t, t.NumSpecs(), LeftBehind(t)
	close(v.ready)
	return v
}

func newView(run *rundir.Run, o Options) *View {
	v := &View{run: run, opt: o, files: rundir.NewFileReader(run.Disk), wake: make(chan struct{}, 1),
		ready: make(chan struct{}),
		news:  make(chan struct{}), table: &jobs.Table{}, fetched: map[jobs.AttemptID]bool{},
		traces: map[string]*ask.Trace{}}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	v.initList()
	v.place = &results.RunInfo{Dir: run.Dir, Here: func(jobs.AttemptID) bool { return false }}
	v.follower.hostEvents, v.follower.hosts = map[string]HostEvent{}, map[string]bool{}
	v.tables.init(v)
	return v
}

// Ready waits until the run has been read for the first time. It returns the error that prevents
// the run from being shown.
func (v *View) Ready(ctx context.Context) error {
	select {
	case <-v.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.facts.err
}

// Close ends the View. It does not wait for a disk that hangs.
func (v *View) Close() {
	v.mu.Lock()
	v.closed = true
	v.changed()
	v.mu.Unlock()
	v.cancel()
	ended := make(chan struct{})
	go func() {
		v.all.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		v.ended = v.follower.Reader
	case <-time.After(time.Second):
	}
}

// Reader returns the reader of a closed View, whose table is packed, and the last event of each
// host. It returns nil if the View is still reading because the disk hangs.
func (v *View) Reader() (*journal.Reader, map[string]HostEvent) {
	if v.ended == nil {
		return nil, nil
	}
	return v.ended, v.follower.hostEvents
}

// changed records a change and wakes waiting goroutines. mu is held.
func (v *View) changed() {
	v.dirty = true
	v.notify()
}

// notify wakes waiting goroutines. mu is held.
func (v *View) notify() {
	close(v.news)
	v.news = make(chan struct{})
}

// waitFor waits until done returns true. It calls done now and after each change, with mu held.
func (v *View) waitFor(ctx context.Context, done func() bool) error {
	for {
		v.mu.Lock()
		is, news := done(), v.news
		v.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-news:
		case <-v.ctx.Done():
			return ErrGone
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pollSoon makes follow read the run directory now.
func (v *View) pollSoon() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// follower is the state of the goroutine follow.
type follower struct {
	*journal.Reader
	hostEvents map[string]HostEvent // last event of each host under the current dispatcher
	hosts      map[string]bool      // hosts that have had attempts
	read       int                  // number of records from which facts were computed
}

// follow reads the run directory until Close.
func (v *View) follow() {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for first, full := true, true; ; first = false {
		began := time.Now()
		v.poll(full)
		if first {
			close(v.ready)
			debug.FreeOSMemory() // reading everything takes much more memory than keeping it
		}
		full = false
		select { // while many jobs end, their records are read together
		case <-v.ctx.Done():
			return
		case <-time.After(readInterval - time.Since(began)):
		}
		select {
		case <-v.ctx.Done():
			return
		case <-tick.C:
			full = true
		case <-v.wake:
			v.mu.Lock()
			full = v.link.lost
			v.link.lost = false
			v.mu.Unlock()
		}
	}
}

// poll reads what has been added. Unless full is set, it reads only the journal.
func (v *View) poll(full bool) {
	f := &v.follower
	v.mu.Lock()
	v.began = time.Now()
	first, pushed, state := v.polls == 0, v.link.durable, v.link.state
	ids, host := v.remoteAttempts(), v.hostToRead(v.began)
	v.mu.Unlock()

	var watchErr error
	if full {
		watchErr = f.Watch(state == nil)
	}
	if state != nil && (f.Live == nil || f.Live.Token != state.Token || f.Live.At.Before(state.At)) {
		f.Live = state
	}
	h := &pollResult{v: v, newHost: first}
	restarted, err := f.Follow(pushed, h.onRecord)
	var place *results.RunInfo
	if h.newHost { // the host may keep its files to itself
		place = metrics.Locations(v.run)
	}
	fetched := map[jobs.AttemptID]bool{}
	for _, id := range ids {
		fetched[id] = v.place.Here(id)
	}
	now := f.facts(v.orRemoved(cmp.Or(err, watchErr)), v.facts)
	state = f.State()
	var samples []live.Sample
	if host != "" {
		samples = live.ReadHostSamples(v.run, host, live.LastHour)
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	v.setSamples(host, samples, v.began)
	v.began = time.Time{}
	before := v.facts
	if place != nil {
		v.place = place
	}
	for id, is := range fetched {
		v.fetched[id] = is
	}
	if restarted && v.table != f.Table() {
		v.restart(f.Table(), h)
	}
	v.facts = now
	if !now.dispatched {
		v.setState(nil)
	} else if state != nil && (v.state == nil || v.state.Token != state.Token || v.state.At.Before(state.At)) {
		v.setState(state)
	}
	if v.state == nil {
		v.stored = v.table.NumSpecs()
	}
	if now.dispatched != before.dispatched {
		v.markRunning()
	}
	if full {
		v.polls++
		v.notify()
	}
	if h.any || restarted || !now.equal(&before) {
		v.changed()
	}
	v.keepConnected()
}

// pollResult is the result of a poll.
type pollResult struct {
	v       *View
	any     bool // a record was read
	rebuilt bool // the table was rebuilt and is not shown yet, so mu is not held
	events  eventLog
	newHost bool // a host had its first attempt
}

func (h *pollResult) onRecord(_ int, r *jobs.Record) {
	v := h.v
	f := &v.follower
	events := &v.events
	if f.IsBuilding() && !h.rebuilt {
		h.rebuilt, f.hostEvents = true, map[string]HostEvent{}
	}
	if h.rebuilt {
		events = &h.events
	}
	if r.Kind == jobs.KindAcked {
		return
	}
	h.any = true
	AddHostEvent(f.hostEvents, r)
	if r.Kind == jobs.KindLaunching && !f.hosts[r.Host] {
		f.hosts[r.Host], h.newHost = true, true
	}
	events.add(r)
	if h.rebuilt {
		v.mu.Lock()
		defer v.mu.Unlock()
	}
	for _, t := range v.traces {
		t.OnRecord(r)
	}
	if !h.rebuilt && r.Job > 0 && r.Kind != jobs.KindAccepted && r.Kind != jobs.KindRequest {
		v.stale.add(r.Job)
		if r.Kind == jobs.KindEdited {
			v.edited[r.Job] = true
		}
	}
}

// initList makes the list of an empty table.
func (v *View) initList() {
	v.list.init(v.opt.Metrics)
	v.specs = func() func(uint32) *jobs.Spec {
		r := new(jobs.RowReader)
		return func(id uint32) *jobs.Spec { return r.Spec(v.table, jobs.ID(id)) }
	}
	v.spec = v.specs()
}

// restart shows a table that was built again. mu is held.
func (v *View) restart(t *jobs.Table, h *pollResult) {
	v.table, v.events, v.stored = t, h.events, 0
	edition := v.edition
	v.list = list{}
	v.initList()
	v.edition = edition + 1
	v.generation++
	v.page, v.queue = nil, queue{}
}

// remoteAttempts returns the attempts of the job in focus whose files may have been copied from
// their hosts since. mu is held.
func (v *View) remoteAttempts() (ids []jobs.AttemptID) {
	j := v.job(v.focus)
	if j == nil {
		return nil
	}
	for _, a := range lastAttempts(j) {
		if v.place.HostDirs[a.Host] != "" && !a.State.Open() && !v.fetched[a.ID] {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

type jobSet struct {
	bits []uint64
	ids  []jobs.ID
}

func (m *jobSet) add(id jobs.ID) {
	if n := int(id/64) + 1; n > len(m.bits) {
		m.bits = append(m.bits, make([]uint64, n-len(m.bits)+len(m.bits)/4)...)
	}
	if bit := uint64(1) << (id % 64); m.bits[id/64]&bit == 0 {
		m.bits[id/64] |= bit
		m.ids = append(m.ids, id)
	}
}

// take returns the jobs and empties the set.
func (m *jobSet) take() []jobs.ID {
	ids := m.ids
	for _, id := range ids {
		m.bits[id/64] &^= 1 << (id % 64)
	}
	m.ids = nil
	return ids
}
