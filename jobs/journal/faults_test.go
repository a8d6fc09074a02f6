package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir/disktest"
)

var diskErrors = []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.ESTALE, syscall.EINTR}

// TestWriteFaults checks one failure of each file operation while records are written. The failure
// is reported before Sync returns nil. Nothing is lost or duplicated, and no partial line hides a
// later one (promise 1).
func TestWriteFaults(t *testing.T) {
	specs, recs := jobstest.History(1, 5, 120)
	for _, cause := range diskErrors {
		for _, short := range []bool{false, true} {
			for n := 1; writeWithFault(t, specs, recs, n, cause, short); n++ {
			}
		}
	}
}

// TestWriteFaultsInALongBatch is TestWriteFaults with records that take more than one write.
func TestWriteFaultsInALongBatch(t *testing.T) {
	specs, recs := jobstest.History(1, 5, 120)
	for range 6000 {
		recs = append(recs, jobs.Record{Kind: jobs.KindEvent, Reason: strings.Repeat("x", 200)})
	}
	for n := 1; writeWithFault(t, specs, recs, n, syscall.ENOSPC, true); n++ {
	}
}

// writeWithFault returns false if there is no n-th operation.
func writeWithFault(t *testing.T, specs []*jobs.Spec, recs []jobs.Record, n int, cause error, short bool) bool {
	t.Helper()
	r := newRun(t)
	if err := r.AppendSpecs(specs); err != nil {
		t.Fatal(err)
	}
	d := new(disktest.Disk)
	r.Disk = d
	j, _, _ := take1(t, r, TakeOptions{})
	d.FailAt(n, cause, short)
	told := 0
	hears := func(err error) {
		if err == nil {
			return
		}
		if told++; !errors.Is(err, cause) || !strings.Contains(err.Error(), r.Name()) {
			t.Errorf("operation %d (%s) failed with %v, and we are told: %v", n, d.Failed, cause, err)
		}
	}
	for from := 0; from < len(recs); {
		to := min(len(recs), from+40)
		if len(recs) > 1000 {
			to = len(recs)
		}
		hears(j.Append(recs[from:to]))
		for try := 0; ; try++ {
			err := j.Sync()
			if hears(err); err == nil {
				break
			}
			if try > 2 {
				t.Fatalf("operation %d (%s) failed once with %v, and the journal never recovers: %v", n, d.Failed, cause, err)
			}
		}
		if j.Pending() != 0 {
			t.Fatal("synced, and something is pending")
		}
		from = to
	}
	happened, at := d.Count() >= n, d.Failed
	d.FailAt(0, nil, false)
	if happened && told == 0 {
		t.Errorf("operation %d (%s) failed with %v, and nobody was told", n, at, cause)
	}
	crash(t, j)
	table, report := replay1(t, r)
	if want := folded(t, specs, recs); !same(table, want) || report.Damaged || report.Torn != 0 || report.Records != len(recs)+1 {
		t.Fatalf("operation %d (%s) failed with %v, short %v: %d records of %d; %+v", n, at, cause, short, report.Records, len(recs)+1, report)
	}
	return happened
}

