package dispatch

import (
	"maps"
	"slices"
	"time"

	"dcs-tui/dispatch/commit"
	"dcs-tui/dispatch/sched"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// input is one thing for the engine: an event for the core, a notice to write
// down, or something to do in the engine's own goroutine.
type input struct {
	ev     sched.Event
	from   *agent // whose ev is; nil: of nobody
	cuts   int    // Disconnects that it had obeyed
	notice *Notice
	call   func(*engine)
}

// engine is the goroutine that owns the core. Every field is its alone.
type engine struct {
	d      *Dispatcher
	cfg    *Config
	core   *sched.Core
	loop   *commit.Loop
	agents map[string]*agent
	mount  mount // looks at the shared directory from here
	start  time.Time
	rate   rate
	past   past
	ahead  map[string]time.Duration // by host: what its clock is ahead of ours, as it came up

	reports []sched.Event // of attempts, for the next step of the core

	shown    []*Result // results whose records wait to be written
	showing  []*Result // results whose records are with the journal
	answers  []string  // requests whose answers wait to be written
	answered []string  // requests whose answers are with the journal
	writer   writer
	keeping  time.Time // since when the owner file and the fence are being looked after; zero: they are not
	finish   *sched.Finish
	more     bool // Submit.Last has not been seen
	fencedBy int
	retries  int       // for snapshot
	missed   int       // consecutive checks that found the run directory deleted
	deleted  bool      // the run directory is reported as deleted
	beatAt   time.Time // last beat of the owner file
	ownedAt  time.Time // when the run was last seen to be ours
	leaving  bool
	deadline time.Time // when leaving: wait for the hosts no longer than this
	gone     int       // agents that have ended
	parting  int       // agents of hosts that have left the run, which have not ended yet
	unclean  []string  // hosts that could not be left clean
}

// maxBatch bounds the events that share one fsync.
const maxBatch = 1024

func newEngine(d *Dispatcher) *engine {
	e := &engine{d: d, cfg: &d.cfg, start: d.start, ownedAt: time.Now(), agents: map[string]*agent{}, ahead: map[string]time.Duration{}, more: true}
	e.core = sched.New(d.cfg.Sched, d.cfg.Table, d.cfg.Hosts)
	e.loop = commit.New(e.core, d.cfg.Journal)
	e.writer = newWriter(d)
	e.loop.See = e.see
	e.loop.Tell = func(text string) {
		e.tell(Notice{At: time.Now(), Text: text})
	}
	e.mount = newMount(d)
	e.past.hosts = map[string]*hostPast{}
	for _, h := range d.cfg.Hosts {
		e.addAgent(h)
	}
	return e
}

// addAgent makes the agent of a host; the caller runs it.
func (e *engine) addAgent(h *hosts.Host) *agent {
	a := newAgent(e.d, h)
	e.agents[h.Name] = a
	if e.past.hosts[h.Name] == nil {
		e.past.hosts[h.Name] = new(hostPast)
	}
	return a
}

func (e *engine) now() sched.Time {
	t := time.Now()
	// Sub uses the monotonic clock, which stands still while the machine sleeps.
	return sched.Time{Mono: t.Sub(e.start), Wall: jobs.StampOf(t)}
}

// run is the loop: wait, drain what waits, step each, append, fsync once, then
// let results and commands go.
func (e *engine) run() {
	defer func() {
		e.d.last = e.liveView()
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
			e.past.look(e, e.now())
		}
		e.commit()
	}
	e.close()
}

// wait returns how long nothing needs to be done if nothing happens.
func (e *engine) wait() time.Duration {
	wait := time.Hour
	if at, ok := e.loop.Next(); ok {
		wait = max(0, at-e.now().Mono)
	}
	if e.leaving {
		wait = min(wait, max(0, time.Until(e.deadline)))
	}
	return wait
}

func (e *engine) take(in input) {
	switch in.ev.(type) {
	case sched.AttemptsStarted, sched.AttemptsEnded:
		e.reports = append(e.reports, in.ev)
		return
	}
	e.stepReports()
	switch {
	case in.from != nil && (e.agents[in.from.name] != in.from || in.cuts != in.from.disconnects):
		// Of a link that the core has given up: the next one may lead to another machine.
	case in.ev != nil:
		e.step(in.ev)
	case in.notice != nil:
		e.note(*in.notice)
	case in.call != nil:
		in.call(e)
	}
}

// stepReports gives the core what hosts have reported of attempts. Deciding what follows
// takes the core a look at all hosts, so it is done once for all reports that wait.
func (e *engine) stepReports() {
	if len(e.reports) == 0 {
		return
	}
	if e.fencedBy == 0 { // else nothing that this dispatcher decides counts any more
		e.loop.Step(e.now(), e.reports...)
		signal(e.d.signals.changed)
	}
	clear(e.reports)
	e.reports = e.reports[:0]
}

