package runview

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestOverSaysWhatIsLeft checks promise 4: what may be left behind is part of how a run ended, both
// live and afterwards.
func TestOverSaysWhatIsLeft(t *testing.T) {
	x := newTab()
	x.add(jobs.Spec{Command: "a"}, jobs.Succeeded, withEnded("ws01", jobs.Outcome{}, time.Minute))
	x.add(jobs.Spec{Command: "b"}, jobs.Succeeded, func(j *jobs.Job) {
		j.Attempts = append(j.Attempts, &jobs.Attempt{ID: jobs.AttemptID{Job: 2, N: 1}, Host: "ws02",
			State: jobs.AttemptLost, Round: 1})
	}, withEnded("ws01", jobs.Outcome{}, time.Minute))
	if p := lookAt(t, boardOf(t, x), Query{}); !strings.HasPrefix(p.Over, "all jobs succeeded; ") ||
		!strings.Contains(p.Over, "alive on ws02: resume") {
		t.Errorf("Over: got %q, want what is alive on ws02", p.Over)
	}
	x.Ended = true // nothing was left on any host
	if p := lookAt(t, boardOf(t, x), Query{}); p.Trouble != nil {
		t.Errorf("trouble: got %q, want none", p.Trouble)
	}
	if p := lookAt(t, boardOf(t, x), Query{}); p.Over != "all jobs succeeded" {
		t.Errorf("Over: got %q, want \"all jobs succeeded\"", p.Over)
	}
	if got := LeftBehind(sampleRun().Table); got != "" {
		t.Errorf("some jobs are not over: %s", got)
	}
}
