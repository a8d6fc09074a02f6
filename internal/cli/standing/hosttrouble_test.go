package standing

import (
	"slices"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// A run that went well in the end says which hosts were of no use to it: nobody looks
// for them otherwise.
func TestHostTrouble(t *testing.T) {
	table := new(jobs.Table)
	ended := func(host string, good, bad int) {
		for i := range good + bad {
			o := &jobs.Outcome{}
			if i >= good {
				o.Exit = 2
			}
			table.Jobs = append(table.Jobs, jobs.Job{Attempts: []*jobs.Attempt{{Host: host, State: jobs.AttemptExited, Outcome: o}}})
		}
	}
	ended("ws01", 60, 1)
	ended("ws02", 0, 22)
	ended("ws04", 0, 2) // too few to say anything
	ended("ws05", 9, 3)
	words := map[string]runview.HostWord{
		"ws01": {Text: "ws01: it is slow"}, // it has run jobs
		"ws03": {Text: "ws03: cannot be reached: connection refused\x1b[2J"},
		"ws06": runview.HostWord{}.After("ws06", 1, "ws06 is up").After("ws06", 2, "ws06: its clock is 5 s off"), // there was nothing left for it
		"ws07": runview.HostWord{}.After("ws06", 1, ""),
	}
	want := []string{
		"hosts: ws02 failed 22 of 22 attempts, the others 6 of 75: is what the jobs need there?",
		"       ws03 ran nothing: cannot be reached: connection refused␛[2J",
	}
	if got := HostTrouble(table, words); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	table = new(jobs.Table)
	ended("ws01", 1, 9)
	ended("ws02", 1, 9) // it is the jobs
	if got := HostTrouble(table, nil); got != nil {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		words[name] = runview.HostWord{Text: name + ": gone"}
	}
	if got := HostTrouble(table, words); len(got) != 6 {
		t.Errorf("%q", got)
	}
}

// An attempt that a person canceled is not a failure of its host.
func TestCanceledAttemptsAreNoFailures(t *testing.T) {
	stopped := &jobs.Outcome{Signal: "SIGTERM", Stopped: true}
	table := &jobs.Table{Jobs: []jobs.Job{{Attempts: []*jobs.Attempt{
		{Host: "a", State: jobs.AttemptCancelled, Outcome: stopped}, {Host: "a", State: jobs.AttemptExited, Outcome: &jobs.Outcome{Exit: 1}}}}}}
	if h := countHosts(table)["a"]; h.Ended != 2 || h.Failed != 1 {
		t.Errorf("%+v", h)
	}
}

// What a record says of a host is its word, until another dispatcher begins.
func TestHear(t *testing.T) {
	words := map[string]runview.HostWord{}
	for _, r := range []jobs.Record{
		{Kind: jobs.KindEpoch},
		{Kind: jobs.KindHost, Host: "ws01", Reason: "ws01: no route to host"},
		{Kind: jobs.KindEpoch},
		{Kind: jobs.KindHost, Host: "ws02", Reason: "ws02: connection refused"},
		{Kind: jobs.KindLaunching, Host: "ws03", Job: 1},
		{Kind: jobs.KindHost, Host: "ws02", Count: 1}, // what people ask of a host is no word of it
	} {
		runview.Hear(words, &r)
	}
	if got := runview.HostsOfNoUse(new(jobs.Table), words); !slices.Equal(got, []string{"ws02 ran nothing: connection refused"}) {
		t.Errorf("%q", got)
	}
}
