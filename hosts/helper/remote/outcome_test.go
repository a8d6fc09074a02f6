//go:build linux

package remote

import (
	"os"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
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
		b := []byte(w.content(id, jobs.FileExit))
		s, host, slot, err := jobs.DecodeSentinel(b, w.run, c.job.Attempt)
		if err != nil || host != "melon1" || slot < 1 || slot > 2 {
			t.Errorf("%s: sentinel of host %q slot %d: %v", id, host, slot, err)
		}
		o.LastLine = ""
		if s != o {
			t.Errorf("%s: the sentinel says %+v, the report %+v", id, s, o)
		}
		if _, err := os.Stat(w.file(id, jobs.FileReserved)); !os.IsNotExist(err) {
			t.Errorf("%s: the reservation is still there", id)
		}
	}
	if got := w.content("1.1", jobs.FileOut) + w.content("1.1", jobs.FileErr); got != "out\nerr\n" {
		t.Errorf("output %q", got)
	}
	f.bye()
}
