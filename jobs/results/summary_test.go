package results

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"dcs-tui/jobs"
)

// table returns a run of which only states, attempts, and outcomes matter.
func table(rows ...jobs.Job) *jobs.Table {
	t := &jobs.Table{Jobs: rows}
	for i := range rows {
		id := jobs.ID(i + 1)
		rows[i].Spec = &jobs.Spec{ID: id, Options: jobs.NoOptions}
		rows[i].Round = 1
		for n, a := range rows[i].Attempts {
			a.ID, a.Round = jobs.AttemptID{Job: id, N: n + 1}, 1
		}
		t.Counts[rows[i].State]++
	}
	return t
}

func exited(host string, o jobs.Outcome) *jobs.Attempt {
	if o.Ended == 0 && o.Error == "" {
		o.Started, o.Ended = 100*second, 103*second
	}
	return &jobs.Attempt{Host: host, State: jobs.AttemptExited, Outcome: &o}
}

func one(state jobs.JobState, attempts ...*jobs.Attempt) jobs.Job {
	return jobs.Job{State: state, Attempts: attempts}
}

func TestSummarize(t *testing.T) {
	lost := &jobs.Attempt{Host: "b", State: jobs.AttemptLost}
	big := jobs.Outcome{Started: 50 * second, Ended: 60 * second, CPU: 9 * time.Second, MaxRSSBytes: 2 << 30}
	s := Summarize(table(
		one(jobs.Succeeded, exited("a", big)),
		one(jobs.Succeeded, exited("a", jobs.Outcome{Exit: 1}), lost, exited("b", jobs.Outcome{CPU: time.Second})),
		one(jobs.Failed, exited("a", jobs.Outcome{Exit: 1, LastLine: "boom"})),
		one(jobs.Failed, exited("b", jobs.Outcome{Exit: 1, LastLine: "boom"})),
		one(jobs.Failed, exited("b", jobs.Outcome{Exit: 1, LastLine: "other"})),
		one(jobs.TimedOut, exited("b", jobs.Outcome{Signal: "SIGTERM", TimedOut: true})),
		jobs.Job{State: jobs.Failed, Reason: "no host has the tag gpu"},
		one(jobs.Canceled), one(jobs.Queued),
	))
	want := &Summary{
		Jobs: 9, Counts: [7]int{jobs.Queued: 1, jobs.Succeeded: 2, jobs.Failed: 4, jobs.TimedOut: 1, jobs.Canceled: 1},
		Attempts: 8, Retried: 1, Lost: 1, First: 50 * second, Last: 103 * second,
		Busy: 28 * time.Second, Wasted: 3 * time.Second, CPU: 10 * time.Second,
		MaxRSSBytes: 2 << 30, MaxRSSJob: 1, Longest: 10 * time.Second, LongestJob: 1,
		Hosts: []HostSum{{"a", 3, 2, 0, 16 * time.Second}, {"b", 5, 3, 1, 12 * time.Second}},
		Failures: []Group{
			{"exit 1", "boom", 2, []jobs.ID{3, 4}, jobs.AttemptID{Job: 3, N: 1}, "a"},
			{"exit 1", "other", 1, []jobs.ID{5}, jobs.AttemptID{Job: 5, N: 1}, "b"},
			{"timed out", "", 1, []jobs.ID{6}, jobs.AttemptID{Job: 6, N: 1}, "b"},
			{"no host has the tag gpu", "", 1, []jobs.ID{7}, jobs.AttemptID{}, ""},
		},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	if s.Wall() != 53*time.Second {
		t.Errorf("wall %v", s.Wall())
	}
	var b strings.Builder
	if err := s.WriteText(&b, 80); err != nil {
		t.Fatal(err)
	}
	const text = `9 jobs in 53.0 s: 2 succeeded, 4 failed, 1 timed out, 1 canceled, 1 queued
run time 28.0 s, CPU time 10.0 s; longest job 1 with 10.0 s, largest job 1 with 2.0 GiB
8 attempts in all; 1 job more than once, 1 attempt lost with a host; 3.00 s of known run time did not count

host  attempts  failed  run time
a            3       2    16.0 s
b            5       3    12.0 s

jobs  failed with              for example  last line of stderr
   2  exit 1                   3.1 on a     boom
   1  exit 1                   5.1 on b     other
   1  timed out                6.1 on b
   1  no host has the tag gpu  job 7
`
	if b.String() != text {
		t.Errorf("got:\n%s", b.String())
	}
}

// TestCanceledAttemptsAreNoFailures checks the attempt counts in the table of hosts. An attempt
// that the user canceled is not a failure of its host. An attempt that was withdrawn before it
// started does not count.
func TestCanceledAttemptsAreNoFailures(t *testing.T) {
	canceled := exited("a", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	canceled.State = jobs.AttemptCanceled
	s := Summarize(table(one(jobs.Canceled, canceled), one(jobs.Succeeded, exited("a", jobs.Outcome{Exit: 1}), exited("a", jobs.Outcome{})),
		one(jobs.Canceled, &jobs.Attempt{Host: "a", State: jobs.AttemptCanceled})))
	if h := s.Hosts[0]; h.Attempts != 3 || h.Failed != 1 || s.Attempts != 3 {
		t.Errorf("%+v, %d attempts in all", h, s.Attempts)
	}
}

// TestLargestJobOfASummary checks that memory that cannot be distinguished from the supervisor's
// own is not attributed to a job (X4). The summary then gives a bound and names no job.
func TestLargestJobOfASummary(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "with 3.00 s\n", 1: "with 3.00 s, largest job <16 MiB\n", jobs.MemoryFloor: "with 3.00 s, largest job <16 MiB\n",
		jobs.MemoryFloor + 1<<20: "with 3.00 s, largest job 1 with 17 MiB\n",
	} {
		var b strings.Builder
		s := Summarize(table(one(jobs.Succeeded, exited("a", jobs.Outcome{Started: 100 * second, Ended: 103 * second, MaxRSSBytes: bytes}))))
		if err := s.WriteText(&b, 80); err != nil || !strings.HasSuffix(b.String(), want) {
			t.Errorf("%d bytes: %q, want %q, %v", bytes, b.String(), want, err)
		}
	}
}

func TestCause(t *testing.T) {
	for _, c := range []struct {
		state  jobs.JobState
		reason string
		o      *jobs.Outcome
		want   string
	}{
		{jobs.Failed, "", &jobs.Outcome{Exit: 127}, "exit 127"},
		{jobs.Failed, "tries used up", &jobs.Outcome{Exit: 2}, "exit 2"},
		{jobs.Failed, "", &jobs.Outcome{Signal: "SIGSEGV"}, "SIGSEGV"},
		{jobs.TimedOut, "", &jobs.Outcome{Signal: "SIGKILL", TimedOut: true}, "timed out"},
		{jobs.Canceled, "", &jobs.Outcome{Signal: "SIGTERM", Stopped: true}, "stopped"},
		{jobs.Failed, "", &jobs.Outcome{Exit: 1, Error: "no directory /x"}, "not started: no directory /x"},
		{jobs.Failed, "host lost three times", nil, "host lost three times"},
		{jobs.Failed, "", nil, "failed"},
		{jobs.Failed, "it used 3G", &jobs.Outcome{Signal: "SIGKILL", Memory: jobs.MemoryLimit}, "memory limit"},
		{jobs.Failed, "", &jobs.Outcome{Exit: 137, Memory: jobs.OutOfMemory}, "out of memory"},
		{jobs.Failed, "halted", &jobs.Outcome{}, "halted"},
	} {
		if got := Cause(c.state, c.reason, c.o); got != c.want {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
}

// TestFailureGroupsAreBounded checks that a million jobs with different error messages do not make
// a table of a million rows.
func TestFailureGroupsAreBounded(t *testing.T) {
	rows := make([]jobs.Job, maxCauses+500)
	for i := range rows {
		rows[i] = one(jobs.Failed, exited("h", jobs.Outcome{Exit: 1, LastLine: fmt.Sprint("seed ", i)}))
	}
	list := Summarize(table(rows...)).Failures
	if len(list) != maxCauses+1 || list[0].Cause != "other causes" || list[0].Count != 500 || len(list[0].Jobs) != maxExamples {
		t.Fatalf("%d groups, first %+v", len(list), list[0])
	}
	var b strings.Builder
	if err := Summarize(table(rows...)).WriteText(&b, 0); err != nil || !strings.HasSuffix(b.String(), "and 986 jobs with 986 other causes\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestSummaryTextIsClean checks that what a job wrote to stderr cannot control the terminal or
// break the table.
func TestSummaryTextIsClean(t *testing.T) {
	nasty := "\x1b[2J\u202e\r" + strings.Repeat("long ", 100)
	s := Summarize(table(one(jobs.Failed, exited(nasty, jobs.Outcome{Exit: 1, LastLine: nasty, Error: nasty})), one(jobs.Succeeded, exited("b", jobs.Outcome{}))))
	for _, width := range []int{0, 1, 80, 120} {
		var b strings.Builder
		if err := s.WriteText(&b, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || len([]rune(line)) > max(width, 120) {
				t.Errorf("width %d: %q", width, line)
			}
		}
	}
}

func TestHuman(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 1500 * time.Microsecond: "2 ms", 999 * time.Millisecond: "999 ms", 999600 * time.Microsecond: "1.00 s",
		1250 * time.Millisecond: "1.25 s", 9996 * time.Millisecond: "10.0 s", 42 * time.Second: "42.0 s", 59960 * time.Millisecond: "1m 00s",
		125 * time.Second: "2m 05s", 3599600 * time.Millisecond: "1h 00m", 187 * time.Minute: "3h 07m", 52 * time.Hour: "2d 04h",
		-time.Second: "-1.00 s", math.MinInt64: "-53375d 23h",
	} {
		if got := HumanDuration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 10 << 10: "10 KiB", 1<<20 - 1: "1.0 MiB",
		38 << 20: "38 MiB", 12 << 30: "12 GiB", math.MaxInt64: "8.0 EiB", -1: "-1 B"} {
		if got := HumanBytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// TestAttemptsThatNeverRanDoNotCount checks that an attempt that was withdrawn before it started is
// not counted. Nor is an attempt number that was skipped after damage to the journal.
func TestAttemptsThatNeverRanDoNotCount(t *testing.T) {
	j := jobs.Job{Spec: &jobs.Spec{ID: 1}, State: jobs.Succeeded, Round: 1, Attempts: []*jobs.Attempt{
		{ID: jobs.AttemptID{Job: 1, N: 1}, Host: "a", Round: 1, State: jobs.AttemptSuperseded},
		{ID: jobs.AttemptID{Job: 1, N: 2}, Round: 1, State: jobs.AttemptLost, Reason: "no record of it is left"},
		{ID: jobs.AttemptID{Job: 1, N: 3}, Host: "b", Round: 1, State: jobs.AttemptExited, Outcome: &jobs.Outcome{Started: 1, Ended: 2}},
	}}
	s := Summarize(&jobs.Table{Jobs: []jobs.Job{j}})
	if r := FromJob("u", "r", 1, "/d", &j); r.Attempts != 1 || s.Attempts != 1 || s.Retried != 0 || len(s.Hosts) != 1 {
		t.Errorf("%d attempts in the result, %d in the summary, %d retried", r.Attempts, s.Attempts, s.Retried)
	}
}
