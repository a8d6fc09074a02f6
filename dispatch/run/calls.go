package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// calls implements socket.Handler: the calls of screens and commands.
type calls struct{ *Run }

// Wake is of socket.Handler.
func (c calls) Wake(ctx context.Context, name string) error { return c.inbox.Wake(ctx, name) }

// Request is of socket.Handler.
func (c calls) Request(ctx context.Context, name string, body json.RawMessage) error {
	return c.inbox.Request(ctx, name, body)
}

// Why is of socket.Handler.
func (c calls) Why(ctx context.Context, job jobs.ID) (string, error) {
	text, known, err := c.d.Why(ctx, job)
	if err == nil && !known {
		err = socket.Refusef("the run has no job %d", job)
	}
	return text, c.ended(err)
}

// Reply is of socket.Handler.
func (c calls) Reply(question int64, text string) error {
	if c.opts.Questions == nil {
		return socket.Refusef("the dispatcher has asked nothing")
	}
	_, err := c.opts.Questions.Answer(question, text)
	var refused *runview.Refused
	if errors.As(err, &refused) {
		return socket.Refusef("%s", refused.Why)
	}
	return err
}

// Read is of socket.Handler. A piece has at most hosts.MaxChunk bytes.
func (c calls) Read(ctx context.Context, r socket.Read) (*socket.Piece, error) {
	if r.File != jobs.FileOut && r.File != jobs.FileErr {
		return nil, socket.Refusef("an attempt has no output file %q; the files are %q and %q", string(r.File), jobs.FileOut, jobs.FileErr)
	}
	// The state is taken before the output is read: if the attempt is over by then, the
	// output is complete.
	a, err := c.d.Attempt(ctx, r.Attempt)
	switch {
	case err != nil:
		return nil, c.ended(err)
	case a == nil:
		return nil, socket.Refusef("there is no attempt %s", r.Attempt)
	}
	over := !a.State.Open()
	if over && a.Started == 0 && a.Outcome == nil {
		return nil, socket.Refusef("attempt %s has never started, so it has printed nothing", r.Attempt)
	}
	data, size, err := c.d.Output(ctx, r.Attempt, r.File, r.Offset, min(r.Limit, hosts.MaxChunk))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !over: // it may be about to start
		return &socket.Piece{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the output of %s, which ran on %s, does not exist any more: %w", r.Attempt, a.Host, err)
	case err != nil:
		return nil, c.ended(err)
	}
	at := r.Offset
	if at < 0 {
		at = max(0, size+at)
	}
	return &socket.Piece{Offset: at, Data: data, Size: size, Over: over}, nil
}

// ended returns socket.ErrGone for an error of a dispatcher that has ended.
func (c calls) ended(err error) error {
	if err != nil {
		select {
		case <-c.d.Ended():
			return socket.ErrGone
		default:
		}
	}
	return err
}
