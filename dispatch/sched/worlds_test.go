package sched_test

import (
	"testing"

	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sim"
)

// TestCoreStaysConsistentInSimulatedWorlds checks that the core stays consistent in simulated
// worlds with crashing hosts, broken or silent links, duplicate reports, refusals, users who change
// their minds, and dispatchers that are killed. The invariants of package sim are checked, too
// (promises 1, 2, and 4; D6, E6, B1, P2, K8, K9).
func TestCoreStaysConsistentInSimulatedWorlds(t *testing.T) {
	sim.CheckCore = sched.Inconsistency
	defer func() { sim.CheckCore = nil }()
	seeds := 500
	if testing.Short() {
		seeds = 100
	}
	for seed := range uint64(seeds) {
		if r := sim.Run(sim.Seeded(seed), false); r.Failure != nil {
			t.Fatalf("seed %d: %v", seed, r.Failure)
		}
	}
}
