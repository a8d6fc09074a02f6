package journal

import (
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// countedRun is a run of two jobs that has ended, with its stored counts.
func countedRun(t *testing.T) (*rundir.Run, *jobs.Table) {
	t.Helper()
	r := newRun(t)
	must(t, r.AppendSpecs([]*jobs.Spec{{ID: 1, Command: "true"}, {ID: 2, Command: "false"}}))
	appendCounted(t, r, jobs.Record{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: 2},
		jobs.Record{Kind: jobs.KindJob, At: 1, Job: 1, Next: jobs.Canceled, Seq: 1})
	if got := ReadCounts(r); got != nil {
		t.Errorf("got %v of a run with a job that is left", got.Counts)
	}
	return r, appendCounted(t, r, jobs.Record{Kind: jobs.KindJob, At: 1, Job: 2, Next: jobs.Skipped, Seq: 2})
}

// appendCounted appends the records of another dispatcher of the run, and stores the counts.
func appendCounted(t *testing.T, r *rundir.Run, recs ...jobs.Record) *jobs.Table {
	t.Helper()
	j, _, _, err := Take(t.Context(), r, TakeOptions{})
	must(t, err)
	must(t, j.Append(recs))
	must(t, j.Close())
	table, _ := mustReplay(t, r)
	must(t, WriteCounts(r, table))
	return table
}

// checkCounts checks which counts are read; want is nil if none count.
func checkCounts(t *testing.T, r *rundir.Run, want *jobs.Table) {
	t.Helper()
	got := ReadCounts(r)
	if got == nil && want == nil {
		return
	}
	if got == nil || want == nil || got.Counts != want.Counts || got.Unfinished() > 0 {
		t.Errorf("got %+v, want those of %+v", got, want)
	}
}

// TestCountsOfAnEndedRun checks that the stored counts of a run that has ended are those of its
// table, also after another dispatcher (X1).
func TestCountsOfAnEndedRun(t *testing.T) {
	r, table := countedRun(t)
	checkCounts(t, r, table)
	checkCounts(t, r, appendCounted(t, r, jobs.Record{Kind: jobs.KindRound, At: 2, Job: 2},
		jobs.Record{Kind: jobs.KindJob, At: 2, Job: 2, Next: jobs.Canceled, Seq: 3}))
}

// TestCountsOfAnotherJournal checks that counts are not read if the journal is not the one that they
// were computed from.
func TestCountsOfAnotherJournal(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, r *rundir.Run, table *jobs.Table){
		"an older copy of the journal": func(t *testing.T, r *rundir.Run, table *jobs.Table) {
			newest := fileOf(table.Epoch).path(r)
			whole, err := rundir.ReadFile(r.Disk, newest)
			must(t, err)
			must(t, rundir.Overwrite(r.Disk, newest, whole[:len(whole)/2]))
		},
		"a backup of the counts": func(t *testing.T, r *rundir.Run, _ *jobs.Table) {
			backup := map[string][]byte{}
			for _, path := range []string{r.Path(rundir.CountsFile), r.Path(rundir.OwnerFile)} {
				b, err := rundir.ReadFile(r.Disk, path)
				must(t, err)
				backup[path] = b
			}
			appendCounted(t, r, jobs.Record{Kind: jobs.KindRound, At: 2, Job: 2},
				jobs.Record{Kind: jobs.KindJob, At: 2, Job: 2, Next: jobs.Canceled, Seq: 3})
			for path, b := range backup {
				must(t, rundir.Replace(r.Disk, path, b))
			}
		},
		"another dispatcher since": func(t *testing.T, r *rundir.Run, table *jobs.Table) {
			table.Epoch--
			must(t, WriteCounts(r, table))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, table := countedRun(t)
			change(t, r, table)
			checkCounts(t, r, nil)
		})
	}
}

// TestDamagedCountsAreIgnored checks that a file that this program did not write has no counts.
func TestDamagedCountsAreIgnored(t *testing.T) {
	for name, damage := range map[string]func(text string) string{
		"half": func(text string) string { return text[:len(text)/2] },
		"negative counts": func(text string) string {
			return strings.Replace(text, `"canceled":1`, `"canceled":-1`, 1)
		},
		"a state is missing": func(text string) string {
			return strings.Replace(text, `"succeeded":`, `"unknown":`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := countedRun(t)
			b, err := rundir.ReadFile(r.Disk, r.Path(rundir.CountsFile))
			must(t, err)
			damaged := damage(string(b))
			if damaged == string(b) {
				t.Fatalf("nothing is damaged in %s", b)
			}
			must(t, rundir.Replace(r.Disk, r.Path(rundir.CountsFile), []byte(damaged)))
			checkCounts(t, r, nil)
		})
	}
}
