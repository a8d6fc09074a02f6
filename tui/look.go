package tui

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/dispatch/view"
)

const (
	minInterval = 250 * time.Millisecond // between pictures that nobody has asked for
	confirm     = time.Second            // an unchanged run is looked at so often: rule 5, how old the data is
	retryLook   = time.Second            // after an error
)

// looked is a picture, or why there is none.
type looked struct {
	pic *view.Picture
	err error
	at  time.Time
}

// looker asks the source for pictures, one at a time. What is asked for follows the
// screen; a new wish does not wait for the answer to the one before.
type looker struct {
	ctx    context.Context
	cancel context.CancelFunc
	src    view.Source
	wake   chan struct{} // room for one: the wish has changed

	mu   sync.Mutex
	wish view.Ask
	drop context.CancelFunc // ends the look under way

	version uint64 // of the newest picture; of the one command that runs
	last    time.Time
}

func newLooker(ctx context.Context, src view.Source) *looker {
	ctx, cancel := context.WithCancel(ctx)
	return &looker{ctx: ctx, cancel: cancel, src: src, wake: make(chan struct{}, 1)}
}

func (l *looker) end() { l.cancel() }

// want changes what is asked for. Called by the model, after each update.
func (l *looker) want(ask view.Ask) {
	l.mu.Lock()
	l.wish = ask
	drop := l.drop
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if drop != nil {
		drop()
	}
}

// next is the command that brings the next picture. There is always one and never two.
func (l *looker) next() tea.Msg {
	for {
		asked := false
		select {
		case <-l.wake:
			asked = true
		default:
		}
		if !asked && !l.pause(minInterval-time.Since(l.last)) {
			continue // woken, or over
		}
		ctx, drop := context.WithCancel(l.ctx)
		l.mu.Lock()
		ask := l.wish
		l.drop = drop
		l.mu.Unlock()
		if ask.After = l.version; asked {
			ask.After = 0
		}
		ask.Wait = confirm
		pic, err := l.src.Look(ctx, ask)
		l.mu.Lock()
		l.drop = nil
		l.mu.Unlock()
		dropped := ctx.Err() != nil
		drop()
		switch {
		case l.ctx.Err() != nil:
			return nil
		case dropped && err != nil:
			continue // another wish came
		case err != nil:
			l.version = 0
			l.pause(retryLook)
		default:
			l.version = pic.Version
		}
		l.last = time.Now()
		return looked{pic, err, l.last}
	}
}

// pause waits; false: there is a new wish.
func (l *looker) pause(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.ctx.Done():
		return true
	case <-l.wake:
		select {
		case l.wake <- struct{}{}: // for next to find
		default:
		}
		return false
	}
}
