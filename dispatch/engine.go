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

// input is an input of the engine: an event for the core, a notice to record, or a function to call
// in the engine's goroutine.
type input struct {
	ev             sched.Event
	from           *agent // sender of ev; nil: no agent
	weight         int    // of ev among what from may have in the queue
	numDisconnects int    // number of Disconnects that the agent had carried out
	notice         *Notice
	call           func(*engine)
}

// engine holds the state of the goroutine that owns the core. Only that goroutine uses these
// fields.
type engine struct {
	d            *Dispatcher
	cfg          *Config
	core         *sched.Core
	loop         *commit.Loop
	writer       writer
	agents       map[string]*agent
	start        time.Time     // origin of Time.Mono
	inspectToken chan struct{} // holds a token while the shared directory is being read
	rate         rate
	history      history
	clockOffsets map[string]time.Duration // how far a host's clock was ahead of ours when it came up

	reports []input       // reports of attempts for the next step of the core
	events  []sched.Event // their events

	pendingResults []*Result // results whose records have not been passed to the journal
	writingResults []*Result // results whose records are being written
	pendingAnswers []string  // requests whose answers have not been passed to the journal
	writingAnswers []string  // requests whose answers are being written

	finish    *sched.Finish
	inputOpen bool // Submit.Last has not been received
	fencedBy  int  // epoch of the dispatcher that has taken the run over; 0: none
	retries   int  // see Snapshot.Retries

	unpacked unpacked // see Packing

	fenceClaims map[string]int // epochs that hosts claim to serve, by host; see checkFenceClaim

	checkingSince   time.Time // start of the current check of run directory and fence; zero: none
	heartbeatAt     time.Time // start of the check that wrote the last heartbeat in the owner file
	heartbeatFailed bool      // it is reported that the owner file cannot be written
	ownedAt         time.Time // when the run was last known to be ours
	numMissed       int       // consecutive checks that found the run directory deleted
	deleted         bool      // the run directory is reported as deleted

	leaving       bool
	leaveDeadline time.Time       // latest end of leaving the hosts
	ended         map[string]bool // agents that have ended, by host
	numLeaving    int             // number of agents of removed hosts that have not ended yet
	unclean       []string        // names of hosts that could not be left clean
}

// maxBatch bounds the number of events that share one fsync.
const maxBatch = 1024

func newEngine(d *Dispatcher) *engine {
	e := &engine{d: d, cfg: &d.cfg, start: time.Now(), ownedAt: time.Now(), inspectToken: make(chan struct{}, 1),
		agents:       map[string]*agent{},
		fenceClaims:  map[string]int{},
		clockOffsets: map[string]time.Duration{},
		ended:        map[string]bool{},
		inputOpen:    true}
	e.core = sched.New(d.cfg.Sched, d.cfg.Table, d.cfg.Inventory)
	e.loop = commit.New(e.core, d.cfg.Journal)
	e.writer = newWriter(d)
	if d.cfg.PackFiles > 0 {
		e.unpacked = countUnpacked(d.cfg.Table)
	}
	e.loop.OnRecord = e.onRecord
	e.loop.Notify = func(text string) {
		e.notify(Notice{At: time.Now(), Text: text})
	}
	e.history.hosts = map[string]*hostHistory{}
	for _, h := range e.core.HostSpecs() {
		e.addAgent(h)
	}
	return e
}

// addAgent makes the agent of a host. The caller runs it.
func (e *engine) addAgent(h *hosts.Host) *agent {
	a := newAgent(e.d, h)
	e.agents[h.Name] = a
	if e.history.hosts[h.Name] == nil {
		e.history.hosts[h.Name] = new(hostHistory)
	}
	return a
}

func (e *engine) now() sched.Time {
	t := time.Now()
	// Sub uses the monotonic clock, which stands still while the machine sleeps.
	return sched.Time{Mono: t.Sub(e.start), Wall: jobs.StampOf(t)}
}

