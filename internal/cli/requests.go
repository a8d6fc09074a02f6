package cli

import (
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// requestEvery is how often a dispatcher looks for requests: one listing.
const requestEvery = time.Second

// requestPatience is how long a request may name jobs that are not part of the run yet:
// stored ones are just being submitted. It is time, not looks: every bell is a look.
const requestPatience = 10 * time.Second

// takeRequests carries out what people leave in the run directory, each once and in
// order, until the run is over (K9, D7). What waits longer than a moment is the
// file server, which only this goroutine waits for.
func (s *session) takeRequests(over <-chan struct{}) {
	t := &s.requests
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
		case <-s.d.Finished():
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

// waitingRequests carries out what was left while nobody dispatched. It is called once,
// when all stored jobs are part of the run and it has not been said that no more will
// come: a run without a job to do would end before it had heard of a requeue.
func (s *session) waitingRequests() {
	s.requests.whole = true
	s.requests.look()
	s.requests.whole = false
	close(s.requests.first)
}

type requestTaker struct {
	s      *session
	first  chan struct{}   // closed when waitingRequests is through
	bell   chan struct{}   // has room for one: somebody has left a request and waits
	given  map[string]bool // to the core, and the file is still there
	stored map[string]stored
	whole  bool   // all stored jobs are part of the run: none is on its way
	early  string // the request whose jobs were not there when it was first looked at
	since  time.Time
	said   string // the trouble that was told last
	failed bool   // in this look
}

// look takes new requests in and removes those that are in the journal for good.
func (t *requestTaker) look() {
	t.failed = false
	t.clear()
	names, strangers, err := t.s.run.RequestNames()
	t.trouble(err)
	for _, name := range strangers {
		t.s.say(func() string {
			return "in " + rundir.RequestsDir + ": " + console.Shorten(console.CleanLine(name)) + " is not a request; it is set aside"
		})
		t.trouble(t.s.run.SetStrangerAside(name))
	}
	for _, name := range names {
		switch {
		case t.given[name]:
		case t.s.noted.before[name]: // its dispatcher died before it had removed it
			t.trouble(t.s.run.RemoveRequest(name))
		case !t.take(name):
			return // those behind it wait for it
		}
	}
	if !t.failed {
		t.said = ""
	}
}

// take gives one request to the core; false when that is to be tried again.
func (t *requestTaker) take(name string) bool {
	q, err := t.s.run.ReadRequest(name)
	var refused *rundir.RefusedError
	switch {
	case errors.As(err, &refused):
		t.trouble(t.s.run.SetRequestAside(name))
		t.s.d.Do(sched.Request{Name: name, Text: refused.Error()})
		return true
	case errors.Is(err, fs.ErrNotExist):
		return true // taken back
	case err != nil:
		t.trouble(err)
		return false
	}
	snap := t.s.d.Snapshot()
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
		t.s.cancelled.Store(true)
		t.s.endInput()
		do = sched.Cancel{All: true, Why: why}
	case q.Do == rundir.DoCancel:
		do = sched.Cancel{Jobs: ids, Why: why}
	default:
		refused := rundir.RefusedError{Name: name, Why: "this program cannot do that"}
		t.trouble(t.s.run.SetRequestAside(name))
		t.s.d.Do(sched.Request{Name: name, Text: refused.Error()})
		return true
	}
	t.s.d.Do(sched.Request{Name: name, Text: q.Text(), Do: []sched.Event{do}, Spare: sched.Spare(q.Spare)})
	return true
}

// mayCome says that the jobs of this request that are not part of the run may yet be.
func (t *requestTaker) mayCome(name string) bool {
	if t.early != name {
		t.early, t.since = name, time.Now()
	}
	return !t.whole && time.Since(t.since) < requestPatience
}

// clear removes the files of what is durable.
func (t *requestTaker) clear() {
	for name := range t.given {
		if !t.s.noted.taken(name) {
			continue
		}
		if err := t.s.run.RemoveRequest(name); err != nil {
			t.trouble(err)
			continue
		}
		delete(t.given, name)
	}
}

// trouble says what keeps us from looking, once.
func (t *requestTaker) trouble(err error) {
	if err == nil {
		return
	}
	t.failed = true
	if text := err.Error(); text != t.said {
		t.said = text
		t.s.say(func() string { return console.CleanLine(text) })
	}
}

// notedJournal is the run's journal, and remembers what of it others wait for: a
// request's file may go only when the record that it was taken in is durable. Safe
// for concurrent use.
type notedJournal struct {
	*journal.Journal
	before map[string]bool // requests that earlier dispatchers took in; never written

	mu      sync.Mutex
	fresh   []string // requests in records that are not durable yet
	durable map[string]bool
	more    chan struct{}    // closed when further requests are durable; nil: nobody waits
	open    map[jobs.ID]bool // jobs that somebody waits for, not over
	ended   []jobs.ID        // of them, in records that are not durable yet
}

func noteJournal(j *journal.Journal, t *jobs.Table) *notedJournal {
	n := &notedJournal{Journal: j, before: map[string]bool{}, durable: map[string]bool{}}
	for name := range t.Requests {
		n.before[name] = true
	}
	return n
}

// Append notes the requests among the records. They stay in the journal's memory
// when it cannot be written, so they are noted all the same.
func (n *notedJournal) Append(recs []jobs.Record) error {
	n.mu.Lock()
	for i := range recs {
		switch r := &recs[i]; {
		case r.Kind == jobs.KindRequest:
			n.fresh = append(n.fresh, r.Reason)
		case r.Seq != 0 && r.Kind != jobs.KindAcked && n.open[r.Job]:
			n.ended = append(n.ended, r.Job)
		}
	}
	n.mu.Unlock()
	return n.Journal.Append(recs)
}

// Sync notes that what was appended is durable.
func (n *notedJournal) Sync() error {
	err := n.Journal.Sync()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.fresh {
		n.durable[name] = true
	}
	if len(n.fresh) > 0 && n.more != nil {
		close(n.more)
		n.more = nil
	}
	for _, id := range n.ended {
		delete(n.open, id)
	}
	n.fresh, n.ended = nil, nil
	return nil
}

// taken says whether a request is in the journal for good.
func (n *notedJournal) taken(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.durable[name] || n.before[name]
}

// await begins to watch for the ends of these jobs, which are open now.
func (n *notedJournal) await(open []jobs.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = make(map[jobs.ID]bool, len(open))
	for _, id := range open {
		n.open[id] = true
	}
}

// left returns those of them that are not over, for good.
func (n *notedJournal) left() []jobs.ID {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ids []jobs.ID
	for id := range n.open {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
