package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

var diskErrors = []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.ESTALE, syscall.EINTR}

// onFaulty creates a run with these specifications on a disk that fails on demand.
func onFaulty(t *testing.T, specs []*jobs.Spec) (*disktest.Disk, *rundir.Run) {
	t.Helper()
	d, r := new(disktest.Disk), newRun(t)
	must(t, r.AppendSpecs(specs))
	r.Disk = d
	return d, r
}

// TestFailedWriteIsReported checks one failure of each file operation while records are written
// that take more than one write. The failure is reported before Sync returns nil. Nothing is lost
// or duplicated, and no partial line hides a later one (promise 1).
func TestFailedWriteIsReported(t *testing.T) {
	specs, recs := jobstest.History(1, 5, 120)
	for range 6000 {
		recs = append(recs, event(strings.Repeat("x", 200)))
	}
	for n, more := 1, true; more; n++ {
		cause := diskErrors[n%len(diskErrors)]
		d, r := onFaulty(t, specs)
		j, _, _ := mustTake(t, r, TakeOptions{})
		d.FailAt(n, cause, true)
		told := j.Append(recs)
		for try := 0; ; try++ {
			err := j.Sync()
			if err == nil {
				break
			}
			if told = err; try > 2 {
				t.Fatalf("operation %d (%s) failed once with %v, and the journal never recovers: %v", n, d.Failed,
					cause, err)
			}
		}
		if j.Pending() != 0 {
			t.Error("synced, and something is pending")
		}
		at := fmt.Sprintf("operation %d (%s) failed with %v", n, d.Failed, cause)
		more = d.Count() >= n
		d.FailAt(0, nil, false)
		if more && (!errors.Is(told, cause) || !strings.Contains(told.Error(), r.Name())) {
			t.Errorf("%s, and we are told: %v", at, told)
		}
		table, report := mustReplay(t, r)
		if want := folded(t, specs, recs); !equalTables(table, want) || report.Damaged || report.Torn != 0 ||
			report.Records != len(recs)+1 {
			t.Fatalf("%s: %d records of %d; %+v", at, report.Records, len(recs)+1, report)
		}
	}
}

// TestCloseReportsAnEarlierFailure checks that Close reports an earlier failure and that everything
// that could be written is present.
func TestCloseReportsAnEarlierFailure(t *testing.T) {
	for n := 1; ; n++ {
		cause := diskErrors[n%len(diskErrors)]
		d, r := onFaulty(t, nil)
		j, _, _ := mustTake(t, r, TakeOptions{})
		must(t, j.Append([]jobs.Record{event("a")}))
		d.FailAt(n, cause, true)
		err := j.Close()
		if d.Count() < n {
			must(t, err)
			break
		}
		if !errors.Is(err, cause) {
			t.Errorf("operation %d (%s) failed with %v, and Close says %v", n, d.Failed, cause, err)
		}
	}
}

// TestFailedTakeLeavesNothingBehind checks one failure of each file operation of a Take. The Take
// returns the reason and leaves nothing behind. The next one does not wait, and has the whole state
// of the run. It still finds that the directory is a copy, or that a journal file is missing or
// empty.
func TestFailedTakeLeavesNothingBehind(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, r *rundir.Run) error{
		"nothing": func(*testing.T, *rundir.Run) error { return nil },
		"a copy": func(t *testing.T, r *rundir.Run) error {
			moved := filepath.Join(t.TempDir(), "moved")
			return errors.Join(os.Rename(r.Dir, moved), os.CopyFS(r.Dir, os.DirFS(moved)))
		},
		"a file that is gone": func(_ *testing.T, r *rundir.Run) error { return os.Remove(fileOf(1).path(r)) },
		"an empty file":       func(_ *testing.T, r *rundir.Run) error { return os.Truncate(fileOf(1).path(r), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			n := 1
			for more := true; more; n++ {
				synctest.Test(t, func(t *testing.T) { more = takeWithFault(t, n, damage, name != "nothing") })
			}
			if n < 12 {
				t.Errorf("only %d operations failed", n-2)
			}
		})
	}
}

// takeWithFault returns false if a Take has no n-th operation.
func takeWithFault(t *testing.T, n int, damage func(*testing.T, *rundir.Run) error, damaged bool) bool {
	specs, recs := jobstest.History(4, 3, 50)
	d, r := onFaulty(t, specs)
	j, _, _ := mustTake(t, r, TakeOptions{})
	record(t, j, recs...)
	must(t, j.Close())
	must(t, damage(t, r))
	cause := diskErrors[n%len(diskErrors)]
	d.FailAt(n, cause, true)
	_, _, _, err := Take(t.Context(), r, TakeOptions{Standby: true})
	happened, at := d.Count() >= n, fmt.Sprintf("operation %d (%s) failed with %v", n, d.Failed, cause)
	d.FailAt(0, nil, false)
	if err != nil && !errors.Is(err, cause) {
		t.Errorf("%s, and Take says: %v", at, err)
	}
	if !happened {
		return false
	}
	// A Take that failed has released the run, so nobody waits to see whether it is alive.
	opt := TakeOptions{Force: err == nil, Standby: true,
		Notify: func(text string) { t.Errorf("%s: the next Take waits: %s", at, text) }}
	next, table, report, err := Take(t.Context(), r, opt)
	if err != nil {
		t.Fatalf("%s: the next Take: %v", at, err)
	}
	want := folded(t, specs, recs)
	want.Epoch, want.Closed = next.Epoch(), jobs.Closing{}
	if report.Damaged != damaged || table.Damaged != damaged || !damaged && !equalTables(table, want) ||
		next.Epoch() < 2 {
		t.Errorf("%s: the next Take gives %+v in epoch %d", at, report, next.Epoch())
	}
	must(t, next.Close())
	names, err := r.Disk.Names(r.Dir)
	if err != nil || strings.Contains(strings.Join(names, " "), preparedPrefix) {
		t.Errorf("%s: left behind: %v, %v", at, names, err)
	}
	return true
}

// TestCutOrRemovedFileIsAnError checks that a journal file that is cut or removed while it is open
// is an error, not a fresh start.
func TestCutOrRemovedFileIsAnError(t *testing.T) {
	for what, spoil := range map[string]func(path string) error{
		"has lost its end": func(path string) error { return os.Truncate(path, 10) },
		"no such file":     os.Remove,
	} {
		t.Run(what, func(t *testing.T) {
			d, r := onFaulty(t, nil)
			j, _, _ := mustTake(t, r, TakeOptions{})
			must(t, spoil(fileOf(1).path(r)))
			d.FailAt(1, syscall.ESTALE, false)
			must(t, j.Append([]jobs.Record{{Kind: jobs.KindEvent}}))
			if err := j.Sync(); !errors.Is(err, syscall.ESTALE) {
				t.Errorf("Sync: got error %v, want ESTALE", err)
			}
			if err := j.Sync(); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
			crash(t, j)
		})
	}
}
