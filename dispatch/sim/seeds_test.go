package sim

import (
	"flag"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	numSeeds    = flag.Int("seeds", 0, "how many worlds TestSeeds runs; 0: some hundreds")
	firstSeed   = flag.Uint64("first", 0, "the first of them")
	maxFailures = flag.Int("most", 5, "stop when so many worlds have failed")
	printLog    = flag.Bool("whole-log", false, "print the whole log of a world that fails, not its end")
)

func init() {
	flag.BoolVar(&cutAllJournals, "cuts", false,
		"in TestSeeds inject only deaths of dispatchers and journals that end early")
	flag.BoolVar(&blameAll, "bad-hosts", false, "in TestSeeds make every world one of bad hosts and broken jobs")
	flag.BoolVar(&allSmall, "small", false, "in TestSeeds make every world small")
	flag.BoolVar(&batterAll, "battered", false, "damage the journal of every world again and again")
	// A world is small and short-lived: with the usual heap, a quarter of the time is garbage collection.
	debug.SetGCPercent(400)
}

// TestSeeds checks every invariant in many worlds, with 40 to 60 faults in each (promises 1, 2, 3
// and 4; D6, E6, E7, K8, K9, B1, B2, P2, X1, X2, X8).
//
//	go test ./dispatch/sim -run TestSeeds -first 4711 -seeds 1 -whole-log   # repeat one world
//	go test ./dispatch/sim -run TestSeeds -seeds 1000 -battered             # far more damage
func TestSeeds(t *testing.T) {
	n := *numSeeds
	switch {
	case n > 0:
	case raceEnabled: // each world has one goroutine, so there is little to race
		n = 20
	case testing.Short():
		n = 100
	default:
		n = 500
	}
	holdInWorlds(t, n)
}

// TestSmall checks every invariant in small worlds, which are many for their time. Their few faults
// happen just after decisions of dispatchers and starts and ends of jobs.
//
//	go test ./dispatch/sim -run TestSmall -seeds 1000000 -timeout 0
func TestSmall(t *testing.T) {
	n := *numSeeds
	switch {
	case n > 0:
	case raceEnabled:
		n = 100
	default:
		n = 1000
	}
	holdInWorldsOf(t, n, &allSmall)
}

// TestCuts checks promises 1 and 2: no attempt id starts twice, and no finished job runs
// again. The only faults in its worlds are deaths of dispatchers and journals that are
// cut, copied, or restored. Each world has about 15 of these.
//
//	go test ./dispatch/sim -run TestCuts -seeds 10000    # 2,000 worlds
func TestCuts(t *testing.T) {
	n := *numSeeds / 5
	switch {
	case n > 0:
	case testing.Short(), raceEnabled:
		n = 10
	default:
		n = 100
	}
	holdInWorldsOf(t, n, &cutAllJournals)
}

// TestBadHosts checks in worlds of bad hosts and broken jobs that the core blames the right one: a
// job that fails only on bad hosts succeeds if a good one can run it, a broken job fails after a
// bounded number of executions, and no host is on probation for broken jobs (B2, D2).
//
//	go test ./dispatch/sim -run TestBadHosts -seeds 10000    # 2,000 worlds
func TestBadHosts(t *testing.T) {
	n := *numSeeds / 5
	switch {
	case n > 0:
	case testing.Short(), raceEnabled:
		n = 40
	default:
		n = 400
	}
	holdInWorldsOf(t, n, &blameAll)
}

// holdInWorldsOf is holdInWorlds in worlds of the kind of a flag.
func holdInWorldsOf(t *testing.T, n int, kind *bool) {
	was := *kind
	*kind = true
	defer func() { *kind = was }()
	holdInWorlds(t, n)
}

// holdInWorlds runs n worlds and reports those in which an invariant is violated.
func holdInWorlds(t *testing.T, n int) {
	t.Helper()
	var (
		next        atomic.Uint64
		mu          sync.Mutex
		faults      = map[string]int{}
		turns       int
		dispatchers int
		packed      int
		took        time.Duration
		bad         []uint64
		wg          sync.WaitGroup
	)
	began := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < uint64(n); i = next.Add(1) - 1 {
				r := Run(Seeded(*firstSeed+i), false)
				mu.Lock()
				for k, v := range r.Faults {
					faults[k] += v
				}
				turns, dispatchers = turns+r.Turns, dispatchers+r.Dispatchers
				took, packed = took+r.Took, packed+r.Packed
				if r.Failure != nil {
					bad = append(bad, *firstSeed+i)
				}
				enough := len(bad) >= *maxFailures
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(bad)
	for i, seed := range bad {
		again := Run(Seeded(seed), true)
		if again.Failure == nil {
			t.Errorf("seed %d fails, and not when it is run again", seed)
			continue
		}
		log := again.Log
		switch {
		case i > 0:
			log = nil
		case !*printLog:
			log = log[max(0, len(log)-80):]
		}
		t.Errorf("%s\nseed %d: %v", strings.Join(log, "\n"), seed, again.Failure)
	}
	all := 0
	for _, v := range faults {
		all += v
	}
	t.Logf("%d worlds: %d faults, %d turns of %d dispatchers, %d attempts packed, %v of their time, in %v of ours",
		n, all, turns, dispatchers, packed, took.Round(time.Hour), time.Since(began).Round(time.Millisecond))
	if n >= 100 && packed == 0 && len(bad) == 0 {
		t.Error("no files of attempts were packed")
	}
	for _, p := range faultKinds {
		t.Logf("%8d  %s", faults[p.name], p.name)
		if n >= 500 && faults[p.name] == 0 && len(bad) == 0 && !cutAllJournals && !blameAll && !allSmall {
			t.Errorf("%s never happened", p.name)
		}
	}
}

// TestSameChoicesSameWorld checks that only the choices determine a world, down to the bytes of its
// journal, so that a failing seed fails again.
func TestSameChoicesSameWorld(t *testing.T) {
	for seed := range uint64(12) {
		a, b := Run(Seeded(seed), true), Run(Seeded(seed), true)
		if a.Journal != b.Journal || a.Journal == "" {
			t.Errorf("seed %d gives two journals", seed)
		}
		if !slices.Equal(a.Log, b.Log) {
			t.Errorf("seed %d gives two logs", seed)
		}
	}
}

// FuzzChoices checks the invariants in worlds whose choices come from the fuzzer.
func FuzzChoices(f *testing.F) {
	for seed := range uint64(4) {
		t, b := Seeded(seed), make([]byte, 4000)
		for i := range b {
			b[i] = byte(t.Draw(256))
		}
		f.Add(b)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if r := Run(Bytes(b), false); r.Failure != nil {
			again := Run(Bytes(b), true)
			t.Fatalf("the last lines of the log:\n%s\n%v",
				strings.Join(again.Log[max(0, len(again.Log)-80):], "\n"), r.Failure)
		}
	})
}
