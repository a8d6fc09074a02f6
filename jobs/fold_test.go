package jobs_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// Short names for the scripts below.
var (
	ok   = &jobs.Outcome{Started: 5, Ended: 9}
	bad  = &jobs.Outcome{Exit: 3, Started: 5, Ended: 9}
	slow = &jobs.Outcome{Signal: "SIGKILL", TimedOut: true}
)

func accepted(n int) jobs.Record { return jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: n} }
func launching(j jobs.ID, n int) jobs.Record {
	return jobs.Record{Kind: jobs.KindLaunching, Job: j, N: n, Host: "melon1", At: 4}
}
func running(j jobs.ID, n int) jobs.Record {
	return jobs.Record{Kind: jobs.KindRunning, Job: j, N: n, Slot: 2, Started: 5}
}
func over(k jobs.Kind, j jobs.ID, n int, next jobs.JobState, seq int64) jobs.Record {
	return jobs.Record{Kind: k, Job: j, N: n, Next: next, Seq: seq}
}
func exited(j jobs.ID, n int, o *jobs.Outcome, next jobs.JobState, seq int64) jobs.Record {
	r := over(jobs.KindExited, j, n, next, seq)
	r.Outcome, r.Charged = o, !o.OK()
	return r
}
func round(j jobs.ID) jobs.Record { return jobs.Record{Kind: jobs.KindRound, Job: j} }
func acked(seq int64) jobs.Record { return jobs.Record{Kind: jobs.KindAcked, Seq: seq} }