// run is the commit loop. It waits for inputs, steps the core with all that have arrived, has its
// records made durable with one fsync, and then releases results and commands.
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
	keep := time.NewTicker(housekeepingInterval)
	defer keep.Stop()
	e.step(sched.Tick{})
	e.commit()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch int
	for !e.mayEnd() {
		timer.Reset(e.sleepTime())
		select {
		case in := <-e.d.inputs:
			e.handle(in)
			for batch = 1; batch < maxBatch; batch++ {
				select {
				case in := <-e.d.inputs:
					e.handle(in)
					continue
				default:
				}
				break
			}
		case <-timer.C:
			e.step(sched.Tick{})
		case <-keep.C:
			e.housekeeping()
			e.history.sample(e, e.now())
		}
		e.commit()
	}
	e.close()
}

// housekeepingInterval is the interval at which the engine shows that it is alive. The core
// considers a longer pause between two steps as a stall.
const housekeepingInterval = 3 * time.Second

// sleepTime returns how long the engine may sleep if no input arrives.
func (e *engine) sleepTime() time.Duration {
	wait := time.Hour
	if at, ok := e.loop.Next(); ok {
		wait = max(0, at-e.now().Mono)
	}
	if e.leaving { // the core gets no ticks; the journal may have to be written again
		wait = min(max(wait, time.Second), max(0, time.Until(e.leaveDeadline)))
	}
	return wait
}

// handle handles an input.
func (e *engine) handle(in input) {
	switch in.ev.(type) {
	case sched.AttemptsStarted, sched.AttemptsEnded:
		e.reports = append(e.reports, in)
		return
	}
	e.stepReports()
	defer in.release()
	switch {
	case in.from != nil && (e.agents[in.from.name] != in.from || in.numDisconnects != in.from.numDisconnects):
		// It comes from a link that the core has given up. The next link may lead to another
		// machine.
	case in.ev != nil:
		e.step(in.ev)
	case in.notice != nil:
		e.recordNotice(*in.notice)
	case in.call != nil:
		in.call(e)
	}
}

// stepReports passes all waiting reports of attempts to the core in one step, because each step
// examines all hosts.
func (e *engine) stepReports() {
	if len(e.reports) == 0 {
		return
	}
	for _, in := range e.reports {
		e.events = append(e.events, in.ev)
	}
	if e.fencedBy == 0 { // otherwise the decisions of this dispatcher do not count any more
		e.loop.Step(e.now(), e.events...)
		Signal(e.d.signals.Changes)
	}
	for _, in := range e.reports {
		in.release()
	}
	clear(e.events)
	clear(e.reports)
	e.events, e.reports = e.events[:0], e.reports[:0]
}

// step passes one event to the core, and keeps the resulting records and commands.
func (e *engine) step(ev sched.Event) {
	switch ev := ev.(type) {
	case sched.Tick:
		// The links of hosts that have left are closed. The core would consider these hosts lost while
		// the dispatcher waits for others.
		if e.leaving {
			return
		}
	case sched.HostUp:
		if at := ev.Hello.WallClock; at != 0 {
			e.clockOffsets[ev.Host] = at.Sub(e.now().Wall)
		}
	case sched.Drain:
		if e.deleted { // the ends of jobs cannot be recorded, so there is nothing to wait for
			e.step(sched.Stop{Why: ev.Why})
			return
		}
	case sched.Submit:
		e.inputOpen = e.inputOpen && !ev.Last
	case sched.Request:
		// Its file stays for the next dispatcher.
		if e.finish != nil || e.leaving || e.fencedBy > 0 {
			return
		}
		for i, do := range ev.Do {
			if drain, ok := do.(sched.Drain); ok && e.deleted { // for the same reason
				ev.Do[i] = sched.Stop{Why: drain.Why}
			}
		}
	}
	if e.fencedBy > 0 {
		return
	}
	switch in := ev.(type) {
	case sched.HostDown:
		ev = e.checkFenceClaim(in)
	case sched.HostUp:
		if a := e.agents[in.Host]; a != nil {
			a.uptime.Store(0) // the previous heartbeat may be from an earlier boot
		}
		in.Unowned = !e.mayLease()
		ev = in
	case sched.HostHeartbeat:
		in.Unowned = !e.mayLease()
		ev = in
	}
	e.loop.Step(e.now(), ev)
	switch ev.(type) {
	case sched.Tick, sched.Acked:
	case sched.HostHeartbeat:
		Signal(e.d.signals.Reports)
	default:
		Signal(e.d.signals.Changes)
	}
	switch ev := ev.(type) {
	case sched.HostUp:
		delete(e.fenceClaims, ev.Host)
		if !ev.Unowned {
			e.confirm(ev.Host, ev.Hello.Uptime)
		}
	case sched.HostHeartbeat:
		if !ev.Unowned {
			e.confirm(ev.Host, ev.Heartbeat.Uptime)
		}
		e.handleReports(ev)
	}
}

