package sched

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
)

// requestRecords returns the KindRequest records of the last step.
func (s *stage) requestRecords() string {
	text := ""
	for i, r := range s.records {
		if r.Kind == jobs.KindRequest {
			text += fmt.Sprintf("%s: %d done, %d left", r.Request, r.Count, r.N)
			if i != len(s.records)-1 {
				text += ", not last"
			}
		}
	}
	return text
}

// TestRequestIsCarriedOutOnce checks that a request is carried out once, however often it is
// repeated, that all of its records carry its name, and that the record of its completion is the
// last of its step (K9, promise 1).
func TestRequestIsCarriedOutOnce(t *testing.T) {
	s := stageWithJobs(t, 6, Config{Tries: 1}, testHost("a", 2))
	s.started("a", "1.1 2.1")
	s.step(Pause{On: true})
	s.ended("a", "2.1", exit1)
	for _, c := range []struct {
		name string
		do   []Event
		want string
		then map[jobs.ID]jobs.JobState
	}{
		{"one", []Event{Cancel{Jobs: []jobs.ID{1, 2, 4, 99}, Why: "not wanted"}}, "one: 2 done, 2 left",
			map[jobs.ID]jobs.JobState{1: jobs.Running, 2: jobs.Failed, 4: jobs.Canceled}},
		{"one", []Event{Cancel{All: true}}, "", map[jobs.ID]jobs.JobState{5: jobs.Queued}},
		{"again", []Event{Cancel{Jobs: []jobs.ID{1, 4}}}, "again: 1 done, 1 left", nil},
		{"back", []Event{Requeue{[]jobs.ID{2, 4, 5}}}, "back: 2 done, 1 left",
			map[jobs.ID]jobs.JobState{2: jobs.Queued, 4: jobs.Queued}},
		{"back", []Event{Requeue{[]jobs.ID{2}}}, "", nil},
		{"both", []Event{SetPriority{Jobs: []jobs.ID{4, 5}, Priority: -3}, Drain{Why: "x"}}, "both: 3 done, 0 left",
			nil},
		{"refused", nil, "refused: 0 done, 0 left", nil},
		{"", []Event{Cancel{All: true}}, "", nil},
	} {
		s.step(Request{Name: c.name, Text: "asked", Do: c.do})
		want(t, c.name, s.requestRecords(), c.want)
		for _, r := range s.records {
			want(t, "request of the record "+string(r.Kind), r.Request, c.name)
		}
		for id, state := range c.then {
			s.wantState(id, state)
		}
	}
	if s.job(2).Round != 2 || s.job(4).Priority != -3 || s.c.WhyDraining() == "" {
		t.Errorf("round %d, priority %d, drain %q", s.job(2).Round, s.job(4).Priority, s.c.WhyDraining())
	}
	s.step(Request{Name: "all", Do: []Event{Cancel{All: true}}})
	want(t, "all", s.requestRecords(), "all: 6 done, 0 left") // including the jobs in a new round
}

