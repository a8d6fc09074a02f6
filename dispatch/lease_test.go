package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
)

// TestNoLeaseWithoutTheRun checks that a dispatcher that cannot verify that it still owns the run
// extends no lease, because its successor may treat the lease as over (promise 2).
func TestNoLeaseWithoutTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		r.submit(1)
		clock := func() (now time.Duration) {
			r.d.call(t.Context(), func(e *engine) { now = e.agents["a"].hostClock() })
			return now
		}
		time.Sleep(20 * time.Second)
		release := r.journal.Hang()
		hung := clock()
		time.Sleep(20 * time.Second)
		last := clock()
		if last > hung+sched.OwnershipTime+6*time.Second {
			t.Errorf("leases went on from %v to %v while the run directory hung", hung, last)
		}
		time.Sleep(time.Minute)
		if now := clock(); now != last {
			t.Errorf("leases went on from %v to %v while the run directory hung", last, now)
		}
		release()
		time.Sleep(20 * time.Second)
		if now := clock(); now <= last {
			t.Error("leases do not go on when it answers again")
		}
		r.stop()
		r.hosts.forget()
	})
}

// TestNoLeaseOfAnotherBoot checks that a rebooted host gets no lease in the clock of its previous
// boot, even if its hello arrives while the run directory hangs (promise 2).
func TestNoLeaseOfAnotherBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a")
		r.submit(1)
		time.Sleep(10 * time.Second)
		r.d.call(t.Context(), func(e *engine) {
			a := e.agents["a"]
			a.uptime.Store(int64(time.Hour))
			e.ownedAt = time.Time{}
			e.step(sched.HostUp{Host: "a", Hello: &hosts.Hello{Slots: 4, Cores: 4, Uptime: 5 * time.Second}})
			if got := a.hostClock(); got != 0 {
				t.Errorf("leases are counted from %v", got)
			}
			l := a.launchMessages(sched.Launch{Host: "a",
				Jobs: []sched.LaunchItem{{Attempt: jobs.AttemptID{Job: 1, N: 1}, Spec: jobstest.Specs(1)[0]}}})
			if l[0].ExpireUptime != 0 {
				t.Errorf("a launch may be taken until %v", l[0].ExpireUptime)
			}
			if got := e.core.Hosts()[0].Hold; got != jobs.HeldUnleased {
				t.Errorf("the host's hold is %q, so it gets jobs that it must refuse", got)
			}
		})
		r.finish(1)
	})
}
