package sim

import (
	"testing"
)

func TestOne(t *testing.T) {
	for seed := range uint64(200) {
		r := Run(Seeded(seed), false)
		if r.Failure != nil {
			r = Run(Seeded(seed), true)
			for _, l := range r.Log[max(0, len(r.Log)-70):] {
				t.Log(l)
			}
			t.Fatalf("seed %d: %v", seed, r.Failure)
		}
	}
}