// TestStatesAfterEachHistory folds one history per script and checks the last record. want
// describes job 1 and its attempts afterwards. "refused" means that Fold returns an error and the
// table is unchanged.
func TestStatesAfterEachHistory(t *testing.T) {
	lost := over(jobs.KindLost, 1, 1, jobs.Queued, 0)
	cases := []struct {
		name   string
		script []jobs.Record
		want   string // job state, round, failures, seq | attempt states
	}{
		{"accepted", []jobs.Record{accepted(2)}, "queued r1 f0 s0 |"},
		{"accepted twice", []jobs.Record{accepted(2), accepted(2)}, "refused"},
		{"more accepted than known", []jobs.Record{accepted(4)}, "refused"},
		{"accepted count overflows", []jobs.Record{accepted(1), {Kind: jobs.KindAccepted, Job: 2, Count: math.MaxInt}},
			"refused"},
		{"negative count", []jobs.Record{accepted(-1)}, "refused"},
		{"launching", []jobs.Record{accepted(1), launching(1, 1)}, "running r1 f0 s0 | launching"},
		{"launching an unknown job", []jobs.Record{accepted(1), launching(2, 1)}, "refused"},
		{"launching job 0", []jobs.Record{accepted(1), launching(0, 1)}, "refused"},
		{"launching the same attempt twice", []jobs.Record{accepted(1), launching(1, 1), launching(1, 1)}, "refused"},
		{"launching a later attempt", []jobs.Record{accepted(1), launching(1, 2)}, "refused"},
		{"launching a finished job", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, ok, jobs.Succeeded, 1),
			launching(1, 2)}, "refused"},
		{"launching a copy", []jobs.Record{accepted(1), launching(1, 1), launching(1, 2)},
			"running r1 f0 s0 | launching launching"},
		{"running", []jobs.Record{accepted(1), launching(1, 1), running(1, 1)}, "running r1 f0 s0 | running"},
		{"running, never launched", []jobs.Record{accepted(1), running(1, 1)}, "refused"},
		{"running again after the end", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 0),
			running(1, 1)}, "refused"},
		{"to be ended", []jobs.Record{accepted(1), launching(1, 1), {Kind: jobs.KindCanceling, Job: 1}},
			"running r1 f0 s0 | launching"},
		{"to be ended, not open", []jobs.Record{accepted(1), {Kind: jobs.KindCanceling, Job: 1}}, "refused"},
		{"forgiven", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 0),
			{Kind: jobs.KindForgiven, Job: 1, N: 1}}, "queued r1 f0 s0 | exited"},
		{"forgiven twice", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 0),
			{Kind: jobs.KindForgiven, Job: 1, N: 1}, {Kind: jobs.KindForgiven, Job: 1, N: 1}}, "refused"},
		{"forgiven, nothing charged", []jobs.Record{accepted(1), launching(1, 1), lost,
			{Kind: jobs.KindForgiven, Job: 1, N: 1}}, "refused"},
		{"given up, and it runs", []jobs.Record{accepted(1), launching(1, 1), lost, running(1, 1)},
			"running r1 f0 s0 | running"},
		{"succeeded", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, ok, jobs.Succeeded, 1)},
			"succeeded r1 f0 s1 | exited"},
		{"succeeded without an outcome",
			[]jobs.Record{accepted(1), launching(1, 1), over(jobs.KindExited, 1, 1, jobs.Succeeded, 1)}, "refused"},
		{"succeeded with a failure", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Succeeded, 1)},
			"refused"},
		{"succeeded when it was lost", []jobs.Record{accepted(1), launching(1, 1),
			over(jobs.KindLost, 1, 1, jobs.Succeeded, 1)}, "refused"},
		{"succeeded without an attempt", []jobs.Record{accepted(1), over(jobs.KindJob, 1, 0, jobs.Succeeded, 1)},
			"refused"},
		{"succeeded without a number", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, ok, jobs.Succeeded, 0)},
			"refused"},
		{"a number is left out", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, ok, jobs.Succeeded, 2)},
			"refused"},
		{"a number for an open job", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 1)},
			"refused"},
		{"a state that does not exist", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, 77, 1)},
			"refused"},
		{"failed, to be tried again", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 0)},
			"queued r1 f1 s0 | exited"},
		{"failed for good", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Failed, 1)},
			"failed r1 f1 s1 | exited"},
		{"timed out", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, slow, jobs.TimedOut, 1)},
			"timed_out r1 f1 s1 | exited"},
		{"exited twice", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Queued, 0),
			exited(1, 1, bad, jobs.Queued, 0)}, "refused"},
		{"lost uses up no try", []jobs.Record{accepted(1), launching(1, 1), lost}, "queued r1 f0 s0 urgent | lost"},
		{"lost twice", []jobs.Record{accepted(1), launching(1, 1), lost, lost}, "refused"},
		{"lost comes back finished", []jobs.Record{accepted(1), launching(1, 1), lost, launching(1, 2),
			exited(1, 1, ok, jobs.Succeeded, 1)}, "succeeded r1 f0 s1 | exited launching"},
		{"the late copy changes nothing", []jobs.Record{accepted(1), launching(1, 1), lost, launching(1, 2),
			exited(1, 2, ok, jobs.Succeeded, 1), exited(1, 1, bad, jobs.Succeeded, 0)},
			"succeeded r1 f1 s1 | exited exited"},
		{"a second result is refused", []jobs.Record{accepted(1), launching(1, 1), lost, launching(1, 2),
			exited(1, 2, ok, jobs.Succeeded, 1), exited(1, 1, bad, jobs.Failed, 2)}, "refused"},
		{"a second result of the same state is refused", []jobs.Record{accepted(1), launching(1, 1), launching(1, 2),
			exited(1, 2, ok, jobs.Succeeded, 1), exited(1, 1, ok, jobs.Succeeded, 2)}, "refused"},
		{"superseded", []jobs.Record{accepted(1), launching(1, 1), launching(1, 2), exited(1, 1, ok, jobs.Succeeded, 1),
			over(jobs.KindSuperseded, 1, 2, jobs.Succeeded, 0)}, "succeeded r1 f0 s1 | exited superseded"},
		{"withdrawn", []jobs.Record{accepted(1), launching(1, 1), over(jobs.KindSuperseded, 1, 1, jobs.Queued, 0)},
			"queued r1 f0 s0 | superseded"},
		{"canceled while running", []jobs.Record{accepted(1), launching(1, 1), running(1, 1),
			over(jobs.KindCanceled, 1, 1, jobs.Canceled, 1)}, "canceled r1 f0 s1 | canceled"},
		{"canceled while queued", []jobs.Record{accepted(1), over(jobs.KindJob, 1, 0, jobs.Canceled, 1)},
			"canceled r1 f0 s1 |"},
		{"skipped", []jobs.Record{accepted(1), over(jobs.KindJob, 1, 0, jobs.Skipped, 1)}, "skipped r1 f0 s1 |"},
		{"canceled twice", []jobs.Record{accepted(1), over(jobs.KindJob, 1, 0, jobs.Canceled, 1),
			over(jobs.KindJob, 1, 0, jobs.Canceled, 2)}, "refused"},
		{"a new round", []jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Failed, 1), round(1)},
			"queued r2 f0 s1 | exited"},
		{"a round of an open job", []jobs.Record{accepted(1), round(1)}, "refused"},
		{"attempts go on counting in a new round",
			[]jobs.Record{accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Failed, 1), round(1), launching(1, 2),
				exited(1, 2, ok, jobs.Succeeded, 2)}, "succeeded r2 f0 s2 | exited exited"},
		{"a charge from an older round does not count",
			[]jobs.Record{accepted(1), launching(1, 1), over(jobs.KindJob, 1, 0, jobs.Canceled, 1), round(1),
				exited(1, 1, bad, jobs.Queued, 0)}, "queued r2 f0 s1 | exited"},
		{"priority", []jobs.Record{accepted(1), {Kind: jobs.KindPriority, Job: 1, Priority: -3}},
			"queued r1 f0 s0 p-3 |"},
		{"priority out of range", []jobs.Record{accepted(1), {Kind: jobs.KindPriority, Job: 1, Priority: math.MaxInt}},
			"refused"},
		{"acknowledged", []jobs.Record{accepted(1), over(jobs.KindJob, 1, 0, jobs.Skipped, 1), acked(1)},
			"skipped r1 f0 s1 |"},
		{"acknowledged too far", []jobs.Record{accepted(1), over(jobs.KindJob, 1, 0, jobs.Skipped, 1), acked(2)},
			"refused"},
		{"an epoch again", []jobs.Record{{Kind: jobs.KindEpoch, Epoch: 2}, {Kind: jobs.KindEpoch, Epoch: 2}},
			"refused"},
		{"an unknown kind", []jobs.Record{accepted(1), {Kind: "mystery", Job: 1}}, "refused"},
		{"an event", []jobs.Record{accepted(1), {Kind: jobs.KindEvent, Host: "melon1"}}, "queued r1 f0 s0 |"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			table := fold(t, c.script[:len(c.script)-1])
			before := fold(t, c.script[:len(c.script)-1])
			err := jobs.Fold(table, &c.script[len(c.script)-1])
			if c.want == "refused" {
				if err == nil {
					t.Errorf("accepted: %s", show(table.Job(1)))
				} else if !reflect.DeepEqual(table, before) {
					t.Errorf("refused (%v), but the table has changed: %s", err, show(table.Job(1)))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same(t, "job 1", show(table.Job(1)), c.want)
			checkCounts(t, table)
		})
	}
}

