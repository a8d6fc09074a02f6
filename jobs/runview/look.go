package runview

import (
	"context"
	"slices"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/jobs"
)

const (
	piece     = 2000                   // rows that are made in one visit to the engine
	wakeEvery = 100 * time.Millisecond // what changes wakes no more often
	ageEvery  = time.Second            // nor what only ages
	patience  = 50 * time.Millisecond  // for which one Look takes in changes
)

// inbox is what came from the engine and has not been taken in: a visit that nobody
// waited for any longer leaves it there. Guarded by Board.mu.
type inbox struct {
	changes []change
	status  *status
	records []dispatch.Seen
	told    []dispatch.Seen
	wake    <-chan struct{}
	aging   <-chan struct{}
	more    bool
	any     bool
	aged    bool
	older   *Earlier
}

// waits says that something has not been taken in.
func (in *inbox) waits() bool { return len(in.changes) > 0 || in.more || in.any }

// pull makes the rows of what has changed, and of ids, at the desk.
func (b *Board) pull(k *desk, ids []jobs.ID) {
	c := k.changes(piece)
	made := make([]change, 0, len(c.Jobs)+len(ids))
	for _, list := range [][]jobs.ID{c.Jobs, ids} {
		for _, id := range list {
			if k.table.Job(id) != nil {
				made = append(made, k.change(id))
			}
		}
	}
	s := k.status()
	b.mu.Lock()
	defer b.mu.Unlock()
	in := &b.inbox
	in.changes = append(in.changes, made...)
	in.status = s
	in.records = append(in.records, c.Records...)
	in.told = append(in.told, c.Told...)
	in.wake, in.aging, in.more = c.Wake, c.Aging, c.More
	in.any, in.aged = in.any || c.Any, in.aged || c.Aged
}

// takeIn enters what is in the inbox and says whether the engine has more. Whoever
// calls it has the turn.
//
// What only ages makes no new version unless aged is set, which is at most once a second.
func (b *Board) takeIn(aged bool) (more bool) {
	b.mu.Lock()
	in := b.inbox
	told := b.told
	b.inbox = inbox{wake: in.wake, aging: in.aging}
	b.told = false
	b.mu.Unlock()

	before := b.edition
	for i := range in.changes {
		b.put(&in.changes[i])
	}
	b.events.add(in.older, in.records, in.told)
	if s := in.status; s != nil {
		if relinked(&b.status, s) || aged && s.stragglers != b.stragglers {
			b.rerun()
		}
		keepSaid(&b.status, s)
		b.progressed(&b.status, s)
		b.status = *s
	}
	stale := b.stale || in.aged
	b.stale = stale && !aged
	if in.any || stale && aged || told || b.edition != before {
		b.version++
		close(b.changed)
		b.changed = make(chan struct{})
	}
	return in.more || len(b.again) > 0
}

// relinked says whether a link was made or lost, which moves jobs from one phase to
// another though no record says so.
func relinked(old, s *status) bool {
	if len(old.links) != len(s.links) {
		return true
	}
	for i := range s.links {
		if old.links[i] != s.links[i] {
			return true
		}
	}
	return false
}

// refresh takes in what has changed, as far as patience lasts, if it is time to.
func (b *Board) refresh(ctx context.Context, now bool) error {
	if err := b.fillUp(ctx); err != nil {
		return err
	}
	at := time.Now()
	b.ripe(jobs.StampOf(at))
	b.mu.Lock()
	wake, aging := b.inbox.wake, b.inbox.aging
	waiting := b.inbox.waits() || b.told
	b.mu.Unlock()
	paced := now || at.Sub(b.takenAt) >= wakeEvery
	switch {
	case paced && (now || waiting || isClosed(wake) || len(b.again) > 0):
	case (b.stale || isClosed(aging)) && at.Sub(b.agedAt) >= ageEvery:
	default:
		return nil
	}
	b.takenAt = at
	aged := at.Sub(b.agedAt) >= ageEvery
	if aged {
		b.agedAt = at
	}
	for {
		ids := b.takeAgain(piece)
		if err := b.from.visit(ctx, func(k *desk) { b.pull(k, ids) }); err != nil {
			for _, id := range ids {
				b.again[id] = struct{}{}
			}
			return err
		}
		if more := b.takeIn(aged); !more || time.Since(at) >= patience {
			return b.fillUp(ctx)
		}
	}
}

