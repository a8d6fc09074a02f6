package sshlink

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// maxDials is how many connections may be in the making at once at one place: to
// one address, or through one gateway. sshd begins to drop them at 10 that have
// not logged in yet (MaxStartups 10:30:100).
const maxDials = 8

// maxJitter spreads dials that had to wait for their turn.
const maxJitter = 30 * time.Millisecond

// limits counts the dials in the making at each place.
type limits struct {
	mu     sync.Mutex
	places map[string]*place
	jitter func() time.Duration // of a dial that had to wait; tests replace it
}

// place is a semaphore that exists while somebody uses it.
type place struct {
	users int // guarded by limits.mu
	slots chan struct{}
}

func newLimits() *limits {
	return &limits{
		places: map[string]*place{},
		jitter: func() time.Duration { return rand.N(maxJitter) },
	}
}

// enter waits for a turn at the place and returns how to give it back.
func (l *limits) enter(ctx context.Context, name string) (leave func(), err error) {
	l.mu.Lock()
	p := l.places[name]
	if p == nil {
		p = &place{slots: make(chan struct{}, maxDials)}
		l.places[name] = p
	}
	p.users++
	l.mu.Unlock()
	gone := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if p.users--; p.users == 0 {
			delete(l.places, name)
		}
	}
	leave = func() { <-p.slots; gone() }
	select {
	case p.slots <- struct{}{}:
		return leave, nil
	default:
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		gone()
		return nil, context.Cause(ctx)
	}
	pause := time.NewTimer(l.jitter())
	defer pause.Stop()
	select {
	case <-pause.C:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
