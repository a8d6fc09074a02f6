// Package exit is how the program ends: its exit codes, and errors for people, which say
// what is wrong, what to do, and with which code to exit.
//
// It writes nothing and exits nobody: internal/cli shows an error and returns its code.
package exit

import (
	"errors"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/advice"
)

// The exit codes. This is the only place that gives them their meaning.
const (
	OK        = 0   // every job succeeded
	Failed    = 1   // some job did not
	Usage     = 2   // usage or configuration: nothing was started
	NoHosts   = 3   // no host could be used for --give-up
	Left      = 4   // stopped with jobs left: resume continues; or the screen was left, and the run goes on
	Cancelled = 130 // cancelled
)

// Help is the table as the user reads it.
const Help = `Exit codes: 0 all jobs succeeded, 1 some did not, 2 usage or configuration,
3 no host could be used for --give-up, 4 stopped with jobs left (resume continues) or
left the screen while the run goes on, 130 cancelled.`

// Of returns the exit code of a run.
func Of(s run.State) int {
	switch s {
	case run.Succeeded:
		return OK
	case run.Failed:
		return Failed
	case run.NoHosts:
		return NoHosts
	case run.Canceled:
		return Cancelled
	}
	return Left
}

// Problem is an error that tells a person what to do.
type Problem = advice.Error

// Usagef makes an error of usage or configuration.
func Usagef(format string, args ...any) *Problem { return advice.Errorf(format, args...) }

// codeError is an error with an exit code of its own.
type codeError struct {
	error
	code int
}

func (e *codeError) Unwrap() error { return e.error }

// WithCode makes the program exit with this code because of err.
func WithCode(code int, err error) error { return &codeError{err, code} }

// CodeOf returns the exit code of an error. An error without one was found before
// anything was started.
func CodeOf(err error) int {
	var c *codeError
	if errors.As(err, &c) {
		return c.code
	}
	return Usage
}
