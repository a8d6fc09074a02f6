package hosts

import (
	"errors"
	"fmt"
)

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
