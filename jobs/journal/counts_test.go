package journal

import (
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// TestCountsOfAnEndedRun checks that the stored counts of a run that has ended are those of its
// table, and that they count only for the journal that they were computed from (X1): not after another
// dispatcher, nor if a backup has replaced them, or the journal.
func TestCountsOfAnEndedRun(t *testing.T) {
	r := newRun(t)
	if err := r.AppendSpecs([]*jobs.Spec{{ID: 1, Command: "true"}, {ID: 2, Command: "false"}}); err != nil {
		t.Fatal(err)
	}
	take := func(recs ...jobs.Record) *jobs.Table {
		t.Helper()
		j, _, _, err := Take(t.Context(), r, TakeOptions{})
		if err == nil {
			err = j.Append(recs)
		}
		if err == nil {
			err = j.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		table, _ := mustReplay(t, r)
		if err := WriteCounts(r, table); err != nil {
			t.Fatal(err)
		}
		return table
	}
	take(jobs.Record{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: 2},
		jobs.Record{Kind: jobs.KindJob, At: 1, Job: 1, Next: jobs.Canceled, Seq: 1})
	if got := ReadCounts(r); got != nil {
		t.Errorf("got %v of a run with a job that is left", got.Counts)
	}
	table := take(jobs.Record{Kind: jobs.KindJob, At: 1, Job: 2, Next: jobs.Skipped, Seq: 2})
	backup := map[string][]byte{}
	for _, path := range []string{r.Path(rundir.CountsFile), r.Path(rundir.OwnerFile)} {
		b, err := rundir.ReadFile(r.Disk, path)
		must(t, err)
		backup[path] = b
	}
	if got := ReadCounts(r); got == nil || got.Counts != table.Counts || got.Unfinished() > 0 {
		t.Errorf("got %v, want %v", got, table.Counts)
	}
	take(jobs.Record{Kind: jobs.KindRound, At: 2, Job: 2}, jobs.Record{Kind: jobs.KindJob, At: 2, Job: 2,
		Next: jobs.Canceled, Seq: 3})
	table, _ = mustReplay(t, r)
	if got := ReadCounts(r); got == nil || got.Counts != table.Counts || got.Counts[jobs.Canceled] != 2 {
		t.Errorf("got %v, want %v", got, table.Counts)
	}
	newest := fileOf(table.Epoch).path(r)
	whole, err := rundir.ReadFile(r.Disk, newest)
	must(t, err)
	must(t, rundir.Overwrite(r.Disk, newest, whole[:len(whole)/2]))
	if got := ReadCounts(r); got != nil {
		t.Errorf("got %v for an older copy of the journal", got.Counts)
	}
	must(t, rundir.Overwrite(r.Disk, newest, whole))
	for path, b := range backup {
		must(t, rundir.Replace(r.Disk, path, b))
	}
	if got := ReadCounts(r); got != nil {
		t.Errorf("got %v from a backup of the counts", got.Counts)
	}
	table.Epoch-- // as if another dispatcher had taken over before the counts were written
	if err := WriteCounts(r, table); err != nil {
		t.Fatal(err)
	}
	if got := ReadCounts(r); got != nil {
		t.Errorf("got %v of an earlier dispatcher", got.Counts)
	}
	for _, text := range []string{"{", `{"epoch":2}`, `{"epoch":2,"counts":{"canceled":0,"failed":-1,"queued":0,` +
		`"running":0,"skipped":0,"succeeded":3,"timed_out":0}}`} {
		if err := rundir.Replace(r.Disk, r.Path(rundir.CountsFile), []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := ReadCounts(r); got != nil {
			t.Errorf("got %v of %s", got.Counts, text)
		}
	}
}
