package rundir_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

var diskErrors = []error{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.ESTALE, syscall.EINTR}

// TestFailedAppendCanBeRepeated checks one failure of each operation of AppendSpecs. It returns an
// error and can be called again. The file then holds every specification once (promise 1).
func TestFailedAppendCanBeRepeated(t *testing.T) {
	all := jobstest.Specs(40_000) // several blocks
	for _, short := range []bool{false, true} {
		for n := 1; ; n++ {
			cause := diskErrors[n%len(diskErrors)]
			r, d := newRun(t), new(disktest.Disk)
			r.Disk = d
			must(t, r.AppendSpecs(all[:10]))
			d.FailAt(n, cause, short)
			err := r.AppendSpecs(all[10:])
			at := fmt.Sprintf("operation %d (%s) failed with %v, short %v", n, d.Failed, cause, short)
			if d.Count() < n {
				break // there is no n-th operation
			}
			if err == nil {
				t.Fatalf("%s: nobody was told", at)
			}
			// The next block is shorter than the failed one, of which nothing may remain behind it.
			if err := r.AppendSpecs(all[10:20]); err != nil {
				t.Fatalf("%s: the next one: %v", at, err)
			}
			got, err := jobstest.StoredSpecs(r.ReadSpecs)
			if err != nil || !reflect.DeepEqual(got.Specs, all[:20]) || len(got.Damage) > 0 {
				t.Fatalf("%s: %d specifications, %v", at, len(got.Specs), err)
			}
		}
	}
}

// TestFailedCreationLeavesNoRun checks that a run whose creation failed because of the disk leaves
// nothing that looks like a run. The error has the reason, and the name can be used again.
func TestFailedCreationLeavesNoRun(t *testing.T) {
	for n := 1; ; n++ {
		cause := diskErrors[n%len(diskErrors)]
		base := filepath.Join(t.TempDir(), "runs")
		d := new(disktest.Disk)
		d.FailAt(n, cause, true)
		r, err := rundir.CreateOn(d, base, "x", rundir.Settings{}, nil)
		if d.Count() < n {
			break
		}
		at := fmt.Sprintf("operation %d (%s) failed with %v", n, d.Failed, cause)
		if err == nil {
			t.Fatalf("%s: nobody was told: %+v", at, r)
		}
		if !strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("%s: the error does not say why: %v", at, err)
		}
		if _, err := rundir.Create(base, "x", rundir.Settings{}); err != nil {
			t.Errorf("%s: the name is used up: %v", at, err)
		}
	}
}
