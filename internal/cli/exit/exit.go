// Package exit is how the program ends: its exit codes, and errors for people, which say
// what is wrong, what to do, and with which code to exit.
//
// It writes nothing and exits nobody: internal/cli shows an error and returns its code.
package exit

import (
	"errors"
	"fmt"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
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

// OfRun says how a run that came to its end exits. cancelled means that a
// person cancelled it in this session, more that jobs were still to be read.
func OfRun(how sched.Finished, counts [jobs.Skipped + 1]int, cancelled, more bool) int {
	open := counts[jobs.Queued] + counts[jobs.Running]
	total := 0
	for _, n := range counts {
		total += n
	}
	switch {
	case how == sched.NoHosts:
		return NoHosts
	case how == sched.Fenced:
		return Left // another dispatcher carries it on
	case open > 0:
		return Left
	case cancelled:
		return Cancelled
	case more:
		return Left
	case counts[jobs.Succeeded] == total:
		return OK
	}
	return Failed
}

// Problem is an error for people: what is wrong, what to do, and the exit code.
type Problem struct {
	Err    error
	Advice string
	Code   int
}

func (p *Problem) Error() string { return p.Err.Error() }
func (p *Problem) Unwrap() error { return p.Err }

// Usagef makes an error of usage or configuration.
func Usagef(format string, args ...any) *Problem {
	return &Problem{Err: fmt.Errorf(format, args...), Code: Usage}
}

// WithAdvice adds what a person can do.
func (p *Problem) WithAdvice(format string, args ...any) *Problem {
	p.Advice = fmt.Sprintf(format, args...)
	return p
}

// CodeOf returns the exit code of an error; what is not a problem of ours was
// found before anything started.
func CodeOf(err error) int {
	var p *Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return Usage
}
