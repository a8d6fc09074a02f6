package requests

import (
	"context"

	"dcs-tui/dispatch/control"
)

// TakeIn has it looked at once at what waits in the run directory, and returns when the
// request of this name is in the journal for good, or when it is over.
func (t *Taker) TakeIn(ctx context.Context, name string, over <-chan struct{}) error {
	select {
	case t.bell <- struct{}{}:
	default: // it rings already
	}
	for {
		taken, more := t.Journal.recorded(name)
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
