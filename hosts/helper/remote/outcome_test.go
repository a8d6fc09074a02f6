//go:build linux

package remote

import (
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// X4, D8: exact exit or signal of every job, with a whole sentinel beside it.
func TestOutcomes(t *testing.T) {
	w := newWorld(t)
	f := w.start(w.open())
	missing := job("6.1", "true")
	missing.Cwd = "/nonexistent/place"
	cases := []struct {
		job  hosts.LaunchJob
		want jobs.Outcome
		text string // part of Error or LastLine
	}{
		{job("1.1", "echo out; echo err >&2"), jobs.Outcome{}, ""},
		{job("2.1", "echo first >&2; echo second >&2; exit 7"), jobs.Outcome{Exit: 7}, "second"},
		{job("3.1", "kill -9 $$"), jobs.Outcome{Signal: "SIGKILL"}, ""},
		{job("9.1", "kill -40 $$"), jobs.Outcome{Signal: "SIG40"}, ""}, // a real-time signal has no name of its own
		{job("4.1", "no-such-command-anywhere"), jobs.Outcome{Exit: 127}, "no-such-command-anywhere"},
		{job("5.1", "/etc/passwd"), jobs.Outcome{Exit: 126}, "denied"},
		{missing, jobs.Outcome{Exit: 127}, "/nonexistent/place"},
		{job("7.1", "exec 0<&- 1>&- 2>&-; exit 3"), jobs.Outcome{Exit: 3}, ""},
		{job("1000.1", "exit 0"), jobs.Outcome{}, ""},
		{job("8.1", "echo a\x00b"), jobs.Outcome{Exit: 126}, "NUL"},
	}
	var list []hosts.LaunchJob
	for _, c := range cases {
		list = append(list, c.job)
	}
	f.launch(list...)
	for _, c := range cases {
		id := c.job.Attempt.String()
		o := f.exit(id)
		if o.Exit != c.want.Exit || o.Signal != c.want.Signal || o.TimedOut || o.Stopped {
			t.Errorf("%s (%q): %+v, want exit %d signal %q", id, c.job.Command, o, c.want.Exit, c.want.Signal)
		}
		if !strings.Contains(o.Error+o.LastLine, c.text) {
			t.Errorf("%s (%q): neither %q nor %q mention %q", id, c.job.Command, o.Error, o.LastLine, c.text)
		}
		f := w.status(id)
		if f.State != attempts.Finished || f.Host != "melon1" || f.Slot < 1 || f.Slot > 2 || f.Claim.Host != "melon1" {
			t.Errorf("%s: status %+v, want that of host melon1", id, f)
		}
		o.LastLine = ""
		if f.Outcome != o {
			t.Errorf("%s: the status file says %+v, the report %+v", id, f.Outcome, o)
		}
	}
	if got := w.content("1.1", jobs.FileOut) + w.content("1.1", jobs.FileErr); got != "out\nerr\n" {
		t.Errorf("output %q", got)
	}
	f.bye()
}
