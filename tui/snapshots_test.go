package tui

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// startSnapshotter runs a snapshotter as Bubble Tea does: the next query starts after the previous
// snapshot was handled. Results go to seen.
func startSnapshotter(t *testing.T, src runview.Source, seen func(snapshotMsg)) (l *snapshotter, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l = newSnapshotter(ctx, src)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			msg, ok := l.next().(snapshotMsg)
			if !ok {
				return
			}
			seen(msg)
		}
	}()
	return l, func() { cancel(); <-done }
}

// TestSnapshotsAreRequestedOneAtATimeAndRarely checks that at most one query runs at a time and
// that queries start at most every 250 ms. A changed request does not wait. After the end, nothing
// runs (rule 2).
func TestSnapshotsAreRequestedOneAtATimeAndRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := uint64(0)
		src := &fakeSource{respond: func(ctx context.Context, ask runview.Query) (*runview.Snapshot, error) {
			version++ // a busy run changes all the time
			return &runview.Snapshot{Version: version, At: time.Now()}, nil
		}}
		l, end := startSnapshotter(t, src, func(snapshotMsg) {})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := len(src.queries); n < 38 || n > 42 {
			t.Errorf("%d looks in 10 s", n)
		}
		before := len(src.queries)
		l.setQuery(runview.Query{Focus: 7})
		synctest.Wait()
		if n := len(src.queries); n != before+1 || src.queries[n-1].Focus != 7 || src.queries[n-1].After != 0 {
			t.Errorf("a new request waits: %+v", src.queries[before:])
		}
		end()
		synctest.Wait()
		before = len(src.queries)
		time.Sleep(time.Minute)
		if n := len(src.queries) - before; n > 0 || src.maxInProgress != 1 {
			t.Errorf("%d looks after the end, %d at once", n, src.maxInProgress)
		}
	})
}

// TestAChangedQueryDoesNotWaitForTheOldAnswer checks that a new request ends the query in progress,
// and that its answer is the next one shown.
func TestAChangedQueryDoesNotWaitForTheOldAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{respond: func(ctx context.Context, ask runview.Query) (*runview.Snapshot, error) {
			if ask.Focus == 0 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &runview.Snapshot{Version: 1, At: time.Now()}, nil
		}}
		var seen []snapshotMsg
		l, end := startSnapshotter(t, src, func(s snapshotMsg) { seen = append(seen, s) })
		time.Sleep(time.Second)
		l.setQuery(runview.Query{Focus: 7})
		synctest.Wait()
		if len(seen) != 1 || seen[0].err != nil {
			t.Errorf("seen %+v", seen)
		}
		end()
	})
}

// TestAHeldKeyStillGetsSnapshots checks that snapshots arrive even if a held key changes the
// request faster than a distant source answers.
func TestAHeldKeyStillGetsSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{respond: func(ctx context.Context, ask runview.Query) (*runview.Snapshot, error) {
			select {
			case <-time.After(100 * time.Millisecond):
				return &runview.Snapshot{Version: 1}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		var mu sync.Mutex
		n := 0
		l, end := startSnapshotter(t, src, func(snapshotMsg) { mu.Lock(); n++; mu.Unlock() })
		defer end()
		for i := range 60 {
			l.setQuery(runview.Query{Focus: jobs.ID(i + 1)})
			time.Sleep(33 * time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		if n < 8 {
			t.Errorf("%d snapshots in two seconds", n)
		}
	})
}

// TestASourceThatHangsOrFails checks that a hanging source becomes an error after a timeout, that a
// failing source is asked again every second, and that no goroutine remains.
func TestASourceThatHangsOrFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &fakeSource{respond: func(ctx context.Context, ask runview.Query) (*runview.Snapshot, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		var seen []snapshotMsg
		_, end := startSnapshotter(t, src, func(s snapshotMsg) { seen = append(seen, s) })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(seen) != 1 || seen[0].err == nil || !strings.Contains(seen[0].err.Error(), "no answer for 6 s") {
			t.Errorf("seen %+v", seen)
		}
		end()

		failing := &fakeSource{respond: func(context.Context, runview.Query) (*runview.Snapshot, error) {
			return nil, errors.New("no")
		}}
		_, end = startSnapshotter(t, failing, func(snapshotMsg) {})
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := len(failing.queries); n < 19 || n > 22 {
			t.Errorf("a source that fails was asked %d times in 20 s", n)
		}
		end()

		empty := &fakeSource{respond: func(context.Context, runview.Query) (*runview.Snapshot, error) {
			return nil, nil
		}}
		seen = nil
		_, end = startSnapshotter(t, empty, func(s snapshotMsg) { seen = append(seen, s) })
		synctest.Wait()
		if len(seen) != 1 || seen[0].err == nil {
			t.Errorf("no snapshot and no error: %+v", seen)
		}
		end()
	})
}
