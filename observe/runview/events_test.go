package runview

import (
	"fmt"
	"testing"

	"dcs-tui/jobs"
)

// TestEventsOfAFinishedRunAreFound checks that the events of a finished run come from its journal
// and are found by host and job (E8). Of a large number of events the newest are kept, and the view
// reports that there were more.
func TestEventsOfAFinishedRunAreFound(t *testing.T) {
	look := func(e *eventLog, filter string, all bool) *Events {
		b := boardOf(t, sampleRun())
		b.events = *e
		return lookAt(t, b, Query{Events: &EventsWindow{All: all, Filter: filter, Rows: 10}}).Events
	}
	journal := func(e *eventLog, n int) {
		e.add(&jobs.Record{Kind: jobs.KindEpoch, Epoch: 1, Owner: "x"})
		for id := jobs.ID(1); int(id) <= n; id++ {
			host := fmt.Sprintf("ws%d", id%3)
			e.add(&jobs.Record{Kind: jobs.KindRunning, Job: id, N: 1, Host: host})
			e.add(&jobs.Record{Kind: jobs.KindExited, Job: id, N: 1, Host: host, Next: jobs.Succeeded,
				Outcome: &jobs.Outcome{}})
		}
	}
	var few eventLog
	journal(&few, 30)
	if v := look(&few, "host=ws1", true); v.Total != 20 || v.Cut {
		t.Errorf("host=ws1: got %+v, want 20 events", v)
	}
	few = eventLog{}
	journal(&few, 30)
	if v := look(&few, "job=17", true); v.Total != 2 || v.Lines[0].Job != 17 || v.Lines[0].Seq >= v.Lines[1].Seq {
		t.Errorf("job=17: got %+v, want its 2 events in order", v)
	}
	if v := look(&few, "", false); v.Total >= 10 || v.Cut {
		t.Errorf("important events: got %+v, want fewer than 10", v)
	}
	many := eventLog{}
	journal(&many, 20*MaxEvents)
	if n := len(many.all.lines); n > 2*MaxEvents {
		t.Errorf("%d records are kept", n)
	}
	if v := look(&many, "", true); v.Total != MaxEvents || !v.Cut || v.Lines[9].Job != 20*MaxEvents {
		t.Errorf("%d, cut %t, %+v", v.Total, v.Cut, v.Lines)
	}
	if v := look(&many, "job=17", true); v.Total != 0 || !v.Cut {
		t.Errorf("job=17, whose events were dropped: got %+v, want no events and Cut", v)
	}
}

// TestEventStateIsThatOfTheJob checks that the event of an attempt that is launched or starts has the state of its
// job, which keeps its result if it has one.
func TestEventStateIsThatOfTheJob(t *testing.T) {
	for _, kind := range []jobs.Kind{jobs.KindLaunching, jobs.KindRunning} {
		for next, want := range map[jobs.JobState]jobs.JobState{
			jobs.Queued: jobs.Running, jobs.Succeeded: jobs.Succeeded,
		} {
			e := EventOf(2, &jobs.Record{Kind: kind, Job: 1, N: 2, Host: "melon", Next: next})
			if e.State == nil || *e.State != want {
				t.Errorf("%s with %s: got state %v, want %s", kind, next, e.State, want)
			}
		}
	}
}
