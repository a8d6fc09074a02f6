// Package inbox receives the requests of people to a dispatcher: request files in the run
// directory, requests through the socket, and STOP files. An Inbox passes each request to the core
// once, by its name, and removes the file when the answer is durable.
//
// It makes no decisions about jobs, which dispatch/sched does.
package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/dispatch"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/socket"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/rundir"
)

// pollInterval is how often the run directory is listed.
const pollInterval = time.Second

// ErrLeaving is the error of a request that the dispatcher has not recorded because it is ending.
// Unless the journal has the answer, the client leaves the request for the next dispatcher.
var ErrLeaving = fmt.Errorf("the dispatcher is ending: %w", socket.ErrGone)

// Options configures an Inbox.
type Options struct {
	Run        *rundir.Run
	Dispatcher *dispatch.Dispatcher
	Print      func(text func() string) // shows a message; does not block

	IsCanceled func() bool   // a person has canceled the run, so no jobs are added any more
	Cancel     func()        // called before all jobs are canceled
	OnContinue func()        // called before a person ends a pause or a drain
	DrainText  func() string // describes what a drain waits for
	// Jobs that are submitted wait for the next dispatcher.
	LeavesSubmits    func() bool
	EndInput         func()             // called when a person requests end-input
	MakeDirsAbsolute func([]*jobs.Spec) // makes the directories of submitted jobs absolute

	Stored map[string]Stored // see FindStored
	// State of the run when this dispatcher began. Of the requests that waited for it, those that can
	// do nothing are refused.
	Found action.Target

	// Inventory is the set of hosts of the run. Reload reads its file.
	Inventory interface {
		Check(name, options string) error // returns why a host cannot be added, or nil
		Reload() error                    // returns why nothing was read, or nil
	}
}

// Inbox receives requests. Only one goroutine each may call TakeWaiting and Serve. The other
// methods are safe for concurrent use.
type Inbox struct {
	Options
	waitingTaken chan struct{} // closed when TakeWaiting has returned
	wake         chan struct{} // holds a signal to poll

	// Names of requests that were passed to the core and whose answers are not durable.
	passedToCore sync.Map
	numAsked     atomic.Int64 // number of requests of Ask

	mu              sync.Mutex
	reportedProblem string // last reported problem
	hasFailed       bool   // a request has failed in this poll

	// The fields below are owned by the goroutine that polls.
	isWaiting bool            // the requests that are being polled have waited for this dispatcher
	strangers map[string]bool // files that are not requests, were reported, and cannot be renamed

	stop stopFiles
}

