package runview

import (
	"context"
	"math"
	"slices"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
)

// finishedJobs holds the finished jobs for tables. Elements of list do not change, so older tables
// may continue to use it.
type finishedJobs struct {
	list       []results.Result
	cwds       []string   // working directory of each job
	values     [][]string // metrics of each job; nil: not read yet
	place      []int32    // job id - 1: 1 + index into list; 0: not in list
	known      vocabulary
	generation int // generation of the View's list
	left       int // number of jobs beyond maxFinished
	numOpen    int // number of jobs that are not over
	upkeep         // refreshes list; its edition is that of the View's list
}

// maxFinished bounds the number of jobs of a table. Each takes half a kilobyte. Tests change it.
var maxFinished = 250_000

const (
	resultsPiece = 500                    // number of results that are made while View.mu is held
	gatherWait   = 200 * time.Millisecond // minimum time between two scans of the list
)

// gather handles the jobs that have changed, if a scan is due. It returns the time until the next
// scan.
func (t *tables) gather() time.Duration {
	d, v := &t.done, t.v
	if wait := time.Until(d.madeAt.Add(max(gatherWait, d.next().Sub(d.madeAt)))); wait > 0 {
		return wait
	}
	v.mu.Lock()
	if d.generation != v.generation {
		*d, t.metrics = finishedJobs{generation: v.generation}, nil
		t.changes++
	}
	if d.edition == v.edition && !d.madeAt.IsZero() {
		v.mu.Unlock()
		d.madeAt = time.Now()
		return requestTTL
	}
	var fresh []jobs.ID
	var gone bool
	d.recompute(v.edition, func() { fresh, gone = d.scan(&v.list) })
	v.mu.Unlock()
	if gone {
		d.compact()
		t.changes++
	}
	for piece := range slices.Chunk(fresh, resultsPiece) {
		t.addResults(piece)
	}
	return requestTTL
}

