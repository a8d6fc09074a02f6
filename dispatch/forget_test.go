package dispatch

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// What a person asked of hosts ends with the dispatcher, and its journal says so: nobody
// finds a drained host at work after a resume without a word (D7).
func TestADrainThatEndsIsTold(t *testing.T) {
	for _, over := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 20*time.Second, "a", "b", "c")
			r.submit(20)
			r.d.Do(sched.DrainHost{Host: "a", On: true})
			r.d.Do(sched.DrainHost{Host: "b", On: true, Now: true})
			r.d.Do(sched.SetSlots{Host: "b", Slots: 2})
			time.Sleep(5 * time.Second)
			how := sched.Stopped
			if over {
				how = sched.AllDone
				r.drain()
			} else {
				r.d.Do(sched.Stop{Why: "test"})
				<-r.d.Finished()
			}
			r.close(how)
			var told []string
			for _, rec := range r.journal.durable {
				if rec.Kind == jobs.KindEvent && strings.Contains(rec.Reason, "ends with this dispatcher") {
					told = append(told, rec.Reason)
				}
			}
			text := strings.Join(told, "\n")
			switch {
			case over && text != "":
				t.Errorf("the run is over: %s", text)
			case !over && (len(told) != 2 || !strings.HasPrefix(told[0], "a was drained by a person: ") ||
				!strings.HasPrefix(told[1], "b was stopped by a person and had 2 slots as a person gave it: ")):
				t.Errorf("%d: %s", len(told), text)
			}
		})
	}
}
