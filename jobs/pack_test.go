package jobs_test

import (
	"reflect"
	"slices"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestPackedTableFoldsTheSame checks that packed tables fold to the same state as a plain one.
func TestPackedTableFoldsTheSame(t *testing.T) {
	n := 0
	for seed := range uint64(20) {
		specs, recs := jobstest.History(seed, 8, 400)
		plain, packed := &jobs.Table{Specs: slices.Clone(specs)}, jobs.NewPacked()
		working := jobs.NewWorking()
		working.SetSpecs(0, specs)
		packed.SetSpecs(0, specs[:3])
		packed.SetSpecs(3, specs[3:])
		var reader jobs.RowReader
		for i := range recs {
			for _, table := range []*jobs.Table{plain, packed, working} {
				if err := jobs.Fold(table, &recs[i]); err != nil {
					t.Fatal(err)
				}
			}
			if recs[i].Job > 0 && seed%2 == 0 {
				packed.PackIdle()
				working.PackIdle()
				n++
			}
			if packed.NumJobs() != len(plain.Jobs) || packed.Counts != plain.Counts || packed.Seq != plain.Seq {
				t.Fatalf("seed %d, record %d: %d jobs, %v, want %d, %v", seed, i, packed.NumJobs(), packed.Counts,
					len(plain.Jobs), plain.Counts)
			}
			for k := range plain.Jobs {
				id, want := jobs.ID(k+1), &plain.Jobs[k]
				for _, table := range []*jobs.Table{packed, working} {
					for _, got := range []*jobs.Job{table.Job(id), reader.Job(table, id)} {
						if !sameRow(got, want) {
							t.Fatalf("seed %d, record %d: job %d is %+v, want %+v", seed, i, id, got, want)
						}
					}
				}
				if got := packed.State(id); got != want.State {
					t.Fatalf("seed %d, record %d: job %d is %s, want %s", seed, i, id, got, want.State)
				}
				if got := packed.SeqOf(id); got != want.Seq {
					t.Fatalf("seed %d, record %d: job %d has result %d, want %d", seed, i, id, got, want.Seq)
				}
				if got := packed.OptionsOf(id); got != want.Spec.Options {
					t.Fatalf("seed %d, record %d: job %d has options %+v, want %+v", seed, i, id, got,
						want.Spec.Options)
				}
				for at, want := range want.Attempts {
					if got := packed.Attempt(jobs.AttemptID{Job: id, N: at + 1}); !reflect.DeepEqual(got, want) {
						t.Fatalf("seed %d, record %d: got %+v, want %+v", seed, i, got, want)
					}
				}
			}
		}
		at := 0
		for j := range packed.Rows() {
			if at++; !sameRow(j, &plain.Jobs[at-1]) {
				t.Errorf("seed %d: Rows has %+v, want %+v", seed, j, &plain.Jobs[at-1])
			}
		}
	}
	if n == 0 {
		t.Error("nothing was packed")
	}
}

// sameRow compares rows. An empty list equals nil.
func sameRow(a, b *jobs.Job) bool {
	x, y := *a, *b
	s, u := *x.Spec, *y.Spec
	if len(s.Params())+len(u.Params()) == 0 {
		s.Labels, u.Labels = jobs.NewLabels(s.Key(), nil, s.After()...), jobs.NewLabels(u.Key(), nil, u.After()...)
	}
	if len(x.Attempts)+len(y.Attempts) == 0 {
		x.Attempts, y.Attempts = nil, nil
	}
	x.Spec, y.Spec = &s, &u
	return reflect.DeepEqual(x, y)
}

// TestEveryFieldSurvivesPacking checks that every field of a job, its specification, an attempt,
// and its outcome survives packing.
func TestEveryFieldSurvivesPacking(t *testing.T) {
	out := &jobs.Outcome{
		Exit:         -1,
		Signal:       "SIGKILL",
		Memory:       jobs.OutOfMemory,
		Started:      1 << 59,
		Ended:        5,
		CPU:          1 << 50,
		MaxRSSBytes:  1 << 40,
		TimedOut:     true,
		Stopped:      true,
		DiskFull:     true,
		Unreturned:   true,
		Files:        3,
		Suspended:    5,
		LeftChildren: 9,
		Error:        "e",
		LastLine:     "last\xff",
		ProcessLimit: jobs.ProcessLimit{Kind: jobs.LimitUser, Max: 1 << 40, Path: "/p"},
	}
	allSet(t, *out)
	allSet(t, out.ProcessLimit)
	long := make([]byte, 100_000)
	spec := &jobs.Spec{ID: 1, Line: 7, Command: "a\x00é" + string(long), Name: "n",
		Labels: jobs.NewLabels("k", []jobs.Param{{Name: "x", Value: "1"}, {Name: "y"}},
			jobs.Dependency{Range: jobs.Range{First: 5, Last: 1 << 40}, On: jobs.AfterFailure}, jobs.Dependency{}),
		Options: &jobs.Options{Queue: "q", Priority: -3}}
	allSet(t, *spec)
	allSet(t, *spec.Labels)
	short := &jobs.Spec{ID: 2, Command: "b", Options: jobs.NoOptions}
	table := jobs.NewPacked()
	table.SetSpecs(0, []*jobs.Spec{spec, short})
	damaged := jobs.Record{Kind: jobs.KindDamaged}
	fold := func(recs ...jobs.Record) {
		t.Helper()
		for i := range recs {
			if err := jobs.Fold(table, &recs[i]); err != nil {
				t.Fatal(err)
			}
			table.PackIdle()
		}
	}
	fold(damaged, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2})
	if got, want := table.Job(1), (&jobs.Job{Spec: spec, Round: 1, Priority: -3}); !sameRow(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	fold(jobs.Record{Kind: jobs.KindPriority, Job: 1, Priority: 1 << 30},
		jobs.Record{Kind: jobs.KindLaunching, Job: 1, N: 1, At: 1 << 60, Host: "melon1"},
		jobs.Record{Kind: jobs.KindRunning, Job: 1, N: 1, Slot: 3, Started: 1<<60 - 5},
		jobs.Record{Kind: jobs.KindLost, Job: 1, N: 1, Next: jobs.Queued, Reason: "why é", Retry: 99},
		jobs.Record{Kind: jobs.KindLaunching, Job: 1, N: 2, At: 5, Host: "melon2"},
		jobs.Record{Kind: jobs.KindExited, Job: 1, N: 2, Next: jobs.Failed, Seq: 1 << 40, Charged: true, Outcome: out,
			Reason: "r"})
	want := &jobs.Job{Spec: spec, Seq: 1 << 40, Reason: "r", Priority: 1 << 30, Round: 1, Failures: 1,
		Counted: 2, State: jobs.Failed, Attempts: []*jobs.Attempt{
			{ID: jobs.AttemptID{Job: 1, N: 1}, Host: "melon1", Reason: "why é", Launched: 1 << 60, Started: 1<<60 - 5,
				Slot: 3, Round: 1, State: jobs.AttemptLost},
			{ID: jobs.AttemptID{Job: 1, N: 2}, Host: "melon2", Reason: "r", Launched: 5, Started: out.Started,
				Outcome: out, Round: 1, State: jobs.AttemptExited, Charged: true},
		}}
	if got := table.Job(1); !sameRow(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := table.Job(2); !sameRow(got, &jobs.Job{Spec: short, Round: 1}) {
		t.Errorf("got %+v", got)
	}
	fold(jobs.Record{Kind: jobs.KindLaunching, Job: 2, N: 1, Host: "melon1"},
		jobs.Record{Kind: jobs.KindLost, Job: 2, N: 1, Next: jobs.Queued, Retry: 99, Reason: "x"})
	if got := table.Job(2); got.Retry != 99 || !got.Urgent || got.Reason != "x" {
		t.Errorf("got %+v, want an urgent job that waits until 99", got)
	}
}

// allSet fails the test unless every field of a struct is set.
func allSet(t *testing.T, x any) {
	t.Helper()
	for v, i := reflect.ValueOf(x), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Fatalf("the test sets no %s of %T", v.Type().Field(i).Name, x)
		}
	}
}

