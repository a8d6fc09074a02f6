package runview

import (
	"slices"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/sheet"
)

// finished are the jobs that are over, as tables need them. What is in list does not
// change, so that tables may go on using what they have of it.
type finished struct {
	list       []results.Result
	rows       []row           // of each, for filters
	specs      []*jobs.Spec    // of each, for filters
	options    []*jobs.Options // by row.options
	cwds       []string        // of each
	place      []int32         // job id - 1: 1 + index into list; 0: it is not in it
	names      []string        // of hosts, for filters
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
			if d.rows[at] != *r {
				d.rows[at] = *r
				d.changes++
			}
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
	d.names, d.options, d.known.params = slices.Clone(l.names), l.options, l.known.params
	return fresh, gone
}

// compact leaves out what is in the list no more: another list, for tables have the old.
func (t *tables) compact() {
	d := &t.done
	old := *d
	d.list, d.rows, d.specs, d.cwds = nil, nil, nil, nil
	values := make([][][]string, len(t.sets))
	for at := range old.list {
		id := old.list[at].Job
		if int(old.place[id-1])-1 != at {
			continue
		}
		d.list, d.rows, d.specs, d.cwds = append(d.list, old.list[at]), append(d.rows, old.rows[at]), append(d.specs, old.specs[at]), append(d.cwds, old.cwds[at])
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
	type fetched struct {
		job  jobs.Job
		row  row
		host string
	}
	var made []fetched
	v := t.v
	v.mu.Lock()
	place := v.place
	for _, id := range ids {
		j := v.job(id)
		if j == nil || !j.State.Terminal() {
			continue // its row will say so
		}
		f := fetched{job: *j}
		f.job.Attempts = slices.Clone(j.Attempts)
		for i, a := range f.job.Attempts {
			copied := *a
			f.job.Attempts[i] = &copied
		}
		c := v.change(id, j)
		f.row, f.host = c.row, c.host
		f.row.options = v.optionsOf(j.Spec)
		made = append(made, f)
	}
	d := &t.done
	d.options = v.options
	v.mu.Unlock()
	for i := range made {
		f := &made[i]
		f.row.host = d.name(f.host)
		result := place.Result(&f.job) // may read the disk
		cwd := ""
		if f.job.Spec.Options != nil {
			cwd = f.job.Spec.Cwd
		}
		d.list, d.rows, d.specs, d.cwds = append(d.list, result), append(d.rows, f.row), append(d.specs, f.job.Spec), append(d.cwds, cwd)
		d.place[result.Job-1] = int32(len(d.list))
	}
	d.changes++
	d.behind = d.behind || len(made) < len(ids)
}

// name is the number of a host; the board gives the same one, when it knows the host.
func (d *finished) name(s string) uint16 {
	i := slices.Index(d.names, s)
	if i < 0 {
		d.names = append(d.names, s)
		i = len(d.names) - 1
	}
	return uint16(i)
}

// fitting turns a word of a search into a test of the rows of s.
func (d *finished) fitting(s *sheet.Sheet) func(sheet.Word) (func(row int) bool, error) {
	spec := func(id uint32) *jobs.Spec { return d.specs[d.place[id-1]-1] }
	l := &list{names: d.names, options: d.options, spec: spec}
	return func(w sheet.Word) (func(row int) bool, error) {
		m, err := wordMatch(w)
		return func(row int) bool {
			id := s.Job(row)
			return m(l, uint32(id), &d.rows[d.place[id-1]-1])
		}, err
	}
}

// plain says that no job has a parameter and no figure is wanted. View.mu is held.
func (t *tables) plain(ask *TableAsk) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tabular = t.tabular || len(t.v.opt.Figures)+len(t.v.known.params) > 0
	return !t.tabular && len(ask.Figures) == 0
}
