package hosts

import (
	"context"
	"errors"
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

// Class is the kind of a link error. Links determine it, and dispatch/sched decides by it.
type Class uint8

// The classes.
const (
	Unreachable Class = iota // refused, timed out, reset, no such name: retried with backoff
	Denied                   // authentication failed: a person must act; retried seldom
	HostKey                  // unknown or changed host key: not retried
	// work_dir unusable, wrong architecture, cwd missing: a person must act.
	Misconfigured
	Broken // the far end sent something invalid, or the helper crashed
)

var classNames = [...]string{"unreachable", "denied", "host key", "misconfigured", "broken"}

// String returns the name of the class.
func (c Class) String() string { return classNames[c] }

// Permanent reports whether retrying alone will not help.
func (c Class) Permanent() bool { return c == Denied || c == HostKey || c == Misconfigured }

// ErrUnanswered is the cause of an error of class Unreachable: a person has not answered
// within the time of one connection attempt. The question stays open, and the next attempt
// may find the answer.
var ErrUnanswered = errors.New("nobody has done it yet")

// Error is an error of one host. Its text names the host and contains advice.
type Error struct {
	Host   string // inventory name
	Class  Class
	Err    error
	Advice string // what a person can do; "": nothing
	// Fingerprint is the kind and the hash of the key that the host shows, if its class is HostKey.
	Fingerprint string
}

// Error returns one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %v", e.Host, e.Err)
	if e.Advice != "" {
		s += " (" + e.Advice + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err, Broken if it has none.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Broken
}

// ExitError is the error of Stream.Wait if the command ran and did not exit with 0. Any other
// error of Wait means that it is not known how the command ended.
type ExitError struct {
	Code   int    // exit code; -1 if a signal ended the command
	Signal string // such as "SIGKILL"; "" if it exited by itself
}

// Error describes how the command ended.
func (e *ExitError) Error() string {
	if e.Signal != "" {
		return "ended by " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// FencedError reports that a host knows a higher epoch of this run: another dispatcher has
// taken it over, and this one must start nothing more on any host.
type FencedError struct {
	Host string // inventory name
	By   int    // the higher epoch
}

// Error returns one line.
func (e *FencedError) Error() string {
	return fmt.Sprintf("%s: another dispatcher has taken this run over (its epoch is %d)", e.Host, e.By)
}
