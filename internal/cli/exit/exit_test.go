package exit

import (
	"errors"
	"fmt"
	"testing"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// DESIGN 8: the exit codes.
func TestExitCodes(t *testing.T) {
	c := func(of map[jobs.JobState]int) (counts [jobs.Skipped + 1]int) {
		for s, n := range of {
			counts[s] = n
		}
		return counts
	}
	good := c(map[jobs.JobState]int{jobs.Succeeded: 3})
	bad := c(map[jobs.JobState]int{jobs.Succeeded: 3, jobs.TimedOut: 1})
	open := c(map[jobs.JobState]int{jobs.Succeeded: 3, jobs.Queued: 1})
	running := c(map[jobs.JobState]int{jobs.Running: 1, jobs.Failed: 1})
	gone := c(map[jobs.JobState]int{jobs.Cancelled: 2, jobs.Succeeded: 1})
	for _, test := range []struct {
		name      string
		how       sched.Finished
		counts    [jobs.Skipped + 1]int
		cancelled bool
		more      bool
		want      int
	}{
		{"all succeeded", sched.AllDone, good, false, false, OK},
		{"no jobs at all", sched.AllDone, c(nil), false, false, OK},
		{"one timed out", sched.AllDone, bad, false, false, Failed},
		{"skipped is not succeeded", sched.AllDone, c(map[jobs.JobState]int{jobs.Skipped: 1}), false, false, Failed},
		{"drained with jobs queued", sched.Drained, open, false, false, Left},
		{"drained after the last job", sched.Drained, good, false, false, OK},
		{"drained while jobs were read", sched.Drained, good, false, true, Left},
		{"stopped with jobs running", sched.Stopped, running, false, false, Left},
		{"no hosts", sched.NoHosts, open, false, false, NoHosts},
		{"fenced off", sched.Fenced, good, false, false, Left},
		{"cancelled", sched.AllDone, gone, true, false, Cancelled},
		{"cancelled, and stopped before it was done", sched.Stopped, running, true, false, Left},
		{"cancelled by somebody else before", sched.AllDone, gone, false, false, Failed},
	} {
		if got := Of(run.StateOf(test.how, test.counts, test.cancelled, test.more)); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// What was found before anything started is 2, however it was wrapped.
func TestErrorCodes(t *testing.T) {
	cause := errors.New("cause")
	p := Usagef("wrong: %w", cause).WithAdvice("do %s", "this")
	if CodeOf(fmt.Errorf("more: %w", p)) != Usage || CodeOf(cause) != Usage || !errors.Is(p, cause) || p.Advice != "do this" {
		t.Errorf("%+v", p)
	}
}
