package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"dcs-tui/dispatch/commit"
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// see takes from a record what consumers and people are to be shown. It is
// called while the job still is as the record left it.
func (e *engine) see(r *jobs.Record) {
	if r.Seq > 0 && r.Kind != jobs.KindAcked {
		e.rate.add(e.now().Mono, e.endedAt(r))
		e.shown = append(e.shown, e.result(r.Job))
	}
	switch r.Kind {
	case jobs.KindEvent:
		e.past.told(r.Host, r.Reason)
		e.tell(Notice{At: r.At.Time(), Host: r.Host, Job: r.Job, Text: r.Reason})
	case jobs.KindInventory:
		if e.cfg.InventoryAsked != nil {
			e.cfg.InventoryAsked(r.Host, e.core.Table().Inventory[r.Host])
		}
	case jobs.KindRequest:
		e.answers = append(e.answers, r.Request)
		if r.Reason != "" {
			e.tell(Notice{At: r.At.Time(), Text: fmt.Sprintf("the request %s is refused: %s", r.Request, r.Reason)})
		}
	case jobs.KindInstance:
		e.past.told(r.Host, r.InstanceText())
		e.tell(Notice{At: r.At.Time(), Host: r.Host, Text: r.InstanceText()})
	case jobs.KindCanceling:
		text := "being canceled: " + r.Reason
		if r.How == jobs.ThenRequeue {
			text = "requeued when it has ended"
		}
		e.tell(Notice{At: r.At.Time(), Job: r.Job, Text: text})
	case jobs.KindLost:
		e.tell(Notice{At: r.At.Time(), Host: e.hostOf(r), Job: r.Job,
			Text: fmt.Sprintf("attempt %s lost: %s; the job is %s", r.Attempt(), r.Reason, r.Next)})
	case jobs.KindExited:
		if r.Next == jobs.Queued {
			e.retries++
		}
	}
}

func (e *engine) hostOf(r *jobs.Record) string {
	if a := e.core.Table().Attempt(r.Attempt()); a != nil {
		return a.Host
	}
	return r.Host
}

func (e *engine) tell(n Notice) {
	if e.cfg.Notify != nil {
		e.cfg.Notify(n)
	}
}

// result makes what a consumer gets of a job that has just become terminal.
func (e *engine) result(id jobs.ID) *Result { return e.resultOf(e.core.Table().Job(id)) }

func (e *engine) resultOf(j *jobs.Job) *Result {
	dir := e.cfg.RunDir
	if a := results.Counted(j); a != nil {
		if ag := e.agents[a.Host]; ag != nil {
			dir = ag.filesDir(dir)
		}
	}
	r := results.FromJob(e.cfg.RunUID, e.cfg.RunName, e.cfg.Created, dir, j)
	return &r
}

// redeliver hands out what an earlier dispatcher of this run had not had
// acknowledged (promise 1: at least once), also of rounds that are past.
func (e *engine) redeliver() {
	t := e.cfg.Table
	if t.Acked >= t.Seq {
		return
	}
	var rs []*Result
	for i := range t.Past {
		rs = append(rs, e.resultOf(&t.Past[i]))
	}
	for i := range t.Jobs {
		if j := &t.Jobs[i]; j.State.Terminal() && j.Seq > t.Acked {
			rs = append(rs, e.resultOf(j))
		}
	}
	slices.SortFunc(rs, func(a, b *Result) int { return cmp.Compare(a.Seq, b.Seq) })
	e.d.results.put(rs)
}

// Redeliver hands out the result of a job once more, if it has one up to number seq.
func (d *Dispatcher) Redeliver(id jobs.ID, seq int64) {
	d.call(func(e *engine) {
		if j := e.core.Table().Job(id); j != nil && j.State.Terminal() && j.Seq <= seq {
			d.results.put([]*Result{e.resultOf(j)})
		}
	})
}

// release carries commands out.
func (e *engine) release(out commit.Out) {
	for _, o := range out.Commands {
		a := e.agents[o.To()]
		switch o := o.(type) {
		case sched.Configure:
			if a != nil {
				a.host.Store(o.Spec)
			} else if !e.leaving {
				go e.addAgent(o.Spec).run()
			}
			continue
		case sched.Leave:
			e.part(a)
			continue
		}
		if a != nil {
			if _, cut := o.(sched.Disconnect); a.give(o) && cut {
				a.disconnects++
			}
			continue
		}
		switch o := o.(type) {
		case sched.Finish:
			e.end(o)
		case sched.Look:
			if o.Via == "" {
				e.mount.look(o)
			}
		case sched.CreateInstance, sched.TerminateInstance, sched.ListInstances, sched.FetchInstance, sched.UseInstances:
			if e.cfg.Provide != nil {
				e.cfg.Provide(o)
			}
		}
	}
}