// handleReports passes on the lines that attempts of a host have written to DCS_REPORT. An attempt
// may have ended in the meantime, for example while no dispatcher ran.
func (e *engine) handleReports(ev sched.HostHeartbeat) {
	if e.cfg.OnReport == nil || !e.core.Linked(ev.Host) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(ev.Heartbeat.Reports)) {
		id, err := jobs.ParseAttemptID(name)
		if err != nil {
			continue
		}
		t := e.core.Table()
		if a := t.Attempt(id); a != nil && a.Host == ev.Host && (a.State.Open() || a.State == jobs.AttemptExited) {
			for _, v := range e.cfg.OnReport(id.Job, t.Job(id.Job).State.Terminal(), ev.Heartbeat.Reports[name]) {
				e.loop.RecordEvent(v.Event(jobs.StampOf(time.Now()), id.Job))
			}
		}
	}
}

// mayLease reports whether a lease of a host may begin. The next dispatcher relies on the expiry of
// leases, so none may begin once this dispatcher may have lost the run.
func (e *engine) mayLease() bool { return time.Since(e.ownedAt) <= sched.OwnershipTime }

// confirm makes leases of a host start at a heartbeat that the core has handled. It does nothing if
// the core has given up the link.
func (e *engine) confirm(host string, uptime time.Duration) {
	if a := e.agents[host]; a != nil && e.core.Linked(host) {
		a.uptime.Store(int64(uptime))
	}
}

// recordNotice records a notice in the journal as an event and notifies the listener.
func (e *engine) recordNotice(n Notice) {
	if n.At.IsZero() {
		n.At = time.Now()
	}
	e.loop.RecordEvent(jobs.Record{Kind: jobs.KindEvent, At: jobs.StampOf(n.At), Host: n.Host, Job: n.Job,
		Reason: n.Text})
	e.history.setNote(n.Host, n.Text)
	Signal(e.d.signals.Changes)
	e.notify(n)
}

// commit ends a turn. It passes records to the journal, and releases commands that need no record.
func (e *engine) commit() {
	e.stepReports()
	if e.fencedBy > 0 {
		return
	}
	e.holdForFiles()
	now := e.now()
	if batch, ok := e.loop.Flush(now); ok {
		e.writingResults = append(e.writingResults, e.pendingResults...)
		e.writingAnswers = append(e.writingAnswers, e.pendingAnswers...)
		e.pendingResults, e.pendingAnswers = nil, nil
		e.writer.write(batch)
	}
	e.carryOut(e.loop.Idle(now))
}

// handleWritten handles the result of writing a batch, and releases the commands that waited for
// it.
func (e *engine) handleWritten(err error) {
	e.writer.isBusy = false
	if e.fencedBy > 0 {
		return
	}
	out := e.loop.Flushed(e.now(), err)
	Signal(e.d.signals.Durable)
	if out.FencedBy > 0 {
		e.stopFenced(out.FencedBy)
		return
	}
	if out.Durable {
		e.publishDurable(e.writingResults, e.writingAnswers)
		e.writingResults, e.writingAnswers = nil, nil
	}
	e.carryOut(out)
}

// writer makes records durable in a goroutine of its own, one batch at a time, so that a hung
// disk does not block the engine.
type writer struct {
	work   chan []jobs.Record
	isBusy bool // a batch is being written; owned by the engine goroutine
}

func newWriter(d *Dispatcher) writer {
	w := writer{work: make(chan []jobs.Record, 1)}
	go func() {
		for batch := range w.work {
			err := commit.Write(d.cfg.Journal, batch)
			// The engine reads until this arrives.
			d.inputs <- input{call: func(e *engine) { e.handleWritten(err) }}
		}
	}()
	return w
}

// write writes a batch. The engine calls it again only after the result has come.
func (w *writer) write(batch []jobs.Record) {
	w.isBusy = true
	w.work <- batch
}

// end ends the goroutine.
func (w *writer) end() { close(w.work) }
