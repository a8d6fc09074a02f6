package cli

import (
	"context"
	"time"

	"dcs-tui/jobs/journal"
)

// ring notifies a dispatcher on this machine of the request. heard is closed when the
// request is recorded or the dispatcher cannot be notified; it finds the request then when it
// polls next. Nobody notifies a dispatcher on another machine, since connecting takes longer
// than a poll. hush ends the notification.
func (e *errand) ring(owner *journal.Owner) (heard <-chan struct{}, hush func()) {
	if owner.Socket == "" || owner.Life() != journal.Alive {
		return nil, func() {}
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerHere)
	done := make(chan struct{})
	go func() {
		defer close(done)
		client, err := dialSocket(ctx, e.run, owner)
		if err != nil {
			return
		}
		defer client.Close()
		_ = client.Wake(ctx, e.name)
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
