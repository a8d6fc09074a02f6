package cli

import (
	"context"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/runview"
)

// E8: the screen of a run that nobody dispatches has the records of its journal.
func TestThePastHasItsEvents(t *testing.T) {
	run := emptyRun(t)
	if err := run.AppendSpecs([]*jobs.Spec{{ID: 1, Command: "true", Options: jobs.NoOptions}}); err != nil {
		t.Fatal(err)
	}
	j, _, _, err := journal.Take(context.Background(), run, journal.TakeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Append([]jobs.Record{
		{Kind: jobs.KindAccepted, Job: 1, Count: 1},
		{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "ws1"},
		{Kind: jobs.KindRunning, Job: 1, N: 1, Host: "ws1", Slot: 1},
		{Kind: jobs.KindExited, Job: 1, N: 1, Host: "ws1", Next: jobs.Failed, Seq: 1, Outcome: &jobs.Outcome{Exit: 3}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	b, err := newApp().pastBoard(run, nil, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for filter, want := range map[string]int{"host=ws1": 3, "job:1": 3, "": 5} {
		p, err := b.Look(t.Context(), runview.Ask{Events: &runview.EventsWindow{All: true, Filter: filter, Rows: 9}})
		if err != nil || p.Events.Total != want || p.Events.Cut {
			t.Errorf("%q: %+v, %v", filter, p.Events, err)
		}
	}
}
