package journal

import (
	"bytes"
	"errors"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
)

// summed returns the content with the checksum of each line corrected, so that the fuzzer gets past
// the checksums.
func summed(b []byte) []byte {
	var out []byte
	for line := range bytes.SplitAfterSeq(b, []byte{'\n'}) {
		if body, ok := bytes.CutSuffix(line, []byte{'\n'}); ok && len(body) > prefix {
			line = sumLine(body[prefix:])
		}
		out = append(out, line...)
	}
	return out
}

func sumLine(body []byte) []byte {
	line := append([]byte("00000000 "), body...)
	sum := crc32Update(0, body)
	for i := 7; i >= 0; i-- {
		line[i] = hexits[sum&15]
		sum >>= 4
	}
	return append(line, '\n')
}

// successes counts the lines that record the success of a command.
func successes(files ...[]byte) int {
	n := 0
	for _, b := range files {
		for line := range bytes.SplitSeq(b, []byte{'\n'}) {
			for more := true; more; more = len(line) > 0 {
				var first []byte
				first, line = splitJoinedLines(line)
				var d jobs.RecordReader
				var r jobs.Record
				if body, ok := lineBody(first); ok && d.Read(body, &r) == nil && r.Kind == jobs.KindExited &&
					r.Next == jobs.Succeeded && r.Outcome.OK() {
					n++
				}
			}
		}
	}
	return n
}

// FuzzJournal checks that no content of three epochs' files makes replay panic. Replay and Take
// fail only on an unknown kind of record. No job succeeds without a line that records it. The run
// can be taken over, its next dispatcher begins with the state that every reader sees, and its
// records count.
func FuzzJournal(f *testing.F) {
	e := threeEpochs(f)
	f.Add(false, e.files[0], e.files[1], e.files[2])
	f.Add(true, e.files[0], e.files[1], e.files[2])
	f.Add(true, e.files[2], e.files[0], e.files[1])
	f.Add(false, e.files[0][:len(e.files[0])/2], []byte{}, e.files[2][100:])
	f.Fuzz(func(t *testing.T, sum bool, a, b, c []byte) {
		if sum {
			a, b, c = summed(a), summed(b), summed(c)
		}
		m, r := inMemory(t, jobstest.Specs(3)...)
		for i, content := range [][]byte{a, b, c} {
			must(t, rundir.WriteNew(m, fileOf(i+1).path(r), content))
		}
		var unknown *NewerRecordError
		if _, _, err := Replay(r); errors.As(err, &unknown) {
			if _, _, _, err := Take(t.Context(), r, takeOn("melon1")); !errors.As(err, &unknown) {
				t.Fatalf("readers do not know a kind of record, and a Take: %v", err)
			}
			return
		}
		table, report := mustReplay(t, r)
		if table.Damaged != report.Damaged || report.Damaged && len(report.Warnings) == 0 {
			t.Fatalf("replay: got %+v, want a table that is damaged like the report, and a warning", report)
		}
		won := 0
		for i := range table.Jobs {
			j := &table.Jobs[i]
			if j.State == jobs.Succeeded {
				won++
			}
			for n, a := range j.Attempts {
				if a.ID != (jobs.AttemptID{Job: jobs.ID(i + 1), N: n + 1}) {
					t.Fatalf("attempt %s stands in place %d of job %d", a.ID, n+1, i+1)
				}
			}
		}
		if said := successes(a, b, c); won > said {
			t.Fatalf("%d jobs have succeeded, and %d lines say so", won, said)
		}
		next, taken, _ := mustTake(t, r, takeOn("melon1"))
		epoch := table.Epoch
		table.Epoch, table.Closed = next.Epoch(), jobs.Closing{}
		if !equalTables(table, taken) || epoch >= table.Epoch {
			t.Fatalf("taken over in epoch %d as another state than is shown", next.Epoch())
		}
		ev := jobs.Record{Kind: jobs.KindRequest, Request: "mine"}
		record(t, next, ev)
		must(t, jobs.Fold(taken, &ev))
		crash(t, next)
		if again, report := mustReplay(t, r); !equalTables(again, taken) {
			t.Fatalf("what the next dispatcher had is not what is there: %+v", report)
		}
	})
}
