package runview

import (
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestEveryRecordHasASentence checks that every record has a sentence that names its subject (E8),
// and that the events that are shown by default are those that a user wants to know: hosts, losses,
// failures, retries, and requests.
func TestEveryRecordHasASentence(t *testing.T) {
	at := jobs.StampOf(time.Date(2026, 3, 14, 15, 2, 0, 0, time.UTC))
	outcome := func(o jobs.Outcome) *jobs.Outcome {
		o.Started, o.Ended = at, at+jobs.Stamp(12*time.Second)
		return &o
	}
	for _, c := range []struct {
		r    jobs.Record
		want string
		kind string // notable, bad and notable, or neither
	}{
		{jobs.Record{Kind: jobs.KindEpoch, Epoch: 2, Owner: "dcs-tui of me on here"},
			"dcs-tui of me on here dispatches the run (epoch 2)", "notable"},
		{jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 1}, "job 1 is part of the run", ""},
		{jobs.Record{Kind: jobs.KindAccepted, Job: 3, Count: 4}, "4 jobs are part of the run: 3-6", ""},
		{jobs.Record{Kind: jobs.KindLaunching, Job: 17, N: 2, Host: "melon4"}, "17.2 is sent to melon4", ""},
		{jobs.Record{Kind: jobs.KindRunning, Job: 17, N: 2, Host: "melon4", Slot: 3},
			"17.2 has started on melon4, slot 3", ""},
		{jobs.Record{Kind: jobs.KindRunning, Job: 17, N: 2, Host: "melon4", Reason: "it had been given up as lost"},
			"17.2 has started on melon4: it had been given up as lost", "notable"},
		{jobs.Record{Kind: jobs.KindExited, Job: 17, N: 2, Host: "melon4", Next: jobs.Succeeded, Seq: 4,
			Outcome: outcome(jobs.Outcome{})},
			"17.2 has ended on melon4 after 12.0 s: exit 0; job 17 has succeeded", ""},
		{jobs.Record{Kind: jobs.KindExited, At: at, Job: 17, N: 2, Host: "melon4", Charged: true,
			Retry:   at + jobs.Stamp(2*time.Second),
			Outcome: outcome(jobs.Outcome{Exit: 127, LastLine: "x: not found", LeftChildren: 2})},
			"17.2 has ended on melon4 after 12.0 s: exit 127 (command not found), “x: not found”, " +
				"2 processes left behind; the job is queued again, a try is used up, next in 2.00 s", "bad"},
		{jobs.Record{Kind: jobs.KindExited, Job: 17, N: 2, Host: "melon4", Next: jobs.Failed, Seq: 9,
			Reason:  "it failed on 3 hosts",
			Outcome: outcome(jobs.Outcome{Signal: "SIGKILL"})},
			"17.2 has ended on melon4 after 12.0 s: SIGKILL; job 17 has failed: it failed on 3 hosts", "bad"},
		{jobs.Record{Kind: jobs.KindLost, Job: 17, N: 1, Host: "melon4", Reason: "its host melon4 is lost"},
			"17.1 is lost: its host melon4 is lost; the job is queued again", "bad"},
		{jobs.Record{Kind: jobs.KindSuperseded, Job: 17, N: 1, Reason: "withdrawn"},
			"17.1 does not run: withdrawn; the job is queued again", ""},
		{jobs.Record{Kind: jobs.KindSuperseded, Job: 17, N: 1, Next: jobs.Succeeded,
			Reason: "its job had its result already", Outcome: outcome(jobs.Outcome{})},
			"17.1 has ended, too late to count on its host after 12.0 s: exit 0: its job had its result already", ""},
		{jobs.Record{Kind: jobs.KindCanceled, Job: 17, N: 1, Host: "melon4", Next: jobs.Canceled, Seq: 3,
			Reason: "by a person", Outcome: outcome(jobs.Outcome{Stopped: true})},
			"17.1 was ended on melon4 after 12.0 s: stopped; job 17 is canceled: by a person", ""},
		{jobs.Record{Kind: jobs.KindCanceled, Job: 17, N: 1, Next: jobs.Canceled, Seq: 3, Reason: "by a person"},
			"17.1 was taken back: by a person; job 17 is canceled", ""},
		{jobs.Record{Kind: jobs.KindJob, Job: 17, Next: jobs.Skipped, Seq: 3, Reason: "job 3 failed"},
			"job 17 is skipped: job 3 failed", ""},
		{jobs.Record{Kind: jobs.KindCanceling, Job: 17, Reason: "by a person"}, "job 17 is being ended: by a person",
			""},
		{jobs.Record{Kind: jobs.KindForgiven, Job: 17, N: 2, Host: "melon4", Reason: "jobs fail at once on melon4"},
			"17.2 does not count as a try after all: jobs fail at once on melon4", "notable"},
		{jobs.Record{Kind: "later", Reason: "of a newer version"}, "later: of a newer version", ""},
		{jobs.Record{Kind: jobs.KindRequest, Request: "x", Count: 3, N: 1},
			"the request is carried out, except for 1 job that it did not apply to", ""},
		{jobs.Record{Kind: jobs.KindRound, Job: 17, Reason: "requeued"}, "job 17 begins a new round: requeued", ""},
		{jobs.Record{Kind: jobs.KindEdited, Job: 17, Spec: &jobs.Spec{Command: "sleep 1"}, Reason: "edited"},
			"job 17 is changed: sleep 1", ""},
		{jobs.Record{Kind: jobs.KindPriority, Job: 17, Priority: -3}, "job 17 has priority -3", ""},
		{jobs.Record{Kind: jobs.KindHost, Host: "melon4", Count: int(jobs.HostDrained)},
			"melon4 is drained from now on, as a person asked", ""},
		{jobs.Record{Kind: jobs.KindHost, Host: "melon4", Count: int(jobs.HostStopped), Slot: 3},
			"melon4 is stopped, with 3 slots from now on, as a person asked", ""},
		{jobs.Record{Kind: jobs.KindHost, Host: "melon4"}, "melon4 is in use from now on, as a person asked", ""},
		{jobs.Record{Kind: jobs.KindEvent, Host: "melon4", Reason: "melon4 is up"}, "melon4 is up", "notable"},
		{jobs.Record{Kind: jobs.KindEnded, Reason: "melon4 may have some left"},
			"the run is over: melon4 may have some left", "bad"},
		{jobs.Record{Kind: jobs.KindAcked, Seq: 3}, "", ""},
		{jobs.Record{Kind: jobs.KindJob, Job: 17, Next: jobs.Failed, Seq: 3}, "job 17 has failed", "bad"},
		{jobs.Record{Kind: jobs.KindRequest, Request: "x"}, "the request is carried out", ""}, // an event describes it
		{jobs.Record{Kind: jobs.KindRequest, Request: "x", Reason: "there is no host b"},
			"the request is refused: there is no host b", "bad"},
		{jobs.Record{Kind: jobs.KindClosed, How: jobs.ClosedDone}, "the dispatcher has ended", ""},
		{jobs.Record{Kind: jobs.KindClosed, How: jobs.ClosedStopped, Reason: "Ctrl-C"},
			"the dispatcher was stopped: Ctrl-C", "notable"},
		{jobs.Record{Kind: jobs.KindClosed, How: jobs.ClosedDrained, Next: jobs.Succeeded,
			Reason: "1 job has succeeded"},
			"the dispatcher has ended the run, as --halt asks: 1 job has succeeded", "notable"},
		{jobs.Record{Kind: jobs.KindClosed, How: jobs.ClosedNoHosts},
			"the dispatcher gave up because no host could be used", "bad"},
		{jobs.Record{Kind: jobs.KindClosed, How: jobs.ClosedNoHosts, Reason: "a refuses connections"},
			"the dispatcher gave up because no host could be used: a refuses connections", "bad"},
		{jobs.Record{Kind: jobs.KindEnded}, "the run is over", "notable"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := Text(&c.r); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.r.Kind, got, c.want)
			}
			if notable, bad := IsNotable(&c.r), IsFailure(&c.r); notable != (c.kind != "") || bad != (c.kind == "bad") {
				t.Errorf("%s: notable %v, bad %v, want %q", c.want, notable, bad, c.kind)
			}
		})
	}
	_, recs := jobstest.History(1, 50, 5000)
	for i := range recs {
		if text := Text(&recs[i]); (text == "") != (recs[i].Kind == jobs.KindAcked || recs[i].Kind == jobs.KindEvent &&
			recs[i].Reason == "") {
			t.Errorf("%+v is %q", recs[i], text)
		}
	}
}