// scan finds the finished jobs whose current results are not in the list. gone reports whether jobs
// of the list are no longer finished.
func (d *finishedJobs) scan(l *list) (fresh []jobs.ID, gone bool) {
	d.place = append(d.place, make([]int32, max(0, len(l.rows)-len(d.place)))...)
	d.left, d.numOpen = 0, 0
	for i := range l.rows {
		r, at := &l.rows[i], d.place[i]-1
		over := r.phase.Terminal()
		if !over {
			d.numOpen++
		}
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
	d.known.params.Values = l.known.params.Values
	return fresh, gone
}

// compact removes such jobs. It makes a new list, because tables use the old one.
func (d *finishedJobs) compact() {
	list, cwds, values := d.list, d.cwds, d.values
	d.list, d.cwds, d.values = nil, nil, nil
	for at := range list {
		if place := &d.place[list[at].Job-1]; int(*place)-1 == at {
			d.list, d.cwds, d.values = append(d.list, list[at]), append(d.cwds, cwds[at]), append(d.values, values[at])
			*place = int32(len(d.list))
		}
	}
}

func (t *tables) addResults(ids []jobs.ID) {
	var over []jobs.Job
	v, d := t.v, &t.done
	v.mu.Lock()
	place := v.place
	for _, id := range ids {
		j := v.job(id)
		if j == nil || !j.State.Terminal() {
			continue // its row changes, too, so a later scan finds it
		}
		c := *j
		c.Attempts = slices.Clone(j.Attempts)
		for i, a := range c.Attempts {
			c.Attempts[i] = new(*a)
		}
		over = append(over, c)
	}
	v.mu.Unlock()
	for i := range over {
		cwd := ""
		if o := over[i].Spec.Options; o != nil {
			cwd = o.Cwd
		}
		d.list = append(d.list, place.Result(&over[i])) // may read the disk
		d.cwds, d.values = append(d.cwds, cwd), append(d.values, nil)
		d.place[over[i].Spec.ID-1] = int32(len(d.list))
	}
	t.changes++
}

// openJobs holds unfinished jobs for tables of groups, with their parameters and facts. The list does
// not change, so older tables may continue to use it.
type openJobs struct {
	list    []results.Result
	edition uint64 // that of finishedJobs
}

// maxOpen bounds the number of unfinished jobs of a table.
const maxOpen = 50_000

// updateOpen lists the unfinished jobs, unless nothing has changed since they were listed.
func (t *tables) updateOpen() {
	v, d := t.v, &t.done
	if t.open.list != nil && t.open.edition == d.edition {
		return
	}
	n := min(d.numOpen, maxOpen)
	list := make([]results.Result, 0, n)
	for first := 0; first < len(d.place) && len(list) < n; first += resultsPiece {
		v.mu.Lock()
		place := v.place
		for i := first; i < min(first+resultsPiece, len(d.place)) && len(list) < n; i++ {
			if j := v.job(jobs.ID(i + 1)); d.place[i] == 0 && j != nil && !j.State.Terminal() {
				list = append(list, place.UnfinishedResult(j))
			}
		}
		v.mu.Unlock()
	}
	t.open = openJobs{list, d.edition}
}

// tableMetrics reads a set of columns from the outputs of the finished jobs.
type tableMetrics struct {
	asked  []string // the requested columns
	names  []string
	wrong  string          // error in the request
	reader *metrics.Reader // nil: there is nothing to read

	notes []string  // what could not be read
	retry time.Time // time of the next attempt; zero: when everything else has been read
	wait  time.Duration
}

const (
	// The number of outputs that are read before anything else is checked: those of one directory.
	outputsPiece = 1000
	retryFirst   = 10 * time.Second
	retryMost    = 10 * time.Minute
)

// noMetrics is the value of a job without metrics to read.
var noMetrics = []string{}

// metricsOf returns the reader of the declared and the requested columns. It is kept until other
// columns are requested.
func (t *tables) metricsOf(asked []string) *tableMetrics {
	if f := t.metrics; f != nil && slices.Equal(f.asked, asked) {
		return f
	}
	f, columns := &tableMetrics{asked: asked}, t.v.opt.Metrics
	for _, word := range asked {
		c, err := metrics.Parse(word)
		if err != nil {
			f.wrong = err.Error()
			continue
		}
		columns = metrics.Merge(columns, c)
	}
	f.names = text.Each(columns, func(c *metrics.Metric) string { return c.Name })
	if t.v.opt.Outputs != nil && len(columns) > 0 {
		f.reader = t.v.opt.Outputs(columns)
		f.reader.Fetch = metrics.NewFetch(hosts.MaxChunk,
			func(ctx context.Context, id jobs.AttemptID, n int) ([]byte, int64, error) {
				p, err := t.v.Read(ctx, Read{Attempt: id, File: jobs.FileOut, Offset: -int64(n), Limit: n})
				if err != nil {
					return nil, 0, err
				}
				return p.Data, p.Size, nil
			})
	}
	t.metrics, t.done.values = f, make([][]string, len(t.done.list))
	t.changes++
	return f
}

// unread returns the indexes of the jobs whose outputs must be read.
func (f *tableMetrics) unread(d *finishedJobs) (places []int) {
	for at := range d.values {
		if d.values[at] == nil && f.reader != nil {
			places = append(places, at)
		}
	}
	return places
}

// read reads some of the unread outputs. When all have been read, it sometimes retries those that
// could not be read, because a file may appear late, or a host may come back. It returns how many
// are left unread, and the time until there is more to do. The error is that of a View that is
// being closed.
func (f *tableMetrics) read(t *tables, unread []int) (left int, next time.Duration, err error) {
	d := &t.done
	if n := min(len(unread), outputsPiece); n > 0 {
		notes, err := f.readSome(t, unread[:n])
		if len(notes) > 0 {
			if f.retry.IsZero() || len(f.notes) == 0 { // otherwise the notes already cover all outputs
				f.notes = notes
			}
			f.wait = max(f.wait, retryFirst)
			if soon := time.Now().Add(f.wait); !f.retry.IsZero() && soon.Before(f.retry) {
				f.retry = soon
			}
		}
		return len(unread) - n, 0, err
	}
	if len(f.notes) == 0 {
		return 0, math.MaxInt64, nil
	}
	if wait := time.Until(f.retry); wait > 0 {
		return 0, wait, nil
	}
	start := time.Now()
	var lacking []int
	for at, values := range d.values {
		if slices.Contains(values, "") {
			lacking = append(lacking, at)
		}
	}
	f.notes, err = f.readSome(t, lacking)
	f.wait = max(f.wait, remakePart*time.Since(start))
	f.retry, f.wait = time.Now().Add(f.wait), min(2*f.wait, retryMost)
	return 0, 0, err
}

// readSome reads the metrics of the jobs with the given indexes.
func (f *tableMetrics) readSome(t *tables, places []int) ([]string, error) {
	d := &t.done
	list := make([]results.Result, len(places))
	for i, at := range places {
		list[i] = d.list[at]
	}
	got, err := f.reader.Read(t.ctx, results.RowsOf(list), func(i int) string { return d.cwds[places[i]] })
	if err != nil {
		return nil, err
	}
	for i, at := range places {
		d.values[at] = got.Values[i]
		if d.values[at] == nil {
			d.values[at] = noMetrics
		}
	}
	t.changes++
	return got.Notes, nil
}
