// Package inbox takes in what people ask of the dispatcher of a run: request files in the
// run directory, requests through the socket, and the STOP files. It gives each to the
// core once, by its name, and removes its file when the answer is durable.
//
// It makes requests only of STOP files and for the program that wires it, and decides
// nothing about jobs (dispatch/sched does).
package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/socket"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

const (
	// pollInterval is how often the run directory is listed.
	pollInterval = time.Second
	// earlyTimeout is how long a request may name jobs that are not part of the run yet:
	// stored ones are just being submitted. It is time, not polls, because every Wake polls.
	earlyTimeout = 10 * time.Second
)

// ErrLeaving is the error of a request that the dispatcher has not recorded because it is
// ending. Unless the journal has the answer, the request is to be left for the next one.
var ErrLeaving = fmt.Errorf("the dispatcher is ending: %w", socket.ErrGone)

// Options are what an Inbox needs of a dispatcher.
type Options struct {
	Run        *rundir.Run
	Dispatcher *dispatch.Dispatcher
	Say        func(text func() string) // tells people; does not wait

	Canceled  func() bool        // a person has canceled the run: no job is added any more
	Cancel    func()             // called before every job is canceled
	Continued func()             // called before a person ends a pause or a drain
	DrainText func() string      // what a drain waits for
	EndsOnly  func() bool        // no jobs are started: those submitted wait for the next dispatcher
	EndInput  func()             // called when a person says that no more jobs come
	Place     func([]*jobs.Spec) // makes the directories of jobs that are submitted absolute

	Stored map[string]Stored // see FindStored

	// Inventory is the set of hosts of the run. Reload reads its file.
	Inventory interface {
		Check(name, options string) error // why a host cannot be added
		Reload() error                    // why nothing is read
	}
}

// Inbox takes requests in. TakeWaiting and Serve are for one goroutine each; the other
// methods are safe for concurrent use.
type Inbox struct {
	Options
	first chan struct{} // closed when TakeWaiting is through
	wake  chan struct{} // has room for one

	given sync.Map // names of requests that the core has and whose answers are not durable

	mu     sync.Mutex
	asked  int    // by Ask
	said   string // the problem that was reported last
	failed bool   // in this poll

	// Of the goroutine that polls.
	whole bool   // all stored jobs are part of the run: none is on its way
	early string // the request whose jobs were not there when it was first read
	since time.Time

	stop stopFiles
}

