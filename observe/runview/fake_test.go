package runview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/inbox"
	"dcs-tui/dispatch/publish"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

func TestMain(m *testing.M) { os.Exit(polltest.RunWithoutLeaks(m)) }

// lab is a dispatcher in virtual time over simulated hosts, with a run directory, an inbox, and a
// View.
type lab struct {
	t       *testing.T
	run     *rundir.Run
	journal *journal.Journal
	d       *dispatch.Dispatcher
	conn    *fakeConn
	pub     *publish.Publisher
	over    chan struct{}
	v       *View
	dir     string // of the run
	acts    []action.Request
	far     string // what the host apart reads; "": dir

	mu      sync.Mutex
	runs    func(jobs.AttemptID) (time.Duration, jobs.Outcome)
	say     map[string]string // values of DCS_PROGRESS
	refuse  error
	workers map[string]*worker
	wg      sync.WaitGroup
}

// apart is a host that does not share the run directory.
const apart = "apart"

// newLab starts a dispatcher with these hosts, each with two slots, and a View.
func newLab(t *testing.T, names ...string) *lab {
	t.Helper()
	run, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "test", rundir.Settings{Created: time.Now()})
	must(t, err)
	l := &lab{t: t, run: run, dir: run.Dir, workers: map[string]*worker{}}
	l.runs = func(jobs.AttemptID) (time.Duration, jobs.Outcome) { return time.Minute, jobs.Outcome{} }
	l.start(names...)
	l.v = l.open(Options{Lab: "lab", By: "user", Socket: l.dial})
	return l
}

// withLab runs a test in virtual time with a lab of these hosts, whose names blanks separate.
func withLab(t *testing.T, names string, test func(t *testing.T, l *lab)) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, strings.Fields(names)...)
		defer l.end()
		test(t, l)
	})
}

var must = polltest.Must

func (l *lab) open(o Options) *View {
	o.Act = func(_ context.Context, a action.Request, _ *journal.Owner) (*Answer, error) {
		l.acts = append(l.acts, a)
		return &Answer{Done: 1}, nil
	}
	v := Open(l.run, o)
	must(l.t, v.Ready(l.t.Context()))
	v.Connect(l.t.Context())
	return v
}

func (l *lab) dial(_ context.Context, o *journal.Owner) (Conn, error) {
	if l.conn == nil || l.conn.gone() {
		return nil, socket.ErrGone
	}
	return &caller{fakeConn: l.conn, done: make(chan struct{})}, nil
}

// start takes over the run and dispatches it.
func (l *lab) start(names ...string) {
	l.t.Helper()
	j, table, _, err := journal.Take(l.t.Context(), l.run, journal.TakeOptions{Force: true})
	must(l.t, err)
	must(l.t, j.SetSocket("/fake"))
	var hs []*hosts.Host
	for _, n := range names {
		hs = append(hs, &hosts.Host{Name: n, Link: "ssh", Addresses: []string{n}, Slots: hosts.SlotRule{Fixed: 2},
			Weight: 1})
	}
	d, err := dispatch.Start(dispatch.Config{
		RunUID: l.run.UID(), RunName: l.run.Name(), RunDir: l.run.Dir, Created: jobs.StampOf(time.Now()),
		Sched:     sched.Config{Seed: 1, Tries: 2},
		Inventory: &hosts.Inventory{Hosts: hs}, Connector: l, Journal: j, Table: table,
		StoreSpecs: func(s []*jobs.Spec) error {
			if err := l.run.AppendSpecs(s); err != nil {
				return err
			}
			table.Specs = append(table.Specs, s...)
			return nil
		},
		Open: hosts.Open{Run: l.run.UID(), Epoch: table.Epoch},
	})
	must(l.t, err)
	l.d, l.journal, l.over = d, j, make(chan struct{})
	in := inbox.New(inbox.Options{Run: l.run, Dispatcher: d, Print: func(func() string) {},
		IsCanceled: func() bool { return false }, Cancel: func() {},
		OnContinue: func() {}, DrainText: func() string { return "" }, LeavesSubmits: func() bool { return false },
		MakeDirsAbsolute: func([]*jobs.Spec) {}})
	in.TakeWaiting()
	l.conn = &fakeConn{d: d, in: in, ended: make(chan struct{}), followers: map[*caller]bool{}}
	l.pub = publish.Start(publish.Options{Run: l.run, Token: j.Token(), Dispatcher: d, Journal: j, Socket: l.conn})
	over := l.over
	l.wg.Go(func() { in.Serve(over) })
}

