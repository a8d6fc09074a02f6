package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"sync"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/internal/account"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Dispatcher is a running dispatcher. Its methods are safe for concurrent use. They reach the
// engine through its input channel.
type Dispatcher struct {
	cfg      Config
	inputs   chan input
	done     chan struct{} // closed when the engine goroutine has ended
	finished chan struct{} // closed when the core has finished for the first time
	results  *completions
	answers  *answers
	files    *rundir.FileReader
	returns  *returns
	signals  Signals
	last     liveView // the last state; written by the engine before done is closed

	submit    sync.Mutex // held by one submitter at a time, so that ids have no gaps
	submitted int        // number of jobs sent to the core, guarded by submit

	closeOnce sync.Once
	finish    sched.Finish // written by the engine before done is closed
	claimed   int          // see ClaimedEpoch; written by the engine before done is closed
	finishErr error
}

// errEnded is returned by calls after the dispatcher has ended.
var errEnded = errors.New("the dispatcher has ended")

// Start starts a dispatcher, which connects to the hosts and asks them about every open attempt
// of the table. It does not block.
func Start(cfg Config) (*Dispatcher, error) {
	d := &Dispatcher{
		cfg:       cfg,
		inputs:    make(chan input, 1024),
		done:      make(chan struct{}),
		finished:  make(chan struct{}),
		results:   newCompletions(),
		answers:   &answers{names: maps.Clone(cfg.Table.Requests), changed: make(chan struct{})},
		files:     rundir.NewFileReader(rundir.Within(cfg.RunDir)),
		returns:   newReturns(),
		signals:   newSignals(),
		submitted: cfg.Table.NumSpecs(), // the core accepts all stored jobs
	}
	e := newEngine(d)
	go e.run()
	return d, nil
}

// Submit stores jobs durably and sends them to the core. It sets Spec.ID to the numbers after those
// of the run. last means that no more jobs will follow.
func (d *Dispatcher) Submit(specs []*jobs.Spec, last bool) error {
	return d.SubmitNumbered(specs, last, nil)
}

// SubmitNumbered is like Submit, but before it stores the jobs, it calls number with the number of
// the first of them, unless number is nil. It is for jobs that refer to each other.
func (d *Dispatcher) SubmitNumbered(specs []*jobs.Spec, last bool, number func(first jobs.ID)) error {
	d.submit.Lock()
	defer d.submit.Unlock()
	if number != nil {
		number(jobs.ID(d.submitted + 1))
	}
	for i, s := range specs {
		s.ID = jobs.ID(d.submitted + i + 1)
	}
	if len(specs) > 0 {
		if err := d.cfg.StoreSpecs(specs); err != nil {
			return err
		}
	}
	if !d.send(input{ev: sched.Submit{Specs: specs, Last: last}}) {
		return errEnded
	}
	d.submitted += len(specs)
	return nil
}

// NumAccepted returns the number of jobs of the run when the core has accepted all those that were
// submitted before, or 0 if the dispatcher or ctx ends first.
func (d *Dispatcher) NumAccepted(ctx context.Context) int {
	n, _ := query(ctx, d, func(e *engine) int { return e.core.Table().NumJobs() })
	return n
}

// Next returns the next result in completion order. It blocks until there is one, ctx is done
// (ctx.Err()), or the run is over and all results were returned (io.EOF). Results that nobody
// has acknowledged to an earlier dispatcher come first. After Close, Next returns an error if some of
// these are left.
func (d *Dispatcher) Next(ctx context.Context) (*Result, error) {
	for {
		r, err := d.results.next(ctx)
		if r != nil || err != nil {
			return r, err
		}
		if err := d.call(ctx, func(e *engine) { d.results.makeEarlier(e.earlierResults) }); err != nil {
			return nil, err
		}
	}
}

// Ack records that the consumer has received every result up to seq.
func (d *Dispatcher) Ack(seq int64) { d.send(input{ev: sched.Acked{Seq: seq}}) }

// Epoch returns the epoch of this dispatcher.
func (d *Dispatcher) Epoch() int { return d.cfg.Open.Epoch }

// Do sends an event to the core: a Request, or a decision of the program itself.
func (d *Dispatcher) Do(ev sched.Event) { d.send(input{ev: ev}) }

// SetInventory sets the inventory of the run; see sched.SetInventory. It blocks until the core has
// it. The error is that of ctx, or reports that the dispatcher has ended. The caller must not change
// the inventory afterwards.
func (d *Dispatcher) SetInventory(ctx context.Context, inv *hosts.Inventory) error {
	return d.call(ctx, func(e *engine) { e.step(sched.SetInventory{Inventory: inv}) })
}

