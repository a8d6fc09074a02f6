package main

import "testing"

// TestVariantsFindTheSameCost checks that the variants differ in how much they search, but never in
// the cost that they find (E2).
func TestVariantsFindTheSameCost(t *testing.T) {
	for instance := range uint64(20) {
		var best [3]int
		var nodes [3]int64
		for i, variant := range []string{"brute", "bnb", "heur"} {
			s := newSearch(variant, 6, 7, instance)
			s.assign(0, 0)
			best[i], nodes[i] = s.best, s.nodes
		}
		if best[0] != best[1] || best[1] != best[2] {
			t.Errorf("instance %d: the variants find %v", instance, best)
		}
		if nodes[0] < nodes[1] || nodes[1] < nodes[2] {
			t.Errorf("instance %d: each variant should look at no more than the one before: %v", instance, nodes)
		}
	}
}