// TestSearchEndsPoorTrials checks that the kind of the reason of a cancel reaches each job that it
// ends, however its attempt ends, and that such jobs count as succeeded. A person's text does not
// make a job count so.
func TestSearchEndsPoorTrials(t *testing.T) {
	s := stageWithJobs(t, 5, Config{Tries: 1}, testHost("a", 3))
	s.started("a", "1.1 2.1")
	poor := func(ids ...jobs.ID) Cancel {
		return Cancel{Jobs: ids, Why: "poor at step 1", ReasonKind: jobs.ReasonPoorValues}
	}
	s.step(Request{Name: "halving", Do: []Event{poor(1, 2, 4)}})
	s.step(Request{Name: "person", Do: []Event{Cancel{Jobs: []jobs.ID{5}, Why: "halving: poor at step 1"}}})
	s.ended("a", "1.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	s.ended("a", "2.1", exit1)
	for id, kind := range map[jobs.ID]jobs.ReasonKind{1: jobs.ReasonPoorValues, 2: jobs.ReasonPoorValues,
		4: jobs.ReasonPoorValues, 5: ""} {
		s.wantState(id, jobs.Canceled)
		want(t, fmt.Sprintf("job %d", id), s.job(id).ReasonKind, kind)
	}
	counts := s.c.table.Judged()
	want(t, "canceled", counts[jobs.Canceled], 1)
	want(t, "succeeded", counts[jobs.Succeeded], 3)
}

// TestControlRequestNeedsOneStep checks that a request that is not about jobs is carried out in the
// same Step, even while a request for many jobs is under way. A request that changes nothing is
// refused with a reason.
func TestControlRequestNeedsOneStep(t *testing.T) {
	s := connectedStage(t, Config{Tries: 1}, testHost("alpha", 2), testHost("beta", 2))
	s.submitPlain(1) // it is launched, so that a drain does not end at once
	s.c.table.Epoch = 3
	for _, c := range []struct {
		name  string
		epoch int
		do    Event
		why   string // reason for a refusal; "" if carried out
		kind  jobs.Kind
	}{
		{"pause", 0, Pause{On: true}, "", jobs.KindPause},
		{"pause again", 0, Pause{On: true}, "launching is paused already", ""},
		{"continue", 0, Pause{}, "", jobs.KindPause},
		{"continue again", 0, EndDrain{}, "nothing holds launching back", ""},
		{"drain host", 0, DrainHost{Host: "alpha", On: true}, "", jobs.KindHost},
		{"drain host again", 0, DrainHost{Host: "alpha", On: true}, "alpha starts nothing already", ""},
		{"stop host", 0, DrainHost{Host: "alpha", On: true, Now: true}, "", jobs.KindHost},
		{"use host", 0, DrainHost{Host: "alpha"}, "", jobs.KindHost},
		{"use host again", 0, DrainHost{Host: "alpha"}, "alpha is in use already", ""},
		{"no host", 0, DrainHost{Host: "alhpa", On: true}, "there is no host alhpa; did you mean alpha?", ""},
		{"slots", 0, SetSlots{Host: "beta", Slots: 5}, "", jobs.KindHost},
		{"slots again", 0, SetSlots{Host: "beta", Slots: 5}, "beta has 5 slots already", ""},
		{"more slots", 0, SetSlots{Host: "beta", Slots: 2, Relative: true}, "", jobs.KindHost},
		{"no slots", 0, SetSlots{Host: "beta", Slots: -7, Relative: true},
			"beta needs at least 1 slot; drain it to start nothing there", ""},
		{"late drain", 2, Drain{Why: "x"}, "it is for the dispatcher of epoch 2, and this is epoch 3", ""},
		{"drain", 3, Drain{Why: "x"}, "", jobs.KindEvent},
		{"drain again", 3, Drain{Why: "y"}, "the run drains already: x", ""},
		{"late stop", 4, Stop{Why: "x"}, "it is for the dispatcher of epoch 4, and this is epoch 3", ""},
		{"end of drain", 0, EndDrain{}, "", jobs.KindEvent},
		{"submit", 0, Submit{}, "sched.Submit cannot be asked for", ""},
		{"stop", 3, Stop{Why: "x"}, "", ""},
		{"stop again", 3, Stop{Why: "x"}, "the dispatcher is being stopped already", ""},
	} {
		for range 2 { // the second time it does nothing
			s.step(Request{Name: c.name, Text: "asked", Do: []Event{c.do}, Epoch: c.epoch})
		}
		want(t, c.name+": records of the second time", len(s.records), 0)
		answer, caused := jobs.Record{}, false
		for _, r := range s.journal {
			if r.Request != c.name {
				continue
			}
			caused = caused || r.Kind == c.kind && r.Reason != "asked"
			if r.Kind == jobs.KindRequest {
				answer = r
			}
		}
		if answer.Reason != c.why || (answer.Count == 1) != (c.why == "") || caused != (c.kind != "") {
			t.Errorf("%s: count %d, %q, want %q; a record %s: %v", c.name, answer.Count, answer.Reason, c.why,
				c.kind, caused)
		}
	}
	if why, stopped := s.c.Stopped(); !stopped || why != "x" {
		t.Errorf("stopped: %v, %q", stopped, why)
	}
}

// TestRelativeChangeIsAddedOnce checks that relative changes of priorities and slots add up when
// they come quickly, and that one which a dispatcher has carried out in part is not added twice by
// the next one.
func TestRelativeChangeIsAddedOnce(t *testing.T) {
	s := connectedStage(t, Config{Tries: 1}, testHost("a", 2))
	s.step(Pause{On: true})
	s.submitPlain(3)
	up := func(name string) []Event {
		return []Event{Request{Name: name,
			Do: []Event{SetPriority{Jobs: []jobs.ID{1, 2, 3}, Priority: 2, Relative: true}}},
			Request{Name: name + "h", Do: []Event{SetSlots{Host: "a", Slots: 1, Relative: true}}}}
	}
	for _, ev := range slices.Concat(up("x"), up("y"), up("x")) { // the last is a repetition
		s.step(ev)
	}
	want(t, "priority", s.job(3).Priority, int32(4))
	want(t, "slots", s.c.byName["a"].slots(), 4)
	// A dispatcher has died after it had changed jobs 1 and 2 and the host for z.
	for _, r := range []jobs.Record{{Kind: jobs.KindPriority, Job: 1, Priority: 6, Request: "z"},
		{Kind: jobs.KindPriority, Job: 2, Priority: 6, Request: "z"},
		{Kind: jobs.KindHost, Host: "a", Slot: 5, Request: "zh"}} {
		if err := jobs.Fold(s.c.table, &r); err != nil {
			t.Fatal(err)
		}
	}
	for _, ev := range up("z") {
		s.step(ev)
	}
	for id := range jobs.ID(3) {
		want(t, "priority of every job", s.job(id+1).Priority, int32(6))
	}
	want(t, "slots that were asked for", s.c.table.Hosts["a"].Slots, int32(5))
	if s.c.table.Adjusted != nil {
		t.Errorf("Adjusted: got %v, want nil", s.c.table.Adjusted)
	}
}

// TestRequestNamesWhatItCauses checks that the records that a request causes carry its name, and
// that no others do. These include the later end of an attempt and the jobs that are skipped
// because of it.
func TestRequestNamesWhatItCauses(t *testing.T) {
	s := connectedStage(t, Config{Tries: 1}, testHost("a", 2))
	s.submitAfter(true, map[jobs.ID]jobs.Dependencies{3: jobstest.After(1), 4: jobstest.After(3)},
		repeatOptions(5, jobs.NoOptions)...)
	s.started("a", "1.1 2.1")
	s.step(Request{Name: "r", Do: []Event{Cancel{Jobs: []jobs.ID{1, 5}}}})
	s.ended("a", "2.1", succeeded)
	s.ended("a", "1.1", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	of := map[jobs.ID]string{}
	for _, r := range s.journal {
		if r.Seq > 0 {
			of[r.Job] = r.Request
		}
	}
	if want := map[jobs.ID]string{1: "r", 2: "", 3: "r", 4: "r", 5: "r"}; !maps.Equal(of, want) {
		t.Errorf("requests of the ends: %v, want %v", of, want)
	}
}

// TestRequestSparesChangedJobs checks that a request spares jobs whose state has changed since its
// user looked, because the change may already be what the user wanted. A job that has succeeded in
// the meantime is not run again, and a running job is not killed (promise 1).
func TestRequestSparesChangedJobs(t *testing.T) {
	s := connectedStage(t, Config{Tries: 1}, testHost("a", 4))
	s.submitPlain(6) // 1 succeeds, 2 fails, 3 runs, 4 is launched, 5 and 6 wait
	s.started("a", "1.1 2.1 3.1")
	s.step(Pause{On: true})
	s.ended("a", "1.1", succeeded)
	s.ended("a", "2.1", exit1)
	change := jobs.Change{Timeout: new(time.Hour)}
	all := []jobs.ID{1, 2, 3, 4, 5, 99}
	s.step(Request{Name: "edit", Do: []Event{Edit{[]jobs.ID{1, 5, 99}, change}}, Spare: action.SpareSucceeded})
	want(t, "edit", s.requestRecords(), "edit: 1 done, 2 left")
	s.step(Request{Name: "requeue", Do: []Event{Requeue{all}}, Spare: action.SpareSucceeded})
	want(t, "requeue", s.requestRecords(), "requeue: 1 done, 5 left")
	s.step(Request{Name: "cancel", Do: []Event{Cancel{Jobs: all}}, Spare: action.SpareStarted})
	want(t, "cancel", s.requestRecords(), "cancel: 3 done, 3 left")
	if a, b := s.job(1), s.job(2); a.Round != 1 || b.Round != 2 || s.job(5).Spec.Timeout != time.Hour {
		t.Errorf("round %d of what has succeeded, round %d of what has failed, a limit of %s", a.Round, b.Round,
			s.job(5).Spec.Timeout)
	}
	for id, state := range map[jobs.ID]jobs.JobState{1: jobs.Succeeded, 2: jobs.Canceled, 3: jobs.Running,
		5: jobs.Canceled, 6: jobs.Queued} {
		s.wantState(id, state)
	}
	if s.c.isCancelPending(3) || !s.c.isCancelPending(4) {
		t.Errorf("3 is being ended: %v, 4: %v", s.c.isCancelPending(3), s.c.isCancelPending(4))
	}
}

// TestCutRequestIsRepeated checks that, if a crash truncated the journal before the last record of
// a request, repeating the request leads to the same result.
func TestCutRequestIsRepeated(t *testing.T) {
	whole := stageWithJobs(t, 4, Config{Tries: 1}, testHost("a", 1))
	whole.step(Pause{On: true})
	for _, id := range []string{"1.1", "2.1", "3.1"} {
		whole.step(Pause{})
		whole.step(Pause{On: true})
		whole.ended("a", id, exit1)
	}
	request := Request{Name: "r", Do: []Event{Requeue{[]jobs.ID{1, 2, 3}}, Cancel{Jobs: []jobs.ID{4}}}}
	before := len(whole.journal)
	whole.step(request)
	for n := before; n <= len(whole.journal); n++ {
		s := restartAfter(whole, n)
		table := s.c.table
		s.step(request)
		s.step(request)
		want(t, fmt.Sprintf("after %d records: requests", n), len(table.Requests), 1)
		for id := jobs.ID(1); id <= 3; id++ {
			want(t, fmt.Sprintf("after %d records: round of job %d", n, id), s.job(id).Round, 2)
		}
		s.wantState(4, jobs.Canceled)
	}
}

// TestLargeRequestTakesSeveralSteps checks that a request for many jobs, or a cancel, is carried
// out in several bounded steps. In the meantime nothing is launched and the run does not end. The
// request is recorded as done only at the end.
func TestLargeRequestTakesSeveralSteps(t *testing.T) {
	const n = 3*maxPerStep + 5
	var all []jobs.ID
	for id := range jobs.ID(n) {
		all = append(all, id+1)
	}
	many := func(do Event) Request { return Request{Name: "many", Do: []Event{do}} }
	for _, c := range []struct {
		name string
		do   Event
		want jobs.JobState // of all jobs
	}{
		{"cancel", many(Cancel{Jobs: all}), jobs.Canceled},
		{"cancel all", many(Cancel{All: true}), jobs.Canceled},
		{"cancel without a request", Cancel{All: true}, jobs.Canceled},
		{"requeue", many(Requeue{all}), jobs.Queued},
		{"edit", many(Edit{all, jobs.Change{Timeout: new(time.Hour)}}), jobs.Queued},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, Config{}, testHost("a", 1))
			s.submitPlain(n)
			finish := func() { // of the requests
				for i := 0; len(s.c.requests) > 0 && i < 10; i++ {
					if len(s.records) > maxPerStep+10 {
						t.Fatalf("%d records in a step", len(s.records))
					}
					at, ok := s.c.Next()
					if !ok || at != s.at+1 {
						t.Fatalf("no tick is asked for")
					}
					s.at = at
					s.step(Tick{})
				}
			}
			if c.name == "requeue" {
				s.step(Cancel{All: true})
				finish()
			}
			s.step(c.do)
			want(t, "not yet", s.requestRecords(), "")
			want(t, "launched", launchedOn(s.up("a"), "a"), "")
			finish()
			if _, isRequest := c.do.(Request); isRequest {
				wantContains(t, "at the end", s.requestRecords(), fmt.Sprintf("many: %d done, 0 left", n))
			}
			if got := s.c.table.Counts[c.want]; got < n-1 || (c.want == jobs.Canceled) != s.c.finished {
				t.Errorf("%d jobs %s, finished %v", got, c.want, s.c.finished)
			}
		})
	}
}

