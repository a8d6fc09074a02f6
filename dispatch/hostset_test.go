package dispatch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
)

// TestHostsAreAddedAndRemovedDuringARun checks that an added host gets an agent and jobs. A removed
// host finishes its jobs and gets a goodbye, and its agent ends. If it is added again afterward, it
// gets jobs again (B5).
func TestHostsAreAddedAndRemovedDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20*time.Second, "a")
		r.submit(60)
		time.Sleep(5 * time.Second)
		give := func(list ...*hosts.Host) {
			if err := r.d.SetInventory(context.Background(), &hosts.Inventory{Hosts: list}); err != nil {
				t.Fatal(err)
			}
		}
		names := func() (all string) {
			for _, h := range r.d.Snapshot().Hosts {
				all += h.Name
			}
			return all
		}
		give(fakeHost("b"))
		if got := names(); got != "ba" {
			t.Errorf("hosts %q, want b, and a while its jobs run", got)
		}
		time.Sleep(40 * time.Second)
		if got := names(); got != "b" {
			t.Errorf("hosts %q, want b", got)
		}
		r.hosts.mu.Lock()
		if len(r.hosts.goodbyes) != 1 || !r.hosts.goodbyes[0].End {
			t.Errorf("goodbyes %v, want one to a, with the end", r.hosts.goodbyes)
		}
		r.hosts.mu.Unlock()
		give(fakeHost("b"), fakeHost("a"))
		<-r.d.Finished()
		r.close(sched.AllDone)
		if len(r.hosts.goodbyes) != 3 {
			t.Errorf("%d goodbyes, want 3", len(r.hosts.goodbyes))
		}
		for id, n := range r.hosts.started {
			if n != 1 {
				t.Errorf("%s started %d times", id, n)
			}
		}
	})
}
