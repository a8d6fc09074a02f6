package control

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// fake is a source with one number that actions count up.
type fake struct {
	mu      sync.Mutex
	version uint64
	changed chan struct{}
	waiting atomic.Int32 // looks that wait
	did     []runview.Action
	closed  atomic.Bool
	gone    atomic.Bool
	picture runview.Picture
	which   jobs.Ranges
	read    func(runview.Read) (*runview.Piece, error)
}

func newFake() *fake { return &fake{version: 1, changed: make(chan struct{})} }

func (f *fake) let() { f.closed.Store(true) }

func (f *fake) Look(ctx context.Context, ask runview.Ask) (*runview.Picture, error) {
	if f.gone.Load() {
		return nil, runview.ErrGone
	}
	f.mu.Lock()
	changed := f.changed
	current := f.version
	f.mu.Unlock()
	if ask.After == current {
		f.waiting.Add(1)
		defer f.waiting.Add(-1)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(ask.Wait):
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.picture
	p.Version, p.Total = f.version, len(f.did)
	if ask.Jobs != nil {
		p.Jobs = &runview.Page{Rows: make([]runview.Row, ask.Jobs.Rows)}
	}
	return &p, nil
}

func (f *fake) Match(context.Context, string) (jobs.Ranges, runview.Weight, error) {
	return f.which, runview.Weight{Queued: f.which.Count()}, nil
}

func (f *fake) Weigh(_ context.Context, which jobs.Ranges) (runview.Weight, error) {
	return runview.Weight{Running: which.Count()}, nil
}

func (f *fake) Read(_ context.Context, r runview.Read) (*runview.Piece, error) {
	if f.read != nil {
		return f.read(r)
	}
	return nil, errors.New("no such file\x1b[31m")
}

func (f *fake) Do(_ context.Context, a runview.Action) (*runview.Answer, error) {
	if a.Do == runview.UseHost {
		return nil, &runview.Refused{Why: "there is no host " + a.Host}
	}
	if a.Do == runview.Continue {
		return nil, ErrLeaving
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, a)
	f.version++
	close(f.changed)
	f.changed = make(chan struct{})
	return &runview.Answer{}, nil
}

// serving serves the source in a directory of its own.
func serving(t *testing.T, source *fake, change ...func(*Options)) *Server {
	t.Helper()
	base, err := os.MkdirTemp("", "dcs") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	opt := Options{Base: base, Program: "v1", Run: "run1", Epoch: 3, Open: func() (runview.Source, func(), error) { return source, source.let, nil }}
	for _, c := range change {
		c(&opt)
	}
	s, err := Listen(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func dial(t *testing.T, s *Server) *Client {
	t.Helper()
	c, err := Dial(t.Context(), s.Address(), "run1", "v1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// soon waits for what another goroutine is about to do.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	polltest.Until(t, time.Minute, what, is)
}
