package runview

import (
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
)

// TestCancelOfWhatStillWaits checks that a cancel of jobs that were queued when the user confirmed
// it ends no job that has started since, and reports how many it left alone (rule 9).
func TestCancelOfWhatStillWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "a")
		l.submit(plain(5)...)
		time.Sleep(5 * time.Second)
		ans := l.do(Action{Do: Cancel, Waiting: true, Jobs: jobs.Ranges{{First: 1, Last: 4}}})
		p := l.look(Query{})
		if ans.Done+ans.Left != 4 || ans.Left < 2 || p.Phases[Running] != 2 || p.Phases[Ending] != 0 || p.Phases[Canceled] != ans.Done || ans.Changed.Count() != ans.Done {
			t.Errorf("%+v, %v", ans, p.Phases)
		}
		if ans = l.do(Action{Do: Cancel, Waiting: true, Jobs: jobs.One(1)}); ans.Done != 0 || ans.Left != 1 || ans.Text == "" {
			t.Errorf("%+v", ans)
		}
		l.end()
	})
}

// TestCountsAgreeWhileJobsCome checks that the counts of one snapshot agree, also in the first
// snapshot with new jobs.
func TestCountsAgreeWhileJobsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, "a")
		var version uint64
		for i := range 10 {
			if err := l.d.Submit(plain(3), i == 9); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				p := l.look(Query{After: version, Wait: time.Second, Jobs: page(5)})
				if i%2 > 0 {
					version = p.Version
				}
				sum := 0
				for _, n := range p.Phases {
					sum += n
				}
				if sum != p.Total || p.Jobs.Matched > p.Total {
					t.Errorf("%d jobs: %d in phases, %d in the list", p.Total, sum, p.Jobs.Matched)
				}
			}
		}
		time.Sleep(time.Second)
		if p := l.look(Query{}); p.Total != 30 {
			t.Error(p.Total)
		}
		l.end()
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
	l.matching(&filter{func(candidate) bool { panic("odd data") }})
	t.Error("nothing failed")
}
