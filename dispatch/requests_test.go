package dispatch

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
)

// TestRequestsWaitForTheNextDispatcher checks that requests about hosts are recorded when the
// dispatcher leaves, so that a resumed run does not use a drained host again (D7).
func TestRequestsWaitForTheNextDispatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20*time.Second, "a", "b", "c")
		r.submit(20)
		r.d.Do(sched.DrainHost{Host: "a", On: true})
		r.d.Do(sched.DrainHost{Host: "b", On: true, Now: true})
		r.d.Do(sched.SetSlots{Host: "b", Slots: 2})
		r.d.Do(sched.DrainHost{Host: "c", On: true})
		r.d.Do(sched.DrainHost{Host: "c"})
		time.Sleep(5 * time.Second)
		r.stop()
		r.hosts.forget()
		if got := fmt.Sprint(r.replayed().Hosts); got != "map[a:{1 0} b:{2 2}]" {
			t.Errorf("got hosts %q after the replay, want map[a:{1 0} b:{2 2}]", got)
		}
	})
}
