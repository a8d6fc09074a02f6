package runview

import (
	"slices"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// finished are the jobs that are over, as tables need them. What is in list does not
// change, so that tables may go on using what they have of it.
type finished struct {
	list       []results.Result
	cwds       []string // of each
	place      []int32  // job id - 1: 1 + index into list; 0: it is not in it
	known      vocabulary
	generation int    // of the View's list, as edition
	edition    uint64 // of the View's list, when it was last looked through
	changes    int    // grows with each change
	at         time.Time
	took       time.Duration
	behind     bool // some have not been taken in
	left       int  // that there is no room for
}

// maxFinished bounds the jobs of a table: half a kilobyte each. Tests change it.
var maxFinished = 250_000

const (
	resultsPiece = 500                    // results that are made in one visit to the engine
	gatherWait   = 200 * time.Millisecond // the list is looked through no more often
)

// gather takes in what has changed since, if it is time to. It returns when it will be,
// should something have changed by then.
func (t *tables) gather() time.Duration {
	d := &t.done
	if next := time.Until(d.at.Add(max(gatherWait, pace(d.took)))); next > 0 {
		return next
	}
	t.v.mu.Lock()
	if d.generation != t.v.generation {
		*d = finished{generation: t.v.generation, changes: d.changes + 1}
		t.sets = nil
	}
	start := time.Now()
	if d.edition == t.v.edition && !d.behind {
		t.v.mu.Unlock()
		d.at = start
		return wanted
	}
	fresh, gone := d.scan(&t.v.list)
	t.v.mu.Unlock()
	d.at, d.took, d.behind = start, time.Since(start), false
	if gone {
		t.compact()
	}
	for len(fresh) > 0 {
		n := min(len(fresh), resultsPiece)
		t.fetch(fresh[:n])
		fresh = fresh[n:]
	}
	return wanted
}

// scan finds the jobs that are over and not in the list as they are now. gone says
// that some in it have left it.
func (d *finished) scan(l *list) (fresh []jobs.ID, gone bool) {
	for len(d.place) < len(l.rows) {
		d.place = append(d.place, 0)
	}
	d.left = 0
	for i := range l.rows {
		r, at := &l.rows[i], d.place[i]-1
		over := r.phase.Terminal()
		switch {
		case at >= 0 && over && uint32(d.list[at].Seq) == r.seq:
			continue
		case at >= 0:
			d.place[i], gone = 0, true
		}
		switch {
		case over && len(d.list)+len(fresh) >= maxFinished:
			d.left++
		case over:
			fresh = append(fresh, jobs.ID(i+1))
		}
	}
	d.edition = l.edition
	d.known.params = l.known.params
	return fresh, gone
}

// compact leaves out what is in the list no more: another list, for tables have the old.
func (t *tables) compact() {
	d := &t.done
	old := *d
	d.list, d.cwds = nil, nil
	values := make([][][]string, len(t.sets))
	for at := range old.list {
		id := old.list[at].Job
		if int(old.place[id-1])-1 != at {
			continue
		}
		d.list, d.cwds = append(d.list, old.list[at]), append(d.cwds, old.cwds[at])
		d.place[id-1] = int32(len(d.list))
		for k, f := range t.sets {
			values[k] = append(values[k], f.at(at))
		}
	}
	for k, f := range t.sets {
		f.replace(values[k])
	}
	d.changes++
}

// fetch makes the results of some jobs.
func (t *tables) fetch(ids []jobs.ID) {
	var made []jobs.Job
	v := t.v
	v.mu.Lock()
	place := v.place
	for _, id := range ids {
		j := v.job(id)
		if j == nil || !j.State.Terminal() {
			continue // its row will say so
		}
		c := *j
		c.Attempts = slices.Clone(j.Attempts)
		for i, a := range c.Attempts {
			copied := *a
			c.Attempts[i] = &copied
		}
		made = append(made, c)
	}
	v.mu.Unlock()
	d := &t.done
	for i := range made {
		result := place.Result(&made[i]) // may read the disk
		cwd := ""
		if o := made[i].Spec.Options; o != nil {
			cwd = o.Cwd
		}
		d.list, d.cwds = append(d.list, result), append(d.cwds, cwd)
		d.place[result.Job-1] = int32(len(d.list))
	}
	d.changes++
	d.behind = d.behind || len(made) < len(ids)
}

// plain says that no job has a parameter and no figure is wanted. View.mu is held.
func (t *tables) plain(ask *TableAsk) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tabular = t.tabular || len(t.v.opt.Figures)+len(t.v.known.params) > 0
	return !t.tabular && len(ask.Figures) == 0
}