// New returns the inbox of a dispatcher.
func New(o Options) *Inbox {
	return &Inbox{Options: o, waitingTaken: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// Serve polls the run directory until the run is over. Only this goroutine waits
// for the file server.
func (b *Inbox) Serve(over <-chan struct{}) {
	every := time.NewTicker(pollInterval)
	defer every.Stop()
	for !isClosed(b.waitingTaken) {
		select {
		case <-over:
			return
		case <-b.waitingTaken:
		case <-every.C: // submitting stored jobs may take long, if the disk is full
			b.pollStopFiles()
		}
	}
	for {
		select {
		case <-over:
			return
		case <-b.Dispatcher.Finished():
			b.removeAnswered() // new requests wait for the next dispatcher
			<-over
			b.removeAnswered() // more answers may have become durable
			return
		case <-every.C:
		case <-b.wake:
		}
		b.pollStopFiles()
		b.poll()
	}
}

// TakeWaiting handles the requests that were left while nobody dispatched. Call it once, when all
// stored jobs are part of the run, and before the core learns that no more will follow. Otherwise a
// run without open jobs would end before it received a requeue.
func (b *Inbox) TakeWaiting() {
	b.isWaiting = true
	b.poll()
	b.isWaiting = false
	close(b.waitingTaken)
}

// Wake polls the run directory now and returns when the answer to the request of this name is
// durable.
func (b *Inbox) Wake(ctx context.Context, name string) error {
	dispatch.Signal(b.wake)
	return b.awaitAnswer(ctx, name)
}

// Request carries out a request of the socket and returns when the answer is durable. It does not
// use the disk, so it works while the disk is full or hangs. A file or another call of the same
// name is the same request.
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
	if q.Do == action.Submit && b.LeavesSubmits() {
		return fmt.Errorf("%w: it starts no jobs", socket.ErrNotTaken)
	}
	if err := b.awaitJobs(ctx, q); err != nil {
		return err
	}
	if !b.submitToCore(name, q) {
		return fmt.Errorf("%w: the jobs cannot be stored now", socket.ErrNotTaken)
	}
	return b.awaitAnswer(ctx, name)
}

// awaitJobs waits until the stored jobs are part of the run, if a request names some that are not.
// Files are not read before that.
func (b *Inbox) awaitJobs(ctx context.Context, q *action.Request) error {
	switch n, err := b.numJobs(); {
	case err != nil:
		return fmt.Errorf("%w: %w", socket.ErrNotTaken, err)
	case q.Jobs.Last() <= n:
		return nil
	}
	select {
	case <-b.waitingTaken:
	case <-b.Dispatcher.Finished(): // its core refuses the request
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", socket.ErrNotTaken, ctx.Err())
	}
	return nil
}

// numJobs returns the number of jobs of the run.
func (b *Inbox) numJobs() (jobs.ID, error) {
	snap := b.Dispatcher.Snapshot()
	if snap == nil || isClosed(b.Dispatcher.Finished()) {
		return 0, ErrLeaving
	}
	return jobs.ID(snap.Total), nil
}

// awaitAnswer waits until the answer to a request is durable.
func (b *Inbox) awaitAnswer(ctx context.Context, name string) error {
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
		case <-b.Dispatcher.Finished(): // Answered knows all durable answers by now
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

// EndPoor ends a job because a search found its values poor.
func (b *Inbox) EndPoor(job jobs.ID, why string) {
	b.Dispatcher.Do(sched.Request{Name: b.newName("halving"), Do: []sched.Event{
		sched.Cancel{Jobs: []jobs.ID{job}, Why: why, ReasonKind: jobs.ReasonPoorValues}}})
}

// Ask makes a request of this program itself. Its name begins with the source, such as a signal.
// Ask does not block. The jobs that it names must be jobs of the run.
func (b *Inbox) Ask(source string, q *action.Request) {
	b.prepare(q)
	r := sched.RequestFor(b.newName(source), q, q.Jobs.Last())
	r.Text = "" // its effect is logged
	b.Dispatcher.Do(r)
}

func (b *Inbox) newName(source string) string {
	return fmt.Sprintf("%s.%d.%d", source, b.Dispatcher.Epoch(), b.numAsked.Add(1))
}

// prepare carries out the part of a request that is outside the core, and reports how to continue.
func (b *Inbox) prepare(q *action.Request) {
	why := text.Line(q.Reason())
	switch {
	case q.ByFile && q.Do == action.Continue: // the file was removed
	case q.Epoch != 0 && q.Epoch != b.Dispatcher.Epoch(): // the core refuses it
	case q.Do == action.Continue:
		b.stop.removeAndEnd(b.OnContinue)
	case q.Do == action.DrainRun:
		b.Print(b.DrainText)
	case q.Do == action.StopRun:
		b.Print(func() string { return why + ": dispatching stops, running jobs continue" })
	case q.Do == action.Cancel && q.All:
		b.Cancel()
		b.Print(func() string { return why + ": every job is canceled; waiting for the running ones to end" })
	}
}

// poll handles new requests and removes those whose answers are durable.
func (b *Inbox) poll() {
	b.mu.Lock()
	b.hasFailed = false
	b.mu.Unlock()
	b.removeAnswered()
	names, strangers, err := b.Run.RequestNames()
	b.reportProblem(err)
	b.setAside(strangers)
	for _, name := range names {
		// The file could not be removed, or appeared again.
		if answered, _ := b.Dispatcher.Answered(name); answered {
			b.reportProblem(b.Run.RemoveRequest(name))
		} else if _, given := b.passedToCore.Load(name); !given && !b.passToCore(name) {
			return // later requests wait, to keep the order
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.hasFailed {
		b.reportedProblem = ""
	}
}

// setAside renames files that are not requests. What cannot be renamed, because its new name is too
// long or taken, is reported once.
func (b *Inbox) setAside(strangers []string) {
	reported := b.strangers
	b.strangers = map[string]bool{}
	for _, name := range strangers {
		err := b.Run.SetStrangerAside(name)
		if err != nil {
			b.strangers[name] = true
		}
		if reported[name] {
			continue
		}
		b.Print(func() string {
			return "in " + rundir.RequestsDir + ": " + text.Shorten(name) + " is not a request; it is set aside"
		})
		b.reportProblem(err)
	}
}

// passToCore passes the request of a file to the core. It returns false if it must be retried.
func (b *Inbox) passToCore(name string) bool {
	q, err := b.Run.ReadRequest(name)
	var refused *rundir.RefusedError
	switch {
	case errors.As(err, &refused):
		b.refuse(name, nil, refused.Why)
		return true
	case errors.Is(err, fs.ErrNotExist):
		return true // withdrawn
	case err != nil:
		b.reportProblem(err)
		return false
	}
	if b.isWaiting && b.Found.IsFinished && q.EffectOn(b.Found) == action.IsRefused {
		b.refuse(name, q, q.WhyRefused(b.Found))
		return true
	}
	return b.submitToCore(name, q)
}

// submitToCore gives a request to the core, once. It returns false if it must be tried again.
func (b *Inbox) submitToCore(name string, q *action.Request) (given bool) {
	if _, had := b.passedToCore.LoadOrStore(name, nil); had {
		return true
	}
	if q.Do == action.Submit {
		given = b.submit(name, q)
	} else if n, err := b.numJobs(); err == nil {
		b.prepare(q)
		r := sched.RequestFor(name, q, n)
		r.Refused = b.whyInventoryRefuses(q)
		b.Dispatcher.Do(r)
		if q.Do == action.EndInput && (q.Epoch == 0 || q.Epoch == b.Dispatcher.Epoch()) {
			b.EndInput() // after the request, because it may end the run
		}
		given = true
	}
	if !given {
		b.passedToCore.Delete(name)
	}
	return given
}

// whyInventoryRefuses returns the reason why a request about the set of hosts cannot be carried
// out, or "". It carries out a reload.
func (b *Inbox) whyInventoryRefuses(q *action.Request) string {
	var err error
	switch q.Do {
	case action.AddHost:
		err = b.Inventory.Check(q.Host, q.Options)
	case action.ReloadHosts:
		err = b.Inventory.Reload()
	}
	if err != nil {
		return text.Line(err.Error())
	}
	return ""
}

// refuse answers a request that cannot be carried out. Its file is set aside.
func (b *Inbox) refuse(name string, q *action.Request, why string) {
	text := "request " + name
	if q != nil {
		text = q.Text()
	}
	b.Dispatcher.Do(sched.Request{Name: name, Text: text, Refused: why})
	b.reportProblem(b.Run.SetRequestAside(name))
}

// removeAnswered removes the files of the requests whose answers are durable.
func (b *Inbox) removeAnswered() {
	for name := range b.passedToCore.Range {
		name := name.(string)
		if answered, _ := b.Dispatcher.Answered(name); !answered {
			continue
		}
		if err := b.Run.RemoveRequest(name); err != nil {
			b.reportProblem(err)
			continue
		}
		b.passedToCore.Delete(name)
	}
}

// reportProblem reports an error of the inbox once.
func (b *Inbox) reportProblem(err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	b.hasFailed = true
	text := err.Error()
	known := text == b.reportedProblem
	b.reportedProblem = text
	b.mu.Unlock()
	if !known {
		b.Print(func() string { return text })
	}
}
