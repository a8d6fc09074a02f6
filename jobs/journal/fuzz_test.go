package journal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/memdisk"
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
				first, line = pieces(line)
				var d Decoder
				var r jobs.Record
				if body, ok := lineBody(first); ok && d.Decode(body, &r) == nil && r.Kind == jobs.KindExited && r.Next == jobs.Succeeded && r.Outcome.OK() {
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
		m := memdisk.New().Mount("a")
		r := simulated(t, m)
		if err := r.AppendSpecs(jobstest.Specs(3)); err != nil {
			t.Fatal(err)
		}
		for i, content := range [][]byte{a, b, c} {
			if err := rundir.WriteNew(m, fileOf(i+1).path(r), content); err != nil {
				t.Fatal(err)
			}
		}
		var unknown *UnknownKindError
		if _, _, err := Replay(r); errors.As(err, &unknown) {
			if _, _, _, err := Take(t.Context(), r, TakeOptions{Force: true, Who: machine("melon1")}); !errors.As(err, &unknown) {
				t.Fatalf("readers do not know a kind of record, and a Take: %v", err)
			}
			return
		}
		table, report := replay1(t, r)
		if table.Damaged != report.Damaged || report.Damaged && len(report.Warnings) == 0 {
			t.Fatalf("%+v", report)
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
		next, taken, _ := take1(t, r, TakeOptions{Force: true, Who: machine("melon1")})
		epoch := table.Epoch
		if table.Epoch = next.Epoch(); !same(table, taken) || epoch >= table.Epoch {
			t.Fatalf("taken over in epoch %d as another state than is shown", next.Epoch())
		}
		ev := jobs.Record{Kind: jobs.KindRequest, Request: "mine"}
		record(t, next, ev)
		if err := jobs.Fold(taken, &ev); err != nil {
			t.Fatal(err)
		}
		crash(t, next)
		if again, report := replay1(t, r); !same(again, taken) {
			t.Fatalf("what the next dispatcher had is not what is there: %+v", report)
		}
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// force takes a run whose owner is this very process, as after a kill -9.
var force = TakeOptions{Force: true}

func take1(t testing.TB, r *rundir.Run, opt TakeOptions) (*Journal, *jobs.Table, *Report) {
	t.Helper()
	j, table, report, err := Take(context.Background(), r, opt)
	if err != nil {
		t.Fatal(err)
	}
	return j, table, report
}

func record(t testing.TB, j *Journal, recs ...jobs.Record) {
	t.Helper()
	if err := j.Append(recs); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
}

func replay1(t testing.TB, r *rundir.Run) (*jobs.Table, *Report) {
	t.Helper()
	// The owner is this process and counts as crashed.
	table, report, err := replay(r, Limit{End: true})
	if err != nil {
		t.Fatal(err)
	}
	return table, report
}

// crash ends a dispatcher as kill -9 does. Nothing more is written.
func crash(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.closeFile(); err != nil {
		t.Error(err)
	}
	if err := j.beats.close(); err != nil {
		t.Error(err)
	}
}

// written creates a run whose only epoch holds the records of a history. It returns the run and the
// content of its journal file.
func written(t testing.TB, seed uint64, n, steps int) (*rundir.Run, []*jobs.Spec, []jobs.Record, []byte) {
	t.Helper()
	r := newRun(t)
	specs, recs := jobstest.History(seed, n, steps)
	if err := r.AppendSpecs(specs); err != nil {
		t.Fatal(err)
	}
	j, _, _ := take1(t, r, TakeOptions{})
	record(t, j, recs...)
	crash(t, j)
	b, err := os.ReadFile(fileOf(1).path(r))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Count(b, []byte{'\n'}) != len(recs)+1 {
		t.Fatal("not a line a record")
	}
	return r, specs, recs, b
}

// put replaces a journal file.
func put(t testing.TB, r *rundir.Run, epoch int, content []byte) {
	t.Helper()
	if err := os.WriteFile(fileOf(epoch).path(r), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// folded returns the live state after these records of epoch 1, or the state before the epoch if
// there are none.
func folded(t testing.TB, specs []*jobs.Spec, recs []jobs.Record) *jobs.Table {
	t.Helper()
	table := &jobs.Table{Specs: slices.Clone(specs), Epoch: 1}
	for i := range recs {
		if err := jobs.Fold(table, &recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

func same(a, b *jobs.Table) bool {
	if len(a.Jobs) == 0 && len(b.Jobs) == 0 {
		x, y := *a, *b
		x.Jobs, y.Jobs = nil, nil
		a, b = &x, &y
	}
	return reflect.DeepEqual(a, b)
}
