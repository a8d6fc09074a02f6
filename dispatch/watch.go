package dispatch

import "dcs-tui/jobs"

// maxWatched bounds the records that a Watch keeps until they are taken.
const maxWatched = 5000

// Watch gathers what changes, for a board: which jobs, and the newest records. It
// holds a bit a job and a bounded number of records, however seldom it is looked at.
// Without a Watch nothing is gathered.
type Watch struct {
	d       *Dispatcher
	notable func(*jobs.Record) bool

	// The engine's alone.
	marks   []uint64 // a bit a job
	jobs    []jobs.ID
	records []Seen
	told    []Seen // those that are notable
	seen    uint64
	changed bool
	aged    bool
	wake    chan struct{}
	aging   chan struct{}
}

// Seen is a record with its number among those that its Watch has seen, from 1.
type Seen struct {
	N uint64
	jobs.Record
}

// Changes are what a Watch has gathered since it was last asked.
type Changes struct {
	Jobs    []jobs.ID // changed, in no order, each once
	More    bool      // further ones wait
	Any     bool      // anything has changed, be it no job
	Aged    bool      // hosts have given beats
	Records []Seen    // the newest, oldest first
	Told    []Seen    // the newest notable ones: other records may have pushed them out of Records
	// Wake is closed at the next change, Aging at the next beat.
	Wake, Aging <-chan struct{}
}

// Watch begins to gather what changes from now on. Of records notable says which
// are to be kept apart from the others.
func (d *Dispatcher) Watch(notable func(*jobs.Record) bool) *Watch {
	w := &Watch{d: d, notable: notable, wake: make(chan struct{}), aging: make(chan struct{})}
	d.call(func(e *engine) { e.watches = append(e.watches, w) })
	return w
}

// Close ends it.
func (w *Watch) Close() {
	w.d.send(input{call: func(e *engine) {
		for i, x := range e.watches {
			if x == w {
				e.watches = append(e.watches[:i:i], e.watches[i+1:]...)
			}
		}
	}})
}

// Changes takes what w has gathered, at most so many jobs.
func (in *Inside) Changes(w *Watch, most int) Changes {
	n := min(most, len(w.jobs))
	rest := len(w.jobs) - n
	c := Changes{Jobs: append([]jobs.ID(nil), w.jobs[rest:]...), More: rest > 0, Any: w.changed, Aged: w.aged,
		Records: w.records, Told: w.told}
	for _, id := range c.Jobs {
		w.marks[id/64] &^= 1 << (id % 64)
	}
	w.jobs, w.records, w.told = w.jobs[:rest], nil, nil
	if w.changed && rest == 0 {
		w.changed, w.wake = false, make(chan struct{})
	}
	if w.aged {
		w.aged, w.aging = false, make(chan struct{})
	}
	c.Wake, c.Aging = w.wake, w.aging
	return c
}

func (w *Watch) mark(id jobs.ID) {
	for int(id/64) >= len(w.marks) {
		w.marks = append(w.marks, make([]uint64, 1+len(w.marks)/4+int(id/64)-len(w.marks))...)
	}
	if bit := uint64(1) << (id % 64); w.marks[id/64]&bit == 0 {
		w.marks[id/64] |= bit
		w.jobs = append(w.jobs, id)
	}
}

func (w *Watch) touch() {
	if !w.changed {
		w.changed = true
		close(w.wake)
	}
}

func (w *Watch) age() {
	if !w.aged {
		w.aged = true
		close(w.aging)
	}
}

func (w *Watch) keep(r jobs.Record) {
	w.seen++
	s := Seen{w.seen, r}
	w.records = appendBounded(w.records, s)
	if w.notable(&r) {
		w.told = appendBounded(w.told, s)
	}
	w.touch()
}

// appendBounded keeps at least the newest maxWatched.
func appendBounded(list []Seen, r Seen) []Seen {
	if len(list) == 2*maxWatched {
		list = append(list[:0], list[maxWatched:]...)
	}
	return append(list, r)
}

// watch shows a record to those who gather; its job is as the record left it.
func (e *engine) watch(r *jobs.Record) {
	if len(e.watches) == 0 {
		return
	}
	copied := *r
	if copied.Host == "" && copied.N > 0 && copied.Kind != jobs.KindRequest {
		copied.Host = e.hostOf(r)
	}
	for _, w := range e.watches {
		if r.Job > 0 && r.Kind != jobs.KindAccepted { // who gathers sees by himself that there are more
			w.mark(r.Job)
		}
		w.keep(copied)
	}
}

// touched tells those who gather that something else has changed.
func (e *engine) touched() {
	signal(e.d.signals.changed)
	for _, w := range e.watches {
		w.touch()
	}
}
