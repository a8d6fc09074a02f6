// Package run owns a run from its start to its end. So far it has the calls that screens and
// commands make at the socket of a dispatcher. It parses no command line and prints nothing.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/socket"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// Inbox accepts requests. inbox.Inbox implements it; see socket.Handler.
type Inbox interface {
	Wake(ctx context.Context, name string) error
	Request(ctx context.Context, name string, body json.RawMessage) error
}

// Calls carries out the calls of dispatch/socket for a dispatcher. It is a socket.Handler.
type Calls struct {
	Inbox
	Dispatcher *dispatch.Dispatcher
	// Answer answers a question; nil: none is ever asked.
	Answer func(question int64, text string) error
}

// Why is of socket.Handler.
func (c *Calls) Why(ctx context.Context, job jobs.ID) (string, error) {
	text, known, err := c.Dispatcher.Why(ctx, job)
	if err == nil && !known {
		err = socket.Refusef("the run has no job %d", job)
	}
	return text, c.ended(err)
}

// Reply is of socket.Handler.
func (c *Calls) Reply(question int64, text string) error {
	if c.Answer == nil {
		return socket.Refusef("the dispatcher has asked nothing")
	}
	return c.Answer(question, text)
}

// Read is of socket.Handler. A piece has at most hosts.MaxChunk bytes.
func (c *Calls) Read(ctx context.Context, r socket.Read) (*socket.Piece, error) {
	if r.File != jobs.FileOut && r.File != jobs.FileErr {
		return nil, socket.Refusef("an attempt has no output file %q; the files are %q and %q", string(r.File), jobs.FileOut, jobs.FileErr)
	}
	// The state is taken before the output is read: if the attempt is over by then, the
	// output is complete.
	a, err := c.Dispatcher.Attempt(ctx, r.Attempt)
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
	data, size, err := c.Dispatcher.Output(ctx, r.Attempt, r.File, r.Offset, min(r.Limit, hosts.MaxChunk))
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
func (c *Calls) ended(err error) error {
	if err != nil {
		select {
		case <-c.Dispatcher.Ended():
			return socket.ErrGone
		default:
		}
	}
	return err
}
