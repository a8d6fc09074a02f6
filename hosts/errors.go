package hosts

import (
	"errors"
	"fmt"
)

// Class describes what kind of trouble a link error is, decided where the knowledge
// is (the Link), used where the decision is (dispatch/sched).
type Class uint8

// The classes.
const (
	Unreachable   Class = iota // refused, timed out, reset, no such name: try again with backoff
	Denied                     // authentication failed, key refused: a person must act; retried seldom
	HostKey                    // unknown or changed host key: always stops
	Misconfigured              // work_dir unusable, wrong architecture, cwd missing: a person must act
	Broken                     // the far end answered nonsense or the helper died
)

var classNames = [...]string{"unreachable", "denied", "host key", "misconfigured", "broken"}

// String names the class.
func (c Class) String() string { return classNames[c] }

// Permanent reports whether trying again by itself will not help.
func (c Class) Permanent() bool { return c == Denied || c == HostKey || c == Misconfigured }

// ErrUnanswered reports that a person who was asked for something has not answered within the
// time of one connection attempt. It is Unreachable: the question stands, and the next
// attempt may find the answer.
var ErrUnanswered = errors.New("nobody has entered it yet")

// Error is trouble with one host. Its text names the host and says what to do.
type Error struct {
	Host   string // inventory name
	Class  Class
	Err    error
	Advice string // what a person can do, "" if nothing
}

// Error gives one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %v", e.Host, e.Err)
	if e.Advice != "" {
		s += " (" + e.Advice + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of err, Broken when it carries none.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Broken
}

// ExitError is what Stream.Wait returns when the command ran and did not exit
// with 0. Any other error of Wait means that nobody knows how it ended.
type ExitError struct {
	Code   int    // exit code; -1 when a signal ended the command
	Signal string // "SIGKILL"; "" when it exited by itself
}

// Error describes how it ended.
func (e *ExitError) Error() string {
	if e.Signal != "" {
		return "ended by " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// FencedError reports that a host knows a higher epoch of this run: another
// dispatcher has taken it over, and this one may start nothing more anywhere.
type FencedError struct {
	Host string // inventory name
	By   int    // the higher epoch
}

// Error gives one line.
func (e *FencedError) Error() string {
	return fmt.Sprintf("%s: another dispatcher has taken this run over (its epoch is %d)", e.Host, e.By)
}
