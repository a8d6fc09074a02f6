package control

import (
	"context"
	"time"

	"dcs-tui/jobs/runview"
)

// takeInWithin bounds a call of TakeIn: with a disk that stands still nothing is taken in.
const takeInWithin = 15 * time.Second

// TakeIn has the dispatcher look at once at what waits for it in the run directory, and
// returns when the request of this name is in the journal for good, carried out or refused.
// It is a bell: the file in the run directory is what is asked, the journal the answer, and
// an error says no more than that nobody has heard it.
func (c *Client) TakeIn(ctx context.Context, name string) error {
	_, err := c.call(ctx, &request{Op: opTakeIn, Name: name}, takeInWithin)
	return err
}

func (s *Server) takeIn(ctx context.Context, name string) error {
	if s.opt.TakeIn == nil {
		return &runview.Refused{Why: "the dispatcher takes nothing in"}
	}
	return s.opt.TakeIn(ctx, name)
}
