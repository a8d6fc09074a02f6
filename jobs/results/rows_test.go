package results

import (
	"io"
	"reflect"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// packedAndNot folds records into a packed and into an ordinary table.
func packedAndNot(t *testing.T, specs []*jobs.Spec, records []jobs.Record) (packed, plain *jobs.Table) {
	packed, plain = jobs.NewPacked(), &jobs.Table{Specs: specs}
	packed.SetSpecs(0, specs)
	for i := range records {
		if err := jobs.Fold(packed, &records[i]); err != nil {
			t.Fatal(err)
		}
		if records[i].Job > 0 && int(records[i].Job) <= packed.NumJobs() {
			packed.PackIdle()
		}
		if err := jobs.Fold(plain, &records[i]); err != nil {
			t.Fatal(err)
		}
	}
	return packed, plain
}

// TestRowsOfAPackedTable checks that the results of a packed table are those of an ordinary one,
// whether each is looked at in turn or all are kept.
func TestRowsOfAPackedTable(t *testing.T) {
	p := &RunInfo{UID: "u", Name: "r", Created: 7, Dir: "/d", HostDirs: map[string]string{"melon1": "melon1:/kept"}}
	for seed := range uint64(50) {
		specs, records := jobstest.History(seed, 12, 400)
		packed, plain := packedAndNot(t, specs, records)
		for _, keep := range []func(jobs.JobState) bool{nil, jobs.JobState.Terminal} {
			a, b := p.Rows(packed, keep), p.Rows(plain, keep)
			if keep != nil {
				a.SortBySeq()
				b.SortBySeq()
			}
			all, want := a.All(), b.All()
			if len(all) != len(want) {
				t.Fatalf("seed %d: got %d results, want %d", seed, len(all), len(want))
			}
			for i := range want {
				if a.Facts(i).State != want[i].State || !reflect.DeepEqual(*a.Result(i), want[i]) ||
					!reflect.DeepEqual(all[i], want[i]) {
					t.Fatalf("seed %d: got %+v, want %+v", seed, *a.Result(i), want[i])
				}
			}
		}
	}
}

// TestResultsOfARunTakeNoMemory checks that a table of results makes each result when it is written,
// in memory that it uses again.
func TestResultsOfARunTakeNoMemory(t *testing.T) {
	const n = 2000
	var specs []*jobs.Spec
	records := []jobs.Record{{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: n}}
	for i := range n {
		id := jobs.ID(i + 1)
		specs = append(specs, &jobs.Spec{ID: id, Command: "true", Options: jobs.NoOptions,
			Labels: jobs.NewLabels("", []jobs.Param{{Name: "C", Value: "1"}})})
		records = append(records, jobs.Record{Kind: jobs.KindLaunching, At: 1, Job: id, N: 1, Host: "a"},
			jobs.Record{Kind: jobs.KindExited, At: 2, Job: id, N: 1, Slot: 1, Next: jobs.Succeeded, Seq: int64(id),
				Outcome: &jobs.Outcome{Started: 1e9, Ended: 2e9}})
	}
	packed, _ := packedAndNot(t, specs, records)
	rows := (&RunInfo{Dir: "/d"}).Rows(packed, nil)
	if got := testing.AllocsPerRun(1, func() {
		for i := range rows.Len() {
			_ = rows.Facts(i).Host
		}
	}); got > n/10 {
		t.Errorf("looking at %d results took %.0f allocations", n, got)
	}
	s := NewTable(TableInput{Rows: rows, Params: []string{"C"}})
	if got := testing.AllocsPerRun(1, func() {
		if err := Write(io.Discard, s, Options{Format: CSVFormat}); err != nil {
			t.Error(err)
		}
	}); got > 5*n {
		t.Errorf("writing %d results took %.0f allocations", n, got)
	}
}
