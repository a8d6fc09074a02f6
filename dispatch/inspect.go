package dispatch

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// Inside is what a function given to Inspect may look at, in the engine's own
// goroutine: it changes nothing, keeps no pointer into it but to what is never
// changed (Spec, Outcome), and takes no more than about a millisecond.
type Inside struct {
	Now   sched.Time
	Core  *sched.Core
	Table *jobs.Table

	e *engine
}

// Inspect runs f in the engine's goroutine and waits for it. When ctx ends first, f
// may still run later. The error is that of ctx, or says that the dispatcher has ended.
// A panic of f is the caller's: whoever looks must not end the run.
func (d *Dispatcher) Inspect(ctx context.Context, f func(*Inside)) error {
	fault := make(chan any, 1)
	err := d.inside(ctx, func(in *Inside) {
		defer func() {
			if p := recover(); p != nil {
				fault <- fmt.Sprintf("%v (in the engine)\n%s", p, debug.Stack())
			}
		}()
		f(in)
	})
	select {
	case p := <-fault:
		panic(p)
	default:
		return err
	}
}

// inside is Inspect for what changes something: a panic there ends the dispatcher,
// whose state could be anything then; the next one carries on from the journal.
func (d *Dispatcher) inside(ctx context.Context, f func(*Inside)) error {
	return d.within(ctx, func(e *engine) { f(&Inside{Now: e.now(), Core: e.core, Table: e.core.Table(), e: e}) })
}

// Ended is closed when the dispatcher has ended: nothing can be asked of it any more.
func (d *Dispatcher) Ended() <-chan struct{} { return d.done }

// Run tells what the dispatcher was started with.
func (d *Dispatcher) Run() (uid, name, dir string, created time.Time, epoch int) {
	return d.cfg.RunUID, d.cfg.RunName, d.cfg.RunDir, d.cfg.Created.Time(), d.cfg.Open.Epoch
}

// Status is what is known of the run as a whole.
type Status struct {
	At      time.Time
	More    bool          // more jobs may come
	Paused  bool          // by a person
	Drain   string        // why nothing more is launched until a person continues; "": it is
	Stuck   string        // why no host starts anything though jobs are ready; "": one may
	Problem string        // the journal cannot be written, …: "" if all is well
	Finish  *sched.Finish // nil: it goes on
	Tries   int           // of a job that says nothing itself
	Rate    float64       // finished jobs a second over the last minute
	Rates   []float64     // the same each ten seconds of the last ten minutes, oldest first
	// The run is over in ETA, about two times in three give or take Spread; 0: not known.
	ETA, Spread time.Duration
}

// Status returns a copy of what is known of the run as a whole.
func (in *Inside) Status() Status {
	e := in.e
	s := Status{
		At: in.Now.Wall.Time(), More: e.more, Paused: e.ring.Paused(), Drain: in.Core.Draining(), Stuck: in.Core.Stuck(), Tries: in.Tries(),
		Rate: e.rate.perSecond(in.Now.Mono), Rates: e.rate.history(in.Now.Mono),
	}
	if eta, spread, ok := in.Core.ETA(in.Now); ok {
		s.ETA, s.Spread = eta, spread
	}
	if err := e.problem(in.Now); err != nil {
		s.Problem = err.Error()
	}
	if e.finish != nil {
		f := *e.finish
		s.Finish = &f
	}
	return s
}

// Hosts returns every host of the inventory.
func (in *Inside) Hosts() []Host { return in.e.hosts(in.Now) }

// FilesDir returns the directory that holds attempts/ of a host's attempts: the run
// directory, or "host:dir" when the host does not share it.
func (in *Inside) FilesDir(host string) string {
	if a := in.e.agents[host]; a != nil {
		return a.filesDir(in.e.cfg.RunDir)
	}
	if dir := in.e.cfg.HostDirs[host]; dir != "" {
		return dir
	}
	return in.e.cfg.RunDir
}

// Tries is how many tries a job has that says nothing itself.
func (in *Inside) Tries() int { return in.e.tries() }