// TestFoldKeepsUnacknowledgedResults checks promise 1: the result of a round is kept when the next
// one begins before the consumer has received it, and no longer.
func TestFoldKeepsUnacknowledgedResults(t *testing.T) {
	script := []jobs.Record{
		accepted(1), launching(1, 1), exited(1, 1, bad, jobs.Failed, 1), round(1), launching(1, 2),
		exited(1, 2, ok, jobs.Succeeded, 2), round(1), over(jobs.KindJob, 1, 0, jobs.Canceled, 3),
	}
	table := fold(t, script)
	same(t, "kept results of earlier rounds", len(table.Past), 2)
	for i, want := range []string{"failed r1 f1 s1 | exited", "succeeded r2 f0 s2 | exited exited"} {
		t.Run(want, func(t *testing.T) {
			same(t, "a kept row", show(&table.Past[i]), want)
		})
	}
	for seq, left := range map[int64]int{0: 2, 1: 1, 2: 0, 3: 0} {
		same(t, seq, len(fold(t, append(script[:len(script):len(script)], acked(seq))).Past), left)
	}
}

func fold(t *testing.T, script []jobs.Record) *jobs.Table {
	t.Helper()
	table := &jobs.Table{Specs: jobstest.Specs(3)}
	apply(t, table, script...)
	return table
}

