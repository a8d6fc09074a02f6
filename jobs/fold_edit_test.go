package jobs_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

func ptr[T any](v T) *T { return &v }

func other(t *testing.T, s *jobs.Spec, command string) *jobs.Spec {
	t.Helper()
	s, err := (&jobs.Change{Command: &command}).Apply(s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func edited(s *jobs.Spec) jobs.Record {
	return jobs.Record{Kind: jobs.KindEdited, Job: s.ID, Spec: s, Reason: "edited"}
}

// TestEditChangesAQueuedJob checks that an edited queued job runs by its new specification with all
// its tries. Attempts by the old specification no longer count.
func TestEditChangesAQueuedJob(t *testing.T) {
	retried := exited(2, 1, bad, jobs.Queued, 0)
	retried.Retry = 99
	table := fold(t, []jobs.Record{accepted(3), launching(2, 1), retried})
	s := other(t, table.Job(2).Spec, "true")
	apply(t, table, edited(s))
	j := table.Job(2)
	if j.Spec != s || table.Specs[1] != s || j.Round != 1 || j.Failures != 0 || j.Retry != 0 ||
		j.State != jobs.Queued || table.Counts[jobs.Queued] != 3 {
		t.Errorf("after the edit: got job %+v, want a queued one with the new specification and no failures", j)
	}
	if a := j.Attempts[0]; a.Round != 0 {
		t.Errorf("attempt of the old command: %+v", a)
	}
}

// TestEditOfATerminalJobStartsANewRound checks that the result of an earlier round keeps the
// specification that produced it. The same record applies the edit and begins the next round.
func TestEditOfATerminalJobStartsANewRound(t *testing.T) {
	table := fold(t, []jobs.Record{accepted(3), launching(1, 1), exited(1, 1, bad, jobs.Failed, 1)})
	old := table.Job(1).Spec
	s := other(t, old, "true")
	apply(t, table, edited(s))
	j := table.Job(1)
	if j.State != jobs.Queued || j.Round != 2 || j.Spec != s || len(table.Past) != 1 || table.Past[0].Spec != old ||
		table.Past[0].Round != 1 ||
		table.Past[0].Attempts[0].Round != 1 || table.Past[0].State != jobs.Failed {
		t.Errorf("%+v, past %+v", j, table.Past)
	}
}

// TestEditThatDoesNotFitChangesNothing checks that an edit that does not fit changes nothing
// (promise 2: what runs is what is recorded).
func TestEditThatDoesNotFitChangesNothing(t *testing.T) {
	runs := []jobs.Record{accepted(3), launching(2, 1)}
	ends := append(runs, launching(2, 2), exited(2, 2, ok, jobs.Succeeded, 1))
	s := jobstest.Specs(3)[1]
	for _, c := range []struct {
		name   string
		script []jobs.Record
		edit   jobs.Record
	}{
		{"running", runs, edited(s)},
		{"no spec", runs, jobs.Record{Kind: jobs.KindEdited, Job: 1}},
		{"another job's", runs, jobs.Record{Kind: jobs.KindEdited, Job: 1, Spec: s}},
		{"no such job", runs, jobs.Record{Kind: jobs.KindEdited, Job: 9, Spec: s}},
		{"without options", runs, edited(&jobs.Spec{ID: 1})},
		{"another attempt may be alive", ends, edited(s)},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := fold(t, c.script)
			if err := jobs.Fold(table, &c.edit); err == nil || !reflect.DeepEqual(table, fold(t, c.script)) {
				t.Errorf("%s: got %v and the table %+v, want an error and no change", c.name, err, table)
			}
		})
	}
}

