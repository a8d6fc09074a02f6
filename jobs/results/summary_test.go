package results

import (
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

// jobOf returns a job with these attempts, of which the newest counts.
func jobOf(state jobs.JobState, attempts ...*jobs.Attempt) jobs.Job {
	return jobs.Job{State: state, Attempts: attempts, Counted: int32(len(attempts))}
}

// textOf returns the summary for people.
func textOf(t *testing.T, s *Summary, width int) string {
	t.Helper()
	return strings.Join(s.Lines(width), "\n") + "\n"
}

// TestSummaryOfARun checks the numbers and the groups of failures of a summary.
func TestSummaryOfARun(t *testing.T) {
	lost := &jobs.Attempt{Host: "b", State: jobs.AttemptLost}
	big := jobs.Outcome{Started: 50 * second, Ended: 60 * second, CPU: 9 * time.Second, MaxRSSBytes: 2 << 30}
	s := Summarize(table(
		jobOf(jobs.Succeeded, exited("a", big)),
		jobOf(jobs.Succeeded, exited("a", jobs.Outcome{Exit: 1}), lost, exited("b", jobs.Outcome{CPU: time.Second})),
		jobOf(jobs.Failed, exited("a", jobs.Outcome{Exit: 1, LastLine: "boom 3.1 at 17"})),
		jobOf(jobs.Failed, exited("b", jobs.Outcome{Exit: 1, LastLine: "boom 4.12 at 5"})),
		jobOf(jobs.Failed, exited("b", jobs.Outcome{Exit: 1, LastLine: "other"})),
		jobOf(jobs.TimedOut, exited("b", jobs.Outcome{Signal: "SIGTERM", TimedOut: true})),
		jobs.Job{State: jobs.Failed, Reason: "no host has the tag gpu"},
		jobOf(jobs.Canceled), jobOf(jobs.Queued),
	))
	want := &Summary{
		Jobs: 9, Counts: [7]int{jobs.Queued: 1, jobs.Succeeded: 2, jobs.Failed: 4, jobs.TimedOut: 1, jobs.Canceled: 1},
		Attempts: 8, Retried: 1, Lost: 1, First: 50 * second, Last: 103 * second,
		Busy: 28 * time.Second, Wasted: 3 * time.Second, CPU: 10 * time.Second,
		MaxRSSBytes: 2 << 30, MaxRSSJob: 1, Longest: 10 * time.Second, LongestJob: 1,
		Hosts: []HostSummary{{"a", 3, 2, 0, 16 * time.Second}, {"b", 5, 3, 1, 12 * time.Second}},
		Failures: []Group{
			{"exit 1", "boom 3.1 at 17", 2,
				[]Example{{3, jobs.AttemptID{Job: 3, N: 1}, "a"}, {4, jobs.AttemptID{Job: 4, N: 1}, "b"}}},
			{"exit 1", "other", 1, []Example{{5, jobs.AttemptID{Job: 5, N: 1}, "b"}}},
			{"timed out", "", 1, []Example{{6, jobs.AttemptID{Job: 6, N: 1}, "b"}}},
			{"no host has the tag gpu", "", 1, []Example{{Job: 7}}},
		},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	same(t, "wall time", s.Wall(), 53*time.Second)
	const text = `9 jobs in 53.0 s, first start to last end: 2 succeeded, 4 failed, 1 timed out, 1 canceled, 1 queued
run time 28.0 s, CPU time 10.0 s; longest job 1 with 10.0 s, largest job 1 with 2 GiB
8 attempts in all; 1 job more than once, 1 attempt lost with a host; 3.00 s of known run time did not count

host  attempts  failed  run time
a            3       2    16.0 s
b            5       3    12.0 s

jobs  failed with              for example  last line of stderr
   2  exit 1                   3.1 on a     boom 3.1 at 17
   1  exit 1                   5.1 on b     other
   1  timed out                6.1 on b
   1  no host has the tag gpu  job 7
`
	same(t, "the text", textOf(t, s, 80), text)
}

// TestWhichAttemptsAreCounted checks which attempts the summary and the table of hosts count. An
// attempt that the user canceled is not a failure of its host. An attempt that was withdrawn before
// it started does not count, nor does a number that was skipped after damage to the journal.
func TestWhichAttemptsAreCounted(t *testing.T) {
	canceled := exited("a", jobs.Outcome{Signal: "SIGTERM", Stopped: true})
	canceled.State = jobs.AttemptCanceled
	table := table(jobOf(jobs.Canceled, canceled), jobOf(jobs.Succeeded, exited("a", jobs.Outcome{Exit: 1}),
		exited("a", jobs.Outcome{})),
		jobOf(jobs.Canceled, &jobs.Attempt{Host: "a", State: jobs.AttemptCanceled}),
		jobOf(jobs.Succeeded, &jobs.Attempt{Host: "b", State: jobs.AttemptSuperseded},
			&jobs.Attempt{State: jobs.AttemptLost}, exited("a", jobs.Outcome{})))
	s := Summarize(table)
	if len(s.Hosts) != 1 || s.Hosts[0].Attempts != 4 || s.Hosts[0].Failed != 1 || s.Attempts != 4 || s.Retried != 1 {
		t.Errorf("hosts %+v, %d attempts in all, %d retried", s.Hosts, s.Attempts, s.Retried)
	}
	same(t, "attempts in the result", resultOf(table.Job(4)).Attempts, 1)
}

// TestUnknownRunTimeIsNotShown checks that the summary does not state the run time of attempts that
// did not count if it is not known.
func TestUnknownRunTimeIsNotShown(t *testing.T) {
	s := Summarize(table(jobOf(jobs.Succeeded, &jobs.Attempt{Host: "a", State: jobs.AttemptLost},
		exited("a", jobs.Outcome{Started: 100 * second, Ended: 103 * second}))))
	if got := textOf(t, s, 80); !strings.Contains(got, "1 attempt lost with a host\n") {
		t.Errorf("got %q", got)
	}
}

// TestLargestJobOfASummary checks that memory that cannot be distinguished from the supervisor's
// own is not attributed to a job (X4). The summary then gives a bound and names no job.
func TestLargestJobOfASummary(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "with 3.00 s\n", 1: "with 3.00 s, largest job <16 MiB\n",
		jobs.MemoryFloor:         "with 3.00 s, largest job <16 MiB\n",
		jobs.MemoryFloor + 1<<20: "with 3.00 s, largest job 1 with 17 MiB\n",
	} {
		s := Summarize(table(jobOf(jobs.Succeeded,
			exited("a", jobs.Outcome{Started: 100 * second, Ended: 103 * second, MaxRSSBytes: bytes}))))
		if got := textOf(t, s, 80); !strings.HasSuffix(got, want) {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
}

// TestSummaryWithoutARun checks that the summary names no longest job if no job could be started.
func TestSummaryWithoutARun(t *testing.T) {
	s := Summarize(table(jobOf(jobs.Failed,
		exited("a", jobs.Outcome{Started: 100 * second, Ended: 100 * second, Error: "its files cannot be sent"}))))
	if got := textOf(t, s, 80); strings.Contains(got, "longest") {
		t.Errorf("got %q, want no longest job", got)
	}
}

// TestCauseOfAFailure checks the cause by which failures are grouped.
func TestCauseOfAFailure(t *testing.T) {
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
		{jobs.Canceled, "halving: poor at step 1", &jobs.Outcome{Signal: "SIGTERM", Stopped: true},
			"halving: poor at step 1"},
		{jobs.Canceled, "halving: poor at step 1", &jobs.Outcome{Exit: 75}, "halving: poor at step 1"},
		{jobs.Failed, "", &jobs.Outcome{Exit: 1, Error: "no directory /x"}, "not started: no directory /x"},
		{jobs.Failed, "host lost three times", nil, "host lost three times"},
		{jobs.Failed, "", nil, "failed"},
		{jobs.Failed, "it used 3G", &jobs.Outcome{Signal: "SIGKILL", Memory: jobs.MemoryLimit}, "memory limit"},
		{jobs.Failed, "", &jobs.Outcome{Exit: 137, Memory: jobs.OutOfMemory}, "out of memory"},
		{jobs.Failed, "halted", &jobs.Outcome{}, "halted"},
		// The disk is named whatever else the outcome contains.
		{jobs.Failed, "", &jobs.Outcome{Exit: 1, DiskFull: true}, "exit 1, its disk was full"},
		{jobs.Failed, "", &jobs.Outcome{Exit: 2, ProcessLimit: jobs.ProcessLimit{Kind: jobs.LimitUser, Max: 9}},
			"exit 2, its host had reached a limit on processes"},
		{jobs.Failed, "", &jobs.Outcome{Signal: "SIGKILL", DiskFull: true}, "SIGKILL, its disk was full"},
		{jobs.Failed, "", &jobs.Outcome{Signal: "SIGTERM", TimedOut: true, DiskFull: true},
			"timed out, its disk was full"},
	} {
		t.Run(c.want, func(t *testing.T) {
			same(t, c.o, Cause(c.state, c.reason, c.o), c.want)
		})
	}
}

// TestFailureGroupsAreBounded checks that a million jobs with different error messages do not make
// a table of a million rows.
func TestFailureGroupsAreBounded(t *testing.T) {
	rows := make([]jobs.Job, maxCauses+500)
	for i := range rows {
		rows[i] = jobOf(jobs.Failed, exited("h", jobs.Outcome{Exit: 1, LastLine: strings.Repeat("x", i)}))
	}
	s := Summarize(table(rows...))
	if list := s.Failures; len(list) != maxCauses+1 || list[0].Cause != "other causes" || list[0].Count != 500 ||
		len(list[0].Examples) != maxExamples {
		t.Fatalf("%d groups, first %+v", len(list), list[0])
	}
	if got := textOf(t, s, 0); !strings.HasSuffix(got, "and 986 jobs with 986 other causes\n") {
		t.Errorf("got %s", got)
	}
}

// TestSummaryTextIsClean checks that what a job wrote to stderr cannot control the terminal or
// break the table.
func TestSummaryTextIsClean(t *testing.T) {
	nasty := "\x1b[2J\u202e\r" + strings.Repeat("long ", 100)
	s := Summarize(table(jobOf(jobs.Failed, exited(nasty, jobs.Outcome{Exit: 1, LastLine: nasty, Error: nasty})),
		jobOf(jobs.Succeeded, exited("b", jobs.Outcome{}))))
	for _, width := range []int{0, 1, 80, 120} {
		for line := range strings.SplitSeq(strings.TrimSuffix(textOf(t, s, width), "\n"), "\n") {
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) ||
				len([]rune(line)) > max(width, 120) {
				t.Errorf("width %d: %q", width, line)
			}
		}
	}
}

// TestSummaryCountsAvoidedJobs checks that the summary counts the jobs that a timeout avoided,
// including those that were stopped, but not jobs that were skipped for another reason.
func TestSummaryCountsAvoidedJobs(t *testing.T) {
	late := &jobs.Spec{ID: 7, Name: "variant=bnb n=10", Options: jobs.NoOptions}
	why := jobs.TooHardReason(late, 2*time.Second)
	same(t, "the reason", why, "it is at least as hard as job 7, which timed out after 2s: variant=bnb n=10")
	same(t, "a job that was stopped", Cause(jobs.Skipped, why, &jobs.Outcome{Stopped: true}), why)
	stopped := &jobs.Attempt{Host: "a", State: jobs.AttemptCanceled,
		Outcome: &jobs.Outcome{Stopped: true, Started: second, Ended: 2 * second}}
	s := Summarize(table(
		jobs.Job{State: jobs.Skipped, Reason: why, ReasonKind: jobs.ReasonTooHard},
		jobs.Job{State: jobs.Skipped, Reason: why, ReasonKind: jobs.ReasonTooHard, Attempts: []*jobs.Attempt{stopped}},
		jobs.Job{State: jobs.Skipped, Reason: "job 3, which it comes after, has failed"},
		jobs.Job{State: jobs.Skipped, Reason: why}, // a person's text decides nothing
		jobs.Job{State: jobs.Canceled, Reason: why},
	))
	same(t, "avoided jobs", s.Avoided, 2)
	if got, want := textOf(t, s, 80), "\n2 jobs avoided: at least as hard as one "+
		"that had timed out\n"; !strings.Contains(got, want) {
		t.Errorf("%q lacks %q", got, want)
	}
}
