package runview

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
)

// newTableLab returns a lab whose jobs run for a second each, or for ten when they are run again.
// Each prints acc, which is ten times its number plus that of the attempt. One more job runs
// indefinitely, and so does the run.
func newTableLab(t *testing.T, n int) *lab {
	l := newReadingLab(t)
	l.runs = func(id jobs.AttemptID) (time.Duration, jobs.Outcome) {
		if int(id.Job) > n {
			return 100 * time.Hour, jobs.Outcome{}
		}
		write(t, l.dir, id, fmt.Sprintf("acc=%d\n", 10*int(id.Job)+id.N))
		return time.Duration(1+9*(id.N-1)) * time.Second, jobs.Outcome{}
	}
	specs := sleepJobs(n + 1)
	for i := range specs {
		specs[i].Labels = jobs.NewLabels("", param("C", fmt.Sprint(i)))
	}
	l.submit(specs...)
	return l
}

// newReadingLab returns a lab whose tables have acc. The behavior of its jobs must be set before
// they are submitted.
func newReadingLab(t *testing.T) *lab {
	l := newLab(t, "a")
	o := metricOptions(t, l.dir, "acc")
	l.v.opt.Metrics, l.v.opt.Outputs = o.Metrics, o.Outputs
	return l
}

func valuesOf(tb *Table) string {
	var all []string
	for _, f := range tb.Values {
		all = append(all, strings.Join(f, "/"))
	}
	return strings.Join(all, " ")
}

// TestTableIsLive checks that the table grows while the run continues, and that this wakes a
// waiting Snapshot. A job that is run again leaves the table and returns with its new value (X5).
func TestTableIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTableLab(t, 6)
		ask := TableQuery{JobsWindow: JobsWindow{Rows: 10}}
		a, seen := Query{Table: &ask}, map[int]bool{}
		for start := time.Now(); time.Since(start) < 20*time.Second; {
			p := l.look(a)
			if n := len(p.Table.Values); p.Table.Ready && p.Table.Read == p.Table.Jobs && !seen[n] {
				seen[n] = true
				if p.Table.Jobs != n || p.Table.Page.Matched != n {
					t.Errorf("%d rows of %d", n, p.Table.Jobs)
				}
			}
			a.After, a.Wait = p.Version, 5*time.Second
		}
		if len(seen) < 3 || !seen[6] {
			t.Errorf("the table was seen with so many rows: %v", seen)
		}
		if got := valuesOf(tableOf(t, l.v, ask)); got != "11 21 31 41 51 61" {
			t.Errorf("got values %q, want those of all 6 jobs", got)
		}
		l.do(action.Request{Do: action.Requeue, Jobs: jobs.One(3)})
		time.Sleep(3 * time.Second)
		l.look(Query{Table: &ask})
		time.Sleep(2 * time.Second)
		if got := valuesOf(tableOf(t, l.v, ask)); got != "11 21 41 51 61" {
			t.Errorf("got values %q, want none of job 3, which was queued again", got)
		}
		time.Sleep(10 * time.Second)
		l.look(Query{Table: &ask})
		time.Sleep(2 * time.Second)
		if got := valuesOf(tableOf(t, l.v, ask)); got != "11 21 32 41 51 61" {
			t.Errorf("got values %q, want the new one of job 3", got)
		}
		l.end()
	})
}

