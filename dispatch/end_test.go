package dispatch

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestLateResultDoesNotReopenTheRun checks that a result that becomes durable after the run was
// stopped is returned, and that Next still reports the end of the run.
func TestLateResultDoesNotReopenTheRun(t *testing.T) {
	c := newCompletions()
	c.end()
	c.add([]*Result{{Seq: 1}})
	if r, err := c.next(context.Background()); err != nil || r.Seq != 1 {
		t.Errorf("next: %v, %v", r, err)
	}
	if _, err := c.next(context.Background()); err != io.EOF {
		t.Errorf("next after the end: %v", err)
	}
}

// TestAHostThatIsAwayAtTheEndIsCleanedLater checks that a host that cannot be reached at the end is
// named, and that the run is not recorded as ended. The next dispatcher connects again and cleans
// the host up (promise 4).
func TestAHostThatIsAwayAtTheEndIsCleanedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a", "b")
		r.submit(8)
		res := r.drain()
		r.hosts.cut("b", "no route to host")
		r.close(sched.AllDone)
		if len(res) != 8 || !strings.Contains(strings.Join(r.notices, "\n"), "b could not be reached at the end") {
			t.Errorf("%d results; notices: %q", len(res), r.notices)
		}
		if r.hasRecord(jobs.KindEnded) {
			t.Error("the run was written down as ended")
		}
		r.hosts.heal()
		table := r.replayed()
		r.hosts.goodbyes = nil
		r.start(table, "a", "b")
		r.submit(0)
		r.finish(0)
		if len(r.hosts.goodbyes) != 2 || !r.hasRecord(jobs.KindEnded) {
			t.Errorf("took leave of %d hosts; ended: %v", len(r.hosts.goodbyes), r.hasRecord(jobs.KindEnded))
		}
	})
}

// TestWaitForHostsIsShown checks that a dispatcher shows which hosts it waits for at the end, and
// prints that once if it lasts.
func TestWaitForHostsIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a", "b")
		r.hosts.packTime = 9 * time.Second
		r.submit(4)
		r.drain()
		closed := make(chan struct{})
		go func() {
			r.close(sched.AllDone)
			close(closed)
		}()
		time.Sleep(leaveNotice + time.Second)
		const want = "a, b, which end what jobs left behind, and may pack files of the run"
		s, err := r.d.Live(t.Context())
		if err != nil || s.Finish.Waiting() != want {
			t.Errorf("%+v, %v; want %q", s.Finish, err, want)
		}
		<-closed
		if s, _ := r.d.Live(t.Context()); s.Finish.Waiting() != "" {
			t.Errorf("after the end: %q", s.Finish.Waiting())
		}
		if n := strings.Count(strings.Join(r.notices, "\n"), "waiting for "+want); n != 1 {
			t.Errorf("printed %d times: %q", n, r.notices)
		}
	})
}

func (r *rig) hasRecord(k jobs.Kind) bool {
	return r.journal.Has(func(r *jobs.Record) bool { return r.Kind == k })
}

// TestLongCommandsAreSplitOverMessages checks that long commands are sent in several messages. None
// is too large for a frame, and no job is lost.
func TestLongCommandsAreSplitOverMessages(t *testing.T) {
	h := &hosts.Host{Name: "a", Setup: "host setup"}
	a := newAgent(&Dispatcher{cfg: Config{Open: hosts.Open{Setup: "run setup"}}}, h)
	var o sched.Launch
	for i := range 10 {
		o.Jobs = append(o.Jobs, sched.LaunchItem{Attempt: jobs.AttemptID{Job: jobs.ID(i + 1), N: 1},
			Spec: &jobs.Spec{Command: strings.Repeat("x", 300<<10), Options: &jobs.Options{Setup: "job setup"}}})
	}
	n := 0
	for _, m := range a.launchMessages(o) {
		size := 0
		for _, j := range m.Jobs {
			n++
			size += len(j.Command)
			if j.Setup != hosts.JoinSetups("", "host setup", "run setup", "job setup") {
				t.Errorf("setup %q", j.Setup)
			}
			if int(j.Attempt.Job) != n {
				t.Errorf("job %d in place %d", j.Attempt.Job, n)
			}
		}
		if size > maxLaunchBytes {
			t.Errorf("a message of %d bytes", size)
		}
	}
	if n != 10 {
		t.Errorf("%d jobs of 10", n)
	}
}

// TestLeaseFollowsTheCore checks that a host's lease counts from a heartbeat that the core has
// processed, not from one that only the agent has received.
func TestLeaseFollowsTheCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		r.submit(1)
		time.Sleep(10 * time.Second)
		var a *agent
		block, entered := make(chan struct{}), make(chan struct{})
		// A disk that hangs.
		go r.d.call(t.Context(), func(e *engine) { a = e.agents["a"]; close(entered); <-block })
		<-entered
		before := a.hostClock()
		time.Sleep(time.Minute)
		if got := a.hostClock(); got != before || before == 0 {
			t.Errorf("the lease went on from %v to %v while the core saw nothing", before, got)
		}
		close(block)
		r.stop()
		r.hosts.forget()
	})
}

// TestOnlyAHigherEpochFences checks that a host cannot stop a run by claiming to be fenced by an
// epoch that is not higher than the dispatcher's (promise 5).
func TestOnlyAHigherEpochFences(t *testing.T) {
	a := newAgent(&Dispatcher{cfg: Config{Open: hosts.Open{Epoch: 3}}}, &hosts.Host{Name: "a"})
	var fenced *hosts.FencedError
	if err := a.checkedFence(&hosts.FencedError{Host: "a", By: 3}); errors.As(err, &fenced) {
		t.Errorf("believed: %v", err)
	}
	if err := a.checkedFence(&hosts.FencedError{Host: "a", By: 4}); !errors.As(err, &fenced) {
		t.Errorf("not believed: %v", err)
	}
}
