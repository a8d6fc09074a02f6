package hosts

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Link is an open connection to one host, which runs commands there. Package link implements
// it, and hosttest holds the conformance suite for implementations. A Link is safe for
// concurrent use.
type Link interface {
	// Start runs command, a fixed text of ours, with the host's login shell and returns its
	// standard streams. ctx applies until the command has started.
	Start(ctx context.Context, command string) (Stream, error)
	// KeepAlive sends a keepalive request and waits for the answer until ctx is done. An
	// error means that the host or the link is gone. A link without such a request returns
	// nil at once.
	KeepAlive(ctx context.Context) error
	// Close closes the link at once and drops what was written and not sent yet. Blocked
	// calls return. It may be called more than once.
	Close() error
}

// Explainer is a Link that may know why the far end does not answer.
type Explainer interface {
	// ExplainSilence returns the probable cause and advice, or "" and "". It takes some seconds at
	// most.
	ExplainSilence() (cause, advice string)
}

// Stream is a command running at the far end of a Link.
type Stream interface {
	io.Reader              // its standard output
	Stdin() io.WriteCloser // its standard input
	Stderr() io.Reader     // its standard error
	// Waits until the command has ended; nil: it exited with 0; an *Error if the link knows the
	// cause.
	Wait() error
	Close() error // ends the command and releases the channel
}

// Opener opens links. Errors are of this package's classes (see Class).
type Opener interface {
	Open(ctx context.Context, h *Host) (Link, error)
}

// Preparer is an Opener with work that precedes Open and may wait for its turn among many hosts. This
// time does not count as time of the connection.
type Preparer interface {
	// Prepare returns when Open may be called, or ctx is done. Its failures are reported by Open.
	Prepare(ctx context.Context, h *Host)
}

// Connector starts a Worker on a host: it opens a link, copies the helper there if needed,
// and exchanges Open and Hello.
type Connector interface {
	Connect(ctx context.Context, h *Host, open *Open) (Worker, error)
}

// Worker is the dispatcher's side of a connected helper. Send and Close are safe for concurrent
// use. The other methods may be called from one goroutine at a time.
type Worker interface {
	// Hello returns the helper's first message.
	Hello() *Hello
	// Send sends messages in order. It returns an error once the link is down. It is not
	// known whether messages sent shortly before have arrived.
	Send(...Message) error
	// Reports delivers the host's messages in order. It is closed when the link is down or
	// the helper has ended. Then Err returns the reason.
	Reports() <-chan Message
	// KeepAlive is that of the link. The helper takes no part in it.
	KeepAlive(ctx context.Context) error
	Err() error
	Close() error
}

// Router opens each host's link with the Opener for its kind of link ("ssh", "local",
// "command").
type Router map[string]Opener

// Prepare prepares the Opener for the host's kind of link, if that is a Preparer.
func (r Router) Prepare(ctx context.Context, h *Host) {
	if p, ok := r[h.Link].(Preparer); ok {
		p.Prepare(ctx, h)
	}
}

// Open opens a link to h. The error for an unknown kind of link is Misconfigured.
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
