package rundir

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// A SpecTail gives what ReadSpecs gives, whatever is appended, cut off, damaged, or written
// by an earlier dispatcher after a takeover.
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
			case what == 6, what == 7: // cut off, at first or by a crash
				if err := os.WriteFile(path, content[:len(content)-rng.IntN(min(len(content), 30))], 0o600); err != nil {
					t.Fatal(err)
				}
			case what == 8: // what is new is damaged
				if content, err = os.ReadFile(path); err != nil {
					t.Fatal(err)
				}
				content[old+rng.IntN(len(content)-old)] ^= 1
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if what > 5 { // whoever appends next has taken the run over
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
