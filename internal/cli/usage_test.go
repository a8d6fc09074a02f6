package cli

import (
	"testing"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
)

// Efficiency counts the slots that were there, from when they were there.
func TestUsage(t *testing.T) {
	at := time.Unix(1000, 0)
	u := usage{last: at}
	view := func(slots ...int) *dispatch.Snapshot {
		s := &dispatch.Snapshot{}
		for _, n := range slots {
			s.Hosts = append(s.Hosts, sched.HostView{State: sched.Up, Slots: n})
		}
		s.Hosts = append(s.Hosts, sched.HostView{State: sched.BackingOff, Slots: 99})
		return s
	}
	u.note(at.Add(2*time.Second), view(4), 0)
	u.note(at.Add(3*time.Second), view(4, 4), 0)
	u.note(at.Add(5*time.Second), view(4, 4), 6)
	if got, most := u.total(); got != 2*4+1*8+2*8 || most != 8 {
		t.Errorf("%v slot-seconds, at most %d", got, most)
	}
}
