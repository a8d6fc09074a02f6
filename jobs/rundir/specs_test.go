package rundir

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

func TestSpecs(t *testing.T) {
	r, err := Create(base(t), "x", Asked{})
	if err != nil {
		t.Fatal(err)
	}
	all := jobstest.Specs(2500)
	for _, block := range [][]*jobs.Spec{all[:1], all[1:1], all[1:2000], all[2000:]} {
		if err := r.AppendSpecs(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.AppendSpecs(all[:1]); err == nil {
		t.Error("job 1 was stored twice")
	}
	again, err := Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.ReadSpecs()
	if err != nil || !reflect.DeepEqual(got.Specs, all) || len(got.Damage) > 0 {
		t.Errorf("read %d of %d, %v", len(got.Specs), len(all), err)
	}
}

// A block that a crash cut off at any byte is no part of the run, hides nothing,
// and the next block takes its place.
func TestSpecsTornTail(t *testing.T) {
	r, err := Create(base(t), "x", Asked{})
	if err != nil {
		t.Fatal(err)
	}
	all := jobstest.Specs(6)
	if err := r.AppendSpecs(all[:2]); err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile(r.Path(SpecsFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AppendSpecs(all[2:4]); err != nil {
		t.Fatal(err)
	}
	four, err := os.ReadFile(r.Path(SpecsFile))
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(two); cut <= len(four); cut++ {
		if err := os.WriteFile(r.Path(SpecsFile), four[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := Open(r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := again.ReadSpecs()
		if err != nil || len(got.Specs) < 2 || len(got.Damage) > 0 {
			t.Fatalf("cut at %d: %d, %q, %v", cut, len(got.Specs), got.Damage, err)
		}
		if err := again.AppendSpecs(all[len(got.Specs):]); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if got, err := again.ReadSpecs(); err != nil || !reflect.DeepEqual(got.Specs, all) {
			t.Fatalf("cut at %d, then appended: %d, %v", cut, len(got.Specs), err)
		}
	}
}

// Somebody else's block is not overwritten by a dispatcher that has been fenced off.
func TestSpecsGrownByAnother(t *testing.T) {
	r, err := Create(base(t), "x", Asked{})
	if err != nil {
		t.Fatal(err)
	}
	all := jobstest.Specs(3)
	if err := r.AppendSpecs(all[:1]); err != nil {
		t.Fatal(err)
	}
	other, err := Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.AppendSpecs(all[1:2]); err != nil {
		t.Fatal(err)
	}
	for range 2 { // nor when it tries again
		if err := r.AppendSpecs(all[1:3]); err == nil || !strings.Contains(err.Error(), "another dispatcher") {
			t.Errorf("the sleeper wrote: %v", err)
		}
	}
	if got, err := other.ReadSpecs(); err != nil || len(got.Specs) != 2 {
		t.Errorf("%d jobs are left, %v", len(got.Specs), err)
	}
}

// Promise 1: with a guard who has been taken over writes nothing, and who owns the run
// is not kept from it by what the other wrote at the last moment.
func TestSpecsGuard(t *testing.T) {
	r, err := Create(base(t), "x", Asked{})
	if err != nil {
		t.Fatal(err)
	}
	all := jobstest.Specs(4)
	if err := r.AppendSpecs(all[:1]); err != nil {
		t.Fatal(err)
	}
	next, err := Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.ReadSpecs(); err != nil {
		t.Fatal(err)
	}
	if err := r.AppendSpecs(all[1:3]); err != nil { // it does not know yet
		t.Fatal(err)
	}
	gone := errors.New("taken over")
	r.Guard(1, func() error { return gone })
	next.Guard(2, func() error { return nil })
	if err := r.AppendSpecs(all[3:]); !errors.Is(err, gone) {
		t.Errorf("the sleeper wrote: %v", err)
	}
	if err := next.AppendSpecs(all[1:2]); err != nil {
		t.Errorf("the owner could not write: %v", err)
	}
	got, err := next.ReadSpecs()
	if err != nil || !reflect.DeepEqual(got.Specs, all[:2]) || len(got.Damage) > 0 {
		t.Errorf("%d jobs are there, %q, %v", len(got.Specs), got.Damage, err)
	}
}
