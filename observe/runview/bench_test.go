package runview

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"dcs-tui/jobs"
)

// millionJobs returns a run of a million jobs. Some run, some failed, and many have finished.
func millionJobs() tab {
	const n = 1_000_000
	t := tab{&jobs.Table{Specs: make([]*jobs.Spec, n), Jobs: make([]jobs.Job, n)}}
	specs := make([]jobs.Spec, n)
	fails := &jobs.Outcome{Exit: 1, LastLine: "no such file", Started: 1, Ended: 2e9}
	good := &jobs.Outcome{Started: 1, Ended: 3e9, MaxRSSBytes: 1 << 20}
	now := jobs.StampOf(time.Now())
	for i := range n {
		s, j := &specs[i], &t.Jobs[i]
		*s = jobs.Spec{ID: jobs.ID(i + 1), Command: fmt.Sprintf("python train.py --C %d --gamma %d", i/1000, i%1000),
			Options: jobs.NoOptions}
		t.Specs[i] = s
		*j = jobs.Job{Spec: s, Round: 1}
		a := &jobs.Attempt{ID: jobs.AttemptID{Job: s.ID, N: 1}, Host: fmt.Sprintf("ws%02d", i%40), Launched: now,
			Started: now, Round: 1}
		switch {
		case i%2 == 0 && i%50 == 0:
			j.State, a.State, a.Outcome = jobs.Failed, jobs.AttemptExited, fails
		case i%2 == 0:
			j.State, a.State, a.Outcome = jobs.Succeeded, jobs.AttemptExited, good
		case i%1001 == 0:
			j.State, a.State = jobs.Running, jobs.AttemptRunning
		default:
			a = nil
		}
		if a != nil {
			j.Attempts = []*jobs.Attempt{a}
		}
		if j.State.Terminal() {
			t.Seq++
			j.Seq, j.Counted = t.Seq, int32(len(j.Attempts))
		}
		t.Counts[j.State]++
	}
	return t
}

func look(b *testing.B, x *View, a Query) *Snapshot {
	p, err := x.Snapshot(context.Background(), a)
	must(b, err)
	return p
}

// cpu reports the processor time of an operation in addition to the wall-clock time, which depends
// on the load of the machine. Call its result at the end.
func cpu(b *testing.B) func() {
	used := func() int64 {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N)/1e6, "cpu-ms/op") }
}

// BenchmarkMillion measures requests over a million jobs. Cached is a key press; the others are the
// first request for another order or filter.
func BenchmarkMillion(b *testing.B) {
	t := millionJobs()
	x := FromTable(runAt(b.TempDir()), t.Table, Options{})
	defer x.Close()
	window := JobsWindow{Rows: 50, Cursor: 500_001, Above: 20}
	b.Run("fill", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			y := FromTable(runAt(b.TempDir()), t.Table, Options{})
			look(b, y, Query{})
			y.Close()
		}
	})
	b.Run("cached", func(b *testing.B) {
		w := window
		i := 0
		look(b, x, Query{Jobs: &w, Groups: true})
		defer cpu(b)()
		for b.Loop() {
			w.Cursor = jobs.ID(500_001 + i%40)
			i++
			look(b, x, Query{Jobs: &w, Focus: w.Cursor, Groups: true})
		}
	})
	b.Run("jump", func(b *testing.B) { // the cursor moves elsewhere in the list
		w := window
		i := 0
		look(b, x, Query{Jobs: &w})
		defer cpu(b)()
		for b.Loop() {
			w.Cursor = jobs.ID(1 + i*7919%1_000_000)
			i++
			look(b, x, Query{Jobs: &w})
		}
	})
	for by := range Sorts {
		b.Run("sort-"+by.String(), func(b *testing.B) {
			w := window
			w.Sort = by
			defer cpu(b)()
			for b.Loop() {
				x.page = nil
				look(b, x, Query{Jobs: &w})
			}
		})
	}
	for _, f := range []string{"gamma 77", "state=fail", "host=ws0*", "not C"} {
		b.Run("filter-"+f, func(b *testing.B) {
			w := window
			w.Filter = `"` + f + `"`
			if f[0] == 's' || f[0] == 'h' || f[0] == '-' {
				w.Filter = f
			}
			defer cpu(b)()
			for b.Loop() {
				x.page = nil
				look(b, x, Query{Jobs: &w})
			}
		})
	}
}
