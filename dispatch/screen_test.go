package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// What is asked at the very end of a run is either done, to its end, or refused with
// nothing done: promise 1 holds for the round that it would have begun.
func TestWhatIsAskedAtTheVeryEnd(t *testing.T) {
	t.Run("the end is decided and waits for the journal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 10*time.Second, "a")
			r.submit(1)
			time.Sleep(5 * time.Second)
			r.journal.set(errors.New("no space left on device"), 0)
			time.Sleep(time.Minute)
			if is, err := r.d.Ask(t.Context(), "", sched.Requeue{Jobs: []jobs.ID{1}}); err != nil || is.Did != 1 {
				t.Fatalf("%+v, %v", is, err)
			}
			r.journal.set(nil, 0)
			time.Sleep(5 * time.Second)
			select {
			case <-r.d.Finished():
				t.Error("the run was said to be over while a job runs again")
			default:
			}
			if res := r.drain(); len(res) != 2 || res[1].Round != 2 {
				t.Errorf("%d results", len(res))
			}
			r.close(sched.AllDone)
		})
	})
	t.Run("the end was given out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 10*time.Second, "a")
			r.submit(1)
			r.drain()
			<-r.d.Finished()
			if _, err := r.d.Ask(t.Context(), "", sched.Requeue{Jobs: []jobs.ID{1}}); !errors.Is(err, ErrLeaving) {
				t.Error(err)
			}
			if err := r.d.Order(t.Context(), Notice{Text: "slots"}, sched.SetSlots{Host: "a", Slots: 2}); !errors.Is(err, ErrLeaving) {
				t.Error(err)
			}
			// One from a file stays there for the next dispatcher.
			r.d.Do(sched.Request{Name: "late", Do: []sched.Event{sched.Requeue{Jobs: []jobs.ID{1}}}})
			if snap := r.d.Snapshot(); snap == nil || snap.Counts[jobs.Succeeded] != 1 {
				t.Error("something was done")
			}
			r.close(sched.AllDone)
		})
	})
}

// A panic of what looks in costs the one who looks, never the run.
func TestAPanicOfAVisitorIsHisOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a")
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "odd data") {
					t.Errorf("whoever looked was given %v", p)
				}
			}()
			r.d.Inspect(t.Context(), func(*Inside) { panic("odd data") })
		}()
		r.submit(2)
		r.drain()
		r.close(sched.AllDone)
	})
}

// However many reads are begun and given up, a host has few of them at a time: its
// beats and results go through the same link.
func TestReadsOfAHostAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		r.submit(1)
		time.Sleep(5 * time.Second)
		r.hosts.mu.Lock()
		r.hosts.mute = true // its file system hangs
		r.hosts.mu.Unlock()
		id := jobs.AttemptID{Job: 1, N: 1}
		for range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, _, err := r.d.Output(ctx, id, jobs.FileOut, 0, 100); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
		r.hosts.mu.Lock()
		asked, w := r.hosts.reads, r.hosts.workers["a"]
		r.hosts.mute = false
		r.hosts.mu.Unlock()
		if len(asked) == 0 || len(asked) > maxHostReads {
			t.Errorf("%d reads are under way", len(asked))
		}
		for _, n := range asked {
			w.Say(&hosts.Chunk{ID: n, Size: 5, Bulk: []byte("hello")})
		}
		if data, _, err := r.d.Output(t.Context(), id, jobs.FileOut, 0, 100); err != nil || string(data) != "hello" {
			t.Errorf("%q, %v", data, err)
		}
		r.d.Close()
		r.hosts.wg.Wait()
	})
}

// An undo names what its own cancel has ended, also while another, of very many jobs,
// is under way.
func TestUndoesAreKeptApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		const n = 50_000
		if err := r.d.Submit(specs(n), true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		var many []jobs.ID
		for id := jobs.ID(1001); id <= n; id++ {
			many = append(many, id)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var first, second, third Asked
		var errs [3]error
		var all sync.WaitGroup
		r.d.call(func(*engine) { // what is asked meanwhile comes in one turn
			all.Go(func() { first, errs[0] = r.d.Ask(ctx, "", sched.Cancel{Jobs: many}) })
			time.Sleep(time.Millisecond)
			all.Go(func() { second, errs[1] = r.d.Ask(ctx, "", sched.Cancel{Jobs: []jobs.ID{500}}) })
			time.Sleep(time.Millisecond)
			all.Go(func() { third, errs[2] = r.d.Ask(ctx, "", sched.Cancel{Jobs: []jobs.ID{501, 2000}}) })
			time.Sleep(time.Millisecond)
		})
		all.Wait()
		cancel()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		if len(first.Ended) != len(many) || len(second.Ended) != 1 || second.Ended[0] != 500 || len(third.Ended) != 1 || third.Ended[0] != 501 {
			t.Errorf("%d, %d and %d jobs", len(first.Ended), len(second.Ended), len(third.Ended))
		}
		r.d.Close()
		r.hosts.wg.Wait()
	})
}

// K9, rule 9: who was told that nothing running is touched ends nothing that has started
// or was handed over meanwhile, however many jobs he named.
func TestCancelWaitingLeavesAloneWhatHasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		const n = waitingAtOnce + 50
		list := specs(n)
		list[n-1].Options = &jobs.Options{After: []jobs.ID{10}}
		if err := r.d.Submit(list, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		var ids []jobs.ID
		for id := jobs.ID(1); id < n; id++ {
			ids = append(ids, id)
		}
		before := r.d.Snapshot()
		is, err := r.d.CancelWaiting(t.Context(), "asked", "test", ids)
		after := r.d.Snapshot()
		running := before.Counts[jobs.Running]
		if err != nil || is.Left != running || is.Did != n-1-running || len(is.Ended) != is.Did+1 || running == 0 || after.Counts[jobs.Running] != running {
			t.Errorf("%d of %d cancelled, %d ended, %d left alone of %d that run, %d run now, %v",
				is.Did, n-1, len(is.Ended), is.Left, running, after.Counts[jobs.Running], err)
		}
		r.d.Close()
		r.hosts.wg.Wait()
	})
}
