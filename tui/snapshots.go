package tui

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

const (
	minInterval     = 250 * time.Millisecond // between snapshots that no key needs
	maxWait         = time.Second            // after which an unchanged snapshot is confirmed (rule 5)
	retryDelay      = time.Second            // after an error
	snapshotTimeout = 6 * time.Second        // a source that has not answered by then is not live
)

// snapshotMsg is a snapshot, or the error of the request for it.
type snapshotMsg struct {
	snap *runview.Snapshot
	err  error
	at   time.Time // the snapshot is of this time or later, by the local clock
	// Nothing has changed since the previous snapshot, and the request is the same.
	unchanged bool
}

// snapshotter requests snapshots from the source, one at a time (rule 2). A changed request cancels
// the one in progress, so that it does not wait for its answer.
type snapshotter struct {
	ctx  context.Context
	end  context.CancelFunc
	src  runview.Source
	wake chan struct{} // capacity 1: the request has changed

	mu            sync.Mutex
	request       runview.Query
	cancelRequest context.CancelFunc // cancels the request in progress

	// Owned by the one command that runs.
	version   uint64 // of the newest snapshot
	lastAt    time.Time
	nextDelay time.Duration // before the next request that no key needs
	offset    clockOffset
}

func newSnapshotter(ctx context.Context, src runview.Source) *snapshotter {
	ctx, end := context.WithCancel(ctx)
	return &snapshotter{ctx: ctx, end: end, src: src, wake: make(chan struct{}, 1)}
}

// setQuery changes the request. The model calls it after each update.
func (l *snapshotter) setQuery(ask runview.Query) {
	l.mu.Lock()
	l.request = ask
	drop := l.cancelRequest
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if drop != nil {
		drop()
	}
}

// next returns the next snapshot. The model always has exactly one such command running.
func (l *snapshotter) next() tea.Msg {
	firm := false
	for {
		asked := l.waitFor(l.nextDelay - time.Since(l.lastAt))
		asking := time.Now()
		ctx, drop := context.WithTimeout(l.ctx, snapshotTimeout)
		l.mu.Lock()
		ask := l.request
		if !firm {
			l.cancelRequest = drop
		}
		l.mu.Unlock()
		if ask.After = l.version; asked {
			ask.After = 0
		}
		ask.Wait = maxWait
		snap, err := l.src.Snapshot(ctx, ask)
		l.mu.Lock()
		l.cancelRequest = nil
		l.mu.Unlock()
		ended := ctx.Err()
		drop()
		l.lastAt = time.Now()
		if err == nil && snap == nil {
			err = errors.New("the dispatcher has answered with nothing")
		}
		switch {
		case l.ctx.Err() != nil:
			return nil
		case err != nil && errors.Is(ended, context.Canceled):
			firm = true // a held key must not cancel every request
			continue    // another request has arrived
		case err != nil && ended != nil:
			err = fmt.Errorf("no answer for %s", formatSpan(l.lastAt.Sub(asking)))
		}
		if err != nil {
			l.version, l.nextDelay = 0, retryDelay
			return snapshotMsg{err: err, at: l.lastAt}
		}
		same := ask.After != 0 && snap.Version == ask.After
		l.version, l.nextDelay = snap.Version, minInterval
		return snapshotMsg{snap: snap, at: l.offset.snapshotTime(asking, l.lastAt, snap.At), unchanged: same}
	}
}

// clockOffset estimates the age of snapshots, which may have been long in transit. Another
// machine's clock dates them, so the difference to the local clock is needed. Its bounds follow
// from the fact that a snapshot was made after it was requested.
type clockOffset struct {
	ahead time.Duration // minimum by which the local clock is ahead of the other clock
	known bool
}

// snapshotTime returns a local time that is not after the time at which a snapshot was made.
func (c *clockOffset) snapshotTime(asked, got, at time.Time) time.Time {
	low, high := asked.Sub(at), got.Sub(at)
	if !c.known || low > c.ahead || c.ahead > high { // above high: a clock was set
		c.ahead, c.known = low, true
	}
	return got.Add(c.ahead - high)
}

// waitFor waits. It returns true early if the request has changed.
func (l *snapshotter) waitFor(d time.Duration) (changed bool) {
	select {
	case <-l.wake:
		return true
	default:
	}
	select {
	case <-l.wake:
		return true
	case <-time.After(d):
	case <-l.ctx.Done():
	}
	return false
}
