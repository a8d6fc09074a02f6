package runview

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/hosts/hosttest"
	"dcs-tui/jobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a dispatcher over hosts that need no machine, in virtual time.
type lab struct {
	t    *testing.T
	d    *dispatch.Dispatcher
	b    *Board
	dir  string
	acts []Action

	mu      sync.Mutex
	run     func(jobs.AttemptID) (time.Duration, jobs.Outcome)
	say     map[string]string // DCS_PROGRESS
	refuse  error
	workers map[string]*worker
	wg      sync.WaitGroup
}

// apart is a host that does not share the run directory.
const apart = "apart"

// noJournal keeps nothing. Its run directory hangs until hangs is closed.
type noJournal struct{ hangs <-chan struct{} }

func (noJournal) Append([]jobs.Record) error { return nil }
func (noJournal) Sync() error                { return nil }
func (noJournal) Beat() error                { return nil }
func (j noJournal) Fenced() (int, error) {
	if j.hangs != nil {
		<-j.hangs
	}
	return 0, nil
}

// newLab starts a dispatcher with these hosts of two slots each, and a board.
func newLab(t *testing.T, names ...string) *lab {
	return newLabOn(t, &jobs.Table{}, names...)
}

func newLabOn(t *testing.T, table *jobs.Table, names ...string) *lab {
	return newLabWith(t, noJournal{}, table, names...)
}

func newLabWith(t *testing.T, journal dispatch.Journal, table *jobs.Table, names ...string) *lab {
	l := &lab{t: t, dir: t.TempDir(), workers: map[string]*worker{}}
	l.run = func(jobs.AttemptID) (time.Duration, jobs.Outcome) { return time.Minute, jobs.Outcome{} }
	var hs []*hosts.Host
	for _, n := range names {
		hs = append(hs, &hosts.Host{Name: n, Link: "ssh", Addresses: []string{n}, Slots: hosts.SlotRule{Fixed: 2}, Weight: 1})
	}
	d, err := dispatch.Start(dispatch.Config{
		RunUID: "u1", RunName: "test", RunDir: l.dir, Created: jobs.StampOf(time.Now()), Sched: sched.Config{Seed: 1, Tries: 2},
		Hosts: hs, Connector: l, Journal: journal, Table: table,
		StoreSpecs: func(s []*jobs.Spec) error { table.Specs = append(table.Specs, s...); return nil },
		Open:       hosts.Open{Run: "u1", Epoch: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.d = d
	l.b = FromDispatcher(d, Options{Run: Run{Lab: "lab"}, Act: func(_ context.Context, a Action) (*Answer, error) {
		l.acts = append(l.acts, a)
		return &Answer{Done: 1}, nil
	}})
	return l
}

func (l *lab) submit(specs ...*jobs.Spec) {
	l.t.Helper()
	if err := l.d.Submit(specs, true); err != nil {
		l.t.Fatal(err)
	}
}

func plain(n int) []*jobs.Spec {
	var list []*jobs.Spec
	for range n {
		list = append(list, &jobs.Spec{Command: "sleep 60", Options: jobs.NoOptions})
	}
	return list
}

// end closes everything and waits for it.
func (l *lab) end() {
	l.t.Helper()
	l.b.Close()
	if _, err := l.d.Close(); err != nil {
		l.t.Error(err)
	}
	l.wg.Wait()
}

// look asks and fails the test on an error.
func (l *lab) look(ask Ask) *Picture {
	l.t.Helper()
	p, err := l.b.Look(l.t.Context(), ask)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *lab) do(a Action) *Answer {
	l.t.Helper()
	ans, err := l.b.Do(l.t.Context(), a)
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
	w.Worker = hosttest.NewWorker(hosts.Hello{Version: 1, BootID: h.Name, OS: "linux", Cores: 4, Slots: 2, MemBytes: 1 << 33,
		Shared: h.Name != apart, Dir: l.dir}, 20*time.Millisecond, w.progress)
	l.workers[h.Name] = w
	return w, nil
}

// worker is a connection to a host that runs what the lab says.
type worker struct {
	*hosttest.Worker
	lab  *lab
	host string
}

func (w *worker) progress() map[string]string {
	w.lab.mu.Lock()
	defer w.lab.mu.Unlock()
	said := map[string]string{}
	for id, text := range w.lab.say { // "host attempt" is for one host alone
		if host, of, ok := strings.Cut(id, " "); !ok {
			said[id] = text
		} else if host == w.host {
			said[of] = text
		}
	}
	return said
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
			data, size, err := dispatch.NewFileReader().Read(context.Background(), jobs.AttemptFile(w.lab.dir, m.Attempt, m.File), m.Offset, m.Limit)
			if errors.Is(err, os.ErrNotExist) {
				size, err = 0, nil
			}
			w.Say(&hosts.Chunk{ID: m.ID, Offset: m.Offset, Size: size, Bulk: data})
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
	took, o := w.lab.run(id)
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