// end records that the core has nothing left to do.
func (e *engine) end(f sched.Finish) {
	if e.finish == nil && e.core.Outdated(f) {
		return
	}
	if e.finish == nil {
		close(e.d.finished)
	}
	e.finish = &f
	e.d.results.end()
	signal(e.d.signals.changed)
}

// fenced stops everything: another dispatcher owns the run. Nothing more is
// written, launched or killed by this one.
func (e *engine) fenced(by int) {
	if e.fencedBy > 0 {
		return
	}
	e.fencedBy = by
	why := fmt.Sprintf("another dispatcher has taken this run over (epoch %d); this one stops and changes nothing more", by)
	e.tell(Notice{At: time.Now(), Text: why})
	e.loop.Fence()
	e.shown, e.showing = nil, nil
	e.end(sched.Finish{How: sched.Fenced, Why: why, Epoch: by})
}

// ownerEvery is how often the owner file gets a heartbeat.
const ownerEvery = 10 * time.Second

// housekeeping shows that we are alive and looks whether we still own the run, apart
// from this goroutine: the run directory may hang.
func (e *engine) housekeeping() {
	if e.fencedBy > 0 {
		return
	}
	e.step(sched.Tick{}) // the core takes a longer pause for a stall of ours
	if !e.keeping.IsZero() {
		if now := e.now(); time.Since(e.keeping) >= commit.HungAfter && e.loop.Problem(now) == nil {
			e.loop.Obstruct(now, errors.New("the run directory has not answered for some seconds"))
		}
		return
	}
	e.keeping = time.Now()
	beat := time.Since(e.beatAt) >= ownerEvery
	if beat {
		e.beatAt = time.Now()
	}
	go func() {
		by, err := e.cfg.Journal.Fenced()
		var unbeaten error
		if beat && err == nil && by == 0 {
			unbeaten = e.cfg.Journal.Beat()
		}
		deleted := err != nil && e.cfg.Deleted != nil && e.cfg.Deleted()
		e.d.send(input{call: func(e *engine) {
			e.kept(by, err, unbeaten)
			e.lookedFor(deleted)
		}})
	}()
}

// kept handles what housekeeping found.
func (e *engine) kept(by int, err, unbeaten error) {
	began := e.keeping
	e.keeping = time.Time{}
	if by > 0 {
		e.fenced(by)
		return
	}
	if err == nil {
		e.ownedAt = began
	}
	if err == nil || e.loop.Problem(e.now()) == nil {
		e.loop.Obstruct(e.now(), err)
	}
	if unbeaten != nil && e.loop.Problem(e.now()) == nil {
		e.tell(Notice{At: time.Now(), Text: fmt.Sprintf("the owner file cannot be written: %v", unbeaten)})
	}
}

// deletedAfter is how many consecutive checks must find the run directory deleted
// before that is reported: a person may be moving it.
const deletedAfter = 2

// lookedFor handles the result of a check for the run directory. The dispatcher does
// not end by itself: a directory that was moved can be put back, and running jobs are
// ended only when a person asks.
func (e *engine) lookedFor(deleted bool) {
	if e.fencedBy > 0 {
		return
	}
	if !deleted {
		e.missed = 0
		if e.deleted {
			e.deleted = false
			e.tell(Notice{At: time.Now(), Text: "the run directory is there again"})
		}
		return
	}
	if e.missed++; e.missed == deletedAfter {
		e.deleted = true
		e.tell(Notice{At: time.Now(), Text: fmt.Sprintf("the run directory %s was deleted or moved: nothing is launched or recorded any more; "+
			"running jobs continue, and their results are lost unless the directory is restored; Ctrl-C or SIGTERM ends this dispatcher", e.cfg.RunDir)})
		signal(e.d.signals.changed)
	}
}

// problem returns why nothing is launched, or nil.
func (e *engine) problem(now sched.Time) error {
	if e.deleted {
		return fmt.Errorf("the run directory %s was deleted or moved", e.cfg.RunDir)
	}
	return e.loop.Problem(now)
}
