package journal

import (
	"bytes"
	"slices"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestPrefixesAreLiveStates checks over random histories that replaying any prefix of a journal
// yields the live state at that point. If the prefix ends in the middle of a line, or in zeros, as
// some file systems leave them, that is a torn tail: everything before it counts, no damage is
// reported, and the next dispatcher continues there.
func TestPrefixesAreLiveStates(t *testing.T) {
	for seed := range uint64(4) {
		r, specs, recs, b := written(t, seed, 6, 150)
		for k := range len(recs) + 1 { // records after the one of the epoch
			whole := lines(b, k+1)
			next := lines(b[len(whole):], 1)
			want := folded(t, specs, recs[:k])
			for i, torn := range [][]byte{nil, next[:min(len(next), 1)], next[:len(next)/2], next[:max(0, len(next)-1)],
				make([]byte, 100)} {
				putJournal(t, r, 1, slices.Concat(whole, torn))
				table, report := mustReplay(t, r)
				if !equalTables(table, want) || report.Damaged || report.Records != k+1 ||
					report.Torn != int64(len(torn)) {
					t.Fatalf("seed %d, record %d and %d bytes: %+v\ngot  %+v\nwant %+v", seed, k, len(torn), report,
						table, want)
				}
				if (k+i)%7 > 0 {
					continue
				}
				_, taken, report := mustTake(t, r, force)
				table.Epoch, table.Closed = 2, jobs.Closing{}
				if !equalTables(table, taken) || report.Damaged || report.Ignored != 0 {
					t.Fatalf("seed %d, record %d and %d bytes: taken over as %+v, it was %+v", seed, k, len(torn),
						taken, table)
				}
				if again, report := mustReplay(t, r); !equalTables(again, taken) || report.Damaged ||
					report.Ignored != int64(len(torn)) {
					t.Fatalf("seed %d, record %d and %d bytes: replayed as %+v, it was %+v; %+v", seed, k, len(torn),
						again, taken, report)
				}
				forget(t, r, 2)
			}
		}
	}
}

// TestDamagedNewlinesCostNothing checks that lines whose newlines are damaged are read, also while
// other cores decode the lines after them.
func TestDamagedNewlinesCostNothing(t *testing.T) {
	r, specs, recs, b := written(t, 1, 50, 3000)
	for i := 0; i < len(b)-1; i += 500 {
		if i += bytes.IndexByte(b[i:], '\n'); i < len(b)-1 {
			b[i] = 'x'
		}
	}
	putJournal(t, r, 1, b)
	if got, report := mustReplay(t, r); report.Damaged || report.More == 0 ||
		!equalTables(got, folded(t, specs, recs)) {
		t.Errorf("replay: got %+v, want all records, no damage, and More than the listed warnings", report)
	}
}

// TestImpliedFactsAreRestored checks that facts that later lines prove are restored. The end of a
// job never is.
func TestImpliedFactsAreRestored(t *testing.T) {
	ok := &jobs.Outcome{Started: 1, Ended: 2}
	recs := []jobs.Record{
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
		t.Run(want, func(t *testing.T) {
			_, r := inMemory(t, jobstest.Specs(3)...)
			j, _, _ := mustTake(t, r, TakeOptions{})
			record(t, j, recs...)
			crash(t, j)
			b := content(t, r, 1)
			putJournal(t, r, 1, flipped(b, 8*len(lines(b, lost+1))))
			table, report := mustReplay(t, r)
			job := table.Job(2)
			got := job.State.String() + ", result " + string(rune('0'+job.Seq)) + ", attempts"
			for _, a := range job.Attempts {
				got += " " + a.State.String() + "@" + a.Host
			}
			if !report.Damaged || got != want && !(lost == 2 && job.State == jobs.Succeeded && job.Seq == 2) {
				t.Errorf("%s lost: %s\nwant %s\n%q", recs[lost].Kind, got, want, report.Warnings)
			}
		})
	}
}