// TestChangeIsApplied checks that a change replaces the given fields in a copy of the
// specification, and that its text names them.
func TestChangeIsApplied(t *testing.T) {
	after := jobs.NewLabels("", nil, jobstest.After(1)...)
	s := &jobs.Spec{ID: 7, Command: "a", Name: "n", Labels: after,
		Options: &jobs.Options{Queue: "q", Tries: 2, Tags: []string{"x"}}}
	c := jobs.Change{Timeout: ptr(time.Hour), Tries: ptr(0), Tags: ptr([]string{"b", "a", "b"}), Name: ptr("")}
	got, err := c.Apply(s)
	if err != nil {
		t.Fatal(err)
	}
	want := &jobs.Spec{ID: 7, Command: "a", Labels: after, Options: &jobs.Options{Queue: "q", Timeout: time.Hour,
		Tags: []string{"a", "b"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Apply: got %+v %+v, want only the changes of c", got, got.Options)
	}
	if s.Tries != 2 || s.Name != "n" || s.Tags[0] != "x" {
		t.Errorf("the old one was changed: %+v", s)
	}
	if c.Empty() || !new(jobs.Change).Empty() {
		t.Errorf("empty %v", c.Empty())
	}
	c.Command, c.MemBytes, c.Slots, c.GPUs = ptr(strings.Repeat("x", 99)+
		"éx"), ptr(int64(3<<29)), ptr(2), ptr(jobs.WholeGPU/2)
	same(t, "text", c.String(), "command "+strings.Repeat("x", 99)+
		"…, name , timeout 1h0m0s, mem 1536M, tries 0, slots 2, gpus 0.5, tags b,a,b")
	if got.Equal(s) || !got.Equal(want) {
		t.Error("Same is wrong")
	}
}

// TestImpossibleChangeIsRefused checks that a change that no job could have is refused with a clear
// error, and so is a change of a job whose specification is lost.
func TestImpossibleChangeIsRefused(t *testing.T) {
	ok := &jobs.Spec{ID: 1, Command: "a", Options: jobs.NoOptions}
	for _, c := range []struct {
		of     *jobs.Spec
		change jobs.Change
		want   string
	}{
		{ok, jobs.Change{Command: ptr("  ")}, "empty"},
		{ok, jobs.Change{Command: ptr("a\x00")}, "NUL"},
		{ok, jobs.Change{Command: ptr(strings.Repeat("x", jobs.MaxCommand+1))}, "longer"},
		{ok, jobs.Change{Name: ptr("a\x1b[2J")}, "control"},
		{ok, jobs.Change{Timeout: ptr(-time.Second)}, "timeout"},
		{ok, jobs.Change{MemBytes: ptr(int64(-1))}, "mem"},
		{ok, jobs.Change{Tries: ptr(1_000_001)}, "tries"},
		{ok, jobs.Change{Slots: ptr(-1)}, "slots"},
		{ok, jobs.Change{GPUs: ptr(jobs.GPUs(1500))}, "gpus"},
		{ok, jobs.Change{Tags: ptr([]string{"a b"})}, "tag"},
		{ok, jobs.Change{Tags: ptr([]string{""})}, "empty item"},
		{jobs.LostSpec(3, "the line is missing"), jobs.Change{Command: ptr("a")}, "job 3 cannot be changed"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if s, err := c.change.Apply(c.of); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, %v; want %q", c.change, s, err, c.want)
			}
		})
	}
}

// TestChangeOfGPUs checks the numbers of devices that a request may hold (T3).
func TestChangeOfGPUs(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"gpus":0.5}`: true,
		`{"gpus":0.7}`: true,
		`{"gpus":3}`:   true,
		`{"gpus":1.7}`: false,
		`{"gpus":-1}`:  false,
		`{"gpus":1e9}`: false,
	} {
		t.Run(text, func(t *testing.T) {
			var c jobs.Change
			if err := json.Unmarshal([]byte(text), &c); (err == nil && c.Check() == nil) != ok {
				t.Errorf("%s: %v, %v, want ok %v", text, err, c.Check(), ok)
			}
		})
	}
}

// TestChangedJobsShareOptions checks that jobs that shared their options share them after the same
// change.
func TestChangedJobsShareOptions(t *testing.T) {
	a, b := &jobs.Options{Queue: "a"}, &jobs.Options{Queue: "b"}
	var r jobs.Changer
	c := &jobs.Change{Timeout: ptr(time.Hour)}
	var got []*jobs.Spec
	for i, o := range []*jobs.Options{a, b, a, b, {Queue: "a"}} {
		s, err := r.Apply(c, &jobs.Spec{ID: jobs.ID(i + 1), Command: "x", Options: o})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	if got[0].Options != got[2].Options || got[1].Options != got[3].Options || got[0].Options != got[4].Options ||
		got[0].Options == got[1].Options {
		t.Error("equal options are held twice")
	}
}