// TestRequeueWhileCanceled checks that a job that is requeued while it is being canceled starts its
// next round when it has ended. This also holds under the next dispatcher, and if only the record
// of its end was durable (K9, X1).
func TestRequeueWhileCanceled(t *testing.T) {
	stopped := jobs.Outcome{Signal: "SIGTERM", Stopped: true}
	for _, endIsDurable := range []bool{false, true} {
		s := stageWithJobs(t, 1, Config{Tries: 1}, testHost("a", 1))
		s.started("a", "1.1")
		s.step(Cancel{Jobs: []jobs.ID{1}})
		s.step(Request{Name: "again", Do: []Event{Requeue{[]jobs.ID{1}}}})
		want(t, "answer", s.requestRecords(), "again: 1 done, 0 left")
		durable := len(s.journal)
		if endIsDurable {
			s.ended("a", "1.1", stopped)
			durable++
		}
		next := restartAfter(s, durable, testHost("a", 1))
		next.up("a")
		if !endIsDurable {
			next.ended("a", "1.1", stopped)
		}
		if j := next.job(1); j.Round != 2 || j.State.Terminal() || next.c.table.Requeues != nil {
			t.Errorf("end durable %v: job 1 is %s in round %d, requeues %v", endIsDurable, j.State,
				j.Round, next.c.table.Requeues)
		}
	}
}
