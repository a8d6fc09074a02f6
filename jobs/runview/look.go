package runview

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// Look returns a picture of the run with what was asked for.
func (v *View) Look(ctx context.Context, ask Ask) (*Picture, error) {
	until := time.Now().Add(ask.Wait)
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	if ask.Table != nil && ask.After == 0 {
		v.tables.await(ctx, ask.Table)
	}
	for ctx.Err() == nil {
		p, news, due, err := v.tryLook(&ask, until)
		if err != nil {
			return nil, err
		}
		if p != nil {
			v.explain(ctx, p)
			return p, nil
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil, ctx.Err()
}

// tryLook makes the picture, or says what to wait for.
func (v *View) tryLook(ask *Ask, until time.Time) (p *Picture, news <-chan struct{}, due time.Time, err error) {
	v.mu.Lock()
	defer v.mu.Unlock() // also after a panic: others look as well
	if v.closed {
		return nil, nil, due, ErrGone
	}
	now := time.Now()
	if v.pending() && now.Sub(v.madeAt) >= wakeInterval {
		v.take(now)
	}
	if x := v.page.of(ask.Jobs); x != nil && x.edition != v.edition && !now.Before(x.due()) {
		x.make(&v.list, v.now())
		v.version++
	}
	if ask.After == 0 || v.version > ask.After || !now.Before(until) {
		if v.pending() { // counts and rows are to agree
			v.take(now)
		}
		return v.picture(ask), nil, due, nil
	}
	due, news = until, v.news
	soon := func(t time.Time) {
		if t.Before(due) {
			due = t
		}
	}
	if v.pending() {
		news = nil
		soon(v.madeAt.Add(wakeInterval))
	}
	if len(v.retries) > 0 {
		soon(later(now.Add(v.retries[0].at.Time().Sub(v.now())), v.madeAt.Add(wakeInterval)))
	}
	if x := v.page.of(ask.Jobs); x != nil && x.edition != v.edition {
		soon(x.due())
	}
	return nil, news, due, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pending reports whether there is something that the rows do not show yet.
func (v *View) pending() bool {
	return v.dirty || v.version == 0 || len(v.again) > 0 || len(v.marks.ids) > 0 || v.total() != len(v.rows) || len(v.retries) > 0 && v.retries[0].at <= jobs.StampOf(v.now())
}

// take makes the rows of what has changed anew: a new version.
func (v *View) take(now time.Time) {
	if len(v.rows) > v.total() { // specifications that were shown are gone
		v.restart(v.table, &harvest{events: v.events})
	}
	ids := v.marks.take()
	v.ripe(jobs.StampOf(v.now()))
	if n := v.total() - len(v.rows); n > 0 {
		v.rows = slices.Grow(v.rows, n)
	}
	for {
		for _, id := range ids {
			if int(id) <= v.total() {
				v.renew(id)
			}
		}
		for len(v.rows) < v.total() {
			v.renew(jobs.ID(len(v.rows) + 1))
		}
		if ids = ids[:0]; len(v.again) == 0 {
			break
		}
		for id := range v.again {
			ids = append(ids, id)
		}
		clear(v.again)
	}
	v.version, v.dirty, v.madeAt = v.version+1, false, now
}

// total is how many jobs are shown.
func (v *View) total() int { return max(v.table.NumJobs(), min(v.stored, v.table.NumSpecs())) }

// job returns a job; nil if there is none. One that is stored and
// not accepted yet is queued. mu is held.
func (v *View) job(id jobs.ID) *jobs.Job {
	if j := v.table.Job(id); j != nil || id < 1 || int(id) > v.total() {
		return j
	}
	s := v.table.Spec(id)
	return &jobs.Job{Spec: s, Round: 1, Priority: int32(s.Priority)}
}

// renew makes the row of a job anew.
func (v *View) renew(id jobs.ID) {
	j := v.reader.Job(v.table, id)
	if j == nil {
		j = v.job(id)
	}
	c := v.change(id, j)
	v.put(&c)
}

// ripe has the rows made anew whose wait for the next try is over.
func (v *View) ripe(now jobs.Stamp) {
	v.ripened = now
	for len(v.retries) > 0 && v.retries[0].at <= now {
		r := heap.Pop(&v.retries).(retry)
		if x := &v.rows[r.id-1]; x.phase == Retry && x.when == r.at {
			v.again[jobs.ID(r.id)] = struct{}{}
		}
	}
}

// picture makes what was asked for. mu is held.
func (v *View) picture(ask *Ask) *Picture {
	now := v.now()
	p := &Picture{Version: v.version}
	v.fill(p)
	if w := ask.Jobs; w != nil {
		v.learnHardness(now)
		x := v.page.get(&v.list, keyOf(w), now)
		first, n, cursor := window(x, w)
		p.Jobs = &Page{Filter: w.Filter, Wrong: x.wrong, Sort: w.Sort, Reverse: w.Reverse, Matched: len(x.ids), First: first, Cursor: cursor,
			Rows: make([]Row, 0, n)}
		for _, id := range x.ids[first : first+n] {
			p.Jobs.Rows = append(p.Jobs.Rows, v.row(jobs.ID(id)))
		}
		v.placeRows(p.Jobs.Rows)
		if x.edition != v.edition {
			p.Jobs.Settled = now.Sub(x.made)
		}
	}
	if v.focus = ask.Focus; v.focus != 0 {
		p.Detail = v.detail(v.focus)
	}
	if ask.Groups {
		for _, g := range v.groups.top(v.list.rows, now) {
			if g.rows == nil {
				for _, id := range g.newest {
					g.rows = append(g.rows, v.row(jobs.ID(id)))
				}
			}
			p.Groups = append(p.Groups, g.view())
		}
	}
	if ask.Table != nil {
		p.Table = v.tableOf(ask.Table)
	}
	if ask.Events != nil {
		p.Events = v.events.window(ask.Events)
	}
	return p
}

// explain asks the dispatcher why the job in the focus stands as it does.
func (v *View) explain(ctx context.Context, p *Picture) {
	if p.Detail == nil || p.Detail.Row.Phase.Terminal() || p.Status != StatusRunning {
		return
	}
	why, ok := call(ctx, v.dispatcher(), func(ctx context.Context, c Conn) (string, error) { return c.Why(ctx, p.Detail.Row.ID) })
	if ok {
		p.Detail.Why, p.Detail.Asked = why, true
	}
}
