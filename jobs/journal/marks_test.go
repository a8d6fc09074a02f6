package journal

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
)

// overtaken is a run of two dispatchers. The first wrote a line too late: a result under a number
// that the second had assigned to another job.
type overtaken struct {
	m     *memdisk.Mount
	r     *rundir.Run
	first []byte // the whole file of epoch 2
	line  int    // length of its first line with the newline
}

func newOvertaken(t *testing.T) *overtaken {
	t.Helper()
	o := new(overtaken)
	o.m, o.r = inMemory(t, jobstest.Specs(2)...)
	old, _, _ := mustTake(t, o.r, takeOn("melon1"))
	record(t, old, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2})
	next, _, _ := mustTake(t, o.r, takeOn("melon2"))
	tooLate(t, old, jobs.Record{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1})
	record(t, next, jobs.Record{Kind: jobs.KindJob, Job: 2, Next: jobs.Skipped, Seq: 1})
	crash(t, old)
	crash(t, next)
	o.first = content(t, o.r, 2)
	o.line = len(lines(o.first, 1))
	return o
}

// check checks that the late line does not count for readers, followers, and takers. If kept is
// false, the result of job 2 is gone with its line.
func (o *overtaken) check(t *testing.T, what string, kept bool) {
	t.Helper()
	want := jobs.Queued
	if kept {
		want = jobs.Skipped
	}
	right := func(by string, table *jobs.Table, report *Report) {
		t.Helper()
		if a, b := table.Job(1), table.Job(2); a.State != jobs.Queued || b.State != want || report.Ignored == 0 {
			t.Fatalf("%s: %s job 1 is %s, job 2 %s; %+v", what, by, a.State, b.State, report)
		}
	}
	table, report := mustReplay(t, o.r)
	right("to who looks", table, report)
	if _, err := Follow(o.r).Poll(Limit{End: true}, func(_ int, r *jobs.Record) {
		if r.Job == 1 && r.Kind == jobs.KindJob {
			t.Fatalf("%s: the late line is read", what)
		}
	}); err != nil {
		t.Fatal(err)
	}
	j, table, report := mustTake(t, o.r, takeOn("melon3"))
	right("to who takes over", table, report)
	crash(t, j)
	table, report = mustReplay(t, o.r)
	right("afterwards", table, report)
	forget(t, o.r, 3)
}

// TestLateRecordsStayOut checks that late records of a fenced-off dispatcher do not count, even if
// the line that excludes them has a flipped bit, is cut off anywhere, or is gone with its whole
// file (promises 1 and 2). The marks are stored twice.
func TestLateRecordsStayOut(t *testing.T) {
	o := newOvertaken(t)
	o.check(t, "undamaged", true)
	for bit := range 8 * (o.line - 1) {
		putJournal(t, o.r, 2, flipped(o.first, bit))
		o.check(t, fmt.Sprintf("byte %d, bit %d", bit/8, bit%8), true)
	}
	for cut := range o.line {
		putJournal(t, o.r, 2, o.first[:cut])
		o.check(t, fmt.Sprintf("cut at byte %d", cut), false)
	}
	putJournal(t, o.r, 2, flipped(flipped(o.first, 8*20), 8*(o.line-1))) // both its text and its newline
	o.check(t, "damaged twice", false)
}

// TestMarksAreASecondCopy checks that the marks beside the file are only a second copy. Damage to
// them alone changes nothing. A run directory of an older program, which has none, is read as
// before, even if its first line is damaged.
func TestMarksAreASecondCopy(t *testing.T) {
	o := newOvertaken(t)
	path := o.r.Path(rundir.JournalDir, fileOf(2).marksName())
	marks, err := rundir.ReadFile(o.m, path)
	if err != nil || !bytes.Equal(marks, o.first[:o.line]) {
		t.Fatalf("beside the file stands %q, %v", marks, err)
	}
	for bit := range 8 * len(marks) {
		putFile(t, o.r, path, flipped(marks, bit))
		o.check(t, fmt.Sprintf("marks, byte %d, bit %d", bit/8, bit%8), true)
	}
	older := func(what string) {
		t.Helper()
		putJournal(t, o.r, 2, flipped(o.first, 8*20))
		if table, report := mustReplay(t, o.r); !report.Damaged || report.Ignored != 0 ||
			table.Job(1).State != jobs.Canceled {
			t.Fatalf("%s: job 1 is %s; %+v", what, table.Job(1).State, report)
		}
		putJournal(t, o.r, 2, o.first)
	}
	for cut := range len(marks) - 1 {
		putFile(t, o.r, path, marks[:cut])
		o.check(t, fmt.Sprintf("marks cut at byte %d", cut), true)
		older(fmt.Sprintf("marks cut at byte %d", cut))
	}
	wrong := jobs.Record{Kind: jobs.KindEpoch, Epoch: 3} // of another epoch
	putFile(t, o.r, path, appendLine(nil, &wrong))
	older("marks of another epoch")
	must(t, o.m.Remove(path))
	o.check(t, "no marks", true)
	older("no marks")
}

// TestMarksWithoutAFile checks that marks whose file was lost open no epoch and do not block one.
func TestMarksWithoutAFile(t *testing.T) {
	o := newOvertaken(t)
	remove(t, o.r, 2)
	must(t, o.m.Remove(o.r.Path(rundir.OwnerFile)))
	if table, report := mustReplay(t, o.r); table.Epoch != 1 || report.Damaged {
		t.Errorf("epoch %d, %+v", table.Epoch, report)
	}
	j, _, _ := mustTake(t, o.r, takeOn("melon3"))
	record(t, j, jobs.Record{Kind: jobs.KindPriority, Job: 2, Priority: 5})
	crash(t, j)
	if table, report := mustReplay(t, o.r); j.Epoch() != 2 || table.Job(2).Priority != 5 || report.Damaged {
		t.Errorf("epoch %d, %+v", j.Epoch(), report)
	}
}

