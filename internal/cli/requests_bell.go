package cli

import (
	"context"
	"time"

	"dcs-tui/dispatch/control"
	"dcs-tui/jobs/journal"
)

// takeIn is requestTaker.takeIn, until the run is over.
func (s *session) takeIn(ctx context.Context, name string) error {
	return s.requests.takeIn(ctx, name, s.d.Finished())
}

// takeIn has it looked at once at what waits in the run directory, and returns when the
// request of this name is in the journal for good, or when it is over.
func (t *requestTaker) takeIn(ctx context.Context, name string, over <-chan struct{}) error {
	select {
	case t.bell <- struct{}{}:
	default: // it rings already
	}
	for {
		taken, more := t.s.noted.recorded(name)
		if taken {
			return nil
		}
		select {
		case <-more:
		case <-over:
			return control.ErrLeaving // if it was taken in, the journal says so
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// recorded says whether a request is in the journal for good, and returns what is closed
// when further ones are.
func (n *notedJournal) recorded(name string) (taken bool, more <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.more == nil {
		n.more = make(chan struct{})
	}
	return n.durable[name] || n.before[name], n.more
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
