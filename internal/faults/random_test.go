package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A few random faults of every kind in one run: promises 1 to 5 of DESIGN 1. The
// long form is `make faults`.
func TestFewFaults(t *testing.T) {
	if *faultsFlag > 0 {
		t.Skip("the long test runs")
	}
	random(t, 15, 80)
}

// Issue 3, "Real faults": at least FAULTS faults from a seed, over as many runs
// as that takes.
func TestRandomFaults(t *testing.T) {
	if *faultsFlag == 0 {
		t.Skip("make faults runs it")
	}
	random(t, *faultsFlag, 300)
}

func random(t *testing.T, faults, jobs int) {
	l := newLab(t)
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	t.Logf("seed %d (-args -seed %d repeats it)", seed, seed)
	total := map[string]int{}
	begun, made := time.Now(), 0
	for n := 1; made < faults; n++ {
		rnd := rand.New(rand.NewPCG(seed, uint64(n)))
		d := newDirector(l, fmt.Sprintf("run%d", n), rnd, mixed(rnd, jobs))
		made += d.chaos(faults - made)
		for what, n := range d.counts {
			total[what] += n
		}
		t.Logf("run %d: %d dispatchers, %d attempts of %d jobs, %s", n, len(d.lives), d.marks(), jobs, counted(d.counts))
		if t.Failed() {
			break
		}
	}
	t.Logf("%d faults in %s, seed %d: %s", made, time.Since(begun).Round(time.Second), seed, counted(total))
}

// counted is a line of numbers by name.
func counted(counts map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, counts[what]))
	}
	return strings.Join(parts, ", ")
}

// chaos carries a run to its end while it makes faults, and checks it. It returns
// how many it made.
func (d *director) chaos(budget int) int {
	made := 0
	d.start()
	next := time.Now().Add(3 * time.Second)
	d.until("the end of the run under faults", 15*time.Minute, func() bool {
		if d.over || made >= budget {
			return true
		}
		if now := time.Now(); now.After(next) && len(d.heals) < 4 {
			if what := d.fault(); what != "" {
				d.counts[what]++
				made++
			}
			next = now.Add(time.Duration(300+d.rnd.IntN(2500)) * time.Millisecond)
		}
		return false
	})
	d.finish()
	d.check()
	return made
}
