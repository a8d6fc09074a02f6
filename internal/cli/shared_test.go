package cli

import (
	"os"
	"path/filepath"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
)

// After damage to the journal the files tell of attempts that have no record any more
// or that are open; those whose end is recorded are not gone through again (X1).
func TestFoundAfterDamage(t *testing.T) {
	run := emptyRun(t)
	table := &jobs.Table{Damaged: true, Epoch: 2, Specs: []*jobs.Spec{{ID: 1, Options: jobs.NoOptions}, {ID: 2, Options: jobs.NoOptions}}}
	for _, r := range []jobs.Record{
		{Kind: jobs.KindAccepted, Job: 1, Count: 2},
		{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"},
		{Kind: jobs.KindExited, Job: 1, N: 1, Host: "a", Outcome: &jobs.Outcome{Exit: 1}},
		{Kind: jobs.KindLaunching, Job: 1, N: 2, Host: "a"},
	} {
		if err := jobs.Fold(table, &r); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(id jobs.AttemptID, host string) {
		t.Helper()
		path := jobs.AttemptFile(run.Dir, id, jobs.FileClaim)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		c := attempts.Claim{Run: run.UID(), Attempt: id, Host: host, By: "1.2.3", Boot: "x", At: 1}
		if err := os.WriteFile(path, c.Append(nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []jobs.AttemptID{{Job: 1, N: 1}, {Job: 1, N: 2}, {Job: 2, N: 1}} {
		claim(id, "a")
	}
	o := &owned{run: run, table: table}
	found, err := o.found()
	if err != nil || len(found) != 2 || found[0].Attempt.String() != "1.2" || found[1].Attempt.String() != "2.1" {
		t.Errorf("%+v, %v", found, err)
	}
	table.Damaged = false
	if found, _ := o.found(); len(found) != 1 || found[0].Attempt.String() != "2.1" {
		t.Errorf("without damage: %+v, want the attempt that has no record", found)
	}
	claim(jobs.AttemptID{Job: 1, N: 2}, "b")
	if found, _ := o.found(); len(found) != 2 || found[0].Host != "b" {
		t.Errorf("with a claim of another host than the record names: %+v", found)
	}
}
