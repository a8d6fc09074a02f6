package runview

import (
	"testing"

	"dcs-tui/jobs"
)

// TestNotable checks that the events that are shown by default are those that a user wants to know:
// hosts, losses, failures, retries, and requests.
func TestNotable(t *testing.T) {
	failed, good := &jobs.Outcome{Exit: 1}, &jobs.Outcome{}
	for _, c := range []struct {
		r            jobs.Record
		notable, bad bool
	}{
		{jobs.Record{Kind: jobs.KindLaunching}, false, false},
		{jobs.Record{Kind: jobs.KindRunning}, false, false},
		{jobs.Record{Kind: jobs.KindRunning, Reason: "it had been given up as lost"}, true, false},
		{jobs.Record{Kind: jobs.KindExited, Next: jobs.Succeeded, Outcome: good}, false, false},
		{jobs.Record{Kind: jobs.KindExited, Next: jobs.Queued, Outcome: failed}, true, true},
		{jobs.Record{Kind: jobs.KindExited, Next: jobs.Failed, Outcome: failed}, true, true},
		{jobs.Record{Kind: jobs.KindLost}, true, true},
		{jobs.Record{Kind: jobs.KindJob, Next: jobs.Canceled}, false, false},
		{jobs.Record{Kind: jobs.KindJob, Next: jobs.Failed}, true, true},
		{jobs.Record{Kind: jobs.KindEvent, Host: "a", Reason: "a is up"}, true, false},
		// The previous event describes the request.
		{jobs.Record{Kind: jobs.KindRequest, Request: "x", Count: 2}, false, false},
		{jobs.Record{Kind: jobs.KindRequest, Request: "x", Reason: "there is no host b"}, true, true},
		{jobs.Record{Kind: jobs.KindClosed, How: jobs.ClosedDone}, false, false},
		{jobs.Record{Kind: jobs.KindClosed, How: jobs.ClosedStopped, Reason: "Ctrl-C"}, true, false},
		{jobs.Record{Kind: jobs.KindClosed, How: jobs.ClosedNoHosts}, true, true},
		{jobs.Record{Kind: jobs.KindCanceling, Job: 1, Reason: "by a person"}, false, false},
		{jobs.Record{Kind: jobs.KindAcked}, false, false},
		{jobs.Record{Kind: jobs.KindEnded}, true, false},
		{jobs.Record{Kind: jobs.KindEnded, Reason: "a may have some left"}, true, true},
	} {
		if Notable(&c.r) != c.notable || Bad(&c.r) != c.bad {
			t.Errorf("%+v: notable %v, bad %v", c.r, Notable(&c.r), Bad(&c.r))
		}
	}
}
