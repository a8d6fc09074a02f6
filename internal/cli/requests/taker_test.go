package requests

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/control"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// takenJournal is the journal of a run of three jobs, on a disk that can fail.
func takenJournal(t *testing.T) (*journal.Journal, *jobs.Table, *disktest.Disk) {
	t.Helper()
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
	t.Cleanup(func() { j.Close() })
	return j, table, disk
}

// The file of a request may go only when the record that it was taken in is durable:
// not before, and not when the disk has refused it (promise 1). Nor is whoever rang told
// before (issue 5.4).
func TestTakenWhenDurable(t *testing.T) {
	j, table, disk := takenJournal(t)
	table.Requests = map[string]bool{"old": true}
	n := NoteJournal(j, table)
	n.Await([]jobs.ID{1, 2})
	if !n.Taken("old") {
		t.Error("what an earlier dispatcher took in is not known")
	}
	_, more := n.recorded("new")
	isHeard := func() bool {
		select {
		case <-more:
			return true
		default:
			return false
		}
	}
	if old, _ := n.recorded("old"); !old {
		t.Error("nobody is told of it")
	}
	disk.FailAt(1, syscall.ENOSPC, false)
	n.Append([]jobs.Record{{Kind: jobs.KindRequest, Request: "new"}, {Kind: jobs.KindJob, Job: 2, Next: jobs.Cancelled, Seq: 1},
		{Kind: jobs.KindAcked, Seq: 1}})
	for step, want := range []bool{false, true} {
		if n.Taken("new") || isHeard() || !slices.Equal(n.Left(), []jobs.ID{1, 2}) {
			t.Errorf("step %d: taken, or over, before it is durable", step)
		}
		if err := n.Sync(); (err == nil) != want {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	if !n.Taken("new") || !isHeard() || !slices.Equal(n.Left(), []jobs.ID{1}) {
		t.Errorf("taken %v, left %v", n.Taken("new"), n.Left())
	}
}

// A request may name jobs that are just being submitted. How often others ring meanwhile
// does not shorten its patience; when all stored jobs are there it needs none, nor does the
// next one (K9: none is left out without a word).
func TestEarlyRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taker := new(Taker)
		for i := range 100 {
			if !taker.mayCome("a") {
				t.Fatalf("its patience is over after %d looks in %s", i, time.Since(taker.since))
			}
			time.Sleep(requestPatience / 100)
		}
		if taker.mayCome("a") || !taker.mayCome("b") {
			t.Errorf("a request holds those behind it for ever, or they have no patience of their own")
		}
		taker.whole = true
		if taker.mayCome("b") || taker.mayCome("c") {
			t.Error("what no job will come for waits")
		}
	})
}

// Issue 5.4: whoever rings has the requests looked at, and is answered when the one that he
// left is durable; not of one that this dispatcher does not take in any more.
func TestBell(t *testing.T) {
	j, table, _ := takenJournal(t)
	n := NoteJournal(j, table)
	taker := New(Options{Journal: n})
	answer := make(chan error)
	for range 2 { // the second finds the bell ringing, and the same answer
		go func() { answer <- taker.TakeIn(t.Context(), "a", nil) }()
	}
	<-taker.bell
	n.Append([]jobs.Record{{Kind: jobs.KindRequest, Request: "a"}})
	if err := n.Sync(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-answer; err != nil {
			t.Error(err)
		}
	}
	over := make(chan struct{})
	close(over)
	if err := taker.TakeIn(t.Context(), "b", over); !errors.Is(err, control.ErrLeaving) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := taker.TakeIn(ctx, "b", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
