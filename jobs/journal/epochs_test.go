package journal

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
)

// TestOldEpochIsFencedOff checks that records of an old dispatcher after a takeover are not part of
// the run (E7). It notices the takeover, and changes neither the journal nor the owner file.
func TestOldEpochIsFencedOff(t *testing.T) {
	_, r := inMemory(t, jobstest.Specs(2)...)
	old, _, _ := mustTake(t, r, TakeOptions{})
	record(t, old, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2})
	if n, err := old.Fenced(); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	next, live, _ := mustTake(t, r, force)
	must(t, next.SetSocket("new"))
	late := jobs.Record{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1}
	tooLate(t, old, late) // the old dispatcher wakes up
	truth := jobs.Record{Kind: jobs.KindJob, Job: 2, Next: jobs.Skipped, Seq: 1}
	record(t, next, truth)
	must(t, jobs.Fold(live, &truth))
	table, report := mustReplay(t, r)
	if !equalTables(table, live) || report.Damaged || report.Ignored == 0 {
		t.Errorf("%+v: job 1 is %s", report, table.Job(1).State)
	}
	if n, err := old.Fenced(); n != 2 || err != nil {
		t.Errorf("Fenced says %d, %v", n, err)
	}
	for what, err := range map[string]error{"heartbeat": old.Heartbeat(), "address": old.SetSocket("old"),
		"close": old.Close()} {
		t.Run(what, func(t *testing.T) {
			if !errors.Is(err, ErrFenced) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	o, err := ReadOwner(r)
	if err != nil || o.Socket != "new" || o.Left || o.Epoch != 2 {
		t.Errorf("the owner file says %+v, %v", o, err)
	}
	// A heartbeat that was in progress during the takeover changes nothing.
	if err := old.writer.heartbeat(func(*Owner) {}); err == nil || !errors.Is(err, ErrFenced) {
		t.Errorf("a heartbeat on a reopened file: %v", err)
	}
	// The old dispatcher stores no jobs; the next one does.
	if err := r.AppendSpecs(jobstest.Specs(3)[2:]); err != nil {
		t.Error(err)
	}
	r.SetOwner(1, old.fencedError)
	if err := r.AppendSpecs(jobstest.Specs(4)[3:]); !errors.Is(err, ErrFenced) {
		t.Errorf("it stored a job: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// TestEpochWithoutARecordDoesNotCount checks a dispatcher that died or slept between creating its
// journal file and its first record. It has not begun. If it wakes up, its file does not count.
func TestEpochWithoutARecordDoesNotCount(t *testing.T) {
	for _, begun := range []string{"", "deadbeef {\"k\":\"epo"} {
		t.Run(begun, func(t *testing.T) {
			_, r := inMemory(t, jobstest.Specs(1)...)
			j, live, _ := mustTake(t, r, TakeOptions{})
			accepted := jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 1}
			record(t, j, accepted)
			must(t, jobs.Fold(live, &accepted))
			crash(t, j)
			putJournal(t, r, 2, []byte(begun))
			if table, report := mustReplay(t, r); !equalTables(table, live) || report.Damaged {
				t.Errorf("%q: %+v", begun, report)
			}
			j, table, report := mustTake(t, r, force)
			live.Epoch, live.Closed = 3, jobs.Closing{}
			if j.Epoch() != 3 || !equalTables(table, live) || report.Damaged {
				t.Errorf("%q: epoch %d, %+v", begun, j.Epoch(), report)
			}
			crash(t, j)
			late := jobs.Record{Kind: jobs.KindEpoch, Epoch: 2}
			cancel := jobs.Record{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1}
			putJournal(t, r, 2, appendLine(appendLine(nil, &late), &cancel))
			if table, report := mustReplay(t, r); !equalTables(table, live) || report.Ignored == 0 {
				t.Errorf("%q: the unbegun epoch counts: %+v", begun, report)
			}
		})
	}
}

// TestChangedOldFileIsReported checks that a changed older file is reported and that the rest still
// counts.
func TestChangedOldFileIsReported(t *testing.T) {
	for what, spoil := range map[string]func(r *rundir.Run, b []byte){
		"is missing":       func(r *rundir.Run, _ []byte) { remove(t, r, 1) },
		"has lost its end": func(r *rundir.Run, b []byte) { putJournal(t, r, 1, b[:len(b)-1]) },
		"its checksum":     func(r *rundir.Run, b []byte) { putJournal(t, r, 1, flipped(b, 8*(len(b)-5))) },
	} {
		t.Run(what, func(t *testing.T) {
			_, r := inMemory(t, jobstest.Specs(2)...)
			j, _, _ := mustTake(t, r, TakeOptions{})
			record(t, j, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2},
				jobs.Record{Kind: jobs.KindPriority, Job: 1, Priority: 4})
			crash(t, j)
			j, _, _ = mustTake(t, r, force)
			record(t, j, jobs.Record{Kind: jobs.KindJob, Job: 2, Next: jobs.Skipped, Seq: 1})
			crash(t, j)
			spoil(r, content(t, r, 1))
			table, report := mustReplay(t, r)
			if !report.Damaged || !strings.Contains(strings.Join(report.Warnings, "\n"), what) {
				t.Errorf("%s: %+v", what, report)
			}
			if j := table.Job(2); j == nil || j.State != jobs.Skipped {
				t.Errorf("%s: job 2 is %+v", what, j)
			}
		})
	}
}

// TestWarningsAreBounded checks that a report keeps the first warnings and counts the others.
func TestWarningsAreBounded(t *testing.T) {
	var p Report
	for i := range 100 {
		p.warn("line %d", i)
	}
	if len(p.Warnings) != maxWarnings || p.More != 100-maxWarnings {
		t.Errorf("%d and %d more", len(p.Warnings), p.More)
	}
}

// TestOtherFilesAreLeftAlone checks that other files in the journal directory are left alone.
func TestOtherFilesAreLeftAlone(t *testing.T) {
	r := newRun(t)
	for _, name := range []string{"000002.jsonl", "1000000.jsonl", "999999.jsonl", "000010.jsonl", "2.jsonl",
		"000000.jsonl", "00000a.jsonl", ".nfs0001", "000003.jsonl~", "-00001.jsonl"} {
		must(t, os.WriteFile(r.Path(rundir.JournalDir, name), nil, 0o600))
	}
	files, err := listFiles(r)
	if got := fmt.Sprint(files); err != nil ||
		got != "[{2 000002.jsonl} {10 000010.jsonl} {999999 999999.jsonl} {1000000 1000000.jsonl}]" {
		t.Errorf("listFiles: got %s, %v; want them in the order of their epochs", got, err)
	}
}
