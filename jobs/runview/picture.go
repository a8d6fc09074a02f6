package runview

import (
	"context"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// picture makes what was asked for of the rows as they are, fetching whole rows for
// what is shown. It has the turn.
func (b *Board) picture(ctx context.Context, ask *Ask) (*Picture, error) {
	now := time.Now()
	p := new(Picture)
	var x *order
	var ids []jobs.ID
	if w := ask.Jobs; w != nil {
		if err := b.learnHardness(ctx); err != nil {
			return nil, err
		}
		x = b.page.get(&b.list, keyOf(w), now)
		first, n, cursor := window(x, w)
		p.Jobs = &Page{Filter: w.Filter, Wrong: x.wrong, Sort: w.Sort, Reverse: w.Reverse,
			Matched: len(x.ids), First: first, Cursor: cursor}
		for _, id := range x.ids[first : first+n] {
			ids = append(ids, jobs.ID(id))
		}
	}
	var shown []*group
	if ask.Groups {
		shown = b.groups.top(b.rows, now)
	}
	if err := b.fetch(ctx, ids, ask.Focus, p); err != nil {
		return nil, err
	}
	if err := b.fetchGroups(ctx, shown); err != nil {
		return nil, err
	}
	if ask.Table != nil {
		var err error
		if p.Table, err = b.table(ctx, ask.Table); err != nil {
			return nil, err
		}
	}
	p.Version, p.At, p.Run = b.version, now, b.opt.Run
	b.status.fill(p)
	p.Hosts = b.status.aged(now)
	p.Total, p.Phases, p.Stragglers = len(b.rows), b.phases, b.stragglers // which agree
	if x != nil {
		b.place(p.Jobs.Rows)
		if x.edition != b.edition {
			p.Jobs.Settled = now.Sub(x.made)
		}
	}
	for _, g := range shown {
		p.Groups = append(p.Groups, g.view())
	}
	if ask.Events != nil {
		p.Events = b.events.window(ask.Events)
	}
	b.mu.Lock()
	p.Question = b.question
	b.mu.Unlock()
	return p, nil
}

// fetch makes whole rows and the detail, and takes in what has changed at that
// moment, so that counts and rows agree.
func (b *Board) fetch(ctx context.Context, ids []jobs.ID, focus jobs.ID, p *Picture) error {
	if p.Jobs == nil && focus == 0 {
		return nil
	}
	type fetched struct {
		rows   []Row
		detail *Detail
	}
	answer := make(chan fetched, 1)
	err := b.from.visit(ctx, func(k *desk) {
		f := fetched{rows: make([]Row, 0, len(ids))}
		for _, id := range ids {
			f.rows = append(f.rows, k.row(id))
		}
		if focus != 0 {
			f.detail = k.detail(focus)
		}
		b.pull(k, nil)
		answer <- f
	})
	if err != nil {
		return err
	}
	b.takeIn(false)
	f := <-answer
	for i := range f.rows {
		b.say(&f.rows[i])
	}
	if p.Jobs != nil {
		p.Jobs.Rows = f.rows
	}
	if f.detail != nil {
		b.say(&f.detail.Row)
		p.Detail = f.detail
	}
	return nil
}

// fetchGroups makes whole rows for the groups whose newest members have changed.
func (b *Board) fetchGroups(ctx context.Context, list []*group) error {
	const together = 500 // rows
	for len(list) > 0 {
		var part []*group
		n := 0
		for len(list) > 0 && n < together {
			if g := list[0]; g.rows == nil && len(g.newest) > 0 {
				part = append(part, g)
				n += len(g.newest)
			}
			list = list[1:]
		}
		if part == nil {
			return nil
		}
		answer := make(chan [][]Row, 1)
		newest := make([][]jobs.ID, len(part))
		for i, g := range part {
			newest[i] = slices.Clone(g.newest)
		}
		err := b.from.visit(ctx, func(k *desk) {
			made := make([][]Row, len(newest))
			for i, ids := range newest {
				for _, id := range ids {
					made[i] = append(made[i], k.row(id))
				}
			}
			answer <- made
		})
		if err != nil {
			return err
		}
		for i, rows := range <-answer {
			part[i].rows = rows
		}
	}
	return nil
}