// same checks that two values are equal.
func same[T comparable](t *testing.T, what any, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%v: got %v, want %v", what, got, want)
	}
}

// apply folds more records into a table.
func apply(t *testing.T, table *jobs.Table, script ...jobs.Record) {
	t.Helper()
	for i := range script {
		if err := jobs.Fold(table, &script[i]); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
}

func show(j *jobs.Job) string {
	if j == nil {
		return "no job"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s r%d f%d s%d", j.State, j.Round, j.Failures, j.Seq)
	if j.Urgent {
		b.WriteString(" urgent")
	}
	if j.Priority != 0 {
		fmt.Fprintf(&b, " p%d", j.Priority)
	}
	b.WriteString(" |")
	for _, a := range j.Attempts {
		b.WriteString(" " + a.State.String())
	}
	return b.String()
}

func checkCounts(t *testing.T, table *jobs.Table) {
	t.Helper()
	var want [jobs.Skipped + 1]int
	for i := range table.Jobs {
		want[table.Jobs[i].State]++
	}
	same(t, "counts by the states of jobs", table.Counts, want)
}

// TestFoldNeverRepeatsAResult checks promises 1 and 2 over random histories. Result numbers are 1,
// 2, 3, … without gaps, a round of a job has one, and the counts agree.
func TestFoldNeverRepeatsAResult(t *testing.T) {
	for seed := range uint64(50) {
		specs, records := jobstest.History(seed, 8, 400)
		table := &jobs.Table{Specs: slices.Clone(specs)}
		type key struct {
			job   jobs.ID
			round int32
		}
		seen := map[key]int64{}
		for i := range records {
			before := table.Seq
			if err := jobs.Fold(table, &records[i]); err != nil {
				t.Fatalf("seed %d, record %d: %v", seed, i, err)
			}
			if table.Seq == before {
				continue
			}
			j := table.Job(records[i].Job)
			k := key{records[i].Job, j.Round}
			if table.Seq != before+1 || j.Seq != table.Seq || seen[k] != 0 {
				t.Fatalf("seed %d, record %d: result %d after %d for job %d round %d, which has %d", seed, i, j.Seq,
					before, k.job, k.round, seen[k])
			}
			seen[k] = j.Seq
		}
		checkCounts(t, table)
	}
}

// TestFoldAfterALostLine checks that result numbers of a Damaged table may skip forward but never
// go back, and that an acknowledged number is not reused.
func TestFoldAfterALostLine(t *testing.T) {
	table := fold(t, []jobs.Record{accepted(3)})
	table.Damaged = true
	skip := func(j jobs.ID, seq int64) error {
		r := over(jobs.KindJob, j, 0, jobs.Skipped, seq)
		return jobs.Fold(table, &r)
	}
	if err := skip(1, 5); err != nil {
		t.Errorf("a jump forward: %v", err)
	}
	if err := skip(2, 5); err == nil {
		t.Error("number 5 was given twice")
	}
	apply(t, table, acked(8))
	same(t, "the newest result", table.Seq, 8)
	if err := skip(2, 8); err == nil {
		t.Error("number 8 was given although a consumer has had it")
	}
}

// FuzzFold checks that no record, however wrong, makes Fold panic or corrupts the counts.
func FuzzFold(f *testing.F) {
	f.Add("exited", 1, 1, 3, 2, int64(1), true)
	f.Add("accepted", 2, 0, math.MaxInt, 0, int64(0), false)
	f.Add("job", 2, 0, 0, 200, int64(1), false)
	f.Fuzz(func(t *testing.T, kind string, job, n, count, next int, seq int64, outcome bool) {
		table := fold(t, []jobs.Record{accepted(2), launching(1, 1)})
		r := jobs.Record{Kind: jobs.Kind(kind), Job: jobs.ID(job), N: n, Count: count, Next: jobs.JobState(next),
			Seq: seq, Epoch: n}
		if outcome {
			r.Outcome = ok
		}
		before := fold(t, []jobs.Record{accepted(2), launching(1, 1)})
		if err := jobs.Fold(table, &r); err != nil && !reflect.DeepEqual(table, before) {
			t.Fatalf("refused (%v), but the table has changed", err)
		}
		checkCounts(t, table)
	})
}

// TestRequestsSurviveUntilTheyAreDone checks that the next dispatcher knows a user's requests until
// they are done (K9), and that a request is carried out once.
func TestRequestsSurviveUntilTheyAreDone(t *testing.T) {
	table := fold(t, []jobs.Record{accepted(2), launching(1, 1), {Kind: jobs.KindCanceling, Job: 1, Reason: "asked"},
		{Kind: jobs.KindRequest, Request: "r1"}})
	if table.Cancels[1].Reason != "asked" || !table.Requests["r1"] || table.Requests["r2"] {
		t.Errorf("cancels %v, requests %v", table.Cancels, table.Requests)
	}
	apply(t, table, over(jobs.KindCanceled, 1, 1, jobs.Canceled, 1))
	same(t, "jobs to cancel afterwards", len(table.Cancels), 0)
}

// TestUnansweredRequestKeepsWhatItAdjusted checks that the table holds which jobs and hosts a
// request has changed until the request is answered, so that the next dispatcher does not add a
// relative change twice.
func TestUnansweredRequestKeepsWhatItAdjusted(t *testing.T) {
	priority := func(job jobs.ID, request string) jobs.Record {
		return jobs.Record{Kind: jobs.KindPriority, Job: job, Priority: 1, Request: request}
	}
	table := fold(t, []jobs.Record{accepted(3), priority(1, "r1"), priority(3, "r1"), priority(2, ""),
		{Kind: jobs.KindHost, Host: "a", Slot: 3, Request: "r2"}})
	same(t, "jobs of r1", table.Adjusted["r1"].String(), "1,3")
	if _, ok := table.Adjusted["r2"]; !ok || len(table.Adjusted) != 2 {
		t.Errorf("Adjusted: got %v, want r1 and r2", table.Adjusted)
	}
	apply(t, table, jobs.Record{Kind: jobs.KindRequest, Request: "r1"})
	apply(t, table, jobs.Record{Kind: jobs.KindRequest, Request: "r2"})
	if table.Adjusted != nil {
		t.Errorf("Adjusted: got %v after the answers, want nil", table.Adjusted)
	}
}

// TestFoldSkipsNumbersAfterDamage checks that attempt numbers may be skipped where records are
// missing. A later launch may fill the entry of a skipped number, and no other (promise 2).
func TestFoldSkipsNumbersAfterDamage(t *testing.T) {
	table := fold(t, []jobs.Record{accepted(1)})
	table.Damaged = true
	for _, step := range []struct {
		n    int
		host string
		ok   bool
	}{{5, "a", true}, {2, "b", true}, {2, "c", false}, {5, "c", false}, {0, "c", false}, {7000, "c", false}, {3, "",
		false}} {
		r := launching(1, step.n)
		r.Host = step.host
		if err := jobs.Fold(table, &r); (err == nil) != step.ok {
			t.Errorf("launch of 1.%d on %q: %v", step.n, step.host, err)
		}
	}
	checkCounts(t, table)
	var hosts []string
	for _, a := range table.Job(1).Attempts {
		hosts = append(hosts, a.Host+" "+a.State.String())
	}
	same(t, "attempts", fmt.Sprint(hosts), "[ lost b launching  lost  lost a launching]")
}

// TestFoldPlaceIsNamed checks that an attempt whose launch record was lost to damage gets its host
// from the next record that names it. Without a host, the open attempt could not be queried, and
// another one would start beside it (promise 2).
func TestFoldPlaceIsNamed(t *testing.T) {
	for _, kind := range []jobs.Kind{jobs.KindRunning, jobs.KindExited, jobs.KindSuperseded} {
		table := fold(t, []jobs.Record{accepted(1)})
		table.Damaged = true
		later := launching(1, 2)
		later.Host = "b"
		apply(t, table, later, jobs.Record{Kind: kind, Job: 1, N: 1, Host: "a", Next: jobs.Running, Outcome: ok})
		a := table.Job(1).Attempts
		same(t, kind, a[0].Host+a[1].Host, "ab")
	}
}

// TestEndOfADispatcherIsNoDamageForOlderPrograms checks that each end of a dispatcher is stored as one that
// the first version of a run knows, and is read again as what it was.
func TestEndOfADispatcherIsNoDamageForOlderPrograms(t *testing.T) {
	known := []string{jobs.ClosedDone, jobs.ClosedDrained, jobs.ClosedStopped, jobs.ClosedNoHosts}
	for _, how := range append(known, jobs.ClosedReached) {
		var r jobs.Record
		r.SetClosed(how)
		if !slices.Contains(known, r.How) {
			t.Errorf("%s is stored as %q, which older programs take for damage", how, r.How)
		}
		table := fold(t, []jobs.Record{accepted(1)})
		apply(t, table, r)
		same(t, "end", table.Closed.How, how)
	}
}

// TestInstanceIsCreatedOnce checks that an instance is created once and that the table records its
// times. A record that does not fit changes nothing.
func TestInstanceIsCreatedOnce(t *testing.T) {
	type step struct {
		how string
		ok  bool
	}
	for _, c := range []struct {
		name  string
		steps []step
		want  jobs.Instance
	}{
		{"life", []step{{"creating", true}, {"up", true}, {"terminating", true}, {"gone", true}},
			jobs.Instance{Provider: "cloud", State: "gone", Created: 1, Up: 2, Gone: 4}},
		{"never answered", []step{{"creating", true}, {"terminating", true}, {"terminating", true}, {"gone", true}},
			jobs.Instance{Provider: "cloud", State: "gone", Created: 1, Gone: 4}},
		{"creation failed", []step{{"creating", true}, {"gone", true}},
			jobs.Instance{Provider: "cloud", State: "gone", Created: 1, Gone: 2}},
		{"found again", []step{{"creating", true}, {"gone", true}, {"terminating", true}},
			jobs.Instance{Provider: "cloud", State: "terminating", Created: 1}},
		{"found again and used up", []step{{"creating", true}, {"up", true}, {"gone", true}, {"up", true}},
			jobs.Instance{Provider: "cloud", State: "up", Created: 1, Up: 2}},
		{"created twice", []step{{"creating", true}, {"creating", false}},
			jobs.Instance{Provider: "cloud", State: "creating", Created: 1}},
		{"up twice", []step{{"creating", true}, {"up", true}, {"up", false}},
			jobs.Instance{Provider: "cloud", State: "up", Created: 1, Up: 2}},
		{"gone twice", []step{{"creating", true}, {"gone", true}, {"gone", false}},
			jobs.Instance{Provider: "cloud", State: "gone", Created: 1, Gone: 2}},
		{"never created", []step{{"up", false}, {"terminating", false}, {"gone", false}, {"", false}}, jobs.Instance{}},
		{"unknown state", []step{{"creating", true}, {"resting", false}},
			jobs.Instance{Provider: "cloud", State: "creating", Created: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var table jobs.Table
			for i, s := range c.steps {
				before := table.Instances["dcs-a-1"]
				err := jobs.Fold(&table, &jobs.Record{Kind: jobs.KindInstance, At: jobs.Stamp(i + 1), Host: "dcs-a-1",
					How: s.how, Reason: "cloud"})
				if (err == nil) != s.ok {
					t.Errorf("%s: got %v, want ok %v", s.how, err, s.ok)
				}
				if err != nil && !reflect.DeepEqual(before, table.Instances["dcs-a-1"]) {
					t.Errorf("%s was refused and has changed the table", s.how)
				}
			}
			same(t, "the instance", table.Instances["dcs-a-1"], c.want)
		})
	}
}
