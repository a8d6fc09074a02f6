package run

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// TestAcceptedJobsAreForgotten checks that a new run gets all of its jobs, in several blocks, and that
// nothing but the packed table holds them afterwards.
func TestAcceptedJobsAreForgotten(t *testing.T) {
	const n = submitBlock + 5
	dir, err := rundir.Create(filepath.Join(t.TempDir(), "runs"), "r", rundir.Settings{Cwd: "/"})
	must(t, err)
	o, err := Take(t.Context(), dir, journal.TakeOptions{})
	must(t, err)
	specs := jobstest.Specs(n)
	must(t, o.Store(specs))
	r, err := Start(t.Context(), o, Options{
		Inventory:  hosts.Local(),
		Connector:  func(func(host, line string)) (hosts.Connector, error) { return unreachable{}, nil },
		SocketBase: t.TempDir(),
	})
	must(t, err)
	r.feeder.Wait()
	accepted := r.d.NumAccepted(t.Context())
	_, err = r.Close()
	must(t, err)
	held := slices.DeleteFunc(specs, func(s *jobs.Spec) bool { return s == nil })
	if accepted != n || len(held) > 0 || len(r.stored) > 0 {
		t.Errorf("%d of %d jobs are accepted, %d are still held", accepted, n, len(held))
	}
}

// unreachable connects to no host.
type unreachable struct{}

func (unreachable) Connect(ctx context.Context, _ *hosts.Host, _ *hosts.Open) (hosts.Worker, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

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
