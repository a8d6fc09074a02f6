package journal

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"slices"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"go.uber.org/goleak"
)

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
	table, report, err := replay(r, Limit{End: true}) // the owner is this process, and has crashed
	if err != nil {
		t.Fatal(err)
	}
	return table, report
}

// crash ends a dispatcher as kill -9 does: nothing more is written.
func crash(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.closeFile(); err != nil {
		t.Error(err)
	}
	if err := j.beats.close(); err != nil {
		t.Error(err)
	}
}

// written makes a run whose only epoch holds the records of a history, and
// returns the content of its journal file.
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

// folded is the live state after these records of epoch 1; none: before it.
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
