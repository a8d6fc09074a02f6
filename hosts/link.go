package hosts

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Link is an open way to one host: it runs a command there and moves bytes.
// Package link implements it; hosttest holds the conformance
// suite that each must pass. A Link is safe for concurrent use.
type Link interface {
	// Start runs command, a fixed text of ours, with the host's login shell and
	// returns its standard streams. It honors ctx until the command has started.
	Start(ctx context.Context, command string) (Stream, error)
	// KeepAlive asks the far end for a heartbeat and waits for the answer, at
	// most until ctx is done. An error means that the host or the link is gone.
	// A link that has no such request returns nil at once.
	KeepAlive(ctx context.Context) error
	// Close cuts the link at once; what was written and not yet sent is dropped.
	// Blocked calls return. It may be called more than once.
	Close() error
}

// Stream is a command running at the far end of a Link.
type Stream interface {
	io.Reader              // its standard output
	Stdin() io.WriteCloser // its standard input
	Stderr() io.Reader     // its standard error
	Wait() error           // waits until the command has ended; nil if it exited 0; an *Error if the link knows the cause
	Close() error          // end it and release the channel
}

// Opener opens links. Errors are of this package's classes (see Class).
type Opener interface {
	Open(ctx context.Context, h *Host) (Link, error)
}

// Connector makes a Worker on a host: it opens a link, brings the helper there
// if need be, and exchanges the hello. The dispatcher knows nothing else of ssh.
type Connector interface {
	Connect(ctx context.Context, h *Host, open *Open) (Worker, error)
}

// Worker is a helper that answers, seen from the dispatcher. Its methods may be
// called from one goroutine at a time, except Close, which anyone may call.
type Worker interface {
	// Hello returns what the helper said of its host when it started.
	Hello() *Hello
	// Send hands messages over in order. It returns an error once the link is
	// down; what was sent shortly before may then have arrived or not.
	Send(...Message) error
	// Reports delivers what the host says, in order. It is closed when the link
	// is down or the helper has ended; Err then says why.
	Reports() <-chan Message
	// KeepAlive asks the link, not the helper, for a heartbeat.
	KeepAlive(ctx context.Context) error
	Err() error
	Close() error
}

// Router opens each host's link with the Opener that is registered for the
// host's kind of link ("ssh", "local", "command"). It is filled in once, by
// main, so that the dispatcher need not know any of them.
type Router map[string]Opener

// Open opens a link to h. A kind that nobody registered is Misconfigured.
func (r Router) Open(ctx context.Context, h *Host) (Link, error) {
	if o := r[h.Link]; o != nil {
		return o.Open(ctx, h)
	}
	return nil, &Error{
		Host:   h.Name,
		Class:  Misconfigured,
		Err:    fmt.Errorf("no link of the kind %q", h.Link),
		Advice: "this program knows: " + strings.Join(slices.Sorted(maps.Keys(r)), ", "),
	}
}
