package jobs_test

import (
	"encoding/json"
	"testing"

	"dcs-tui/jobs"
)

// TestHostStatusIsRendered checks each rendering of the status of a host: as a word, as a line, as
// a clause, and as JSON. A state of a later version is shown as its word.
func TestHostStatusIsRendered(t *testing.T) {
	for _, c := range []struct {
		name               string
		s                  jobs.HostStatus
		starts             bool
		word, line, clause string
		json               string
	}{
		{"up", jobs.HostStatus{State: jobs.HostUp}, true, "up", "", "is up", `{"state":"up"}`},
		{"up, with a remark", jobs.HostStatus{State: jobs.HostUp, Reason: "its allocation ends in 5 min"}, true,
			"up",
			"its allocation ends in 5 min",
			"its allocation ends in 5 min",
			`{"state":"up","reason":"its allocation ends in 5 min"}`},
		{"held", jobs.HostStatus{State: jobs.HostUp, Hold: jobs.HeldByDisk, Reason: "starts nothing: its disk is full"},
			false,
			"held", "starts nothing: its disk is full", "starts nothing: its disk is full",
			`{"state":"up","hold":"disk","reason":"starts nothing: its disk is full"}`},
		{"backing off", jobs.HostStatus{State: jobs.HostBackingOff, Reason: "no route"}, false,
			"waits",
			"backing off: no route",
			"is backing off (no route)",
			`{"state":"backing_off","reason":"no route"}`},
		{"draining", jobs.HostStatus{State: jobs.HostDraining}, false, "draining", "draining", "is draining",
			`{"state":"draining"}`},
		{"of a later version", jobs.HostStatus{State: "on_fire"}, false, "on_fire", "on fire", "is on fire",
			`{"state":"on_fire"}`},
		{"not known", jobs.HostStatus{}, false, "", "", "is ", `{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			same(t, "StartsJobs", c.s.StartsJobs(), c.starts)
			same(t, "Word", c.s.Word(), c.word)
			same(t, "Line", c.s.Line(), c.line)
			same(t, "Clause", c.s.Clause(), c.clause)
			b, err := json.Marshal(c.s)
			same(t, "JSON", string(b), c.json)
			var back jobs.HostStatus
			if err := json.Unmarshal(b, &back); err != nil || back != c.s {
				t.Errorf("read back %+v, %v", back, err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestClauseOfAJobState checks what is said to have happened to a job.
func TestClauseOfAJobState(t *testing.T) {
	for state, want := range map[jobs.JobState]string{
		jobs.Queued: "is queued", jobs.Succeeded: "has succeeded", jobs.Failed: "has failed",
		jobs.TimedOut: "has timed out", jobs.Canceled: "was canceled", jobs.Skipped: "was skipped",
	} {
		if got := state.Clause(); got != want {
			t.Errorf("%v: %q, want %q", state, got, want)
		}
	}
}
