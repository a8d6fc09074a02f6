package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestJobsAreMadeOnDemand checks that an endless product of arguments is not generated faster than
// it is used, and that the wait for demand ends with the run (K3).
func TestJobsAreMadeOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		waits := []int{maxQueued + 1, maxQueued, maxQueued - 1}
		if !awaitDemand(t.Context(), t.Context(), func() int { n := waits[0]; waits = waits[1:]; return n }) ||
			time.Since(began) != 2*demandInterval {
			t.Errorf("after %v, %d not looked at", time.Since(began), len(waits))
		}
		full := func() int { return maxQueued }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if awaitDemand(ctx, t.Context(), full) {
			t.Error("the run was over")
		}
		if !awaitDemand(t.Context(), ctx, full) {
			t.Error("the end of the input must be seen by whoever reads it")
		}
	})
}
