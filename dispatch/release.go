package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dcs-tui/dispatch/commit"
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// onRecord handles a record of the core's last step. It keeps the result for the consumer and
// notifies people.
func (e *engine) onRecord(r *jobs.Record) {
	e.unpacked.onRecord(r)
	if r.Seq > 0 && r.Kind != jobs.KindAcked {
		j := e.core.Table().RowOf(r)
		if j.Ran() > 0 {
			e.rate.add(e.now().Mono, e.endedAt(r))
		}
		e.pendingResults = append(e.pendingResults, e.resultOf(j))
	}
	switch r.Kind {
	case jobs.KindEvent:
		e.history.setNote(r.Host, r.Reason)
		e.notify(Notice{At: r.At.Time(), Host: r.Host, Job: r.Job, Text: r.Reason, ReasonKind: jobs.ReasonKind(r.How)})
	case jobs.KindInventory:
		if e.cfg.OnInventoryRequest != nil {
			e.cfg.OnInventoryRequest(r.Host, e.core.Table().Inventory[r.Host])
		}
	case jobs.KindRequest:
		e.pendingAnswers = append(e.pendingAnswers, r.Request)
		if r.Reason != "" {
			e.notify(Notice{At: r.At.Time(), Text: "the request is refused: " + r.Reason})
		}
	case jobs.KindInstance:
		e.history.setNote(r.Host, r.InstanceText())
		e.notify(Notice{At: r.At.Time(), Host: r.Host, Text: r.InstanceText()})
	case jobs.KindCanceling:
		text := "being canceled: " + r.Reason
		if r.How == jobs.ThenRequeue {
			text = "requeued when it has ended"
		}
		e.notify(Notice{At: r.At.Time(), Job: r.Job, Text: text, Canceling: r.How != jobs.ThenRequeue})
	case jobs.KindLost:
		e.notify(Notice{At: r.At.Time(), Host: e.hostOf(r), Job: r.Job,
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

func (e *engine) notify(n Notice) {
	if e.cfg.Notify != nil {
		e.cfg.Notify(n)
	}
}

// resultOf returns the result of a finished job.
func (e *engine) resultOf(j *jobs.Job) *Result {
	dir := e.cfg.RunDir
	if a := j.CountedAttempt(); a != nil {
		dir = e.filesDir(a.Host)
	}
	place := results.RunInfo{UID: e.cfg.RunUID, Name: e.cfg.RunName, Created: e.cfg.Created, Dir: dir}
	r := place.Result(j)
	return &r
}

// redeliver delivers the results that no consumer of an earlier dispatcher has acknowledged,
// including those of past rounds.
func (e *engine) redeliver() {
	t := e.cfg.Table
	if t.Acked >= t.Seq {
		return
	}
	var rs []earlierResult
	for i := range t.Past {
		rs = append(rs, earlierResult{t.Past[i].Seq, t.Past[i].Spec.ID})
	}
	for j := range t.RowsWithOptions() {
		if j.State.Terminal() && j.Seq > t.Acked {
			rs = append(rs, earlierResult{j.Seq, j.Spec.ID})
		}
	}
	slices.SortFunc(rs, func(a, b earlierResult) int { return cmp.Compare(a.seq, b.seq) })
	e.d.results.addEarlier(rs...)
}

// Redeliver delivers the result of a job again, if it has one with a number up to seq.
func (d *Dispatcher) Redeliver(id jobs.ID, seq int64) {
	_ = d.call(context.Background(), func(e *engine) { // after the end there is no consumer
		if j := e.core.Table().Job(id); j != nil && j.State.Terminal() && j.Seq <= seq {
			d.results.addEarlier(earlierResult{j.Seq, id})
		}
	})
}

// earlierResults returns results of the table. It leaves out those that were acknowledged and whose
// job has begun a new round since.
func (e *engine) earlierResults(which []earlierResult) (rs []*Result) {
	t := e.core.Table()
	var past map[int64]*jobs.Job
	for _, r := range which {
		j := new(jobs.RowReader).Job(t, r.job) // the result refers to it
		if !j.State.Terminal() || j.Seq != r.seq {
			if past == nil {
				past = map[int64]*jobs.Job{}
				for i := range t.Past {
					past[t.Past[i].Seq] = &t.Past[i]
				}
			}
			j = past[r.seq]
		}
		if j != nil {
			rs = append(rs, e.resultOf(j))
		}
	}
	return rs
}

// carryOut carries commands out.
func (e *engine) carryOut(out commit.Out) {
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
			e.dismissAgent(a)
			continue
		}
		if a != nil {
			if _, cut := o.(sched.Disconnect); a.enqueue(o) && cut {
				a.numDisconnects++
			}
			continue
		}
		switch o := o.(type) {
		case sched.Finish:
			e.recordEnd(o)
		case sched.Inspect:
			if o.Via == "" {
				e.inspect(o)
			}
		case sched.RereadInventory:
			if e.cfg.RereadInventory != nil {
				e.cfg.RereadInventory()
			}
		case sched.CreateInstance, sched.TerminateInstance, sched.ListInstances, sched.FetchInstance:
			if e.cfg.Provide != nil {
				e.cfg.Provide(o)
			}
		}
	}
}

// inspect reads attempts of a host through this machine's own mount of the shared directory. It
// does so in a goroutine, because the mount may hang. While a read hangs, further commands are
// dropped, because the core repeats them.
func (e *engine) inspect(o sched.Inspect) {
	if e.cfg.Inspect == nil {
		return
	}
	select {
	case e.inspectToken <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-e.inspectToken }()
		seen := e.cfg.Inspect(o.Host, o.Attempts)
		if seen != nil {
			e.d.returns.dropUnfetched(seen)
		}
		e.d.send(input{ev: sched.HostInspected{Msg: seen}})
	}()
}

// recordEnd records that the core has finished.
func (e *engine) recordEnd(f sched.Finish) {
	if e.finish == nil {
		if e.core.IsOutdated(f) {
			return
		}
		close(e.d.finished)
	}
	e.finish = &f
	e.d.results.end()
	Signal(e.d.signals.Changes)
}

// stopFenced stops this dispatcher, because another one owns the run. From then on it writes,
// launches, and kills nothing.
func (e *engine) stopFenced(by int) {
	if e.fencedBy > 0 {
		return
	}
	e.fencedBy = by
	why := fmt.Sprintf("another dispatcher has taken this run over (epoch %d); this one stops and changes nothing more",
		by)
	e.notify(Notice{At: time.Now(), Text: why})
	e.loop.Fence()
	e.pendingResults, e.writingResults = nil, nil
	e.recordEnd(sched.Finish{How: sched.Fenced, Why: why, Epoch: by})
}

// ownerInterval is the interval between heartbeats in the owner file.
const ownerInterval = 10 * time.Second

// housekeeping writes the heartbeat of the owner file and checks whether the run is still ours. It
// does so in a separate goroutine, because the run directory may hang.
func (e *engine) housekeeping() {
	if e.fencedBy > 0 {
		return
	}
	e.step(sched.Tick{}) // otherwise the core would see a stall of this process
	if !e.checkingSince.IsZero() {
		if now := e.now(); time.Since(e.checkingSince) >= commit.HungAfter && e.loop.Problem(now) == nil {
			e.loop.SetObstacle(now, errors.New("the run directory has not answered for some seconds"))
		}
		return
	}
	e.checkingSince = time.Now()
	due := time.Since(e.heartbeatAt) >= ownerInterval
	go func() {
		by, err := e.cfg.Journal.Fenced()
		tried, heartbeatErr := due && err == nil && by == 0, error(nil)
		if tried {
			heartbeatErr = e.cfg.Journal.Heartbeat()
		}
		deleted := err != nil && e.cfg.IsDeleted != nil && e.cfg.IsDeleted()
		e.d.send(input{call: func(e *engine) {
			if tried {
				e.handleHeartbeat(heartbeatErr)
			}
			e.handleHousekeeping(by, err)
			e.handleDeletedCheck(deleted)
		}})
	}()
}

// handleHeartbeat handles the result of a heartbeat. One that fails is tried again by the next housekeeping:
// a standby takes the run over after three missing ones. The first of several failures is reported.
func (e *engine) handleHeartbeat(err error) {
	if err == nil {
		e.heartbeatAt, e.heartbeatFailed = e.checkingSince, false
	} else if !e.heartbeatFailed && e.loop.Problem(e.now()) == nil {
		e.heartbeatFailed = true
		e.notify(Notice{At: time.Now(), Text: fmt.Sprintf("the owner file cannot be written: %v", err)})
	}
}

// handleHousekeeping handles the result of housekeeping.
func (e *engine) handleHousekeeping(by int, err error) {
	began := e.checkingSince
	e.checkingSince = time.Time{}
	if by == 0 && err == nil {
		by = e.claimedFence()
	}
	if by > 0 {
		e.stopFenced(by)
		return
	}
	if err == nil {
		e.ownedAt = began
	}
	if err == nil || e.loop.Problem(e.now()) == nil {
		e.loop.SetObstacle(e.now(), err)
	}
}

// deletedAfter is the number of consecutive checks that must find the run directory deleted before
// that is reported, because a person may be moving it.
const deletedAfter = 2

// handleDeletedCheck handles the result of a check of the run directory. The dispatcher does not
// end by itself: a directory that was moved can be moved back, and running jobs are ended only at a
// person's request.
func (e *engine) handleDeletedCheck(deleted bool) {
	if e.fencedBy > 0 {
		return
	}
	if !deleted {
		e.numMissed = 0
		if e.deleted {
			e.deleted = false
			e.notify(Notice{At: time.Now(), Text: "the run directory is there again"})
		}
		return
	}
	e.numMissed++
	if e.numMissed == deletedAfter {
		e.deleted = true
		e.notify(Notice{
			At: time.Now(),
			Text: fmt.Sprintf("the run directory %s was deleted or moved: nothing is launched or recorded any more; "+
				"running jobs continue, and their results are lost unless the directory is restored; "+
				"Ctrl-C or SIGTERM ends this dispatcher", e.cfg.RunDir),
		})
		Signal(e.d.signals.Changes)
	}
}

// launchProblem returns the reason why nothing is launched, or nil.
func (e *engine) launchProblem(now sched.Time) error {
	if e.deleted {
		return fmt.Errorf("the run directory %s was deleted or moved", e.cfg.RunDir)
	}
	return e.loop.Problem(now)
}
