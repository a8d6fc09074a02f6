package runview

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// Promise 4: what may be left behind is part of how a run ended, live and afterwards.
func TestOverSaysWhatIsLeft(t *testing.T) {
	if got := overText(&sched.Finish{How: sched.AllDone, Why: "1.1 on ws02 may be alive"}); got != "all jobs are over; 1.1 on ws02 may be alive" {
		t.Error(got)
	}
	x := newTab()
	x.add(jobs.Spec{Command: "a"}, jobs.Succeeded, ran("ws01", jobs.Outcome{}, time.Minute))
	x.add(jobs.Spec{Command: "b"}, jobs.Succeeded, func(j *jobs.Job) {
		j.Attempts = append(j.Attempts, &jobs.Attempt{ID: jobs.AttemptID{Job: 2, N: 1}, Host: "ws02", State: jobs.AttemptLost, Round: 1})
	}, ran("ws01", jobs.Outcome{}, time.Minute))
	if p := ask(t, boardOf(t, x), Ask{}); !strings.HasPrefix(p.Over, "all jobs are over; ") || !strings.Contains(p.Over, "alive on ws02: resume") {
		t.Error(p.Over)
	}
	b := FromTable(x.Table, Past{Options: Options{Run: Run{Name: "r"}}, Life: Ended, Trouble: []string{"ws09 ran nothing: no route to host"}})
	defer b.Close()
	if p := ask(t, b, Ask{}); len(p.Trouble) != 2 || !strings.Contains(p.Trouble[0], "alive on ws02: resume") || !strings.HasPrefix(p.Trouble[1], "ws09 ran nothing") {
		t.Errorf("%q", p.Trouble)
	}
	x.Ended = true // every host was left clean
	if p := ask(t, boardOf(t, x), Ask{}); p.Trouble != nil {
		t.Errorf("%q", p.Trouble)
	}
	if p := ask(t, boardOf(t, x), Ask{}); p.Over != "all jobs are over" {
		t.Error(p.Over)
	}
	if got := LeftBehind(small().Table); got != "" {
		t.Errorf("some jobs are not over: %s", got)
	}
}