// New returns the inbox of a dispatcher.
func New(o Options) *Inbox {
	return &Inbox{Options: o, first: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// Serve polls the run directory until the run is over. Only this goroutine waits
// for the file server.
func (b *Inbox) Serve(over <-chan struct{}) {
	every := time.NewTicker(pollInterval)
	defer every.Stop()
	for !isClosed(b.first) {
		select {
		case <-over:
			return
		case <-b.first:
		case <-every.C: // stored jobs may be submitted for long, if the disk is full
			b.pollStopFiles()
		}
	}
	for {
		select {
		case <-over:
			return
		case <-b.Dispatcher.Finished():
			b.clear() // what comes now waits for the next dispatcher
			<-over
			b.clear() // of a short run not all was durable
			return
		case <-every.C:
		case <-b.wake:
		}
		b.pollStopFiles()
		b.poll()
	}
}

// TakeWaiting handles what was left while nobody dispatched. It is called once, when all
// stored jobs are part of the run and before it is said that no more will come: a run
// without a job to do would end before it had heard of a requeue.
func (b *Inbox) TakeWaiting() {
	b.whole = true
	b.poll()
	b.whole = false
	close(b.first)
}

// Wake has the run directory polled now and returns when the answer to the request of
// this name is durable.
func (b *Inbox) Wake(ctx context.Context, name string) error {
	select {
	case b.wake <- struct{}{}:
	default: // it is awake already
	}
	return b.await(ctx, name)
}

// Request handles a request that came through the socket, without the disk: it is
// carried out though the disk is full or hangs. It returns when the answer is durable. A
// file or another call of the same name is the same request.
func (b *Inbox) Request(ctx context.Context, name string, body json.RawMessage) error {
	if !rundir.IsRequestName(name) {
		return socket.Refusef("%q is not the name of a request", name)
	}
	q, err := rundir.DecodeRequest(name, body)
	if err != nil {
		return socket.Refusef("%v", err)
	}
	if answered, _ := b.Dispatcher.Answered(name); answered {
		return nil
	}
	if q.Do == rundir.DoSubmit && b.EndsOnly() {
		return fmt.Errorf("%w: it starts no jobs", socket.ErrNotTaken)
	}
	if err := b.awaitJobs(ctx, q); err != nil {
		return err
	}
	if !b.give(name, q) {
		return fmt.Errorf("%w: the jobs cannot be stored now", socket.ErrNotTaken)
	}
	return b.await(ctx, name)
}

// awaitJobs waits a moment for the jobs that a request names and the run does not have.
func (b *Inbox) awaitJobs(ctx context.Context, q *rundir.Request) error {
	for began := time.Now(); ; {
		n, err := b.total()
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", socket.ErrNotTaken, err)
		case q.Jobs.Last() <= n || time.Since(began) >= earlyTimeout:
			return nil
		}
		select {
		case <-time.After(earlyTimeout / 100):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", socket.ErrNotTaken, ctx.Err())
		}
	}
}

// total returns how many jobs the run has.
func (b *Inbox) total() (jobs.ID, error) {
	snap := b.Dispatcher.Snapshot()
	if snap == nil || isClosed(b.Dispatcher.Finished()) {
		return 0, ErrLeaving
	}
	return jobs.ID(snap.Total), nil
}

// await waits until the answer to a request is durable.
func (b *Inbox) await(ctx context.Context, name string) error {
	for {
		answered, more := b.Dispatcher.Answered(name)
		switch {
		case answered:
			return nil
		case isClosed(b.Dispatcher.Finished()):
			return ErrLeaving
		}
		select {
		case <-more:
		case <-b.Dispatcher.Finished(): // what was durable before is known by now
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Ask makes a request of this program itself. Its name begins with the source, such as a
// signal. It does not wait. The jobs that it names must be jobs of the run.
func (b *Inbox) Ask(source string, q *rundir.Request) {
	b.prepare(q)
	last := jobs.ID(0)
	for _, r := range q.Jobs {
		last = max(last, r.Last)
	}
	b.ask(source, events[q.Do](q, last)...)
}

func (b *Inbox) ask(source string, do ...sched.Event) {
	b.mu.Lock()
	b.asked++
	name := fmt.Sprintf("%s.%d.%d", source, b.Dispatcher.Epoch(), b.asked)
	b.mu.Unlock()
	b.Dispatcher.Do(sched.Request{Name: name, Do: do})
}

// prepare does what a request asks of the program around the core, and tells people what
// happens next.
func (b *Inbox) prepare(q *rundir.Request) {
	why := text.Line(reason(q, byPerson))
	switch {
	case q.Epoch != 0 && q.Epoch != b.Dispatcher.Epoch(): // it is refused
	case q.Do == rundir.DoContinue:
		b.stop.end(b.Continued)
	case q.Do == rundir.DoDrain:
		b.Say(b.DrainText)
	case q.Do == rundir.DoStop:
		b.Say(func() string { return why + ": dispatching stops, running jobs continue" })
	case q.Do == rundir.DoCancel && q.All:
		b.Cancel()
		b.Say(func() string { return why + ": every job is canceled; waiting for the running ones to end" })
	}
}

// endsInput reports whether no more jobs come because of the request.
func (b *Inbox) endsInput(q *rundir.Request) bool {
	return q.Do == rundir.DoEndInput && (q.Epoch == 0 || q.Epoch == b.Dispatcher.Epoch())
}

// poll takes new requests in and removes those whose answers are durable.
func (b *Inbox) poll() {
	b.mu.Lock()
	b.failed = false
	b.mu.Unlock()
	b.clear()
	names, strangers, err := b.Run.RequestNames()
	b.problem(err)
	for _, name := range strangers {
		b.Say(func() string {
			return "in " + rundir.RequestsDir + ": " + text.Shorten(name) + " is not a request; it is set aside"
		})
		b.problem(b.Run.SetStrangerAside(name))
	}
	for _, name := range names {
		if answered, _ := b.Dispatcher.Answered(name); answered { // the file was not removed, or came twice
			b.problem(b.Run.RemoveRequest(name))
		} else if _, given := b.given.Load(name); !given && !b.take(name) {
			return // those behind it wait for it
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.failed {
		b.said = ""
	}
}

// take gives the request of a file to the core; false when that is to be tried again.
func (b *Inbox) take(name string) bool {
	q, err := b.Run.ReadRequest(name)
	var refused *rundir.RefusedError
	switch {
	case errors.As(err, &refused):
		b.refuse(name, nil, refused.Why)
		return true
	case errors.Is(err, fs.ErrNotExist):
		return true // taken back
	case err != nil:
		b.problem(err)
		return false
	}
	n, err := b.total()
	if err != nil || q.Jobs.Last() > n && b.mayCome(name) {
		return false
	}
	return b.give(name, q)
}

// give gives a request to the core, once; false when it is to be tried again.
func (b *Inbox) give(name string, q *rundir.Request) (given bool) {
	if _, had := b.given.LoadOrStore(name, nil); had {
		return true
	}
	if q.Do == rundir.DoSubmit {
		given = b.submit(name, q)
	} else if n, err := b.total(); err == nil {
		b.prepare(q)
		b.Dispatcher.Do(sched.Request{Name: name, Text: q.Text(), Do: events[q.Do](q, n), Spare: sched.Spare(q.Spare), Epoch: q.Epoch,
			Refused: b.inventoryRefuses(q)})
		if b.endsInput(q) {
			b.EndInput() // behind the request: it may be the end of the run
		}
		given = true
	}
	if !given {
		b.given.Delete(name)
	}
	return given
}

// inventoryRefuses returns why a request about the set of hosts cannot be carried out. A
// reload is carried out here.
func (b *Inbox) inventoryRefuses(q *rundir.Request) string {
	var err error
	switch q.Do {
	case rundir.DoAddHost:
		err = b.Inventory.Check(q.Host, q.Options)
	case rundir.DoReloadHosts:
		err = b.Inventory.Reload()
	}
	if err != nil {
		return text.Line(err.Error())
	}
	return ""
}

// refuse answers a request that cannot be carried out. Its file is set aside.
func (b *Inbox) refuse(name string, q *rundir.Request, why string) {
	text := ""
	if q != nil {
		text = q.Text()
	}
	b.Dispatcher.Do(sched.Request{Name: name, Text: text, Refused: why})
	b.problem(b.Run.SetRequestAside(name))
}

// mayCome reports whether the jobs of this request that are not part of the run may yet be.
func (b *Inbox) mayCome(name string) bool {
	if b.early != name {
		b.early, b.since = name, time.Now()
	}
	return !b.whole && time.Since(b.since) < earlyTimeout
}

// clear removes the files of the requests whose answers are durable.
func (b *Inbox) clear() {
	for name := range b.given.Range {
		name := name.(string)
		if answered, _ := b.Dispatcher.Answered(name); !answered {
			continue
		}
		if err := b.Run.RemoveRequest(name); err != nil {
			b.problem(err)
			continue
		}
		b.given.Delete(name)
	}
}

// problem reports what keeps the inbox from working, once.
func (b *Inbox) problem(err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	b.failed = true
	text := err.Error()
	known := text == b.said
	b.said = text
	b.mu.Unlock()
	if !known {
		b.Say(func() string { return text })
	}
}

// events maps each kind of request to the events of the core that carry it out. A new
// kind needs an entry here and one in the table of package rundir. total is the number of
// jobs of the run.
var events = map[string]func(q *rundir.Request, total jobs.ID) []sched.Event{
	rundir.DoCancel: func(q *rundir.Request, total jobs.ID) []sched.Event {
		return []sched.Event{sched.Cancel{Jobs: q.Jobs.IDs(total), All: q.All, Why: reason(q, "canceled by a person")}}
	},
	rundir.DoRequeue: func(q *rundir.Request, total jobs.ID) []sched.Event {
		return []sched.Event{sched.Requeue{Jobs: q.Jobs.IDs(total)}}
	},
	rundir.DoPriority: func(q *rundir.Request, total jobs.ID) []sched.Event {
		return []sched.Event{sched.SetPriority{Jobs: q.Jobs.IDs(total), Priority: q.Priority}}
	},
	rundir.DoEdit: func(q *rundir.Request, total jobs.ID) []sched.Event {
		return []sched.Event{sched.Edit{Jobs: q.Jobs.IDs(total), Change: *q.Edit}}
	},
	rundir.DoSubmit: func(*rundir.Request, jobs.ID) []sched.Event { return nil }, // see submit
	rundir.DoPause:  func(*rundir.Request, jobs.ID) []sched.Event { return []sched.Event{sched.Pause{On: true}} },
	rundir.DoContinue: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.EndDrain{Why: reason(q, byPerson)}, sched.Pause{}}
	},
	rundir.DoDrainHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.DrainHost{Host: q.Host, On: true}}
	},
	rundir.DoStopHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.DrainHost{Host: q.Host, On: true, Now: true}}
	},
	rundir.DoUseHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.DrainHost{Host: q.Host}}
	},
	rundir.DoSlots: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.SetSlots{Host: q.Host, Slots: q.Number}}
	},
	rundir.DoAddHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.ChangeInventory{Host: q.Host, Change: jobs.HostAdded, Options: q.Options}}
	},
	rundir.DoRemoveHost: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.ChangeInventory{Host: q.Host, Change: jobs.HostRemoved}}
	},
	rundir.DoReloadHosts: func(*rundir.Request, jobs.ID) []sched.Event { return nil }, // see inventoryRefuses
	rundir.DoEndInput:    func(*rundir.Request, jobs.ID) []sched.Event { return nil }, // see prepare
	rundir.DoDrain: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.Drain{Why: reason(q, byPerson)}}
	},
	rundir.DoStop: func(q *rundir.Request, _ jobs.ID) []sched.Event {
		return []sched.Event{sched.Stop{Why: reason(q, byPerson)}}
	},
}

const byPerson = "asked for by a person"

// reason returns why something is requested.
func reason(q *rundir.Request, otherwise string) string {
	switch {
	case q.Why != "":
		return q.Why
	case q.By != "" && q.Do != rundir.DoCancel: // the reason of a cancel becomes that of each job
		return "asked for by " + q.By
	}
	return otherwise
}
