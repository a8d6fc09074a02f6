package rundir

import (
	"errors"
	"fmt"
	"math/rand/v2"
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

// TestSpecsTornTail checks a block that a crash cut off at any byte. It is not part of the run, it
// hides nothing, and the next block replaces it.
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

// TestSpecsGrownByAnother checks that a dispatcher that was fenced off does not overwrite another
// one's block.
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
	for range 2 { // nor on the second attempt
		if err := r.AppendSpecs(all[1:3]); err == nil || !strings.Contains(err.Error(), "another dispatcher") {
			t.Errorf("the sleeper wrote: %v", err)
		}
	}
	if got, err := other.ReadSpecs(); err != nil || len(got.Specs) != 2 {
		t.Errorf("%d jobs are left, %v", len(got.Specs), err)
	}
}

// TestSpecsGuard checks promise 1: with a guard, a dispatcher that was taken over writes nothing.
// The late writes of another dispatcher do not hinder the owner of the run.
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
	if err := r.AppendSpecs(all[1:3]); err != nil { // it does not know of the takeover yet
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

// TestSpecTail checks that a SpecTail returns the same as ReadSpecs, whatever is appended, cut off,
// damaged, or written by an earlier dispatcher after a takeover.
func TestSpecTail(t *testing.T) {
	for seed := range uint64(15) {
		rng := rand.New(rand.NewPCG(seed, 5))
		r, err := Create(base(t), fmt.Sprint("x", seed), Asked{})
		if err != nil {
			t.Fatal(err)
		}
		look, err := Open(r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		tail := look.SpecTail()
		var have []*jobs.Spec
		epoch := 1
		for step := range 60 {
			what := rng.IntN(12)
			stored, err := look.ReadSpecs()
			if err != nil {
				t.Fatal(err)
			}
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
				if err := os.WriteFile(path, content[:len(content)-rng.IntN(min(len(content), 30))], 0o600); err != nil {
					t.Fatal(err)
				}
			case what == 8: // the new part is damaged
				if content, err = os.ReadFile(path); err != nil {
					t.Fatal(err)
				}
				content[old+rng.IntN(len(content)-old)] ^= 1
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if what > 5 { // the next writer has taken over the run
				if r, err = Open(r.Dir); err != nil {
					t.Fatal(err)
				}
				epoch++
				r.Guard(epoch, nil)
			}
			if rng.IntN(3) == 0 {
				continue
			}
			want, err := look.ReadSpecs()
			if err != nil {
				t.Fatal(err)
			}
			_, err = tail.More(len(have), func(n int, specs []*jobs.Spec) { have = append(have[:n:n], specs...) })
			if err != nil {
				t.Fatal(err)
			}
			if len(have) != len(want.Specs) || len(have) > 0 && !reflect.DeepEqual(have, want.Specs) {
				t.Fatalf("seed %d, step %d: %d specifications, want %d", seed, step, len(have), len(want.Specs))
			}
		}
	}
}
