package cli

import (
	"errors"
	"fmt"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// The exit codes. This is the only place that gives them their meaning.
const (
	ExitOK        = 0   // every job succeeded
	ExitFailed    = 1   // some job did not
	ExitUsage     = 2   // usage or configuration: nothing was started
	ExitNoHosts   = 3   // no host could be used for --give-up
	ExitLeft      = 4   // stopped with jobs left: resume continues; or the screen was left, and the run goes on
	ExitCancelled = 130 // cancelled
)

// exitHelp is the table as the user reads it.
const exitHelp = `Exit codes: 0 all jobs succeeded, 1 some did not, 2 usage or configuration,
3 no host could be used for --give-up, 4 stopped with jobs left (resume continues) or
left the screen while the run goes on, 130 cancelled.`

// exitOf says how a run that came to its end exits. cancelled means that a
// person cancelled it in this session, more that jobs were still to be read.
func exitOf(how sched.Finished, counts [jobs.Skipped + 1]int, cancelled, more bool) int {
	open := counts[jobs.Queued] + counts[jobs.Running]
	total := 0
	for _, n := range counts {
		total += n
	}
	switch {
	case how == sched.NoHosts:
		return ExitNoHosts
	case how == sched.Fenced:
		return ExitLeft // another dispatcher carries it on
	case open > 0:
		return ExitLeft
	case cancelled:
		return ExitCancelled
	case more:
		return ExitLeft
	case counts[jobs.Succeeded] == total:
		return ExitOK
	}
	return ExitFailed
}

// problem is an error for people: what is wrong, what to do, and the exit code.
type problem struct {
	err    error
	advice string
	code   int
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// usagef makes an error of usage or configuration.
func usagef(format string, args ...any) *problem {
	return &problem{err: fmt.Errorf(format, args...), code: ExitUsage}
}

// withAdvice adds what a person can do.
func (p *problem) withAdvice(format string, args ...any) *problem {
	p.advice = fmt.Sprintf(format, args...)
	return p
}

// codeOf returns the exit code of an error; what is not a problem of ours was
// found before anything started.
func codeOf(err error) int {
	var p *problem
	if errors.As(err, &p) {
		return p.code
	}
	return ExitUsage
}
