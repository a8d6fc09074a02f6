package dispatch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// TestHostsThatKeepFilesPackThem checks that each host which does not see the run directory is asked to
// pack its own attempts and no others, and that all hosts pack at the end of a run with enough jobs.
func TestHostsThatKeepFilesPackThem(t *testing.T) {
	for least, want := range map[int]bool{0: false, 40: true, 41: false} {
		synctest.Test(t, func(t *testing.T) {
			r := idleRig(t, time.Second)
			r.packs, r.hosts.apart = least, map[string]bool{"a": true, "b": true}
			r.start(&jobs.Table{}, "a", "b", "c")
			r.submit(40)
			r.drain()
			recorded, err := r.d.Recorded(t.Context(), 1, 40)
			if err != nil || len(recorded.Attempts) != 40 {
				t.Fatalf("%d attempts are recorded, %v", len(recorded.Attempts), err)
			}
			if err := r.d.PackOnHosts(t.Context(), recorded.Attempts); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for host, ids := range r.hosts.packed {
				if !slices.IsSortedFunc(ids, jobs.AttemptID.Compare) {
					t.Errorf("%s packs %v", host, ids)
				}
				for _, id := range ids {
					if at, err := r.d.Attempt(t.Context(), id); err != nil || at.Host != host {
						t.Errorf("%s packs %s of %s, %v", host, id, at.Host, err)
					}
				}
			}
			if n := len(r.hosts.packed["a"]) + len(r.hosts.packed["b"]); n == 0 || n >= 40 || len(r.hosts.packed) != 2 {
				t.Errorf("hosts pack %v", r.hosts.packed)
			}
			r.close(sched.AllDone)
			for _, bye := range r.hosts.goodbyes {
				if bye.Pack != want {
					t.Errorf("with %d jobs or more: %+v", least, bye)
				}
			}
			if len(r.hosts.goodbyes) != 3 {
				t.Errorf("goodbyes: %v", r.hosts.goodbyes)
			}
		})
	}
}
