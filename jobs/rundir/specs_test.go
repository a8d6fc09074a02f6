package rundir

import (
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestFencedDispatcherOverwritesNoBlock checks that a dispatcher that was fenced off does not
// overwrite another one's block.
func TestFencedDispatcherOverwritesNoBlock(t *testing.T) {
	r := newRun(t)
	all := jobstest.Specs(3)
	must(t, r.AppendSpecs(all[:1]))
	if err := r.AppendSpecs(all[:1]); err == nil {
		t.Error("job 1 was stored twice")
	}
	other := reopen(t, r)
	must(t, other.AppendSpecs(all[1:2]))
	for range 2 { // nor on the second attempt
		if err := r.AppendSpecs(all[1:3]); err == nil || !strings.Contains(err.Error(), "another dispatcher") {
			t.Errorf("the sleeper wrote: %v", err)
		}
	}
	if got, err := jobstest.StoredSpecs(other.ReadSpecs); err != nil || len(got.Specs) != 2 {
		t.Errorf("%d jobs are left, %v", len(got.Specs), err)
	}
}

// TestFencedDispatcherWritesNoSpecs checks promise 1: with a guard, a dispatcher that was taken
// over writes nothing. The late writes of another dispatcher do not hinder the owner of the run.
func TestFencedDispatcherWritesNoSpecs(t *testing.T) {
	r := newRun(t)
	all := jobstest.Specs(4)
	must(t, r.AppendSpecs(all[:1]))
	next := reopen(t, r)
	_, err := jobstest.StoredSpecs(next.ReadSpecs)
	must(t, err)
	must(t, r.AppendSpecs(all[1:3])) // it does not know of the takeover yet
	gone := errors.New("taken over")
	r.SetOwner(1, func() error { return gone })
	next.SetOwner(2, func() error { return nil })
	if err := r.AppendSpecs(all[3:]); !errors.Is(err, gone) {
		t.Errorf("the sleeper wrote: %v", err)
	}
	if err := next.AppendSpecs(all[1:2]); err != nil {
		t.Errorf("the owner could not write: %v", err)
	}
	got, err := jobstest.StoredSpecs(next.ReadSpecs)
	if err != nil || !reflect.DeepEqual(got.Specs, all[:2]) || len(got.Damage) > 0 {
		t.Errorf("%d jobs are there, %q, %v", len(got.Specs), got.Damage, err)
	}
}

// TestSpecTailAgreesWithReadSpecs checks that a SpecTail returns the same as ReadSpecs, whatever is
// appended, cut off, damaged, or written by an earlier dispatcher after a takeover.
func TestSpecTailAgreesWithReadSpecs(t *testing.T) {
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 5))
		r := newRun(t)
		look := reopen(t, r)
		tail := look.SpecTail()
		var have []*jobs.Spec
		epoch := 1
		for step := range 60 {
			what := rng.IntN(12)
			stored, err := jobstest.StoredSpecs(look.ReadSpecs)
			must(t, err)
			path := r.Path(specsFile(epoch))
			content, err := os.ReadFile(path)
			if os.IsNotExist(err) || len(content) < 100 {
				what = 0
			} else if err != nil {
				t.Fatal(err)
			}
			if what < 6 || what == 8 {
				n := len(stored.Specs)
				if err := r.AppendSpecs(jobstest.Specs(n + 1 + rng.IntN(40))[n:]); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
			switch old := len(content); {
			case what == 6, what == 7: // cut off from the start or by a crash
				must(t, os.WriteFile(path, content[:len(content)-rng.IntN(min(len(content), 30))], 0o600))
			case what == 8: // the new part is damaged
				if content, err = os.ReadFile(path); err != nil {
					t.Fatal(err)
				}
				content[old+rng.IntN(len(content)-old)] ^= 1
				must(t, os.WriteFile(path, content, 0o600))
			}
			if what > 5 { // the next writer has taken over the run
				r = reopen(t, r)
				epoch++
				r.SetOwner(epoch, nil)
			}
			if rng.IntN(3) == 0 {
				continue
			}
			want, err := jobstest.StoredSpecs(look.ReadSpecs)
			must(t, err)
			_, err = tail.ReadMore(len(have), func(n int, specs []*jobs.Spec) { have = append(have[:n:n], specs...) })
			must(t, err)
			if len(have) != len(want.Specs) || len(have) > 0 && !reflect.DeepEqual(have, want.Specs) {
				t.Fatalf("seed %d, step %d: %d specifications, want %d", seed, step, len(have), len(want.Specs))
			}
		}
	}
}
