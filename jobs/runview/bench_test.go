package runview

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// million is a run of a million jobs: some run, some failed, many are over.
func million() tab {
	const n = 1_000_000
	t := tab{&jobs.Table{Specs: make([]*jobs.Spec, n), Jobs: make([]jobs.Job, n)}}
	specs := make([]jobs.Spec, n)
	fails := &jobs.Outcome{Exit: 1, LastLine: "no such file", Started: 1, Ended: 2e9}
	good := &jobs.Outcome{Started: 1, Ended: 3e9, MaxRSSBytes: 1 << 20}
	now := jobs.StampOf(time.Now())
	for i := range n {
		s, j := &specs[i], &t.Jobs[i]
		*s = jobs.Spec{ID: jobs.ID(i + 1), Command: fmt.Sprintf("python train.py --C %d --gamma %d", i/1000, i%1000), Options: jobs.NoOptions}
		t.Specs[i] = s
		*j = jobs.Job{Spec: s, Round: 1}
		a := &jobs.Attempt{ID: jobs.AttemptID{Job: s.ID, N: 1}, Host: fmt.Sprintf("ws%02d", i%40), Launched: now, Started: now, Round: 1}
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
			j.Seq = t.Seq
		}
		t.Counts[j.State]++
	}
	return t
}

func look(b *testing.B, x *Board, a Ask) *Picture {
	p, err := x.Look(context.Background(), a)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// cpu reports the processor time of an operation beside that of the clock, which
// depends on who else computes. Its result is to be called at the end.
func cpu(b *testing.B) func() {
	used := func() int64 {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N)/1e6, "cpu-ms/op") }
}

// BenchmarkMillion: TUI.md rule 3. Cached is a key press; the others are the first
// look at another order or filter.
func BenchmarkMillion(b *testing.B) {
	t := million()
	x := FromTable(t.Table, Past{})
	defer x.Close()
	window := JobsWindow{Rows: 50, Cursor: 500_001, Above: 20}
	b.Run("fill", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			y := FromTable(t.Table, Past{})
			look(b, y, Ask{})
			y.Close()
		}
	})
	b.Run("cached", func(b *testing.B) {
		w := window
		i := 0
		look(b, x, Ask{Jobs: &w, Groups: true})
		defer cpu(b)()
		for b.Loop() {
			w.Cursor = jobs.ID(500_001 + i%40)
			i++
			look(b, x, Ask{Jobs: &w, Focus: w.Cursor, Groups: true})
		}
	})
	b.Run("jump", func(b *testing.B) { // the cursor goes somewhere else in the list
		w := window
		i := 0
		look(b, x, Ask{Jobs: &w})
		defer cpu(b)()
		for b.Loop() {
			w.Cursor = jobs.ID(1 + i*7919%1_000_000)
			i++
			look(b, x, Ask{Jobs: &w})
		}
	})
	for by := range Sorts {
		b.Run("sort-"+by.String(), func(b *testing.B) {
			w := window
			w.Sort = by
			defer cpu(b)()
			for b.Loop() {
				x.page.kept = nil
				look(b, x, Ask{Jobs: &w})
			}
		})
	}
	for _, f := range []string{"gamma 77", "state:fail", "host:ws0*", "-C"} {
		b.Run("filter-"+f, func(b *testing.B) {
			w := window
			w.Filter = `"` + f + `"`
			if f[0] == 's' || f[0] == 'h' || f[0] == '-' {
				w.Filter = f
			}
			defer cpu(b)()
			for b.Loop() {
				x.page.kept = nil
				look(b, x, Ask{Jobs: &w})
			}
		})
	}
	b.Run("visit", func(b *testing.B) { // rows made in one visit to the engine
		ids := make([]jobs.ID, piece)
		for i := range ids {
			ids[i] = jobs.ID(1 + i*331)
		}
		var k *desk
		x.from.visit(context.Background(), func(d *desk) { k = d })
		defer cpu(b)()
		for b.Loop() {
			x.pull(k, ids)
			x.mu.Lock()
			x.inbox.changes = nil
			x.mu.Unlock()
		}
	})
}

// nowhere is a Connector that reaches no host.
type nowhere struct{}

func (nowhere) Connect(context.Context, *hosts.Host, *hosts.Open) (hosts.Worker, error) {
	return nil, &hosts.Error{Host: "a", Class: hosts.Unreachable, Err: errors.New("refused")}
}

// BenchmarkEngine: what a board asks of the engine's goroutine with a million jobs:
// the first look, a key press, and what gathering costs it for each record.
func BenchmarkEngine(b *testing.B) {
	t := million()
	for i := range t.Jobs { // nothing is to be asked of a host
		if j := &t.Jobs[i]; j.State == jobs.Running {
			j.State, j.Attempts = jobs.Queued, nil
		}
	}
	d, err := dispatch.Start(dispatch.Config{RunUID: "u", RunDir: b.TempDir(), Hosts: []*hosts.Host{{Name: "a"}}, Connector: nowhere{},
		Journal: noJournal{}, Table: t.Table, StoreSpecs: func([]*jobs.Spec) error { return nil }})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	d.Snapshot() // it has begun
	b.Run("fill", func(b *testing.B) {
		defer cpu(b)()
		for b.Loop() {
			x := FromDispatcher(d, Options{})
			look(b, x, Ask{})
			x.Close()
		}
	})
	x := FromDispatcher(d, Options{})
	defer x.Close()
	w := JobsWindow{Rows: 50, Cursor: 500_001, Above: 20}
	look(b, x, Ask{Jobs: &w})
	b.Run("key", func(b *testing.B) {
		i := 0
		defer cpu(b)()
		for b.Loop() {
			w.Cursor = jobs.ID(500_001 + i%40)
			i++
			look(b, x, Ask{Jobs: &w, Focus: w.Cursor})
		}
	})
	b.Run("idle", func(b *testing.B) { // 100 ms of a screen that waits
		v := look(b, x, Ask{}).Version
		defer cpu(b)()
		for b.Loop() {
			v = look(b, x, Ask{Jobs: &w, After: v, Wait: 100 * time.Millisecond}).Version
		}
	})
}