// fillUp makes the rows of jobs that there are none of yet.
func (b *Board) fillUp(ctx context.Context) error {
	for b.version == 1 || len(b.rows) < b.status.total {
		first := jobs.ID(len(b.rows) + 1)
		err := b.from.visit(ctx, func(k *desk) {
			var ids []jobs.ID
			for id := first; id < first+piece && int(id) <= len(k.table.Jobs); id++ {
				ids = append(ids, id)
			}
			b.pull(k, ids)
		})
		if err != nil {
			return err
		}
		if b.takeIn(false); b.version == 1 {
			b.version++
			b.rows = slices.Grow(b.rows, max(0, b.status.total-len(b.rows)))
		}
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Look returns a picture of the run with what was asked for.
func (b *Board) Look(ctx context.Context, ask Ask) (*Picture, error) {
	until := time.Now().Add(ask.Wait)
	if ask.Table != nil && ask.After == 0 {
		b.tables.await(ctx, ask.Table)
	}
	for {
		if !b.take(ctx) {
			return nil, ctx.Err()
		}
		p, wait, err := func() (*Picture, *wait, error) {
			defer b.give() // also after a panic: others look as well
			return b.tryLook(ctx, &ask, until)
		}()
		if p != nil || err != nil {
			return p, err
		}
		wait.timer = time.NewTimer(time.Until(wait.due))
		err = wait.wait(ctx, b.from.ended())
		wait.timer.Stop()
		if err != nil {
			return nil, err
		}
	}
}

// tryLook makes the picture, or says what to wait for. It has the turn.
func (b *Board) tryLook(ctx context.Context, ask *Ask, until time.Time) (*Picture, *wait, error) {
	late := !time.Now().Before(until)
	if b.over() {
		return nil, nil, ErrGone
	}
	if err := b.refresh(ctx, ask.After == 0); err != nil {
		return nil, nil, err
	}
	b.resort(ask.Jobs)
	if ask.After == 0 || b.version > ask.After || late {
		p, err := b.picture(ctx, ask)
		return p, nil, err
	}
	b.mu.Lock()
	w := &wait{wake: b.inbox.wake, aging: b.inbox.aging, asked: b.asked, changed: b.changed, due: until}
	waiting := b.inbox.waits() || b.told
	b.mu.Unlock()
	soon := func(t time.Time) {
		if t.Before(w.due) {
			w.due = t
		}
	}
	if waiting || isClosed(w.wake) || len(b.again) > 0 {
		w.wake = nil
		soon(b.takenAt.Add(wakeEvery))
	}
	if b.stale || isClosed(w.aging) {
		w.aging = nil
		soon(b.agedAt.Add(ageEvery))
	}
	if len(b.retries) > 0 {
		soon(later(b.retries[0].at.Time(), b.takenAt.Add(wakeEvery)))
	}
	if x := b.page.of(ask.Jobs); x != nil && x.edition != b.edition {
		soon(x.due())
	}
	return nil, w, nil
}

// resort makes the order of a window anew when that is due: a new version.
func (b *Board) resort(w *JobsWindow) {
	x := b.page.of(w)
	if x == nil || x.edition == b.edition || time.Now().Before(x.due()) {
		return
	}
	x.make(&b.list, time.Now())
	b.version++
	close(b.changed)
	b.changed = make(chan struct{})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// wait is what a Look waits for.
type wait struct {
	wake, aging, asked, changed <-chan struct{}
	due                         time.Time
	timer                       *time.Timer
}

func (w *wait) wait(ctx context.Context, ended <-chan struct{}) error {
	select {
	case <-w.wake:
	case <-w.aging:
	case <-w.asked:
	case <-w.changed:
	case <-w.timer.C:
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
