package tui

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/observe/runview"
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
	// Nothing has changed since the previous snapshot, and the request is the same.
	unchanged bool
}

// snapshotter requests snapshots from the source, one at a time (rule 2). A changed request cancels
// the one in progress, so that it does not wait for its answer.
type snapshotter struct {
	ctx  context.Context
	src  runview.Source
	wake chan struct{} // capacity 1: the request has changed

	mu            sync.Mutex
	request       runview.Query
	cancelRequest context.CancelFunc // cancels the request in progress

	// Owned by the one command that runs.
	version   uint64 // of the newest snapshot
	lastAt    time.Time
	nextDelay time.Duration // before the next request that no key needs
}

func newSnapshotter(ctx context.Context, src runview.Source) *snapshotter {
	return &snapshotter{ctx: ctx, src: src, wake: make(chan struct{}, 1)}
}

// setQuery changes the request. The model calls it after each update.
func (s *snapshotter) setQuery(ask runview.Query) {
	s.mu.Lock()
	s.request = ask
	drop := s.cancelRequest
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if drop != nil {
		drop()
	}
}

// next returns the next snapshot. The model always has exactly one such command running.
func (s *snapshotter) next() tea.Msg {
	firm := false
	for {
		asked := s.waitFor(s.nextDelay - time.Since(s.lastAt))
		asking := time.Now()
		ctx, drop := context.WithTimeout(s.ctx, snapshotTimeout)
		s.mu.Lock()
		ask := s.request
		if !firm {
			s.cancelRequest = drop
		}
		s.mu.Unlock()
		ask.After = s.version
		if asked {
			ask.After = 0
		}
		ask.Wait = maxWait
		snap, err := s.src.Snapshot(ctx, ask)
		s.mu.Lock()
		s.cancelRequest = nil
		s.mu.Unlock()
		ended := ctx.Err()
		drop()
		s.lastAt = time.Now()
		if err == nil && snap == nil {
			err = errors.New("the answer of the dispatcher is empty")
		}
		switch {
		case s.ctx.Err() != nil:
			return nil
		case err != nil && errors.Is(ended, context.Canceled):
			firm = true // a held key must not cancel every request
			continue    // another request has arrived
		case err != nil && ended != nil:
			err = fmt.Errorf("no answer for %s", text.Span(s.lastAt.Sub(asking)))
		}
		if err != nil {
			s.version, s.nextDelay = 0, retryDelay
			return snapshotMsg{err: err}
		}
		same := ask.After != 0 && snap.Version == ask.After
		s.version, s.nextDelay = snap.Version, minInterval
		return snapshotMsg{snap: snap, unchanged: same}
	}
}

// waitFor waits. It returns true early if the request has changed.
func (s *snapshotter) waitFor(d time.Duration) (changed bool) {
	select {
	case <-s.wake:
		return true
	default:
	}
	select {
	case <-s.wake:
		return true
	case <-time.After(d):
	case <-s.ctx.Done():
	}
	return false
}
