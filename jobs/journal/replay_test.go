package journal

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
)

// TestPrefixesAreLiveStates checks over random histories that replaying any prefix of a journal
// yields the live state at that point.
func TestPrefixesAreLiveStates(t *testing.T) {
	for seed := range uint64(4) {
		r, specs, recs, b := written(t, seed, 6, 150)
		end := bytes.IndexByte(b, '\n') + 1 // of the epoch record
		for k := 0; ; k++ {
			put(t, r, 1, b[:end])
			table, report := replay1(t, r)
			if want := folded(t, specs, recs[:k]); !same(table, want) || report.Damaged || report.Records != k+1 {
				t.Fatalf("seed %d, after record %d: %+v\ngot  %+v\nwant %+v", seed, k, report, table, want)
			}
			if k == len(recs) {
				break
			}
			end += bytes.IndexByte(b[end:], '\n') + 1
		}
	}
}

// TestTornTailAtEveryByte checks that a journal cut at any byte has a torn tail. Everything before
// the cut line counts, no damage is reported, and the next epoch continues there.
func TestTornTailAtEveryByte(t *testing.T) {
	r, specs, recs, b := written(t, 3, 3, 40)
	for cut := 0; cut <= len(b); cut++ {
		put(t, r, 1, b[:cut])
		lines := bytes.Count(b[:cut], []byte{'\n'})
		want := &jobs.Table{Specs: slices.Clone(specs)}
		if lines > 0 {
			want = folded(t, specs, recs[:lines-1])
		}
		table, report := replay1(t, r)
		torn := int64(cut - bytes.LastIndexByte(b[:cut], '\n') - 1)
		if !same(table, want) || report.Damaged || report.Torn != torn {
			t.Fatalf("cut at %d: %+v\ngot  %+v\nwant %+v", cut, report, table, want)
		}
	}
}

// TestTakeAfterTornTail checks that the next dispatcher continues after a torn tail. A later
// dispatcher sees what it folds and appends. The torn tail stays excluded.
func TestTakeAfterTornTail(t *testing.T) {
	r, _, _, b := written(t, 3, 3, 40)
	for _, cut := range []int{len(b) - 1, len(b) - 30, len(b), len(b) / 2, 5, 0} {
		for _, zeros := range []int{0, 100} { // a file system may leave a tail of zeros
			for _, name := range []string{rundir.JournalDir, rundir.OwnerFile} {
				if err := os.RemoveAll(r.Path(name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(r.Path("journal"), 0o700); err != nil {
				t.Fatal(err)
			}
			put(t, r, 1, append(bytes.Clone(b[:cut]), make([]byte, zeros)...))
			before, _ := replay1(t, r)
			j, table, report := take1(t, r, force)
			if j.Epoch() != 2 || table.Epoch != 2 || report.Damaged {
				t.Fatalf("cut at %d: epoch %d, %+v", cut, j.Epoch(), report)
			}
			before.Epoch = 2
			if !same(before, table) {
				t.Fatalf("cut at %d: taken over as %+v, it was %+v", cut, table, before)
			}
			ev := jobs.Record{Kind: jobs.KindEvent, Reason: "still here"}
			record(t, j, ev)
			crash(t, j)
			after, report := replay1(t, r)
			if !same(table, after) || report.Damaged {
				t.Fatalf("cut at %d: replayed as %+v, it was %+v; %+v", cut, after, table, report)
			}
		}
	}
}

// TestDamagedLineCostsItself checks that one damaged line costs only its own fact, whatever that
// was. Every other job ends as it did, and later result numbers stay valid.
func TestDamagedLineCostsItself(t *testing.T) {
	for seed := range uint64(3) {
		r, specs, recs, b := written(t, seed, 10, 300)
		want := folded(t, specs, recs)
		at := bytes.IndexByte(b, '\n') + 1
		for i := range recs {
			end := at + bytes.IndexByte(b[at:], '\n')
			c := bytes.Clone(b)
			c[(at+end)/2] ^= 0x01
			at = end + 1
			put(t, r, 1, c)
			got, report := replay1(t, r)
			if !report.Damaged || !got.Damaged || len(report.Warnings) == 0 || !strings.Contains(report.Warnings[0], "000001.jsonl:") {
				t.Fatalf("seed %d, record %d: %+v", seed, i, report)
			}
			if got.Seq < want.Seq-1 {
				t.Fatalf("seed %d, record %d (%s): the newest result is %d, it was %d", seed, i, recs[i].Kind, got.Seq, want.Seq)
			}
			for k := range got.Jobs {
				if recs[i].Kind == jobs.KindAccepted || jobs.ID(k+1) == recs[i].Job {
					continue
				}
				if !reflect.DeepEqual(got.Jobs[k], want.Jobs[k]) {
					t.Fatalf("seed %d: record %d (%s of job %d) was damaged, and job %d became\n%+v, it was\n%+v\n%q", seed, i, recs[i].Kind, recs[i].Job, k+1, got.Jobs[k], want.Jobs[k], report.Warnings)
				}
			}
		}
	}
}

// TestImpliedFacts checks that facts that later lines prove are restored. The end of a job never
// is.
func TestImpliedFacts(t *testing.T) {
	ok := &jobs.Outcome{Started: 1, Ended: 2}
	lines := []jobs.Record{
		{Kind: jobs.KindAccepted, Job: 1, Count: 3},
		{Kind: jobs.KindLaunching, Job: 2, N: 1, Host: "melon1"},
		{Kind: jobs.KindExited, Job: 2, N: 1, Host: "melon1", Next: jobs.Succeeded, Seq: 1, Outcome: ok},
		{Kind: jobs.KindRound, Job: 2},
		{Kind: jobs.KindLaunching, Job: 2, N: 2, Host: "melon2"},
		{Kind: jobs.KindExited, Job: 2, N: 2, Host: "melon2", Next: jobs.Succeeded, Seq: 2, Outcome: ok},
	}
	for lost, want := range []string{
		"succeeded, result 2, attempts exited@melon1 exited@melon2",
		"succeeded, result 2, attempts exited@melon1 exited@melon2",
		// Its end is not invented: the host must be queried.
		"running, result 0, attempts launching@melon1 exited@melon2",
		"succeeded, result 2, attempts exited@melon1 exited@melon2",
		"succeeded, result 2, attempts exited@melon1 exited@melon2",
		"running, result 1, attempts exited@melon1 launching@melon2",
	} {
		r := newRun(t)
		if err := r.AppendSpecs(jobstest.Specs(3)); err != nil {
			t.Fatal(err)
		}
		j, _, _ := take1(t, r, TakeOptions{})
		record(t, j, lines...)
		crash(t, j)
		b, err := os.ReadFile(fileOf(1).path(r))
		if err != nil {
			t.Fatal(err)
		}
		all := bytes.SplitAfter(b, []byte{'\n'})
		all[lost+1][0] ^= 1
		put(t, r, 1, bytes.Join(all, nil))
		table, report := replay1(t, r)
		job := table.Job(2)
		got := job.State.String() + ", result " + string(rune('0'+job.Seq)) + ", attempts"
		for _, a := range job.Attempts {
			got += " " + a.State.String() + "@" + a.Host
		}
		if !report.Damaged || got != want && !(lost == 2 && job.State == jobs.Succeeded && job.Seq == 2) {
			t.Errorf("%s lost: %s\nwant %s\n%q", lines[lost].Kind, got, want, report.Warnings)
		}
	}
}
