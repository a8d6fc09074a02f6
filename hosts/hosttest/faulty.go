package hosttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"dcs-tui/hosts"
)

// Fault is an Opener whose links fail when told to. It wraps another Opener, and
// everything it does happens in memory, so it also works in virtual time
// (testing/synctest). Its methods may be called from any goroutine.
type Fault struct {
	inner hosts.Opener

	mu      sync.Mutex
	cond    sync.Cond
	refuse  error
	silent  bool
	delay   time.Duration
	budget  int64 // bytes to the host until the cut; < 0: none is planned
	loud    bool  // the planned cut is
	opened  int
	links   map[*faultyLink]struct{}
	changed chan struct{} // closed and made anew at every change
}

// Faulty wraps an opener. It is transparent until it is told otherwise.
func Faulty(inner hosts.Opener) *Fault {
	f := &Fault{inner: inner, budget: -1, links: map[*faultyLink]struct{}{}, changed: make(chan struct{})}
	f.cond.L = &f.mu
	return f
}

// errCut is what a loud cut looks like from here.
var errCut = errors.New("connection reset by peer")

func (f *Fault) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	f.wake()
}

// wake lets everyone look again; the caller holds mu.
func (f *Fault) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
	f.cond.Broadcast()
}

// Refuse makes every Open fail with err; nil opens again.
func (f *Fault) Refuse(err error) { f.set(func() { f.refuse = err }) }

// Cut breaks every open link at once and loudly, as a reset connection does. New
// links may be opened.
func (f *Fault) Cut() {
	f.mu.Lock()
	links := f.links
	f.links = map[*faultyLink]struct{}{}
	f.mu.Unlock()
	for l := range links {
		l.end(errCut)
	}
}

// Silence lets nothing pass in either direction, without an error: what is
// written is held, Open, Start and KeepAlive wait for their contexts.
func (f *Fault) Silence() { f.set(func() { f.silent = true }) }

// Heal ends the silence: what is held and has not been closed meanwhile goes on
// its way, as on a network that comes back (DESIGN 5).
func (f *Fault) Heal() { f.set(func() { f.silent = false }) }

// Delay makes all that passes d late, in each direction.
func (f *Fault) Delay(d time.Duration) { f.set(func() { f.delay = d }) }

// CutAfter lets n more bytes through to the host, over all links together, and
// then cuts in the middle of whatever is being sent: loudly, or by silence.
func (f *Fault) CutAfter(n int64, loud bool) { f.set(func() { f.budget, f.loud = n, loud }) }

// Opened counts the links that have been opened.
func (f *Fault) Opened() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened
}

// pass waits until a message of ours may travel: not while there is silence, and
// then for the delay.
func (f *Fault) pass(ctx context.Context, closed <-chan struct{}) error {
	for {
		f.mu.Lock()
		silent, changed, delay := f.silent, f.changed, f.delay
		f.mu.Unlock()
		if !silent && delay == 0 {
			return nil
		}
		var timer <-chan time.Time
		if !silent {
			timer = time.After(delay)
		}
		select {
		case <-timer:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-closed:
			return errCut
		case <-changed:
		}
	}
}

// Open opens a link of the wrapped opener.
func (f *Fault) Open(ctx context.Context, h *hosts.Host) (hosts.Link, error) {
	fail := func(err error) (hosts.Link, error) {
		var own *hosts.Error
		if errors.As(err, &own) {
			return nil, err
		}
		return nil, &hosts.Error{Host: h.Name, Class: hosts.Unreachable, Err: err}
	}
	if err := f.pass(ctx, nil); err != nil {
		return fail(err)
	}
	f.mu.Lock()
	err := f.refuse
	f.mu.Unlock()
	if err != nil {
		return fail(err)
	}
	inner, err := f.inner.Open(ctx, h)
	if err != nil {
		return nil, err
	}
	l := &faultyLink{f: f, host: h.Name, inner: inner, closed: make(chan struct{}), streams: map[*faultyStream]struct{}{}}
	f.set(func() { f.opened++; f.links[l] = struct{}{} })
	return l, nil
}

// faultyLink is a link under a Fault.
type faultyLink struct {
	f      *Fault
	host   string
	inner  hosts.Link
	closed chan struct{}

	mu      sync.Mutex
	why     error // it ended; nil while it is open
	streams map[*faultyStream]struct{}
}

func (l *faultyLink) fail(err error) error {
	l.mu.Lock()
	if l.why != nil {
		err = l.why
	}
	l.mu.Unlock()
	return &hosts.Error{Host: l.host, Class: hosts.Unreachable, Err: err}
}

// Start starts a command once the request gets through.
func (l *faultyLink) Start(ctx context.Context, command string) (hosts.Stream, error) {
	if err := l.f.pass(ctx, l.closed); err != nil {
		return nil, l.fail(fmt.Errorf("starting a command: %w", err))
	}
	inner, err := l.inner.Start(ctx, command)
	if err != nil {
		return nil, err
	}
	s := newFaultyStream(l, inner)
	l.mu.Lock()
	over := l.why != nil
	l.streams[s] = struct{}{}
	l.mu.Unlock()
	if over {
		s.Close()
		return nil, l.fail(errCut)
	}
	return s, nil
}

// KeepAlive asks the wrapped link once the question gets through.
func (l *faultyLink) KeepAlive(ctx context.Context) error {
	if err := l.f.pass(ctx, l.closed); err != nil {
		return l.fail(err)
	}
	select {
	case <-l.closed:
		return l.fail(errCut)
	default:
	}
	return l.inner.KeepAlive(ctx)
}

// Close drops what is held.
func (l *faultyLink) Close() error {
	l.end(errors.New("the link is closed"))
	return nil
}

func (l *faultyLink) end(why error) {
	l.mu.Lock()
	if l.why != nil {
		l.mu.Unlock()
		return
	}
	l.why = why
	close(l.closed)
	streams := l.streams
	l.streams = map[*faultyStream]struct{}{}
	l.mu.Unlock()
	l.f.set(func() { delete(l.f.links, l) })
	for s := range streams {
		s.cut(io.ErrClosedPipe)
	}
	l.inner.Close()
}
