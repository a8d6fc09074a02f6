package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
)

// TestManyEpochs checks a run that is resumed again and again, after a crash or an orderly end.
// Every dispatcher begins where the last one stopped.
func TestManyEpochs(t *testing.T) {
	r := newRun(t)
	specs, recs := jobstest.History(5, 8, 400)
	if err := r.AppendSpecs(specs); err != nil {
		t.Fatal(err)
	}
	live := &jobs.Table{Specs: slices.Clone(specs)}
	for epoch := 1; len(recs) > 0; epoch++ {
		j, table, report := take1(t, r, force)
		live.Epoch = epoch
		if j.Epoch() != epoch || !same(table, live) || report.Damaged {
			t.Fatalf("epoch %d: %+v", epoch, report)
		}
		n := min(37, len(recs))
		for i := range recs[:n] {
			if err := jobs.Fold(live, &recs[i]); err != nil {
				t.Fatal(err)
			}
		}
		record(t, j, recs[:n]...)
		recs = recs[n:]
		if epoch%2 == 0 {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			crash(t, j)
		}
	}
	if table, report := replay1(t, r); !same(table, live) || report.Damaged {
		t.Errorf("%+v", report)
	}
}

// TestOldEpochIsFencedOff checks that records of an old dispatcher after a takeover are not part of
// the run (E7). It notices the takeover, and changes neither the journal nor the owner file.
func TestOldEpochIsFencedOff(t *testing.T) {
	r := newRun(t)
	if err := r.AppendSpecs(jobstest.Specs(2)); err != nil {
		t.Fatal(err)
	}
	old, _, _ := take1(t, r, TakeOptions{})
	record(t, old, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2})
	if n, err := old.Fenced(); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	next, live, _ := take1(t, r, TakeOptions{Force: true})
	if err := next.SetSocket("new"); err != nil {
		t.Fatal(err)
	}
	late := jobs.Record{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1}
	tooLate(t, old, late) // the old dispatcher wakes up
	truth := jobs.Record{Kind: jobs.KindJob, Job: 2, Next: jobs.Skipped, Seq: 1}
	record(t, next, truth)
	if err := jobs.Fold(live, &truth); err != nil {
		t.Fatal(err)
	}
	table, report := replay1(t, r)
	if !same(table, live) || report.Damaged || report.Ignored == 0 {
		t.Errorf("%+v: job 1 is %s", report, table.Job(1).State)
	}
	if n, err := old.Fenced(); n != 2 || err != nil {
		t.Errorf("Fenced says %d, %v", n, err)
	}
	for what, err := range map[string]error{"beat": old.Beat(), "address": old.SetSocket("old"), "close": old.Close()} {
		if !errors.Is(err, ErrFenced) {
			t.Errorf("%s: %v", what, err)
		}
	}
	o, err := ReadOwner(r)
	if err != nil || o.Socket != "new" || o.Left || o.Epoch != 2 {
		t.Errorf("the owner file says %+v, %v", o, err)
	}
	// A heartbeat that was in progress during the takeover changes nothing.
	if err := old.beats.beat(func(*Owner) {}); err == nil || !errors.Is(err, ErrFenced) {
		t.Errorf("a beat on a reopened file: %v", err)
	}
	// The old dispatcher stores no jobs; the next one does.
	if err := r.AppendSpecs(jobstest.Specs(3)[2:]); err != nil {
		t.Error(err)
	}
	r.Guard(1, old.fencedError)
	if err := r.AppendSpecs(jobstest.Specs(4)[3:]); !errors.Is(err, ErrFenced) {
		t.Errorf("it stored a job: %v", err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// tooLate appends records of a dispatcher that was taken over. The same Sync must report the
// takeover. Otherwise the dispatcher would show results and launch jobs based on records that do
// not count (promise 1).
func tooLate(t *testing.T, j *Journal, recs ...jobs.Record) {
	t.Helper()
	if err := j.Append(recs); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); !errors.Is(err, ErrFenced) {
		t.Errorf("a dispatcher that was taken over may act upon its records: %v", err)
	}
	if err := j.Sync(); !errors.Is(err, ErrFenced) {
		t.Errorf("… when it tries again: %v", err)
	}
}

// TestUnbegunEpoch checks a dispatcher that died or slept between creating its journal file and its
// first record. It has not begun. If it wakes up, its file does not count.
func TestUnbegunEpoch(t *testing.T) {
	for _, begun := range []string{"", "deadbeef {\"k\":\"epo"} {
		r := newRun(t)
		if err := r.AppendSpecs(jobstest.Specs(1)); err != nil {
			t.Fatal(err)
		}
		j, live, _ := take1(t, r, TakeOptions{})
		accepted := jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 1}
		record(t, j, accepted)
		if err := jobs.Fold(live, &accepted); err != nil {
			t.Fatal(err)
		}
		crash(t, j)
		put(t, r, 2, []byte(begun))
		if table, report := replay1(t, r); !same(table, live) || report.Damaged {
			t.Errorf("%q: %+v", begun, report)
		}
		j, table, report := take1(t, r, force)
		live.Epoch = 3
		if j.Epoch() != 3 || !same(table, live) || report.Damaged {
			t.Errorf("%q: epoch %d, %+v", begun, j.Epoch(), report)
		}
		crash(t, j)
		late := jobs.Record{Kind: jobs.KindEpoch, Epoch: 2}
		cancel := jobs.Record{Kind: jobs.KindJob, Job: 1, Next: jobs.Canceled, Seq: 1}
		put(t, r, 2, appendLine(appendLine(nil, &late), &cancel))
		if table, report := replay1(t, r); !same(table, live) || report.Ignored == 0 {
			t.Errorf("%q: the unbegun epoch counts: %+v", begun, report)
		}
	}
}

