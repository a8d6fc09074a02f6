package dispatch

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

var errNoJournal = errors.New("journal: no such file or directory")

// deletedRig returns a dispatcher with a running job whose journal has vanished.
func deletedRig(t *testing.T, deleted func() bool) *rig {
	r := idleRig(t, time.Hour)
	r.deleted = deleted
	r.start(&jobs.Table{}, "a").submit(1)
	time.Sleep(10 * time.Second)
	r.journal.Vanish(errNoJournal)
	r.journal.Fail(errNoJournal)
	return r
}

// endsPromptly stops the dispatcher and checks that it ends without waiting.
func (r *rig) endsPromptly(ev sched.Event) {
	r.t.Helper()
	began := time.Now()
	r.d.Do(ev)
	<-r.d.Finished()
	r.drain()
	finish, err := r.d.Close()
	if finish.How != sched.Stopped || err == nil || time.Since(began) > 2*time.Second {
		r.t.Errorf("%+v, %v, after %s", finish, err, time.Since(began))
	}
	time.Sleep(time.Hour) // the job of the fake host ends
}

// TestDeletedRunDirectoryIsReported checks that a deleted run directory is reported once, and that
// a stop ends the dispatcher although nothing can be recorded any more (promise 5).
func TestDeletedRunDirectoryIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := deletedRig(t, func() bool { return true })
		time.Sleep(time.Minute)
		if s := r.d.Snapshot(); !s.Deleted || !strings.Contains(s.Problem, "/run was deleted") ||
			r.numNotices("/run was deleted") != 1 {
			t.Errorf("deleted %v, problem %q, told %d times", s.Deleted, s.Problem, r.numNotices("/run was deleted"))
		}
		r.endsPromptly(sched.Drain{Why: "Ctrl-C"}) // a drain does not wait for jobs either
	})
}

// TestRunDirectoryThatWasMovedBackIsUsed checks that a run directory that was moved away and put
// back is used again.
func TestRunDirectoryThatWasMovedBackIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deleted := new(atomic.Bool)
		deleted.Store(true)
		r := deletedRig(t, deleted.Load)
		time.Sleep(time.Minute)
		deleted.Store(false)
		r.journal.Vanish(nil)
		r.journal.Fail(nil)
		time.Sleep(time.Minute)
		if s := r.d.Snapshot(); s.Deleted || s.Problem != "" || r.numNotices("is there again") == 0 {
			t.Errorf("deleted %v, problem %q", s.Deleted, s.Problem)
		}
		if res := r.finish(1); len(res) == 1 && res[0].State != jobs.Succeeded {
			t.Errorf("the job %s", res[0].State)
		}
	})
}

// TestMissingRunDirectoryIsNotDeleted checks that the dispatcher waits for a run directory that is
// only inaccessible, and that a stop still ends the dispatcher.
func TestMissingRunDirectoryIsNotDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := deletedRig(t, func() bool { return false })
		time.Sleep(time.Minute)
		if s := r.d.Snapshot(); s.Deleted || s.Problem == "" || r.numNotices("deleted") > 0 {
			t.Errorf("deleted %v, problem %q", s.Deleted, s.Problem)
		}
		r.endsPromptly(sched.Stop{Why: "SIGTERM"})
	})
}