// TestWorkingTableKeepsItsRows checks that a dispatcher sees each change of a row that Job has
// returned, until PackIdle, and that a row with an open attempt stays the same beyond that.
func TestWorkingTableKeepsItsRows(t *testing.T) {
	table := jobs.NewWorking()
	table.SetSpecs(0, []*jobs.Spec{{ID: 1, Command: "a", Options: jobs.NoOptions}})
	fold := func(r jobs.Record) {
		t.Helper()
		if err := jobs.Fold(table, &r); err != nil {
			t.Fatal(err)
		}
	}
	fold(jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 1})
	queued := table.Job(1)
	fold(jobs.Record{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "melon1"})
	if queued.State != jobs.Running || queued != table.Job(1) || queued.Spec.Command != "a" {
		t.Errorf("the row is %+v", queued)
	}
	table.PackIdle()
	if queued != table.Job(1) {
		t.Error("the row of a running job was packed")
	}
	fold(jobs.Record{Kind: jobs.KindExited, Job: 1, N: 1, Next: jobs.Succeeded, Seq: 1, Outcome: &jobs.Outcome{}})
	if queued.State != jobs.Succeeded || queued.Attempts[0] != table.Attempt(jobs.AttemptID{Job: 1, N: 1}) {
		t.Errorf("the row is %+v", queued)
	}
	table.PackIdle()
	fold(jobs.Record{Kind: jobs.KindRound, Job: 1})
	if j := table.Job(1); queued.State != jobs.Succeeded || j.State != jobs.Queued || len(table.Past) != 1 {
		t.Errorf("the row is %+v, was %+v, and %d results of earlier rounds are kept", j, queued, len(table.Past))
	}
}