// TestOldFileChanged checks that a changed older file is reported and that the rest still counts.
func TestOldFileChanged(t *testing.T) {
	for what, spoil := range map[string]func(path string, b []byte) error{
		"is missing":       func(path string, _ []byte) error { return os.Remove(path) },
		"has lost its end": func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)-1], 0o600) },
		"its checksum": func(path string, b []byte) error {
			b[len(b)-5] ^= 1
			return os.WriteFile(path, b, 0o600)
		},
	} {
		r := newRun(t)
		if err := r.AppendSpecs(jobstest.Specs(2)); err != nil {
			t.Fatal(err)
		}
		j, _, _ := take1(t, r, TakeOptions{})
		record(t, j, jobs.Record{Kind: jobs.KindAccepted, Job: 1, Count: 2}, jobs.Record{Kind: jobs.KindPriority, Job: 1, Priority: 4})
		crash(t, j)
		j, _, _ = take1(t, r, force)
		record(t, j, jobs.Record{Kind: jobs.KindJob, Job: 2, Next: jobs.Skipped, Seq: 1})
		crash(t, j)
		path := fileOf(1).path(r)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(path, b); err != nil {
			t.Fatal(err)
		}
		table, report := replay1(t, r)
		if !report.Damaged || !strings.Contains(strings.Join(report.Warnings, "\n"), what) {
			t.Errorf("%s: %+v", what, report)
		}
		if j := table.Job(2); j == nil || j.State != jobs.Skipped {
			t.Errorf("%s: job 2 is %+v", what, j)
		}
	}
}

// TestFirstLineLost checks that a journal whose newest file has lost its first line is read to the
// end.
func TestFirstLineLost(t *testing.T) {
	r, specs, recs, b := written(t, 9, 4, 60)
	b[20] ^= 1
	put(t, r, 1, b)
	table, report := replay1(t, r)
	want := folded(t, specs, recs)
	want.Damaged = true
	if !report.Damaged || !same(table, want) {
		t.Errorf("%+v", report)
	}
}

func TestReportIsBounded(t *testing.T) {
	var p Report
	for i := range 100 {
		p.warn("line %d", i)
	}
	if len(p.Warnings) != maxWarnings || p.More != 100-maxWarnings {
		t.Errorf("%d and %d more", len(p.Warnings), p.More)
	}
}

// TestListFiles checks that other files in the journal directory are left alone.
func TestListFiles(t *testing.T) {
	r := newRun(t)
	for _, name := range []string{"000002.jsonl", "1000000.jsonl", "999999.jsonl", "000010.jsonl", "2.jsonl", "000000.jsonl", "00000a.jsonl", ".nfs0001", "000003.jsonl~", "-00001.jsonl"} {
		if err := os.WriteFile(r.Path(rundir.JournalDir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := listFiles(r)
	if got := fmt.Sprint(files); err != nil || got != "[{2 000002.jsonl} {10 000010.jsonl} {999999 999999.jsonl} {1000000 1000000.jsonl}]" {
		t.Errorf("%s, %v", got, err)
	}
}
