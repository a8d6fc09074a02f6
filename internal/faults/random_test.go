//go:build linux

package faults

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFewFaults makes a few random faults of every kind in one run, and checks promises 1 to 5. The
// long form is `make faults`.
func TestFewFaults(t *testing.T) {
	if *faultsFlag > 0 {
		t.Skip("the long test runs")
	}
	var all faultCounts
	all.makeRandomFaults(t, newLab(t), 15, 80, cloudHosts)
	t.Log(all.String())
}

// TestRandomFaults makes at least FAULTS faults from a seed, over as many runs as needed, in
// several labs in parallel.
func TestRandomFaults(t *testing.T) {
	if *faultsFlag == 0 {
		t.Skip("make faults runs it")
	}
	var all faultCounts
	t.Run("labs", func(t *testing.T) {
		for n := range *labsFlag {
			t.Run(fmt.Sprint(n+1), func(t *testing.T) {
				t.Parallel()
				l := newLab
				if n%3 == 2 {
					l = func(t *testing.T) *lab { return newNetLab(t, 20*time.Second) }
				}
				all.makeRandomFaults(t, l(t), (*faultsFlag+*labsFlag-1) / *labsFlag, 200,
					inventories[n%len(inventories)])
			})
		}
	})
	t.Log(all.String())
}

// inventories are the inventories of the labs. The second one has a provider.
var inventories = []string{keysDir + "/hosts.toml", cloudHosts, keysDir + "/hosts.toml"}

// seed returns the requested seed, or a new one.
var seed = sync.OnceValue(func() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return uint64(time.Now().UnixNano()) % 1_000_000
})

// newRand returns the random source of a test.
func newRand(t *testing.T) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed(), h.Sum64()))
}

// faultCounts counts faults and runs over all labs.
type faultCounts struct {
	mu                    sync.Mutex
	faults                map[string]int
	runs, jobs, attempts  int
	dispatchers, notEnded int
	died, overlaps        int
	began                 time.Time
}

func (a *faultCounts) add(d *director) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.faults == nil {
		a.faults, a.began = map[string]int{}, d.startedAt
	}
	for what, n := range d.counts {
		a.faults[what] += n
	}
	a.runs++
	a.jobs += len(d.jobs)
	a.attempts += d.numMarks()
	a.dispatchers += len(d.dispatchers)
	a.notEnded += d.numNotEnded
	a.died += d.numDied
	a.overlaps += d.numOverlaps
}

// String returns the summary line for reports.
func (a *faultCounts) String() string {
	sum := 0
	for _, n := range a.faults {
		sum += n
	}
	return fmt.Sprintf("seed %d: %d faults in %s over %d runs; %d jobs, %d attempts that ran, %d dispatchers, "+
		"%d ends repeated, %d attempts beside one on a lost host, %d jobs whose hosts died three times: %s",
		seed(), sum, time.Since(a.began).Round(time.Second), a.runs, a.jobs, a.attempts, a.dispatchers, a.notEnded,
		a.overlaps, a.died, countsText(a.faults))
}

// makeRandomFaults makes faults in a lab, run after run, until there are enough.
func (a *faultCounts) makeRandomFaults(t *testing.T, l *lab, faults, jobs int, inventory string) {
	rnd := newRand(t)
	t.Logf("seed %d (-seed %d repeats it)", seed(), seed())
	for n, made := 1, 0; made < faults && !t.Failed(); n++ {
		d := newDirector(l, fmt.Sprintf("run%d", n), rnd, mixedJobs(rnd, jobs))
		d.inventory = inventory
		made += d.makeFaultsUntilEnd(faults - made)
		a.add(d)
		t.Logf("run %d: %d dispatchers, %d attempts of %d jobs, %s", n, len(d.dispatchers), d.numMarks(), jobs,
			countsText(d.counts))
	}
}

// countsText formats numbers by name as one line.
func countsText(counts map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, counts[what]))
	}
	return strings.Join(parts, ", ")
}

// makeFaultsUntilEnd makes faults during a run until it ends, and checks the run. It returns the
// number of faults.
func (d *director) makeFaultsUntilEnd(budget int) int {
	made := 0
	// most is the maximum number of faults at a time, pause the time between two faults in ms.
	most, pause := 3+d.rand.IntN(5), 500+d.rand.IntN(3000)
	d.start()
	next := time.Now().Add(3 * time.Second)
	d.stepUntil("the end of the run under faults", 15*time.Minute, func() bool {
		if d.over || made >= budget {
			return true
		}
		if now := time.Now(); now.After(next) && len(d.repairs) < most {
			if what := d.makeFault(); what != "" {
				d.counts[what]++
				made++
			}
			next = now.Add(time.Duration(100+d.rand.IntN(pause)) * time.Millisecond)
		}
		return false
	})
	d.awaitEnd()
	d.checkRun()
	return made
}
