package jobs_test

import (
	"reflect"
	"slices"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// A table whose finished jobs are packed after each record folds to what the plain one is.
func TestPack(t *testing.T) {
	n := 0
	for seed := range uint64(20) {
		specs, recs := jobstest.History(seed, 8, 400)
		plain, packed := &jobs.Table{Specs: slices.Clone(specs)}, &jobs.Table{Specs: slices.Clone(specs)}
		var p jobs.Packer
		for i := range recs {
			for _, table := range []*jobs.Table{plain, packed} {
				if err := jobs.Fold(table, &recs[i]); err != nil {
					t.Fatal(err)
				}
			}
			for k := range packed.Jobs {
				if j := &packed.Jobs[k]; p.Pack(j) {
					n++
				}
			}
			for k := range plain.Jobs {
				got, want := &packed.Jobs[k], &plain.Jobs[k]
				if all := got.History(); len(all)+len(want.Attempts) > 0 && !reflect.DeepEqual(all, want.Attempts) {
					t.Fatalf("seed %d, record %d: job %d has %+v, want %+v", seed, i, k+1, all, want.Attempts)
				}
				if got.Ran() != want.Ran() || len(got.Open()) != len(want.Open()) || !reflect.DeepEqual(got.Last(), want.Last()) ||
					got.State != want.State || got.Failures != want.Failures {
					t.Fatalf("seed %d, record %d: job %d is %+v, want %+v", seed, i, k+1, got, want)
				}
			}
			if len(packed.Past) != len(plain.Past) {
				t.Fatalf("seed %d, record %d: %d past rows, want %d", seed, i, len(packed.Past), len(plain.Past))
			}
		}
	}
	if n == 0 {
		t.Error("nothing was packed")
	}
}

// Every field of an attempt and its outcome survives packing.
func TestPackFields(t *testing.T) {
	full := &jobs.Attempt{ID: jobs.AttemptID{Job: 7, N: 1}, Host: "melon1", Reason: "why é", Launched: 1 << 60, Started: 1<<60 - 5, Slot: 3, Round: 2,
		State: jobs.AttemptExited, Charged: true, Outcome: &jobs.Outcome{Exit: -1, Signal: "SIGKILL", Started: 1 << 59, Ended: 5, CPU: 1 << 50,
			MaxRSSBytes: 1 << 40, TimedOut: true, Stopped: true, DiskFull: true, LeftChildren: 9, Error: "e", LastLine: "last\xff"}}
	v := reflect.ValueOf(*full.Outcome)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Fatalf("the test sets no %s", v.Type().Field(i).Name)
		}
	}
	j := jobs.Job{Spec: &jobs.Spec{ID: 7}, Attempts: []*jobs.Attempt{full, {ID: jobs.AttemptID{Job: 7, N: 2}, State: jobs.AttemptLost}}}
	want := j.Attempts
	if !new(jobs.Packer).Pack(&j) || j.Attempts != nil || !reflect.DeepEqual(j.History(), want) {
		t.Errorf("%+v, want %+v", j.History(), want)
	}
	j = jobs.Job{Spec: &jobs.Spec{ID: 7}, Attempts: []*jobs.Attempt{{State: jobs.AttemptRunning}}}
	if new(jobs.Packer).Pack(&j) {
		t.Error("an open attempt was packed")
	}
}
