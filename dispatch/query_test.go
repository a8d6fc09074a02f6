package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestRequestAtTheEndIsCompleteOrWithoutEffect checks that a request at the very end of a run is
// either carried out completely or has no effect. Promise 1 also holds for the round that it would
// start.
func TestRequestAtTheEndIsCompleteOrWithoutEffect(t *testing.T) {
	t.Run("the end is decided and waits for the journal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 10*time.Second, "a")
			r.submit(1)
			time.Sleep(5 * time.Second)
			r.journal.Fail(errors.New("no space left on device"))
			time.Sleep(time.Minute)
			r.d.Do(sched.Request{Name: "again", Do: []sched.Event{sched.Requeue{Jobs: []jobs.ID{1}}}})
			r.journal.Fail(nil)
			time.Sleep(5 * time.Second)
			select {
			case <-r.d.Finished():
				t.Error("the run was said to be over while a job runs again")
			default:
			}
			if res := r.finish(2); len(res) == 2 && res[1].Round != 2 {
				t.Errorf("the second result is of round %d", res[1].Round)
			}
		})
	})
	t.Run("the end was given out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 10*time.Second, "a")
			r.submit(1)
			r.drain()
			<-r.d.Finished()
			// The request file stays for the next dispatcher.
			r.d.Do(sched.Request{Name: "late", Do: []sched.Event{sched.Requeue{Jobs: []jobs.ID{1}}}})
			if snap := r.d.Snapshot(); snap == nil || snap.Counts[jobs.Succeeded] != 1 {
				t.Error("something was done")
			}
			r.close(sched.AllDone)
		})
	})
}

// TestPanicOfAQueryDoesNotEndTheRun checks that a panic in a query reaches its caller and does not
// end the run.
func TestPanicOfAQueryDoesNotEndTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Second, "a")
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.HasPrefix(p, "odd data") {
					t.Errorf("whoever looked was given %v", p)
				}
			}()
			query(t.Context(), r.d, func(*engine) int { panic("odd data") })
		}()
		r.submit(2)
		r.finish(2)
	})
}

// TestReadsAreBounded checks that a host has few reads at a time, however many are started and
// abandoned, because its heartbeats and results share the link.
func TestReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, time.Hour, "a")
		r.submit(1)
		time.Sleep(5 * time.Second)
		r.hosts.mu.Lock()
		r.hosts.unanswered = true // its file system hangs
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
		r.hosts.unanswered = false
		r.hosts.mu.Unlock()
		if len(asked) == 0 || len(asked) > hosts.MaxReads {
			t.Errorf("%d reads are under way", len(asked))
		}
		for _, n := range asked {
			w.Say(&hosts.Chunk{ID: n, Size: 5, Bulk: []byte("hello")})
		}
		if data, _, err := r.d.Output(t.Context(), id, jobs.FileOut, 0, 100); err != nil || string(data) != "hello" {
			t.Errorf("Output: got %q, %v; want \"hello\"", data, err)
		}
		r.d.Close()
		r.hosts.wg.Wait()
	})
}