// TestMissingOutputIsLookedForAgain checks that a missing output is looked for again, and that a
// note reports it meanwhile.
func TestMissingOutputIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newReadingLab(t)
		l.runs = func(id jobs.AttemptID) (time.Duration, jobs.Outcome) {
			switch id.Job {
			case 1:
				write(t, l.dir, id, "acc=1")
			case 3:
				return 100 * time.Hour, jobs.Outcome{}
			}
			return time.Second, jobs.Outcome{}
		}
		l.submit(sleepJobs(3)...)
		time.Sleep(5 * time.Second)
		ask := TableQuery{JobsWindow: JobsWindow{Rows: 10}}
		tb := tableOf(t, l.v, ask)
		if got := valuesOf(tb); got != "1 " || len(tb.Notes) != 1 ||
			!strings.Contains(tb.Notes[0], "1 job wrote no such file") {
			t.Errorf("values: got %q, notes %q; want a note about the missing file", got, tb.Notes)
		}
		write(t, l.dir, jobs.AttemptID{Job: 2, N: 1}, "acc=2")
		for range 60 { // somebody keeps looking
			time.Sleep(time.Second)
			l.look(Query{Table: &ask})
		}
		if tb = tableOf(t, l.v, ask); valuesOf(tb) != "1 2" || len(tb.Notes) != 0 {
			t.Errorf("values: got %q, notes %q; want \"1 2\" and no notes", valuesOf(tb), tb.Notes)
		}
		l.end()
	})
}

// TestOutputsOnAHostAreReadThroughTheDispatcher checks that outputs that are only on a host are
// read through the dispatcher.
func TestOutputsOnAHostAreReadThroughTheDispatcher(t *testing.T) {
	withLab(t, apart, func(t *testing.T, l *lab) {
		o := metricOptions(t, t.TempDir(), "acc")
		l.v.opt.Metrics, l.v.opt.Outputs = o.Metrics, o.Outputs
		l.runs = func(id jobs.AttemptID) (time.Duration, jobs.Outcome) {
			write(t, l.dir, id, fmt.Sprintf("acc=%d\n", id.Job))
			return time.Second, jobs.Outcome{}
		}
		l.submit(sleepJobs(4)...)
		time.Sleep(10 * time.Second)
		tb := tableOf(t, l.v, TableQuery{JobsWindow: JobsWindow{Rows: 10}})
		if got := valuesOf(tb); got != "1 2 3 4" {
			t.Errorf("values: got %s, notes %q; want 1 2 3 4", got, tb.Notes)
		}
	})
}

// TestNothingIsReadForNobody checks that nothing is read when nobody looks any more, and that no
// goroutine is left when the View closes, even during a read (TestMain looks for goroutines).
func TestNothingIsReadForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTableLab(t, 3)
		ask := TableQuery{JobsWindow: JobsWindow{Rows: 10}}
		l.look(Query{Table: &ask})
		working := func() bool {
			l.v.tables.mu.Lock()
			defer l.v.tables.mu.Unlock()
			return l.v.tables.working
		}
		if !working() {
			t.Error("nobody makes the table that was asked for")
		}
		time.Sleep(10 * time.Second)
		if working() {
			t.Error("the table is being made though nobody asks for it any more")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.v.Snapshot(ctx, Query{Table: &ask}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		l.look(Query{Table: &ask})
		l.end()
		if _, err := l.v.Snapshot(t.Context(), Query{Table: &ask}); !errors.Is(err, ErrGone) {
			t.Error(err)
		}
	})
	x, dir, _ := gridRun(t, 50, 10, 5)
	b := FromTable(runAt(dir), x.Table, metricOptions(t, dir, "acc"))
	if _, err := b.Snapshot(t.Context(), Query{Table: &TableQuery{}}); err != nil {
		t.Error(err)
	}
	b.Close()
}

// TestTableIsNotOldForOthers checks that jobs that are not in a table do not make it outdated.
func TestTableIsNotOldForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTableLab(t, 3)
		defer l.end()
		ask := TableQuery{JobsWindow: JobsWindow{Rows: 10}}
		for i := range 40 {
			time.Sleep(time.Second)   // time of the synctest bubble
			l.submit(sleepJobs(1)...) // it waits, or runs indefinitely
			p := l.look(Query{Jobs: windowOf(50), Table: &ask})
			if page := p.Table.Page; i > 20 &&
				(p.Jobs.Matched < 20 || page.Matched != 3 || page.Settled > 2*time.Second) {
				t.Errorf("second %d: %d rows of %d jobs, %s old", i, page.Matched, p.Jobs.Matched, page.Settled)
			}
		}
	})
}
