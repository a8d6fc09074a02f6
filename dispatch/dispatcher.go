package dispatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Dispatcher is a running dispatcher. Its methods may be called from any
// goroutine; they reach the engine through its input channel.
type Dispatcher struct {
	cfg      Config
	inputs   chan input
	done     chan struct{} // closed when the engine goroutine has ended
	finished chan struct{} // closed when the core has finished for the first time
	results  *completions
	answers  *answers
	here     *rundir.FileReader
	returns  returns
	signals  signals
	start    time.Time // Time.Mono counts from here
	last     liveView  // at the end; written by the engine before done is closed

	submit    sync.Mutex // one submitter at a time: ids follow each other
	submitted int        // jobs handed to the core, guarded by submit

	closeOnce sync.Once
	finish    sched.Finish // written by the engine before done is closed
	finishErr error
}

// errEnded is returned to callers that come after the dispatcher has ended.
var errEnded = errors.New("the dispatcher has ended")

// Start begins: it connects to the hosts and asks them about every open attempt
// of the table. It returns at once.
func Start(cfg Config) (*Dispatcher, error) {
	d := &Dispatcher{
		cfg:       cfg,
		inputs:    make(chan input, 1024),
		done:      make(chan struct{}),
		finished:  make(chan struct{}),
		results:   newCompletions(),
		answers:   newAnswers(cfg.Table.Requests),
		here:      rundir.NewFileReader(),
		signals:   newSignals(),
		start:     time.Now(),
		submitted: len(cfg.Table.Specs), // the core accepts what is stored
	}
	e := newEngine(d)
	go e.run()
	return d, nil
}

// Submit stores jobs durably and hands them to the core, numbering them after
// those the run has (Spec.ID is set here). last says that no more will come.
func (d *Dispatcher) Submit(specs []*jobs.Spec, last bool) error {
	return d.SubmitNumbered(specs, last, nil)
}

// SubmitNumbered is Submit for jobs that name each other: before they are stored it calls
// number, unless that is nil, with the number that the first of them gets.
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

// Next returns the next result in completion order. It waits until there is
// one, ctx is done (ctx.Err()), or the run is over and all were taken (io.EOF).
// Results that an earlier dispatcher had not had acknowledged come first.
func (d *Dispatcher) Next(ctx context.Context) (*Result, error) { return d.results.next(ctx) }

// Ack records that the consumer has every result up to seq.
func (d *Dispatcher) Ack(seq int64) { d.send(input{ev: sched.Acked{Seq: seq}}) }

// Epoch returns the epoch of this dispatcher.
func (d *Dispatcher) Epoch() int { return d.cfg.Open.Epoch }

// Do hands an event to the core: a Request, or what the program itself decides.
func (d *Dispatcher) Do(ev sched.Event) {
	d.send(input{ev: ev})
}

// SetHosts gives the complete set of hosts that the run is to use from now on; see
// sched.SetHosts. It returns when the core has it, and the error of ctx or that the
// dispatcher has ended. The hosts must not be changed afterwards.
func (d *Dispatcher) SetHosts(ctx context.Context, list []*hosts.Host) error {
	return d.within(ctx, func(e *engine) { e.step(sched.SetHosts{Hosts: list}) })
}

// Snapshot returns a picture of the run as it is now, nil after the end.
func (d *Dispatcher) Snapshot() *Snapshot {
	var s *Snapshot
	d.call(func(e *engine) { s = e.snapshot() })
	return s
}

// Finished is closed when the core has finished; results may remain to be taken.
func (d *Dispatcher) Finished() <-chan struct{} { return d.finished }

// Close ends the dispatcher after it has finished (or stops it: running jobs go
// on), takes leave of the hosts, and returns how the run ended.
func (d *Dispatcher) Close() (sched.Finish, error) {
	d.closeOnce.Do(func() { d.send(input{call: (*engine).leave}) })
	<-d.done
	return d.finish, d.finishErr
}

// send hands an input to the engine; false means that it has ended.
func (d *Dispatcher) send(in input) bool {
	select {
	case <-d.done:
		return false
	default:
	}
	select {
	case d.inputs <- in:
		return true
	case <-d.done:
		return false
	}
}

// call runs f in the engine's goroutine and waits for it; false means that the
// engine has ended and f has not run.
func (d *Dispatcher) call(f func(*engine)) bool { return d.within(context.Background(), f) == nil }

// Ended is closed when the dispatcher has ended: nothing can be asked of it any more.
func (d *Dispatcher) Ended() <-chan struct{} { return d.done }

// within runs f in the engine's goroutine and waits for it. It returns errEnded if the
// engine has ended and f has not run, and the error of ctx if that ends first: f may
// still run later.
func (d *Dispatcher) within(ctx context.Context, f func(*engine)) error {
	ran := make(chan struct{})
	in := input{call: func(e *engine) { f(e); close(ran) }}
	select {
	case <-d.done:
		return errEnded
	default:
	}
	select {
	case d.inputs <- in:
	case <-d.done:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
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