// step gives one event to the core and gathers what it decided.
func (e *engine) step(ev sched.Event) {
	switch ev := ev.(type) {
	case sched.HostUp:
		if at := ev.Hello.WallClock; at != 0 {
			e.ahead[ev.Host] = at.Sub(e.now().Wall)
		}
	case sched.Drain:
		if e.deleted { // ends of jobs cannot be recorded, so there is nothing to wait for
			e.step(sched.Stop(ev))
			return
		}
	case sched.Submit:
		e.more = e.more && !ev.Last
	case sched.Request:
		if e.finish != nil || e.leaving || e.fencedBy > 0 { // it stays where it was left, for the next dispatcher
			return
		}
		for i, do := range ev.Do {
			if drain, ok := do.(sched.Drain); ok && e.deleted { // as above
				ev.Do[i] = sched.Stop(drain)
			}
		}
	}
	if by := sched.FencedBy(ev); by > 0 {
		e.fenced(by)
	}
	if e.fencedBy > 0 { // nothing that this dispatcher decides counts any more
		return
	}
	e.loop.Step(e.now(), ev)
	switch ev.(type) {
	case sched.Tick, sched.Acked:
	case sched.HostBeat:
		signal(e.d.signals.reported)
	default:
		signal(e.d.signals.changed)
	}
	switch ev := ev.(type) {
	case sched.HostUp:
		if a := e.agents[ev.Host]; a != nil {
			a.uptime.Store(0) // what was confirmed before may be of another boot
		}
		e.confirm(ev.Host, ev.Hello.Uptime)
	case sched.HostBeat:
		e.confirm(ev.Host, ev.Beat.Uptime)
		e.reported(ev)
	}
}

// reported passes on what attempts of a host have reported. An attempt may have ended in the
// meantime, for example while no dispatcher ran.
func (e *engine) reported(ev sched.HostBeat) {
	if e.cfg.Reported == nil || !e.core.Linked(ev.Host) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(ev.Beat.Reports)) {
		id, err := jobs.ParseAttemptID(name)
		if err != nil {
			continue
		}
		t := e.core.Table()
		if a := t.Attempt(id); a != nil && a.Host == ev.Host && (a.State.Open() || a.State == jobs.AttemptExited) {
			for _, why := range e.cfg.Reported(id.Job, t.Job(id.Job).State.Terminal(), ev.Beat.Reports[name]) {
				e.loop.Note(jobs.Record{Kind: jobs.KindEvent, At: jobs.StampOf(time.Now()), Job: id.Job, Reason: why})
			}
		}
	}
}

// confirm lets a host's leases be counted from a heartbeat that the core has
// seen, unless the core has given the link up in the meantime, or the run may not be ours
// any more: the next dispatcher counts on leases that run out.
func (e *engine) confirm(host string, uptime time.Duration) {
	if a := e.agents[host]; a != nil && e.core.Linked(host) && time.Since(e.ownedAt) <= sched.OwnerFor {
		a.uptime.Store(int64(uptime))
	}
}

// note writes a notice into the journal as an event and tells the listener.
func (e *engine) note(n Notice) {
	if n.At.IsZero() {
		n.At = time.Now()
	}
	e.loop.Note(jobs.Record{Kind: jobs.KindEvent, At: jobs.StampOf(n.At), Host: n.Host, Job: n.Job, Reason: n.Text})
	e.past.told(n.Host, n.Text)
	signal(e.d.signals.changed)
	e.tell(n)
}

// commit ends a turn: what was decided goes to the journal, results and commands go
// when it has their records.
func (e *engine) commit() {
	e.stepReports()
	if e.fencedBy > 0 {
		return
	}
	now := e.now()
	if batch, ok := e.loop.Flush(now); ok {
		e.showing = append(e.showing, e.shown...)
		e.answered = append(e.answered, e.answers...)
		e.shown, e.answers = nil, nil
		e.writer.write(batch)
	}
	e.release(e.loop.Idle(now))
}

// written handles the result of writing a batch.
func (e *engine) written(err error) {
	e.writer.busy = false
	if e.fencedBy > 0 {
		return
	}
	out := e.loop.Flushed(e.now(), err)
	signal(e.d.signals.durable)
	if out.FencedBy > 0 {
		e.fenced(out.FencedBy)
		return
	}
	if out.Durable {
		e.durable(e.showing, e.answered)
		e.showing, e.answered = nil, nil
	}
	e.release(out)
}