// TestDiskFullForLong checks a disk that stays full for a while. Everything waits and is written
// once.
func TestDiskFullForLong(t *testing.T) {
	specs, recs := jobstest.History(2, 5, 100)
	r := newRun(t)
	if err := r.AppendSpecs(specs); err != nil {
		t.Fatal(err)
	}
	d := new(disktest.Disk)
	r.Disk = d
	j, _, _ := take1(t, r, TakeOptions{})
	for i := range recs {
		d.FailAt(1, syscall.ENOSPC, true) // the first write, then every open
		if err := j.Append(recs[i : i+1]); err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	d.FailAt(0, nil, false)
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	if table, report := replay1(t, r); !same(table, folded(t, specs, recs)) || report.Damaged {
		t.Errorf("%+v", report)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// TestPowerLoss checks a power loss right after a Sync that returned nil. Every record is present.
// After an earlier loss, the tail may be anything, but nothing before it is damaged.
func TestPowerLoss(t *testing.T) {
	r := newRun(t)
	d := new(disktest.Disk)
	r.Disk = d
	specs, recs := jobstest.History(8, 4, 120)
	if err := r.AppendSpecs(specs); err != nil {
		t.Fatal(err)
	}
	live := &jobs.Table{Specs: slices.Clone(specs)}
	for epoch := 1; len(recs) > 0; epoch++ {
		j, table, _ := take1(t, r, force)
		if live.Epoch = epoch; !same(table, live) {
			t.Fatalf("epoch %d began with something else", epoch)
		}
		if err := d.PowerLoss(); err != nil { // right after Take
			t.Fatal(err)
		}
		n := min(25, len(recs))
		for i := range recs[:n] {
			if err := jobs.Fold(live, &recs[i]); err != nil {
				t.Fatal(err)
			}
		}
		record(t, j, recs[:n]...)
		recs = recs[n:]
		if err := j.Append([]jobs.Record{{Kind: jobs.KindEvent, Reason: strings.Repeat("never synced", 200_000)}}); err != nil {
			t.Fatal(err)
		}
		if err := d.PowerLoss(); err != nil {
			t.Fatal(err)
		}
		crash(t, j)
		if table, report := replay1(t, r); !same(table, live) || report.Damaged {
			t.Fatalf("epoch %d: %+v", epoch, report)
		}
	}
}

// TestCloseFaults checks that Close reports an earlier failure and that everything that could be
// written is present.
func TestCloseFaults(t *testing.T) {
	for _, cause := range diskErrors {
		for n := 1; ; n++ {
			r := newRun(t)
			d := new(disktest.Disk)
			r.Disk = d
			j, _, _ := take1(t, r, TakeOptions{})
			if err := j.Append([]jobs.Record{{Kind: jobs.KindEvent}}); err != nil {
				t.Fatal(err)
			}
			d.FailAt(n, cause, true)
			err := j.Close()
			if d.Count() < n {
				if err != nil {
					t.Error(err)
				}
				break
			}
			if !errors.Is(err, cause) {
				t.Errorf("operation %d (%s) failed with %v, and Close says %v", n, d.Failed, cause, err)
			}
		}
	}
}

// TestTakeFaults checks that a Take that fails halfway does not change the run and returns the
// reason. The next Take works and waits at most as long as for a silent owner.
func TestTakeFaults(t *testing.T) {
	for n, more := 1, true; more; n++ {
		synctest.Test(t, func(t *testing.T) { more = takeWithFault(t, n, diskErrors[n%len(diskErrors)]) })
	}
}

func takeWithFault(t *testing.T, n int, cause error) bool {
	r := newRun(t)
	specs, recs := jobstest.History(4, 3, 50)
	if err := r.AppendSpecs(specs); err != nil {
		t.Fatal(err)
	}
	d := new(disktest.Disk)
	r.Disk = d
	j, _, _ := take1(t, r, TakeOptions{})
	record(t, j, recs...)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want := folded(t, specs, recs)

	d.FailAt(n, cause, true)
	j, _, _, err := Take(t.Context(), r, TakeOptions{})
	happened, at := d.Count() >= n, fmt.Sprintf("operation %d (%s) failed with %v", n, d.Failed, cause)
	d.FailAt(0, nil, false)
	if !happened {
		crash(t, j)
		return false
	}
	if err == nil {
		crash(t, j) // the failure did not matter
	} else if !errors.Is(err, cause) {
		t.Errorf("%s, and Take says: %v", at, err)
	}
	var opt TakeOptions
	opt.Force = err == nil
	// A Take that failed has released the run, so nobody waits to see whether it is alive.
	opt.Notify = func(text string) { t.Errorf("%s: the next Take waits: %s", at, text) }
	next, table, report, err := Take(t.Context(), r, opt)
	if err != nil {
		t.Fatalf("%s: the next Take: %v", at, err)
	}
	want.Epoch = next.Epoch()
	if !same(table, want) || report.Damaged || next.Epoch() < 2 {
		t.Errorf("%s: the next Take gives %+v in epoch %d", at, report, next.Epoch())
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	names, err := r.Disk.Names(r.Dir)
	if err != nil || strings.Contains(strings.Join(names, " "), preparedPrefix) {
		t.Errorf("%s: left behind: %v, %v", at, names, err)
	}
	return true
}

// TestFileTakenAway checks that a journal file that is cut or removed while it is open is an error,
// not a fresh start.
func TestFileTakenAway(t *testing.T) {
	for what, spoil := range map[string]func(path string) error{
		"has lost its end": func(path string) error { return os.Truncate(path, 10) },
		"no such file":     os.Remove,
	} {
		r := newRun(t)
		d := new(disktest.Disk)
		r.Disk = d
		j, _, _ := take1(t, r, TakeOptions{})
		if err := spoil(fileOf(1).path(r)); err != nil {
			t.Fatal(err)
		}
		d.FailAt(1, syscall.ESTALE, false)
		if err := j.Append([]jobs.Record{{Kind: jobs.KindEvent}}); err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(); !errors.Is(err, syscall.ESTALE) {
			t.Errorf("%v", err)
		}
		if err := j.Sync(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		crash(t, j)
	}
}