// Snapshot returns the current state of the run, or nil after its end.
func (d *Dispatcher) Snapshot() *Snapshot {
	s, _ := query(context.Background(), d, (*engine).snapshot)
	return s
}

// Finished returns a channel that is closed when the core has finished. Results may still wait for
// Next.
func (d *Dispatcher) Finished() <-chan struct{} { return d.finished }

// Close ends the dispatcher, leaves the hosts, and returns how the run ended. If the run has not
// finished, Close stops it, and running jobs continue.
func (d *Dispatcher) Close() (sched.Finish, error) {
	d.closeOnce.Do(func() { d.send(input{call: (*engine).leaveHosts}) })
	<-d.done
	return d.finish, d.finishErr
}

// ClaimedEpoch returns the highest epoch of another dispatcher that a host claims to serve, although
// the run directory shows none; 0: no host does. It is valid after Close.
func (d *Dispatcher) ClaimedEpoch() int { return d.claimed }

// send sends an input to the engine. It returns false if the engine has ended.
func (d *Dispatcher) send(in input) bool { return d.sendWithin(context.Background(), in) == nil }

// sendWithin sends an input to the engine. It returns errEnded if the engine has ended, and the
// error of ctx if that ends first.
func (d *Dispatcher) sendWithin(ctx context.Context, in input) error {
	select {
	case <-d.done:
		return errEnded
	default:
	}
	select {
	case d.inputs <- in:
		return nil
	case <-d.done:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended returns a channel that is closed when the dispatcher has ended. Calls fail from then on.
func (d *Dispatcher) Ended() <-chan struct{} { return d.done }

// call runs f in the engine's goroutine and waits for it. It returns errEnded if the engine has
// ended without running f. It returns the error of ctx if that ends first; f may still run later.
func (d *Dispatcher) call(ctx context.Context, f func(*engine)) error {
	ran := make(chan struct{})
	if err := d.sendWithin(ctx, input{call: func(e *engine) { f(e); close(ran) }}); err != nil {
		return err
	}
	select {
	case <-ran:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-d.done:
		select {
		case <-ran:
			return nil
		default:
			return errEnded
		}
	}
}

// query returns the result of f, which runs in the engine's goroutine. f changes nothing and takes
// at most about a millisecond. The errors are those of call. A panic of f is raised in the caller,
// because a reader must not end the run.
func query[T any](ctx context.Context, d *Dispatcher, f func(*engine) T) (T, error) {
	var answer, none T
	fault := ""
	if err := d.call(ctx, func(e *engine) {
		defer func() {
			if p := recover(); p != nil {
				fault = fmt.Sprintf("%v (in the engine)\n%s", p, debug.Stack())
			}
		}()
		answer = f(e)
	}); err != nil {
		return none, err // f may still run
	}
	if fault != "" {
		panic(fault)
	}
	return answer, nil
}

// Asker names the user of this process and its machine, to show in the event log who made a
// request.
var Asker = sync.OnceValue(func() string {
	name := account.Current().Name
	if host, err := os.Hostname(); err == nil {
		name += " on " + host
	}
	return name
})

// SubmitRequested submits the jobs of a request and then answers it. Each job is stored with the
// name of the request, so that a later dispatcher recognizes it. The numbers in After count from
// the first of the jobs. After an error the call may be repeated.
func (d *Dispatcher) SubmitRequested(r sched.Request, specs []*jobs.Spec) error {
	d.submit.Lock()
	defer d.submit.Unlock()
	base := jobs.ID(d.submitted)
	done := map[*jobs.Options]*jobs.Options{}
	stored := make([]*jobs.Spec, len(specs))
	for i, s := range specs {
		o := done[s.Options]
		if o == nil {
			own := *s.Options
			own.Request = r.Name
			o = &own
			done[s.Options] = o
		}
		own := *s
		own.ID, own.Options = base+jobs.ID(i+1), o
		own.ShiftAfter(base)
		stored[i] = &own
	}
	if err := d.cfg.StoreSpecs(stored); err != nil {
		return err
	}
	if r.First == 0 {
		r.First = base + 1
	}
	r.Count += len(stored)
	if !d.send(input{ev: sched.Submit{Specs: stored}}) {
		return errEnded
	}
	d.submitted += len(stored)
	d.send(input{ev: r})
	return nil
}
