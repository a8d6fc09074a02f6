package runview

import (
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// TestCancelOfWhatStillWaits checks that a cancel of jobs that were queued when the user confirmed
// it ends no job that has started since, and reports how many it left alone (rule 9).
func TestCancelOfWhatStillWaits(t *testing.T) {
	withLab(t, "a", func(t *testing.T, l *lab) {
		l.submit(sleepJobs(5)...)
		time.Sleep(5 * time.Second)
		ans := l.do(action.Request{Do: action.Cancel, Spare: action.SpareStarted,
			Jobs: jobs.Ranges{{First: 1, Last: 4}}})
		p := l.look(Query{})
		if ans.Done+ans.Left != 4 || ans.Left < 2 || p.Phases[Running] != 2 || p.Phases[Ending] != 0 ||
			p.Phases[Canceled] != ans.Done || ans.Changed.Count() != ans.Done {
			t.Errorf("Cancel of what waits: got %+v with phases %v, want only jobs that had not started", ans, p.Phases)
		}
		if ans = l.do(action.Request{Do: action.Cancel, Spare: action.SpareStarted,
			Jobs: jobs.One(1)}); ans.Done != 0 || ans.Left != 1 || ans.Text != "nothing to cancel, 1 left alone" {
			t.Errorf("Cancel of what waits: got %+v, want job 1 left, with the reason", ans)
		}
	})
}

// TestAFilterThatFailsIsCaught checks that a filter that panics on unusual data fails only the
// caller, in whichever goroutine it runs.
func TestAFilterThatFailsIsCaught(t *testing.T) {
	l := new(list)
	l.init(nil)
	l.rows = make([]row, 100_000)
	defer func() {
		if p := recover(); p != "odd data" {
			t.Errorf("it failed with %v", p)
		}
	}()
	l.matching(func(candidate) bool { panic("odd data") })
	t.Error("nothing failed")
}