// stop ends the dispatcher. Its process lives on, so the owner file records that it has left.
func (l *lab) stop() {
	l.t.Helper()
	if _, err := l.d.Close(); err != nil {
		l.t.Error(err)
	}
	if l.pub != nil {
		l.pub.Close(l.t.Context())
	}
	close(l.over)
	l.conn.end()
	if err := l.journal.Close(); err != nil {
		l.t.Error(err)
	}
	l.wg.Wait()
}

// fakeConn is the dispatcher's end of its socket.
type fakeConn struct {
	d  *dispatch.Dispatcher
	in *inbox.Inbox

	mu        sync.Mutex
	ended     chan struct{}
	followers map[*caller]bool
	durable   *live.Durable
	state     *live.State
	replies   []string
}

// caller is a connection to the fake dispatcher socket.
type caller struct {
	*fakeConn
	onDurable func(live.Durable)
	onState   func(*live.State)
	once      sync.Once
	done      chan struct{}
}

func (c *fakeConn) gone() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// last returns a copy of the last published state.
func (c *fakeConn) last() live.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.state
}

func (c *fakeConn) end() {
	close(c.ended)
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.followers {
		f.Close()
	}
}

func (c *fakeConn) Publish(d *live.Durable, s *live.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d != nil {
		c.durable = d
	}
	if s != nil {
		c.state = s
	}
	for f := range c.followers {
		if d != nil {
			f.onDurable(*d)
		}
		if s != nil {
			f.onState(s)
		}
	}
}

func (c *caller) Follow(_ context.Context, durable func(live.Durable), state func(*live.State)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onDurable, c.onState = durable, state
	c.followers[c] = true
	if c.durable != nil {
		durable(*c.durable)
	}
	if c.state != nil {
		state(c.state)
	}
	return nil
}

func (c *caller) Why(ctx context.Context, id jobs.ID) (string, error) {
	return c.d.Why(ctx, id)
}

func (c *caller) Read(ctx context.Context, r socket.Read) (*socket.Piece, error) {
	data, size, err := c.d.Output(ctx, r.Attempt, r.File, r.Offset, r.Limit)
	return &socket.Piece{Data: data, Size: size}, err
}

func (c *caller) Reply(_ context.Context, n int64, text string) error {
	if n != 1 {
		return socket.Refusef("that was answered already")
	}
	c.replies = append(c.replies, text)
	return nil
}

func (c *caller) Request(ctx context.Context, name string, body json.RawMessage) error {
	return c.in.Request(ctx, name, body)
}
func (c *caller) Done() <-chan struct{} { return c.done }
func (c *caller) Close()                { c.once.Do(func() { close(c.done) }) }

func (l *lab) submit(specs ...*jobs.Spec) {
	l.t.Helper()
	must(l.t, l.d.Submit(specs, true))
}

// sleepJobs returns n equal jobs that run for a minute.
func sleepJobs(n int) []*jobs.Spec {
	var list []*jobs.Spec
	for range n {
		list = append(list, &jobs.Spec{Command: "sleep 60", Options: jobs.NoOptions})
	}
	return list
}

// end closes everything and waits until it has ended.
func (l *lab) end() {
	l.t.Helper()
	l.v.Close()
	l.stop()
}

// sync updates the View to the current state of the dispatcher.
func (l *lab) sync() {
	l.t.Helper()
	if l.conn.gone() {
		l.v.refresh(l.t.Context())
		return
	}
	s, err := l.d.Live(l.t.Context())
	must(l.t, err)
	s.Token, s.Durable = l.journal.Token(), l.journal.Durable()
	l.conn.Publish(&s.Durable, s)
	l.v.refresh(l.t.Context())
}

