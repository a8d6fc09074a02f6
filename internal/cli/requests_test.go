package cli

import (
	"context"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// The file of a request may go only when the record that it was taken in is durable:
// not before, and not when the disk has refused it (promise 1). Nor is whoever rang told
// before (issue 5.4).
func TestTakenWhenDurable(t *testing.T) {
	run, err := rundir.CreateAt(filepath.Join(t.TempDir(), "r"), "r", rundir.Asked{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run.AppendSpecs(jobstest.Specs(3)); err != nil {
		t.Fatal(err)
	}
	disk := new(disktest.Disk)
	run.Disk = disk
	j, table, _, err := journal.Take(context.Background(), run, journal.TakeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	table.Requests = map[string]bool{"old": true}
	n := noteJournal(j, table)
	n.await([]jobs.ID{1, 2})
	if !n.taken("old") {
		t.Error("what an earlier dispatcher took in is not known")
	}
	heard := n.recorded("new")
	isHeard := func() bool {
		select {
		case <-heard:
			return true
		default:
			return false
		}
	}
	<-n.recorded("old")
	disk.FailAt(1, syscall.ENOSPC, false)
	n.Append([]jobs.Record{{Kind: jobs.KindRequest, Reason: "new"}, {Kind: jobs.KindJob, Job: 2, Next: jobs.Cancelled, Seq: 1},
		{Kind: jobs.KindAcked, Seq: 1}})
	for step, want := range []bool{false, true} {
		if n.taken("new") || isHeard() || !slices.Equal(n.left(), []jobs.ID{1, 2}) {
			t.Errorf("step %d: taken, or over, before it is durable", step)
		}
		if err := n.Sync(); (err == nil) != want {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	<-n.recorded("new")
	if !n.taken("new") || !isHeard() || !slices.Equal(n.left(), []jobs.ID{1}) {
		t.Errorf("taken %v, left %v", n.taken("new"), n.left())
	}
}
