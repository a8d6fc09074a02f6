package hardness

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// TestMinimalTimeoutsSkipTheSame checks that the minimal timeouts skip the same tuples as all
// timeouts do, in whatever order the timeouts arrive. No minimal timeout implies another one, and
// no job sorts before a job that is at most as hard (E2).
func TestMinimalTimeoutsSkipTheSame(t *testing.T) {
	words := []string{"0", "1", "2", "3.0", "-1", "x", "y"}
	limits := []time.Duration{0, time.Second, time.Minute}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		h := New(new(jobs.Table), Limits{})
		n := 1 + rng.IntN(3)
		draw := func() *Tuple {
			o := &jobs.Options{}
			for range n {
				o.Hardness = append(o.Hardness, words[rng.IntN(len(words))])
			}
			return h.intern(o, limits[rng.IntN(len(limits))])
		}
		var bars []knownTimeout
		for i := range 60 {
			if u := draw(); rng.IntN(4) == 0 && u.limit > 0 {
				b := knownTimeout{u.components, u.limit, jobs.ID(i + 1)}
				bars = append(bars, b)
				h.addTimeout(u.family, b)
			}
		}
		for range 20 {
			draw() // tuples that arrive after the timeouts
		}
		f := h.list[0]
		for _, u := range f.list {
			want := slices.ContainsFunc(bars, func(b knownTimeout) bool {
				return isHarderNaive(b.components, u.components) && u.limit > 0 && u.limit <= b.limit
			})
			if got := u.timedOutJob != 0; got != want {
				t.Fatalf("seed %d: %v with %v is to be skipped: %v, want %v by %v", seed, u.components, u.limit, got,
					want, bars)
			}
		}
		for i, a := range f.timeouts {
			for k, b := range f.timeouts {
				if i != k && isHarderNaive(a.components, b.components) && b.limit <= a.limit {
					t.Fatalf("seed %d: %v says what %v says", seed, b, a)
				}
			}
		}
		for _, a := range f.list {
			for _, b := range f.list {
				if a != b && isHarderNaive(a.components, b.components) && isHarderNaive(b.components, a.components) &&
					a.limit == b.limit {
					t.Fatalf("seed %d: %v is given twice", seed, a.components)
				}
				if d := a.Compare(b); d != -b.Compare(a) || a != b && d == 0 ||
					isHarderNaive(a.components, b.components) && !isHarderNaive(b.components, a.components) && d >= 0 {
					t.Fatalf("seed %d: %v comes %d to %v", seed, a.components, d, b.components)
				}
				for _, c := range f.list {
					if a.Compare(b) < 0 && b.Compare(c) < 0 && a.Compare(c) >= 0 {
						t.Fatalf("seed %d: %v %v %v go round", seed, a.components, b.components, c.components)
					}
				}
			}
		}
	}
}

// isHarderNaive reports whether b is at least as hard as a, as E2 defines it.
func isHarderNaive(a, b []jobs.Hardness) bool {
	for i := range a {
		if a[i].IsNum != b[i].IsNum || a[i].IsNum && a[i].Num.Compare(b[i].Num) > 0 || !a[i].IsNum &&
			a[i].Text != b[i].Text {
			return false
		}
	}
	return true
}
