package dispatch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
)

// numNotices returns the number of notices so far that contain part.
func (r *rig) numNotices(part string) (n int) {
	count := func(*engine) {
		for _, line := range r.notices {
			if strings.Contains(line, part) {
				n++
			}
		}
	}
	if r.d.call(context.Background(), count) != nil {
		count(nil)
	}
	return n
}

// TestHungRunDirectoryIsReported checks that a hung run directory does not block the dispatcher. It
// is reported in one message, nothing is launched, and hosts and users are still served. The run
// continues when the directory answers.
func TestHungRunDirectoryIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 20*time.Second, "a")
		r.submit(8) // four run at once
		time.Sleep(10 * time.Second)
		release := r.journal.Hang()
		time.Sleep(time.Minute)
		if n := r.hosts.launches; n > 6 { // the buffered jobs may have been more than four
			t.Errorf("%d launches", n)
		}
		s := r.d.Snapshot() // does not block
		if !strings.Contains(s.Problem, "has not answered") {
			t.Errorf("problem: %q", s.Problem)
		}
		if n := r.numNotices("nothing is launched"); n != 1 {
			t.Errorf("told %d times", n)
		}
		release()
		for _, x := range r.finish(8) {
			if x.State != jobs.Succeeded {
				t.Errorf("job %d %s", x.Job, x.State)
			}
		}
		if n := r.numNotices("the run continues"); n != 1 {
			t.Errorf("told %d times that the run continues", n)
		}
	})
}

// TestFailedHeartbeatIsTriedAgain checks that a heartbeat that fails, or that the run directory prevents, is
// tried again at the next look, long before a standby would take the run over. It is reported once.
func TestFailedHeartbeatIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		r.submit(1)
		time.Sleep(30 * time.Second)
		for _, fail := range []func(error){r.journal.FailHeartbeat, r.journal.Vanish} {
			fail(errors.New("input/output error"))
			time.Sleep(2 * ownerInterval)
			before := r.journal.Heartbeats()
			fail(nil)
			time.Sleep(2 * housekeepingInterval)
			if n := r.journal.Heartbeats() - before; n != 1 {
				t.Errorf("%d heartbeats at the next two looks, want 1", n)
			}
		}
		if n := r.numNotices("the owner file cannot be written"); n != 1 {
			t.Errorf("told %d times", n)
		}
		r.finish(1)
	})
}

// TestAVanishedRunDirectoryStopsLaunching checks that a removed run directory is reported in one
// message and stops launching. When it returns, the run continues (promise 5).
func TestAVanishedRunDirectoryStopsLaunching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a")
		r.journal.Vanish(errors.New("journal/000001.jsonl is gone: was the run x removed?"))
		time.Sleep(5 * time.Second)
		r.submit(3)
		time.Sleep(30 * time.Second)
		if r.hosts.launches != 0 || r.numNotices("nothing is launched: journal/000001.jsonl is gone") != 1 ||
			r.d.Snapshot().Problem == "" {
			t.Errorf("%d launches, problem %q", r.hosts.launches, r.d.Snapshot().Problem)
		}
		r.journal.Vanish(nil)
		r.finish(3)
	})
}

// TestHungRunDirectoryIsReportedWhileJobsRun checks that a hung run directory is also reported when
// there is nothing to write (promise 5).
func TestHungRunDirectoryIsReportedWhileJobsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		r.submit(1)
		time.Sleep(30 * time.Second)
		release := r.journal.Hang()
		time.Sleep(15 * time.Second)
		if r.numNotices("nothing is launched") != 1 || r.d.Snapshot().Problem == "" {
			t.Errorf("problem %q", r.d.Snapshot().Problem)
		}
		release()
		time.Sleep(10 * time.Second)
		if s := r.d.Snapshot(); s.Problem != "" || r.numNotices("the run continues") != 1 {
			t.Errorf("problem %q", s.Problem)
		}
		r.finish(1)
	})
}
