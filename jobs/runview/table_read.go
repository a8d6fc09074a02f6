package runview

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
)

// finished are the jobs that are over, as tables need them. What is in list does not
// change, so that tables may keep using what they have of it.
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

// gather handles what has changed since, if it is time to. It returns when it will be,
// should something have changed by then.
func (t *tables) gather() time.Duration {
	d := &t.done
	if next := time.Until(d.at.Add(max(gatherWait, 50*d.took))); next > 0 {
		return next
	}
	t.v.mu.Lock()
	if d.generation != t.v.generation {
		*d = finished{generation: t.v.generation, changes: d.changes + 1}
		t.figures = nil
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
	var values [][]string
	for at := range old.list {
		id := old.list[at].Job
		if int(old.place[id-1])-1 != at {
			continue
		}
		d.list, d.cwds = append(d.list, old.list[at]), append(d.cwds, old.cwds[at])
		d.place[id-1] = int32(len(d.list))
		if t.figures != nil {
			values = append(values, t.figures.at(at))
		}
	}
	if t.figures != nil {
		t.figures.replace(values)
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

// plain reports whether no job has a parameter and no figure is wanted. View.mu is held.
func (t *tables) plain(ask *TableAsk) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tabular = t.tabular || len(t.v.opt.Figures)+len(t.v.known.params) > 0
	return !t.tabular && len(ask.Figures) == 0
}

// figures are what is found in the outputs of the finished jobs, for one choice of
// columns.
type figures struct {
	asked   string // the choice
	columns []*metrics.Metric
	names   []string
	wrong   string // what is wrong with the choice
	reader  *metrics.Reader

	values  [][]string // of each of finished.list; nil: not read yet
	known   int        // that are not nil
	next    int        // before this one all are known
	changes int        // grows with each change
	notes   []string   // what could not be read
	lacking []jobs.ID  // of which something could not be read
	retry   time.Time  // when they are tried again; zero: when all others are read
	wait    time.Duration
	took    time.Duration // when they were tried last
}

const (
	outputsPiece = 1000 // outputs that are read before anything else is looked at: those of one directory
	retryFirst   = 10 * time.Second
	retryMost    = 10 * time.Minute
)

// nothing are the values of a job of which nothing is to be read.
var nothing = []string{}

// figuresOf returns those of a choice of columns: the declared ones, and those asked for. They
// are kept until another choice is asked for.
func (t *tables) figuresOf(asked []string) *figures {
	key := strings.Join(asked, "\x00")
	if f := t.figures; f != nil && f.asked == key {
		return f
	}
	f := &figures{asked: key, columns: slices.Clone(t.v.opt.Figures)}
	for _, text := range asked {
		c, err := metrics.Parse(text)
		if err != nil {
			f.wrong = err.Error()
			continue
		}
		if i := slices.IndexFunc(f.columns, func(o *metrics.Metric) bool { return o.Name == c.Name }); i >= 0 {
			f.columns[i] = c
		} else {
			f.columns = append(f.columns, c)
		}
	}
	for _, c := range f.columns {
		f.names = append(f.names, c.Name)
	}
	if t.v.opt.Outputs != nil && len(f.columns) > 0 {
		f.reader = t.v.opt.Outputs(f.columns)
		f.reader.Fetch = metrics.Fetching(hosts.MaxChunk, func(ctx context.Context, id jobs.AttemptID, n int) ([]byte, int64, error) {
			p, err := t.v.Read(ctx, Read{Attempt: id, File: jobs.FileOut, Offset: -int64(n), Limit: n})
			if err != nil {
				return nil, 0, err
			}
			return p.Data, p.Size, nil
		})
	}
	t.figures = f
	return f
}

// unread counts the outputs that are to be read.
func (f *figures) unread(d *finished) int {
	if f.reader == nil {
		return 0
	}
	return len(d.list) - f.known
}

// read reads a piece of what is not known yet. It returns when there is more to do.
func (f *figures) read(t *tables) (next time.Duration, err error) {
	d := &t.done
	for len(f.values) < len(d.list) {
		f.values = append(f.values, nil)
	}
	if f.reader == nil {
		f.known = len(d.list)
		return math.MaxInt64, nil
	}
	var piece []int
	for at := f.next; at < len(f.values) && len(piece) < outputsPiece; at++ {
		if f.values[at] == nil {
			piece = append(piece, at)
		} else if len(piece) == 0 {
			f.next = at + 1
		}
	}
	if len(piece) > 0 {
		notes, err := f.take(t, piece)
		if err != nil {
			return 0, err
		}
		if len(notes) > 0 {
			if f.retry.IsZero() || len(f.notes) == 0 { // else those of all are there, or come soon
				f.notes = notes
			}
			for _, at := range piece {
				if slices.Contains(f.values[at], "") {
					f.lacking = append(f.lacking, d.list[at].Job)
				}
			}
			if f.wait = max(retryFirst, remakePart*f.took); !f.retry.IsZero() && time.Until(f.retry) > f.wait {
				f.retry = time.Now().Add(f.wait)
			}
		}
		return 0, nil
	}
	if len(f.lacking) == 0 {
		return math.MaxInt64, nil
	}
	if wait := time.Until(f.retry); wait > 0 {
		return wait, nil
	}
	return 0, f.again(t)
}

// again reads what could not be read: a file may show up late, a host come back. What
// is then said is of all such jobs.
func (f *figures) again(t *tables) error {
	start := time.Now()
	slices.Sort(f.lacking)
	f.lacking = slices.DeleteFunc(slices.Compact(f.lacking), func(id jobs.ID) bool { return t.done.place[id-1] == 0 })
	var piece []int
	for _, id := range f.lacking {
		piece = append(piece, int(t.done.place[id-1])-1)
	}
	notes, err := f.take(t, piece)
	if err != nil {
		return err
	}
	f.lacking = slices.DeleteFunc(f.lacking, func(id jobs.ID) bool { return !slices.Contains(f.values[t.done.place[id-1]-1], "") })
	if f.notes = notes; len(notes) == 0 {
		f.lacking = nil
	}
	f.took = time.Since(start)
	f.wait = max(f.wait, remakePart*f.took)
	f.retry, f.wait = time.Now().Add(f.wait), min(2*f.wait, retryMost)
	return nil
}

// take reads the figures of some jobs.
func (f *figures) take(t *tables, piece []int) ([]string, error) {
	d := &t.done
	list := make([]results.Result, len(piece))
	for i, at := range piece {
		list[i] = d.list[at]
	}
	got, err := f.reader.Read(t.ctx, list, func(i int) string { return d.cwds[piece[i]] })
	if err != nil {
		return nil, err
	}
	for i, at := range piece {
		if f.values[at] == nil {
			f.known++
		}
		if f.values[at] = got.Values[i]; f.values[at] == nil {
			f.values[at] = nothing
		}
	}
	f.changes++
	return got.Notes, nil
}

// at are the values of a job, by its place in the list.
func (f *figures) at(i int) []string {
	if i < len(f.values) {
		return f.values[i]
	}
	return nil
}

// replace sets the values again, when the list has become another.
func (f *figures) replace(values [][]string) {
	f.values, f.known, f.next = values, 0, 0
	for _, v := range values {
		if v != nil {
			f.known++
		}
	}
	f.changes++
}
