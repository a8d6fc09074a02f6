package journal

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"dcs-tui/internal/polltest"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
	"dcs-tui/jobs/rundir/memdisk"
)

func TestMain(m *testing.M) { os.Exit(polltest.RunWithoutLeaks(m)) }

var (
	must   = polltest.Must
	newRun = disktest.NewRun
)

// inMemory creates a run with these specifications on a disk in memory.
func inMemory(t testing.TB, specs ...*jobs.Spec) (*memdisk.Mount, *rundir.Run) {
	t.Helper()
	m := memdisk.New().Mount("a")
	r := simulated(t, m)
	must(t, r.AppendSpecs(specs))
	return m, r
}

// simulated creates a run on a server's disk deterministically.
func simulated(t testing.TB, d rundir.Disk) *rundir.Run {
	t.Helper()
	r, err := rundir.CreateOn(d, "/runs", "x", rundir.Settings{UID: "abcdefghijkl", Created: time.Unix(1, 0)},
		rand.NewChaCha8([32]byte{1}))
	must(t, err)
	return r
}

// machine returns the identity of a simulated machine.
func machine(name string) *Owner {
	o := &Owner{Host: name, User: "ada"}
	o.PID, o.Start, o.Boot, o.PIDNS = 7, 70, "boot of "+name, "pid:[1]"
	return o
}

// force takes a run whose owner is this very process, as after a kill -9.
var force = TakeOptions{Force: true, Standby: true}

// takeOn returns the options to take a run by force on a simulated machine.
func takeOn(name string) TakeOptions {
	return TakeOptions{Force: true, Standby: true, Who: machine(name)}
}

// mustTake takes a run.
func mustTake(t testing.TB, r *rundir.Run, opt TakeOptions) (*Journal, *jobs.Table, *Report) {
	t.Helper()
	j, table, report, err := Take(context.Background(), r, opt)
	must(t, err)
	return j, table, report
}

func event(text string) jobs.Record { return jobs.Record{Kind: jobs.KindEvent, Reason: text} }

func record(t testing.TB, j *Journal, recs ...jobs.Record) {
	t.Helper()
	must(t, j.Append(recs))
	must(t, j.Sync())
}

// tooLate appends records of a dispatcher that was taken over. The same Sync must report the
// takeover. Otherwise the dispatcher would show results and launch jobs based on records that do
// not count (promise 1).
func tooLate(t *testing.T, j *Journal, recs ...jobs.Record) {
	t.Helper()
	must(t, j.Append(recs))
	for range 2 {
		if err := j.Sync(); !errors.Is(err, ErrFenced) {
			t.Errorf("a dispatcher that was taken over may act upon its records: %v", err)
		}
	}
}

// crash ends a dispatcher as kill -9 does. Nothing more is written.
func crash(t testing.TB, j *Journal) {
	t.Helper()
	if err := errors.Join(j.closeFile(), j.writer.close()); err != nil {
		t.Error(err)
	}
}

// mustReplay replays the journal of a run that nobody dispatches.
func mustReplay(t testing.TB, r *rundir.Run) (*jobs.Table, *Report) {
	t.Helper()
	// The owner is this process and counts as crashed.
	table, report, err := replayAll(r)
	must(t, err)
	return table, report
}

// written creates a run whose only epoch holds the records of a history. It returns the run and the
// content of its journal file.
func written(t testing.TB, seed uint64, n, steps int) (*rundir.Run, []*jobs.Spec, []jobs.Record, []byte) {
	t.Helper()
	specs, recs := jobstest.History(seed, n, steps)
	_, r := inMemory(t, specs...)
	j, _, _ := mustTake(t, r, TakeOptions{})
	record(t, j, recs...)
	crash(t, j)
	b := content(t, r, 1)
	if bytes.Count(b, []byte{'\n'}) != len(recs)+1 {
		t.Fatal("not a line a record")
	}
	return r, specs, recs, b
}

// content returns the content of a journal file.
func content(t testing.TB, r *rundir.Run, epoch int) []byte {
	t.Helper()
	b, err := rundir.ReadFile(r.Disk, fileOf(epoch).path(r))
	must(t, err)
	return b
}

// putJournal replaces a journal file, as damage does.
func putJournal(t testing.TB, r *rundir.Run, epoch int, content []byte) {
	t.Helper()
	putFile(t, r, fileOf(epoch).path(r), content)
}

func putFile(t testing.TB, r *rundir.Run, path string, content []byte) {
	t.Helper()
	must(t, rundir.Overwrite(r.Disk, path, content))
}

// remove removes the journal files of these epochs.
func remove(t testing.TB, r *rundir.Run, epochs ...int) {
	t.Helper()
	for _, epoch := range epochs {
		must(t, r.Disk.Remove(fileOf(epoch).path(r)))
	}
}

// forget undoes a Take of this epoch.
func forget(t testing.TB, r *rundir.Run, epoch int) {
	t.Helper()
	remove(t, r, epoch)
	must(t, r.Disk.Remove(r.Path(rundir.OwnerFile)))
	if err := r.Disk.Remove(r.Path(rundir.JournalDir, fileOf(epoch).marksName())); !errors.Is(err, fs.ErrNotExist) {
		must(t, err)
	}
}

// lines returns the first n lines.
func lines(b []byte, n int) []byte {
	end := 0
	for range n {
		end += slices.Index(b[end:], '\n') + 1
	}
	return b[:end]
}

// flipped returns a copy of b with one bit flipped.
func flipped(b []byte, bit int) []byte {
	c := bytes.Clone(b)
	c[bit/8] ^= 1 << (bit % 8)
	return c
}

// folded returns the live state after these records of epoch 1, or the state before the epoch if
// there are none.
func folded(t testing.TB, specs []*jobs.Spec, recs []jobs.Record) *jobs.Table {
	t.Helper()
	table := &jobs.Table{Specs: slices.Clone(specs), Epoch: 1}
	fold(t, table, recs)
	return table
}

func fold(t testing.TB, table *jobs.Table, recs []jobs.Record) {
	t.Helper()
	for i := range recs {
		must(t, jobs.Fold(table, &recs[i]))
	}
}

func equalTables(a, b *jobs.Table) bool {
	if len(a.Jobs) == 0 && len(b.Jobs) == 0 {
		x, y := *a, *b
		x.Jobs, y.Jobs = nil, nil
		a, b = &x, &y
	}
	return reflect.DeepEqual(a, b)
}

// replayAll folds the whole journal into a table whose rows tests can compare.
func replayAll(r *rundir.Run) (*jobs.Table, *Report, error) {
	f := Follow(r)
	_, err := f.Poll(Limit{End: true}, nil)
	return f.Table(), f.Report(), err
}
