package jobs_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

func ptr[T any](v T) *T { return &v }

// threeJobs returns a table with three accepted jobs, and a function that folds records into it.
func threeJobs(t *testing.T) (*jobs.Table, func(r jobs.Record)) {
	table := &jobs.Table{Specs: jobstest.Specs(3)}
	must := func(r jobs.Record) {
		t.Helper()
		if err := jobs.Fold(table, &r); err != nil {
			t.Fatal(err)
		}
	}
	must(jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 3})
	return table, must
}

func other(t *testing.T, s *jobs.Spec, command string) *jobs.Spec {
	t.Helper()
	s, err := (&jobs.Change{Command: &command}).Apply(s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFoldEditQueued checks that an edited queued job runs by its new specification with all its
// tries. Attempts by the old specification no longer count.
func TestFoldEditQueued(t *testing.T) {
	table, must := threeJobs(t)
	must(jobs.Record{Kind: jobs.KindLaunching, Job: 2, N: 1, Host: "a"})
	must(jobs.Record{Kind: jobs.KindExited, Job: 2, N: 1, Charged: true, Retry: 99, Outcome: &jobs.Outcome{Exit: 1}})
	s := other(t, table.Job(2).Spec, "true")
	must(jobs.Record{Kind: jobs.KindEdited, Job: 2, Spec: s, Reason: "edited"})
	j := table.Job(2)
	if j.Spec != s || table.Specs[1] != s || j.Round != 1 || j.Failures != 0 || j.Retry != 0 || j.State != jobs.Queued || table.Counts[jobs.Queued] != 3 {
		t.Errorf("%+v", j)
	}
	if a := j.Attempts[0]; a.Round != 0 {
		t.Errorf("attempt of the old command: %+v", a)
	}
}

// TestFoldEditTerminal checks that the result of an earlier round keeps the specification that
// produced it. The same record applies the edit and begins the next round.
func TestFoldEditTerminal(t *testing.T) {
	table, must := threeJobs(t)
	old := table.Job(1).Spec
	must(jobs.Record{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"})
	must(jobs.Record{Kind: jobs.KindExited, Job: 1, N: 1, Next: jobs.Failed, Seq: 1, Charged: true, Outcome: &jobs.Outcome{Exit: 1}})
	s := other(t, old, "true")
	must(jobs.Record{Kind: jobs.KindEdited, Job: 1, Spec: s})
	j := table.Job(1)
	if j.State != jobs.Queued || j.Round != 2 || j.Spec != s || len(table.Past) != 1 || table.Past[0].Spec != old || table.Past[0].Round != 1 ||
		table.Past[0].Attempts[0].Round != 1 || table.Past[0].State != jobs.Failed {
		t.Errorf("%+v, past %+v", j, table.Past)
	}
}

// TestFoldEditRefused checks that an edit that does not fit changes nothing (promise 2: what runs
// is what is recorded).
func TestFoldEditRefused(t *testing.T) {
	table, must := threeJobs(t)
	s := other(t, table.Job(2).Spec, "true")
	must(jobs.Record{Kind: jobs.KindLaunching, Job: 2, N: 1, Host: "a"})
	for what, r := range map[string]jobs.Record{
		"running":           {Kind: jobs.KindEdited, Job: 2, Spec: s},
		"no spec":           {Kind: jobs.KindEdited, Job: 1},
		"another job's":     {Kind: jobs.KindEdited, Job: 1, Spec: s},
		"no such job":       {Kind: jobs.KindEdited, Job: 9, Spec: s},
		"without options":   {Kind: jobs.KindEdited, Job: 1, Spec: &jobs.Spec{ID: 1}},
		"an attempt, alive": {Kind: jobs.KindEdited, Job: 2, Spec: s},
	} {
		if what == "an attempt, alive" { // of the previous round
			must(jobs.Record{Kind: jobs.KindLaunching, Job: 2, N: 2, Host: "b"})
			must(jobs.Record{Kind: jobs.KindExited, Job: 2, N: 2, Next: jobs.Succeeded, Seq: 1, Outcome: &jobs.Outcome{}})
		}
		before := *table.Job(2)
		if err := jobs.Fold(table, &r); err == nil {
			t.Errorf("%s: no error", what)
		}
		if !reflect.DeepEqual(before, *table.Job(2)) || table.Specs[1] == s {
			t.Errorf("%s: it changed something", what)
		}
	}
}

func TestChange(t *testing.T) {
	s := &jobs.Spec{ID: 7, Command: "a", Name: "n", Options: &jobs.Options{Queue: "q", Tries: 2, Tags: []string{"x"}, After: []jobs.ID{1}}}
	c := jobs.Change{Timeout: ptr(time.Hour), Tries: ptr(0), Tags: ptr([]string{"b", "a", "b"}), Name: ptr("")}
	got, err := c.Apply(s)
	if err != nil {
		t.Fatal(err)
	}
	want := &jobs.Spec{ID: 7, Command: "a", Options: &jobs.Options{Queue: "q", Timeout: time.Hour, Tags: []string{"a", "b"}, After: []jobs.ID{1}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %+v", got, got.Options)
	}
	if s.Tries != 2 || s.Name != "n" || s.Tags[0] != "x" {
		t.Errorf("the old one was changed: %+v", s)
	}
	if c.Empty() || !new(jobs.Change).Empty() || c.String() == "" {
		t.Errorf("empty %v, %q", c.Empty(), c.String())
	}
	if got.Same(s) || !got.Same(want) {
		t.Error("Same is wrong")
	}
}

// TestChangeRefused checks that a change that no job could have is refused with a clear error, and
// so is a change of a job whose specification is lost.
func TestChangeRefused(t *testing.T) {
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
		{ok, jobs.Change{GPUs: ptr(jobs.GPUs(2000))}, "gpus"},
		{ok, jobs.Change{Tags: ptr([]string{"a b"})}, "tag"},
		{ok, jobs.Change{Tags: ptr([]string{""})}, "empty item"},
		{jobs.LostSpec(3, "the line is missing"), jobs.Change{Command: ptr("a")}, "job 3 cannot be changed"},
	} {
		if s, err := c.change.Apply(c.of); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v; want %q", c.change, s, err, c.want)
		}
	}
}

// TestChangerShares checks that jobs that shared their options share them after the same change.
func TestChangerShares(t *testing.T) {
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
	if got[0].Options != got[2].Options || got[1].Options != got[3].Options || got[0].Options != got[4].Options || got[0].Options == got[1].Options {
		t.Error("equal options are held twice")
	}
}
