package sched

import (
	"fmt"
	"testing"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// launchedTexts returns the launched attempts with their commands.
func launchedTexts(commands []Command) string {
	s := ""
	for _, p := range launchItems(commands, "") {
		s += fmt.Sprintf("%s %s;", p.Attempt, p.Spec.Command)
	}
	return s
}

func (s *stage) edit(c jobs.Change, ids ...jobs.ID) []Command { return s.step(Edit{ids, c}) }

// TestEditChangesAQueuedJob checks that an edit changes a queued job, gives an ended job a new
// round, and leaves a running job alone. Replaying the journal yields the same table.
func TestEditChangesAQueuedJob(t *testing.T) {
	s := stageWithJobs(t, 3, Config{Tries: 1}, testHost("a", 1))
	s.started("a", "1.1")
	s.edit(jobs.Change{Command: new("new"), Timeout: new(time.Hour)}, 1, 2, 99)
	if s.job(1).Spec.Command != "true" || s.job(2).Spec.Command != "new" || s.job(2).Round != 1 {
		t.Errorf("got %+v and %+v, want only job 2 changed", s.job(1).Spec, s.job(2).Spec)
	}
	o := s.ended("a", "1.1", exit1)
	want(t, "the changed one", launchedTexts(o)[:8], "2.1 new;")
	want(t, "timeout", launchItems(o, "a")[0].Timeout, time.Hour)
	s.step(Pause{true})
	s.edit(jobs.Change{Command: new("better")}, 1)
	want(t, "job 1", s.history(1), "queued in round 2: a exited")
	want(t, "its first command", s.c.table.Past[0].Spec.Command, "true")
	s.ended("a", "2.1", succeeded)
	all := launchedTexts(s.step(Pause{}))
	all += launchedTexts(s.ended("a", "1.2", succeeded)) + launchedTexts(s.ended("a", "3.1", succeeded))
	wantContains(t, "again", all, "1.2 better;")
	want(t, "finish", s.finishText(), "done")
	s.finish = nil
	s.edit(jobs.Change{Name: new("x")}, 2) // a finished run continues
	s.ended("a", "2.2", succeeded)
	want(t, "finish", s.finishText(), "done")
	want(t, "round of job 2", s.job(2).Round, 2)
	again := folded(t, &jobs.Table{Specs: specsOf(1, repeatOptions(3, jobs.NoOptions)...)}, s.journal...)
	for i, j := range again.Jobs {
		if k := s.c.table.Jobs[i]; !j.Spec.Equal(k.Spec) || j.Round != k.Round || j.State != k.State {
			t.Errorf("replay gives %+v, live is %+v", j, k)
		}
	}
}

// TestCurrentRequirementsOfAnEditedJobCount checks that a job's current requirements count, even if
// it was queued before the edit. No job is launched by its old requirements.
func TestCurrentRequirementsOfAnEditedJobCount(t *testing.T) {
	small, big := testHost("a", 1), testHost("b", 4)
	big.Tags = []string{"big"}
	s := newStage(t, Config{}, small, big)
	s.submitPlain(4)
	s.edit(jobs.Change{Slots: new(2), Tags: new([]string{"big"})}, 1, 3)
	want(t, "options, which are held once", s.job(1).Spec.Options, s.job(3).Spec.Options)
	want(t, "a", launchedOn(s.up("a"), "a"), "2.1")
	want(t, "b", launchedTexts(s.up("b")), "1.1 true;3.1 true;")
	s.edit(jobs.Change{GPUs: new(9 * jobs.WholeGPU)}, 4)
	s.wantState(4, jobs.Failed)
	wantContains(t, "why", s.job(4).Reason, "GPU")
	s.edit(jobs.Change{GPUs: new(jobs.GPUs(0))}, 4)
	s.wantState(4, jobs.Queued)
	wantContains(t, "a", launchedTexts(s.ended("a", "2.1", succeeded)), "4.1 true")
}

// TestEditedJobIsRetriedAtOnce checks that an edited job that waits for its next try is started at
// once, with all of its tries. The hosts where the old command failed are not avoided.
func TestEditedJobIsRetriedAtOnce(t *testing.T) {
	s := stageWithJobs(t, 1, Config{Tries: 2}, testHost("a", 1))
	s.ended("a", "1.1", exit1)
	want(t, "wait state", s.c.queue.states[0], stateRetrying)
	want(t, "at once", launchedTexts(s.edit(jobs.Change{Command: new("b")}, 1)), "1.2 b;")
	s.ended("a", "1.2", exit1)
	s.wantState(1, jobs.Queued) // one of two tries is used up
	want(t, "failures", s.job(1).Failures, 1)
}

// TestLostAttemptOfAnEditedJobNeverCounts checks that an attempt by the old command that was given
// up and comes back is killed and never counts (promise 2).
func TestLostAttemptOfAnEditedJobNeverCounts(t *testing.T) {
	for what, answer := range map[string]func(s *stage){
		"runs":  func(s *stage) { s.probedAs("a", "1.1", hosts.IsRunning, nil) },
		"ended": func(s *stage) { s.probedAs("a", "1.1", hosts.HasExited, &jobs.Outcome{}) },
		"files": func(s *stage) { s.ended("a", "1.1", succeeded) },
	} {
		s := lostStage(t, Config{})
		s.step(Pause{true})
		s.edit(jobs.Change{Command: new("new")}, 1)
		s.up("a")
		answer(s)
		if j := s.job(1); j.State != jobs.Queued || j.Failures != 0 {
			t.Errorf("%s: the old command's attempt made it %s", what, j.State)
		}
		if what == "runs" {
			wantContains(t, what, formatCommands[Kill](s.commands), "1.1")
		}
	}
}

// TestParentAndChildCanBeEditedInAnyOrder checks that a parent and its child that have both ended
// can be edited in any order.
func TestParentAndChildCanBeEditedInAnyOrder(t *testing.T) {
	s := connectedStage(t, Config{Tries: 1}, testHost("a", 1))
	s.submitAfter(true, map[jobs.ID]jobs.Dependencies{1: jobstest.After(2)}, jobs.NoOptions, jobs.NoOptions)
	s.ended("a", "2.1", exit1)
	want(t, "parent", launchedTexts(s.edit(jobs.Change{Command: new("b")}, 1, 2)), "2.2 b;")
	want(t, "child", launchedTexts(s.ended("a", "2.2", succeeded)), "1.1 b;")
}

// TestInvalidEditChangesNothing checks that an invalid edit changes nothing and is explained by one
// event.
func TestInvalidEditChangesNothing(t *testing.T) {
	s := newStage(t, Config{}, testHost("a", 1))
	s.submitPlain(3)
	s.edit(jobs.Change{Command: new(" ")}, 1, 2, 3)
	if len(s.records) != 1 || s.records[0].Kind != jobs.KindEvent {
		t.Errorf("got records %+v, want one event", s.records)
	}
	wantContains(t, "why", s.records[0].Reason, "the command is empty")
}

// TestRepeatedEditDoesNothing checks that repeating the request for an edit, as after a crash, does
// nothing, and that the jobs share their new options. TestLargeRequestTakesSeveralSteps checks a
// large edit.
func TestRepeatedEditDoesNothing(t *testing.T) {
	s := newStage(t, Config{})
	s.submitPlain(3)
	for _, name := range []string{"r", "again"} {
		s.step(Request{Name: name, Do: []Event{Edit{[]jobs.ID{1, 2, 3}, jobs.Change{Timeout: new(time.Hour)}}}})
		want(t, name+": records", s.numRecords(jobs.KindEdited), 3)
	}
	want(t, "options, which are held once", s.job(1).Spec.Options, s.job(3).Spec.Options)
}

// TestEditWaitsForTheHostsAfterDamage checks that a request to edit waits until the hosts have
// reported their attempts. Otherwise an attempt that ran the old command would count for the new
// one.
func TestEditWaitsForTheHostsAfterDamage(t *testing.T) {
	s := damagedStage(t, Config{}, 2, testHost("a", 2))
	s.step(Request{Name: "r", Do: []Event{Edit{[]jobs.ID{1, 2}, jobs.Change{Command: new("new")}}}})
	if at, ok := s.c.Next(); !ok || at < s.at+time.Second {
		t.Errorf("a tick is wanted at %s, it is %s", at, s.at)
	}
	s.up("a")
	s.reportList("a", "1.1", hosts.IsRunning, nil, true)
	if a, b := s.job(1).Spec.Command, s.job(2).Spec.Command; a != "true" || b != "new" || !s.c.table.Requests["r"] {
		t.Errorf("commands: got %s and %s, want true and new", a, b)
	}
}
