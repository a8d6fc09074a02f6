package dispatch

import (
	"errors"
	"fmt"
	"time"

	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// input is one thing for the engine: an event for the core, a notice to write
// down, or something to do in the engine's own goroutine.
type input struct {
	ev     sched.Event
	notice *Notice
	call   func(*engine)
}

// engine is the goroutine that owns the core. Every field is its alone.
type engine struct {
	d      *Dispatcher
	cfg    *Config
	core   *sched.Core
	agents map[string]*agent
	start  time.Time
	rate   rate

	pending  []jobs.Record // appended, to be made visible when durable
	held     []sched.Order // orders that wait until their records are durable
	shown    []*Result     // results that wait until their records are durable
	finish   *sched.Finish
	ended    *jobs.Record // that the run is over, not yet in the journal; nil if there is nothing to say
	more     bool         // Submit.Last has not been seen
	paused   bool         // by a person
	journal  error        // why the journal cannot be written, nil if it can
	retryAt  time.Time    // when to try it again
	fencedBy int
	beatAt   time.Time // last beat of the owner file
	leaving  bool
	deadline time.Time // when leaving: wait for the hosts no longer than this
	gone     int       // agents that have ended
	unclean  []string  // hosts that could not be left clean
}

// maxBatch bounds the events that share one fsync.
const maxBatch = 1024

func newEngine(d *Dispatcher) *engine {
	e := &engine{d: d, cfg: &d.cfg, start: time.Now(), agents: map[string]*agent{}, more: true}
	e.core = sched.New(d.cfg.Sched, d.cfg.Table, d.cfg.Hosts)
	for _, h := range d.cfg.Hosts {
		e.agents[h.Name] = newAgent(d, h)
	}
	return e
}

func (e *engine) now() sched.Time {
	t := time.Now()
	// Sub uses the monotonic clock, which stands still while the machine sleeps.
	return sched.Time{Mono: t.Sub(e.start), Wall: jobs.StampOf(t)}
}

// run is the loop: wait, drain what waits, step each, append, fsync once, then
// let results and orders go.
func (e *engine) run() {
	defer func() {
		e.d.results.end()
		close(e.d.done)
	}()
	e.redeliver()
	for _, a := range e.agents {
		go a.run()
	}
	keep := time.NewTicker(3 * time.Second)
	defer keep.Stop()
	e.step(sched.Tick{})
	e.commit()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch int
	for !e.over() {
		timer.Reset(e.wait())
		select {
		case in := <-e.d.inputs:
			e.take(in)
			for batch = 1; batch < maxBatch; batch++ {
				select {
				case in := <-e.d.inputs:
					e.take(in)
					continue
				default:
				}
				break
			}
		case <-timer.C:
			e.step(sched.Tick{})
		case <-keep.C:
			e.housekeeping()
		}
		e.commit()
	}
	e.close()
}

// wait says how long nothing needs to be done if nothing happens.
func (e *engine) wait() time.Duration {
	wait := time.Hour
	if at, ok := e.core.Next(); ok {
		wait = max(0, at-e.now().Mono)
	}
	if e.journal != nil {
		wait = min(wait, max(0, time.Until(e.retryAt)))
	}
	if e.leaving {
		wait = min(wait, max(0, time.Until(e.deadline)))
	}
	return wait
}

func (e *engine) take(in input) {
	switch {
	case in.ev != nil:
		e.step(in.ev)
	case in.notice != nil:
		e.note(*in.notice)
	case in.call != nil:
		in.call(e)
	}
}

// step gives one event to the core and gathers what it decided.
func (e *engine) step(ev sched.Event) {
	switch ev := ev.(type) {
	case sched.Submit:
		e.more = e.more && !ev.Last
	case sched.HostRefused:
		if ev.Msg.FencedBy > 0 {
			e.fenced(ev.Msg.FencedBy)
		}
	case sched.HostDown:
		var fenced *hosts.FencedError
		if errors.As(ev.Err, &fenced) {
			e.fenced(fenced.By)
		}
	}
	if e.fencedBy > 0 { // nothing that this dispatcher decides counts any more
		return
	}
	records, orders := e.core.Step(e.now(), ev)
	switch ev := ev.(type) {
	case sched.HostUp:
		e.confirm(ev.Host, ev.Hello.Uptime)
	case sched.HostBeat:
		e.confirm(ev.Host, ev.Beat.Uptime)
	}
	for i := range records {
		r := &records[i]
		e.see(r)
		if r.Kind == jobs.KindEnded { // written when the hosts have been left clean
			e.ended = r
			continue
		}
		e.pending = append(e.pending, *r)
	}
	e.held = append(e.held, orders...)
}

// confirm lets a host's leases be counted from a sign of life that the core has
// seen, unless the core has given the link up meanwhile.
func (e *engine) confirm(host string, uptime time.Duration) {
	if a := e.agents[host]; a != nil && e.core.Linked(host) {
		a.uptime.Store(int64(uptime))
	}
}

// pause is what a person asked for; a journal that cannot be written pauses too.
func (e *engine) pause(on bool) {
	e.paused = on
	e.step(sched.Pause{On: on || e.journal != nil})
}

// note writes a notice into the journal as an event and tells the listener.
func (e *engine) note(n Notice) {
	if n.At.IsZero() {
		n.At = time.Now()
	}
	e.pending = append(e.pending, jobs.Record{
		Kind: jobs.KindEvent, At: jobs.StampOf(n.At), Host: n.Host, Job: n.Job, Reason: n.Text,
	})
	e.tell(n)
}

// commit makes the pending records durable and then lets results and orders
// go. While the journal cannot be written nothing is launched and no result is
// shown; everything else goes on, and the records wait.
func (e *engine) commit() {
	if e.fencedBy > 0 {
		e.pending, e.held = nil, nil
		return
	}
	if e.journal != nil && time.Now().Before(e.retryAt) {
		e.release(false)
		return
	}
	for first := true; first || len(e.pending) > 0; first = false {
		var err error
		if len(e.pending) > 0 {
			err = e.cfg.Journal.Append(e.pending)
			e.pending = e.pending[:0]
		} else if e.journal == nil {
			break
		}
		if err == nil {
			err = e.cfg.Journal.Sync()
		}
		e.journalState(err) // may decide more, whose records come first
		if err != nil {
			break
		}
	}
	e.release(e.journal == nil)
}

// journalState notes that the journal stopped or went on working. While it does
// not, the core launches nothing, and what it had decided to launch goes back to
// the queue: it was never sent.
func (e *engine) journalState(err error) {
	was := e.journal
	e.journal = err
	switch {
	case err != nil && was == nil:
		e.tell(Notice{At: time.Now(), Text: fmt.Sprintf("nothing is launched until the journal can be written again: %v", err)})
		e.step(sched.Pause{On: true})
		e.takeBack()
	case err == nil && was != nil:
		e.tell(Notice{At: time.Now(), Text: "the journal can be written again; launching goes on"})
		e.step(sched.Pause{On: e.paused})
	}
	if err != nil {
		e.retryAt = time.Now().Add(time.Second)
	}
}

// takeBack withdraws launches whose records are not durable and which so have
// not left this goroutine.
func (e *engine) takeBack() {
	held := e.held
	e.held = nil
	for _, o := range held {
		launch, ok := o.(sched.Launch)
		if !ok {
			e.held = append(e.held, o)
			continue
		}
		ids := make([]jobs.AttemptID, len(launch.Jobs))
		for i, p := range launch.Jobs {
			ids[i] = p.Attempt
		}
		e.step(sched.AttemptsWithdrawn{Host: launch.Host, Msg: &hosts.Withdrawn{
			Attempts: ids, Why: "the journal could not be written before it was sent"}})
	}
}
