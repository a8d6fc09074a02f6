package cli

import (
	"context"
	"time"

	"dcs-tui/dispatch/control"
	"dcs-tui/jobs/journal"
)

// takeIn looks at once at what waits in the run directory, and returns when the
// request of this name is in the journal for good.
func (s *session) takeIn(ctx context.Context, name string) error {
	recorded := s.noted.recorded(name)
	select {
	case s.requests.bell <- struct{}{}:
	default: // it rings already
	}
	select {
	case <-recorded:
		return nil
	case <-s.d.Finished():
		return control.ErrLeaving // if it was taken in, the journal says so
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recorded returns what is closed when a request is in the journal for good.
func (n *notedJournal) recorded(name string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	heard := n.heard[name]
	if heard == nil {
		heard = make(chan struct{})
		if n.durable[name] || n.before[name] {
			close(heard)
			return heard
		}
		if n.heard == nil {
			n.heard = map[string]chan struct{}{}
		}
		n.heard[name] = heard
	}
	return heard
}

// ring tells a dispatcher on this machine, at its socket, that there is a request. What
// is returned first is closed when it is in the journal for good, or nobody has heard
// the bell: then the dispatcher finds the request when it looks next. From another
// machine nobody rings: to connect takes longer than that. hush ends it.
func (e *errand) ring(owner *journal.Owner) (heard <-chan struct{}, hush func()) {
	if owner.Address == "" || owner.Life() != journal.Alive {
		return nil, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		client, err := reachHere(e.run)(ctx, owner)
		if err != nil {
			return
		}
		defer client.Close()
		_ = client.TakeIn(ctx, e.name)
	}()
	return done, func() {
		cancel()
		<-done
	}
}

// pause waits until it is time to look again whether there is an answer: at once when
// the bell was heard, which it says but once.
func pause(heard <-chan struct{}) <-chan struct{} {
	select {
	case <-heard:
		return nil
	case <-time.After(answerEvery):
		return heard
	}
}
