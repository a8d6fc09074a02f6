package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

func everything(*jobs.Record) bool { return true }

// take asks a watch for what it has.
func take(t *testing.T, d *Dispatcher, w *Watch, most int) (c Changes) {
	t.Helper()
	if err := d.Inspect(t.Context(), func(in *Inside) { c = in.Changes(w, most) }); err != nil {
		t.Fatal(err)
	}
	return c
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A watch names each job that has changed once, says when something has, and is
// silent about a run that stands still.
func TestAWatchNamesWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 10*time.Second, "a")
		w := r.d.Watch(func(r *jobs.Record) bool { return r.Kind == jobs.KindExited })
		first := take(t, r.d, w, 100)
		r.submit(6)
		time.Sleep(5 * time.Second)
		if !closed(first.Wake) {
			t.Error("nobody was woken")
		}
		c := take(t, r.d, w, 100)
		slices.Sort(c.Jobs)
		if !slices.Equal(c.Jobs, []jobs.ID{1, 2, 3, 4}) || c.More || !c.Any || len(c.Told) != 0 || len(c.Records) < 9 {
			t.Errorf("%v of %d records, %d told", c.Jobs, len(c.Records), len(c.Told))
		}
		time.Sleep(4 * time.Second)
		if c2 := take(t, r.d, w, 100); closed(c.Wake) || !closed(c.Aging) || len(c2.Jobs) > 0 || c2.Any || !c2.Aged {
			t.Errorf("a run that stands still: %+v", c2)
		}
		time.Sleep(3 * time.Second) // four are over, two have started
		if c = take(t, r.d, w, 4); len(c.Jobs) != 4 || !c.More || !closed(c.Wake) || len(c.Told) != 4 {
			t.Errorf("%+v", c)
		}
		if c2 := take(t, r.d, w, 100); len(c2.Jobs) != 2 || c2.More || slices.Contains(c.Jobs, c2.Jobs[0]) || closed(c2.Wake) {
			t.Errorf("%v after %v", c2.Jobs, c.Jobs)
		}
		r.drain()
		w.Close()
		r.close(sched.AllDone)
		if err := r.d.Inspect(t.Context(), func(*Inside) { t.Error("it ran") }); err == nil {
			t.Error("a dispatcher that has ended can be looked into")
		}
	})
}

// What a watch holds is bounded, however seldom it is looked at.
func TestAWatchIsBounded(t *testing.T) {
	w := &Watch{notable: everything, wake: make(chan struct{}), aging: make(chan struct{})}
	for i := range 5 * maxWatched {
		w.keep(jobs.Record{Kind: jobs.KindEvent, Reason: fmt.Sprint(i)})
		w.mark(jobs.ID(1 + i%100))
	}
	if len(w.records) > 2*maxWatched || len(w.told) > 2*maxWatched || len(w.jobs) != 100 {
		t.Errorf("%d records, %d told, %d jobs", len(w.records), len(w.told), len(w.jobs))
	}
	if last := w.records[len(w.records)-1]; last.N != 5*maxWatched || last.Reason != fmt.Sprint(5*maxWatched-1) {
		t.Errorf("%+v", last)
	}
}

// K9, an undo: Ask returns when everything is carried out and names what was ended
// by it, also what is skipped with it, and of very many jobs.
func TestAskSaysWhatCameOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		const n = 50_000 // more than the core does in a step
		list := specs(n)
		list[n-1].Options = &jobs.Options{After: []jobs.ID{n - 1}}
		if err := r.d.Submit(list, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		var ids []jobs.ID
		for id := jobs.ID(1); id < n; id++ {
			ids = append(ids, id)
		}
		is, err := r.d.Ask(t.Context(), "asked by a test", sched.Cancel{Jobs: ids, Why: "test"})
		if err != nil || is.Did != n-1 || len(is.Ended) != n {
			t.Errorf("%d did, %d left, %d ended, %v", is.Did, is.Left, len(is.Ended), err)
		}
		if !slices.Contains(is.Ended, n) {
			t.Error("the job that comes after one of them is not named")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.d.Ask(ctx, "", sched.Requeue{Jobs: ids}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		r.journal.set(nil, 2) // another dispatcher takes the run over
		time.Sleep(10 * time.Second)
		if _, err := r.d.Ask(t.Context(), "", sched.Requeue{Jobs: ids}); err == nil {
			t.Error("a dispatcher that was fenced off takes requests")
		}
		if _, err := r.d.Close(); err != nil {
			t.Error(err)
		}
		r.hosts.wg.Wait()
	})
}

// The engine keeps five minutes of each host, and ten of its rate, whoever looks.
func TestThePastOfHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Minute, "a", "b")
		r.submit(6)
		time.Sleep(20 * time.Minute)
		var hs []Host
		var s Status
		if err := r.d.Inspect(t.Context(), func(in *Inside) { hs, s = in.Hosts(), in.Status() }); err != nil {
			t.Fatal(err)
		}
		if len(hs) != 2 || len(hs[0].History) != samples || hs[0].History[samples-1] != 0 || !hs[0].Linked || hs[0].Down != 0 {
			t.Errorf("%+v", hs)
		}
		if len(s.Rates) != 59 || s.Rates[0] != 0 || s.Finish == nil {
			t.Errorf("%+v", s)
		}
		r.hosts.cut("a", "connection refused")
		time.Sleep(time.Minute)
		r.d.Inspect(t.Context(), func(in *Inside) { hs = in.Hosts() })
		if h := hs[0]; h.Linked || h.History[samples-1] != notUp || h.History[0] == notUp || h.Note == "" || h.Delay != 0 {
			t.Errorf("%+v", h)
		}
		r.drain()
		r.d.Close()
		r.hosts.wg.Wait()
	})
}

// BenchmarkWatch: what gathering adds to each record while nobody looks.
func BenchmarkWatch(b *testing.B) {
	e := &engine{}
	w := &Watch{notable: func(r *jobs.Record) bool { return r.Kind == jobs.KindLost }, wake: make(chan struct{}), aging: make(chan struct{})}
	e.watches = []*Watch{w}
	r := &jobs.Record{Kind: jobs.KindExited, Host: "a", Job: 1, N: 1, Outcome: &jobs.Outcome{}}
	for b.Loop() {
		r.Job = r.Job%100_000 + 1
		e.watch(r)
	}
}
