package requests

import (
	"errors"
	"io/fs"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// requestEvery is how often a dispatcher looks for requests: one listing.
const requestEvery = time.Second

// requestPatience is how long a request may name jobs that are not part of the run yet:
// stored ones are just being submitted. It is time, not looks: every bell is a look.
const requestPatience = 10 * time.Second

// Taker takes requests in. No method but TakeIn is safe for concurrent use.
type Taker struct {
	Options
	first  chan struct{}   // closed when TakeWaiting is through
	bell   chan struct{}   // has room for one: somebody has left a request and waits
	given  map[string]bool // to the core, and the file is still there
	whole  bool            // all stored jobs are part of the run: none is on its way
	early  string          // the request whose jobs were not there when it was first looked at
	since  time.Time
	said   string // the trouble that was told last
	failed bool   // in this look
}

// Options are what taking requests in needs of a dispatcher.
type Options struct {
	Run        *rundir.Run
	Dispatcher *dispatch.Dispatcher
	Journal    *Journal
	Say        func(text func() string) // tells people; does not wait

	Cancelled func() bool        // a person has cancelled the run: no job comes any more
	Cancel    func()             // called before every job is cancelled
	EndsOnly  func() bool        // no jobs are started: those submitted wait for the next dispatcher
	Place     func([]*jobs.Spec) // makes the directories of jobs that are submitted absolute

	Stored map[string]Stored // see FindStored
}

// New takes in what is left for a run.
func New(o Options) *Taker {
	return &Taker{Options: o, first: make(chan struct{}), bell: make(chan struct{}, 1), given: map[string]bool{}}
}

// Serve carries out what people leave in the run directory, each once and in
// order, until the run is over (K9, D7). What waits longer than a moment is the
// file server, which only this goroutine waits for.
func (t *Taker) Serve(over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-t.first:
	}
	every := time.NewTicker(requestEvery)
	defer every.Stop()
	for {
		select {
		case <-over:
			return
		case <-t.Dispatcher.Finished():
			t.clear() // what comes now waits for the next resume
			<-over
			t.clear() // of a short run not all was durable
			return
		case <-every.C:
		case <-t.bell:
		}
		t.look()
	}
}

// TakeWaiting carries out what was left while nobody dispatched. It is called once,
// when all stored jobs are part of the run and it has not been said that no more will
// come: a run without a job to do would end before it had heard of a requeue.
func (t *Taker) TakeWaiting() {
	t.whole = true
	t.look()
	t.whole = false
	close(t.first)
}

// look takes new requests in and removes those that are in the journal for good.
func (t *Taker) look() {
	t.failed = false
	t.clear()
	names, strangers, err := t.Run.RequestNames()
	t.trouble(err)
	for _, name := range strangers {
		t.Say(func() string {
			return "in " + rundir.RequestsDir + ": " + console.Shorten(console.CleanLine(name)) + " is not a request; it is set aside"
		})
		t.trouble(t.Run.SetStrangerAside(name))
	}
	for _, name := range names {
		switch {
		case t.given[name]:
		case t.Journal.before[name]: // its dispatcher died before it had removed it
			t.trouble(t.Run.RemoveRequest(name))
		case !t.take(name):
			return // those behind it wait for it
		}
	}
	if !t.failed {
		t.said = ""
	}
}

// take gives one request to the core; false when that is to be tried again.
func (t *Taker) take(name string) bool {
	q, err := t.Run.ReadRequest(name)
	var refused *rundir.RefusedError
	switch {
	case errors.As(err, &refused):
		t.trouble(t.Run.SetRequestAside(name))
		t.Dispatcher.Do(sched.Request{Name: name, Text: refused.Error()})
		return true
	case errors.Is(err, fs.ErrNotExist):
		return true // taken back
	case err != nil:
		t.trouble(err)
		return false
	}
	snap := t.Dispatcher.Snapshot()
	if snap == nil {
		return false // it is over
	}
	if int(q.Jobs.Last()) > snap.Total && t.mayCome(name) {
		return false
	}
	if q.Do == rundir.DoSubmit {
		return t.submit(name, q)
	}
	t.given[name] = true
	why := q.Why
	if why == "" {
		why = "cancelled by a person"
	}
	var do sched.Event
	switch ids := q.Jobs.IDs(jobs.ID(snap.Total)); {
	case q.Do == rundir.DoRequeue:
		do = sched.Requeue{Jobs: ids}
	case q.Do == rundir.DoPriority:
		do = sched.SetPriority{Jobs: ids, Priority: q.Priority}
	case q.Do == rundir.DoEdit && q.Edit != nil:
		do = sched.Edit{Jobs: ids, Change: *q.Edit}
	case q.Do == rundir.DoCancel && q.All:
		t.Cancel()
		do = sched.Cancel{All: true, Why: why}
	case q.Do == rundir.DoCancel:
		do = sched.Cancel{Jobs: ids, Why: why}
	default:
		refused := rundir.RefusedError{Name: name, Why: "this program cannot do that"}
		t.trouble(t.Run.SetRequestAside(name))
		t.Dispatcher.Do(sched.Request{Name: name, Text: refused.Error()})
		return true
	}
	t.Dispatcher.Do(sched.Request{Name: name, Text: q.Text(), Do: []sched.Event{do}, Spare: sched.Spare(q.Spare)})
	return true
}

// mayCome says that the jobs of this request that are not part of the run may yet be.
func (t *Taker) mayCome(name string) bool {
	if t.early != name {
		t.early, t.since = name, time.Now()
	}
	return !t.whole && time.Since(t.since) < requestPatience
}

// clear removes the files of what is durable.
func (t *Taker) clear() {
	for name := range t.given {
		if !t.Journal.Taken(name) {
			continue
		}
		if err := t.Run.RemoveRequest(name); err != nil {
			t.trouble(err)
			continue
		}
		delete(t.given, name)
	}
}

// trouble says what keeps us from looking, once.
func (t *Taker) trouble(err error) {
	if err == nil {
		return
	}
	t.failed = true
	if text := err.Error(); text != t.said {
		t.said = text
		t.Say(func() string { return console.CleanLine(text) })
	}
}
