package journal

import (
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// Promise 1: what a Take counts is durable before anything is built upon it. The first
// dispatcher is killed between write and fsync, the second one reads its records and
// jobs from the page cache, and then the power goes.
func TestTakeMakesDurableWhatItReads(t *testing.T) {
	m := memdisk.New().Mount("desk")
	r, err := rundir.CreateOn(m, "/base", "x", rundir.Asked{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	old, _, _ := take1(t, r, TakeOptions{})
	m.Fault = func(op, path string) error { // it dies before any fsync
		if op == "sync" {
			return memdisk.Forget{Err: errEnough}
		}
		return nil
	}
	specs := jobstest.Specs(2)
	b := []byte(jobs.SpecsHeader)
	for _, s := range specs {
		b = jobs.AppendSpec(b, s)
	}
	f, err := m.OpenFile(r.Path(rundir.SpecsFile), 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := old.Append([]jobs.Record{{Kind: jobs.KindAccepted, Job: 1, Count: 2}, {Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"}}); err != nil {
		t.Fatal(err)
	}
	old.mu.Lock()
	err = old.write()
	old.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	m.Fault = nil
	_, table, _ := take1(t, r, force)
	if len(table.Jobs) != 2 || table.Counts[jobs.Running] != 1 {
		t.Fatalf("the second dispatcher has %d jobs, %v", len(table.Jobs), table.Counts)
	}
	m.PowerLoss(nil)
	table, report := replay1(t, r)
	if report.Damaged || len(table.Jobs) != 2 || table.Counts[jobs.Running] != 1 {
		t.Errorf("after the loss of power: %d jobs, %v, %+v", len(table.Jobs), table.Counts, report)
	}
}
