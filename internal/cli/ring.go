package cli

import (
	"context"
	"time"

	"dcs-tui/jobs/journal"
)

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
