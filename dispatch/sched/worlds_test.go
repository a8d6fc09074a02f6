package sched_test

import (
	"runtime/debug"
	"slices"
	"testing"

	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sim"
)

// TestCoreStaysConsistentInSimulatedWorlds checks that the core stays consistent in simulated
// worlds with crashing hosts, broken or silent links, duplicate reports, refusals, users who change
// their minds, and dispatchers that are killed. The invariants of package sim are checked, too
// (promises 1, 2, and 4; D6, E6, B1, P2, K8, K9).
func TestCoreStaysConsistentInSimulatedWorlds(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
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

// TestUnvisitedHostsNeedNoVisit checks that Steps which visit all hosts decide what those decide that
// visit only the hosts on which they may have an effect.
func TestUnvisitedHostsNeedNoVisit(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	defer func() { sim.CheckCore = nil }()
	seeds := 100
	if testing.Short() {
		seeds = 25
	}
	for seed := range uint64(seeds) {
		sim.CheckCore = nil
		some := sim.Run(sim.Seeded(seed), true)
		sim.CheckCore = sched.VisitAllHosts
		all := sim.Run(sim.Seeded(seed), true)
		if some.Journal == all.Journal && slices.Equal(some.Log, all.Log) {
			continue
		}
		i := 0
		for i < min(len(some.Log), len(all.Log))-1 && some.Log[i] == all.Log[i] {
			i++
		}
		t.Fatalf("seed %d: if all hosts are visited, there is\n%s\ninstead of\n%s", seed, all.Log[i], some.Log[i])
	}
}
