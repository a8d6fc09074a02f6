package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// K3: a product without end is not made faster than it is used up, and whoever waits
// for that ends with the run.
func TestJobsAreMadeWhenTheyAreWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		waits := []int{enoughWaiting + 1, enoughWaiting, enoughWaiting - 1}
		if !wanted(t.Context(), t.Context(), func() int { n := waits[0]; waits = waits[1:]; return n }) || time.Since(began) != 2*wantedEvery {
			t.Errorf("after %v, %d not looked at", time.Since(began), len(waits))
		}
		full := func() int { return enoughWaiting }
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if wanted(ctx, t.Context(), full) {
			t.Error("the run was over")
		}
		if !wanted(t.Context(), ctx, full) {
			t.Error("the end of the input must be seen by whoever reads it")
		}
	})
}