// TestTakeDiesAndTheOlderWrites checks a dispatcher that dies at any operation of its Take, after
// which the older one wakes up and writes. The older one is told that it is fenced off. The next
// taker and all readers agree on one history, however much of the marks was written.
func TestTakeDiesAndTheOlderWrites(t *testing.T) {
	for n := 1; ; n++ {
		m, r := inMemory(t, jobstest.Specs(2)...)
		old, _, _ := mustTake(t, r, takeOn("melon1"))
		record(t, old, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2})
		count := 0
		m.Fault = func(string, string) error {
			if count++; count >= n {
				return errGone
			}
			return nil
		}
		_, _, _, err := Take(t.Context(), r, takeOn("melon2"))
		m.Fault = nil
		if err == nil {
			break
		}
		cancel := jobs.Record{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1}
		_ = old.Append([]jobs.Record{cancel})
		acted := old.Sync() == nil
		seen, report := mustReplay(t, r)
		if counts := seen.Job(1).State == jobs.Canceled; acted && !counts || report.Damaged {
			t.Fatalf("operation %d: it was acted upon: %v, it counts: %v; %+v", n, acted, counts, report)
		}
		j, table, report := mustTake(t, r, takeOn("melon3"))
		seen.Epoch, seen.Closed = j.Epoch(), jobs.Closing{}
		if !equalTables(seen, table) || report.Damaged {
			t.Fatalf("operation %d: who takes over has another history; %+v", n, report)
		}
	}
}

// TestRemovedRunIsNamed checks that a run directory that was removed during a dispatch is reported
// as such by the watch for other dispatchers and by the heartbeat, and does not fence anybody off.
func TestRemovedRunIsNamed(t *testing.T) {
	r := newRun(t)
	j, _, _ := mustTake(t, r, TakeOptions{})
	must(t, os.RemoveAll(r.Dir))
	by, err := j.Fenced()
	if by != 0 || err == nil || !strings.Contains(err.Error(), r.Dir) ||
		!strings.Contains(err.Error(), "is gone: was it removed?") {
		t.Errorf("Fenced: got %d, %v; want an error that says that the run is gone", by, err)
	}
	if err := j.Heartbeat(); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("heartbeat: %v", err)
	}
}

// TestLostFilesUseNoEpochTwice checks that no epoch is used twice when journal files are lost,
// because the hosts remember epochs. Every later dispatcher and reader knows that facts are
// missing, even if the files that remain are consistent.
func TestLostFilesUseNoEpochTwice(t *testing.T) {
	for _, lost := range [][]int{{1}, {2}, {3}, {2, 3}, {1, 2, 3}} {
		r := newRun(t)
		for range 3 {
			mustTake(t, r, force)
		}
		remove(t, r, lost...)
		missing := fileOf(slices.Max(lost)).label() + " is missing"
		for epoch := 4; epoch <= 5; epoch++ {
			j, table, report := mustTake(t, r, force)
			if j.file.epoch != epoch || !report.Damaged || !table.Damaged ||
				!strings.Contains(strings.Join(report.Warnings, "\n"), missing) {
				t.Errorf("without %d: epoch %d, want %d, damaged %v: %q", lost, j.file.epoch, epoch,
					report.Damaged, report.Warnings)
			}
		}
		if _, report := mustReplay(t, r); !report.Damaged {
			t.Errorf("without %d: it shows no damage", lost)
		}
	}
}

// TestTakeMakesDurableWhatItReads checks promise 1: records that a Take counts are durable before
// anything builds on them. The first dispatcher is killed between write and fsync, the second one
// reads its records and jobs from the page cache, and then the power fails.
func TestTakeMakesDurableWhatItReads(t *testing.T) {
	m, r := inMemory(t)
	old, _, _ := mustTake(t, r, TakeOptions{})
	m.Fault = failing("sync", memdisk.LostWrites{Err: errEnough}) // it dies before any fsync
	b := []byte(jobs.SpecsHeader(0))
	for _, s := range jobstest.Specs(2) {
		b = jobs.AppendSpec(b, s)
	}
	f, err := m.OpenFile(r.Path(rundir.SpecsFile), 2, 0)
	must(t, err)
	_, err = f.WriteAt(b, 0)
	must(t, err)
	must(t, old.Append([]jobs.Record{{Kind: jobs.KindAccepted, Job: 1, Count: 2},
		{Kind: jobs.KindLaunching, Job: 1, N: 1, Host: "a"}}))
	old.mu.Lock()
	err = old.write()
	old.mu.Unlock()
	must(t, err)
	m.Fault = nil
	_, table, _ := mustTake(t, r, force)
	if len(table.Jobs) != 2 || table.Counts[jobs.Running] != 1 {
		t.Fatalf("the second dispatcher has %d jobs, %v", len(table.Jobs), table.Counts)
	}
	m.PowerLoss(nil)
	table, report := mustReplay(t, r)
	if report.Damaged || len(table.Jobs) != 2 || table.Counts[jobs.Running] != 1 {
		t.Errorf("after the loss of power: %d jobs, %v, %+v", len(table.Jobs), table.Counts, report)
	}
}
