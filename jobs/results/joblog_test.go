package results

import (
	"regexp"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestJobLog checks that the columns equal those of GNU parallel 20221122's own log (X9).
func TestJobLog(t *testing.T) {
	with := func(change func(*jobs.Outcome)) *jobs.Outcome { o := ended(0); change(o); return o }
	for _, c := range []struct {
		name  string
		state jobs.JobState
		o     *jobs.Outcome
		want  string
	}{
		{"success", jobs.Succeeded, ended(0), "17\tmelon4\t1795165911.102\t     3.042\t0\t0\t0\t0\t./sim 17\n"},
		{"exit 3", jobs.Failed, ended(3), "17\tmelon4\t1795165911.102\t     3.042\t0\t0\t3\t0\t./sim 17\n"},
		{"signal", jobs.Failed, with(func(o *jobs.Outcome) { o.Signal = "SIGKILL" }), "17\tmelon4\t1795165911.102\t     3.042\t0\t0\t0\t9\t./sim 17\n"},
		{"timeout", jobs.TimedOut, with(func(o *jobs.Outcome) { o.TimedOut, o.Signal = true, "SIGTERM" }), "17\tmelon4\t1795165911.102\t     3.042\t0\t0\t-1\t15\t./sim 17\n"},
		{"stopped, exit 0", jobs.Canceled, with(func(o *jobs.Outcome) { o.Stopped = true }), "17\tmelon4\t1795165911.102\t     3.042\t0\t0\t-1\t0\t./sim 17\n"},
		{"not started", jobs.Failed, &jobs.Outcome{Error: "no cwd"}, "17\tmelon4\t0.000\t     0.000\t0\t0\t-1\t0\t./sim 17\n"},
		{"long", jobs.Succeeded, with(func(o *jobs.Outcome) { o.Ended = o.Started + 12345678*second + second/1000*9 - 1 }), "17\tmelon4\t1795165911.102\t12345678.008\t0\t0\t0\t0\t./sim 17\n"},
		{"clock set back", jobs.Succeeded, with(func(o *jobs.Outcome) { o.Ended = o.Started - second }), "17\tmelon4\t1795165911.102\t     0.000\t0\t0\t0\t0\t./sim 17\n"},
	} {
		r := FromJob("u", "r", 0, "/d", row(c.state, attempt(1, "melon4", jobs.AttemptExited, c.o)))
		r.Outcome = c.o
		if got := string(AppendJobLog(nil, &r)); got != c.want {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
	r := FromJob("u", "r", 0, "/d", row(jobs.Succeeded, attempt(1, "h", jobs.AttemptExited, ended(0))))
	r.Command = "for i in 1 2\ndo\techo $i\ndone"
	got := string(AppendJobLog(nil, &r))
	if !strings.HasSuffix(got, "\tfor i in 1 2\x00do\techo $i\x00done\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
	// These are the patterns by which `parallel --retry-failed` recognizes the line of a job that
	// succeeded, and any line.
	if !regexp.MustCompile(`^(\d+)(?:\t[^\t]+){5}\t0\t0\t`).MatchString(got) || !regexp.MustCompile(`(?m)(\d+)\s+\S+(\s+[-0-9.]+){6}\s+(.*)$`).MatchString(got) {
		t.Errorf("GNU parallel cannot read %q", got)
	}
	if never := FromJob("u", "r", 0, "/d", row(jobs.Canceled)); AppendJobLog(nil, &never) != nil {
		t.Error("a job that never ran has a line")
	}
	if strings.Join(strings.Fields(JobLogHeader), " ") != "Seq Host Starttime JobRuntime Send Receive Exitval Signal Command" {
		t.Error(JobLogHeader)
	}
}