// look requests a snapshot of the current run and fails the test on an error.
func (l *lab) look(ask Query) *Snapshot {
	l.t.Helper()
	if ask.After == 0 {
		l.sync()
	}
	p, err := l.v.Snapshot(l.t.Context(), ask)
	must(l.t, err)
	return p
}

func (l *lab) do(a action.Request) *Answer {
	l.t.Helper()
	ans, err := l.v.Do(l.t.Context(), a)
	if err != nil {
		l.t.Fatalf("%s: %v", a.Do, err)
	}
	return ans
}

// cut breaks the link to a host and refuses further ones.
func (l *lab) cut(name string) {
	l.mu.Lock()
	l.refuse = errors.New("connection refused")
	w := l.workers[name]
	l.mu.Unlock()
	w.Cut(errors.New("broken pipe"))
}

func (l *lab) Connect(_ context.Context, h *hosts.Host, _ *hosts.Open) (hosts.Worker, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Unreachable, Err: l.refuse}
	}
	w := &worker{lab: l, host: h.Name}
	w.Worker = hosttest.NewWorker(hosts.Hello{Version: 1, BootID: h.Name, OS: "linux", Cores: 4, Slots: 2,
		MemBytes: 1 << 33,
		Shared:   h.Name != apart, Dir: l.dir}, 20*time.Millisecond, w.addProgress)
	l.workers[h.Name] = w
	return w, nil
}

// worker is a connection to a host that runs what the lab defines.
type worker struct {
	*hosttest.Worker
	lab  *lab
	host string
}

func (w *worker) addProgress(b *hosts.Heartbeat) {
	w.lab.mu.Lock()
	defer w.lab.mu.Unlock()
	b.Progress = map[string]string{}
	for id, text := range w.lab.say { // "host attempt" applies to one host only
		if host, of, ok := strings.Cut(id, " "); !ok {
			b.Progress[id] = text
		} else if host == w.host {
			b.Progress[of] = text
		}
	}
}

func (w *worker) Send(ms ...hosts.Message) error {
	for _, m := range ms {
		switch m := m.(type) {
		case *hosts.Launch:
			for _, j := range m.Jobs {
				w.launch(j.Attempt)
			}
		case *hosts.Probe:
			out := &hosts.Probed{}
			for _, id := range m.Attempts {
				out.Jobs = append(out.Jobs, hosts.ProbedJob{Attempt: id, Answer: hosts.IsRunning})
			}
			w.Say(out)
		case *hosts.Kill:
			for _, id := range m.Attempts {
				w.finish(id, jobs.Outcome{Signal: "SIGTERM", Stopped: true})
			}
		case *hosts.Withdraw:
			w.Say(&hosts.Withdrawn{Attempts: m.Attempts})
		case *hosts.Read:
			data, size, err := rundir.NewFileReader(rundir.OS).Read(context.Background(),
				jobs.AttemptFile(cmp.Or(w.lab.far, w.lab.dir), m.Attempt, m.File), m.Offset, m.Limit)
			if errors.Is(err, os.ErrNotExist) {
				size, err = 0, nil
			}
			w.Say(&hosts.Chunk{ID: m.ID, Offset: max(0, m.Offset), Size: size, Bulk: data})
		case *hosts.Bye:
			w.Cut(nil)
		}
	}
	return nil
}

func (w *worker) launch(id jobs.AttemptID) {
	at := jobs.StampOf(time.Now())
	w.Say(&hosts.Started{Jobs: []hosts.StartedJob{{Attempt: id, Slot: 1, At: at}}})
	w.lab.mu.Lock()
	took, o := w.lab.runs(id)
	w.lab.mu.Unlock()
	w.lab.wg.Go(func() {
		select {
		case <-time.After(took):
		case <-w.Gone():
			return
		}
		o.Started, o.Ended = at, at+jobs.Stamp(took)
		w.finish(id, o)
	})
}

func (w *worker) finish(id jobs.AttemptID, o jobs.Outcome) {
	w.Say(&hosts.Exits{Jobs: []hosts.ExitedJob{{Attempt: id, Slot: 1, Outcome: o}}})
}
