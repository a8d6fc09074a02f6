package sched

import (
	"reflect"
	"testing"
)

// worldOf draws a whole world, with its faults and its people, from a seed.
func worldOf(t testing.TB, seed uint64) *world {
	w := newWorld(t, seed, 1+int(seed%5), 10+int(seed%40))
	if seed%3 > 0 {
		w.faults = 12
	}
	if seed%4 == 3 {
		w.crashes = 3
	}
	w.unrest()
	if seed%2 == 1 {
		w.meddling = 10
		w.meddle()
	}
	return w
}

// TestWorld runs some hundred seeded schedules with hosts that die, links that break or go
// silent, reports that come twice, refusals, people who change their minds, and a
// dispatcher that is killed (promises 1, 2 and 4; D6, E6, B1, P2, K8, K9).
func TestWorld(t *testing.T) {
	seeds := 500 // dispatch/sim does the thousands
	if testing.Short() {
		seeds = 300
	}
	for seed := range uint64(seeds) {
		worldOf(t, seed).run()
	}
}

// TestSameSeedSameRun: the core sees nothing but its events and its seed (DESIGN 3.1).
func TestSameSeedSameRun(t *testing.T) {
	for seed := range uint64(60) {
		a, b := worldOf(t, seed), worldOf(t, seed)
		a.run()
		b.run()
		if !reflect.DeepEqual(a.journal, b.journal) {
			t.Fatalf("seed %d gives two different runs", seed)
		}
	}
}

// FuzzWorld lets the fuzzer choose the seeds.
func FuzzWorld(f *testing.F) {
	for _, seed := range []uint64{0, 7, 71, 416, 551} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { worldOf(t, seed).run() })
}
