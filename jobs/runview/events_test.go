package runview

import (
	"fmt"
	"testing"

	"dcs-tui/jobs"
)

// E8: the events of a run that is over are those of its journal, found by host and job; of very
// many the newest are kept, and that there were more is said.
func TestEventsOfThePast(t *testing.T) {
	look := func(e *Earlier, filter string, all bool) *Events {
		b := boardOf(t, small())
		b.AddEarlier(e)
		return ask(t, b, Ask{Events: &EventsWindow{All: all, Filter: filter, Rows: 10}}).Events
	}
	journal := func(e *Earlier, n int) {
		e.Add(&jobs.Record{Kind: jobs.KindEpoch, Epoch: 1, Owner: "x"})
		for id := jobs.ID(1); int(id) <= n; id++ {
			host := fmt.Sprintf("ws%d", id%3)
			e.Add(&jobs.Record{Kind: jobs.KindRunning, Job: id, N: 1, Host: host})
			e.Add(&jobs.Record{Kind: jobs.KindExited, Job: id, N: 1, Host: host, Next: jobs.Succeeded, Outcome: &jobs.Outcome{}})
		}
	}
	var few Earlier
	few.Add(&jobs.Record{Kind: jobs.KindEpoch, Epoch: 2, Owner: "y"}) // of a journal that is read twice
	few.Add(&jobs.Record{Kind: jobs.KindRunning, Job: 1, N: 1, Host: "ws1"})
	journal(&few, 30)
	if v := look(&few, "host=ws1", true); v.Total != 20 || v.Cut {
		t.Errorf("%+v", v)
	}
	few = Earlier{}
	journal(&few, 30)
	if v := look(&few, "job:17", true); v.Total != 2 || v.Lines[0].Job != 17 || v.Lines[0].Seq >= v.Lines[1].Seq {
		t.Errorf("%+v", v)
	}
	if v := look(&few, "", false); v.Total >= 10 || v.Cut {
		t.Errorf("%+v", v)
	}
	many := Earlier{}
	journal(&many, 20*maxLines)
	if n := len(many.all.lines); n > 2*maxLines {
		t.Errorf("%d records are kept", n)
	}
	if v := look(&many, "", true); v.Total != maxLines || !v.Cut || v.Lines[9].Job != 20*maxLines {
		t.Errorf("%d, cut %t, %+v", v.Total, v.Cut, v.Lines)
	}
	if v := look(&many, "job:17", true); v.Total != 0 || !v.Cut {
		t.Errorf("%+v", v)
	}
	many.Forget()
	if v := look(&many, "", false); v.Total != 0 || !v.Cut {
		t.Errorf("%+v", v)
	}
}
