package sim

import (
	"dcs-tui/dispatch/sched"
	"dcs-tui/jobs"
)

// account is the ledger's state of a job. It is computed without jobs.Fold, so that it reveals bugs
// in jobs.Fold.
type account struct {
	round          int
	isOver         bool // the round has its result
	result         jobs.JobState
	canceling      bool
	charged        int // charged failures of this round since the last edit
	spec           *jobs.Spec
	hasLateFailure bool // an attempt that was given up failed later
	attempts       []entry
}

// entry is the ledger's state of an attempt.
type entry struct {
	host        string
	machine     string     // where it was launched, according to the journal
	round       int        // 0: it ran a command that was edited since
	spec        *jobs.Spec // what it was launched with; nil: not known
	open        bool
	hasOutcome  bool // it has an outcome
	lost        bool // it was given up, at least for a time
	lostAt      int  // number of the record that gave it up
	lostRunning bool // it was given up when its claim was known, so it may still run, or start
	launched    int  // number of the record that launched it
	epoch       int  // of the dispatcher that launched it; 0: not known
	last        jobs.Kind
	charged     bool // it used up a try
	isUncertain bool // the facts about it are from before the journal was damaged
}

func (g *ledger) entry(id jobs.AttemptID) *entry {
	if int(id.Job) > len(g.jobs) || id.Job < 1 {
		return nil
	}
	a := &g.jobs[id.Job-1]
	if id.N < 1 || id.N > len(a.attempts) {
		return nil
	}
	return &a.attempts[id.N-1]
}

// applyToLedger applies a durable record to the ledger and checks it.
func (w *World) applyToLedger(r *jobs.Record) {
	g := &w.ledger
	w.truth.records++
	switch r.Kind {
	case jobs.KindEvent, jobs.KindEpoch, jobs.KindPriority, jobs.KindClosed:
	case jobs.KindInstance:
		g.instances[r.Host] = jobs.InstanceState(r.How)
	case jobs.KindMachine:
		g.machines[r.Host] = r.Reason
	case jobs.KindInventory:
		g.hosts[r.Host] = jobs.HostRequest{Removed: r.Count == jobs.HostRemoved, Options: r.Reason}
	case jobs.KindHost:
		w.applyHostSetting(r)
		w.countCaused(r)
	case jobs.KindPause:
		if r.N == 0 { // the end of a drain has a record of its own
			w.countCaused(r)
		}
		g.paused = r.Count == 1
	case jobs.KindRequest:
		w.applyAnswer(r)
	case jobs.KindAcked:
		if r.Seq > w.consumer.maxSeq {
			w.fail(ResultsShown, "result %d is recorded as acknowledged, and %d is the newest that was shown",
				r.Seq, w.consumer.maxSeq)
		}
		g.acked = max(g.acked, r.Seq)
	case jobs.KindDamaged:
		if !w.damaged {
			w.fail(ReplayIsState, "records are taken for missing: %s", r.Reason)
		}
	case jobs.KindEnded:
		g.ended = true
	case jobs.KindAccepted:
		if int(r.Job) != len(g.jobs)+1 {
			w.fail(JournalFolds, "jobs from %d on are accepted after %d", r.Job, len(g.jobs))
		}
		for i := range r.Count {
			g.jobs = append(g.jobs, account{round: 1, spec: w.specs[int(r.Job)-1+i]})
		}
		g.ended = false
	default:
		if int(r.Job) < 1 || int(r.Job) > len(g.jobs) {
			w.fail(JournalFolds, "%s of job %d, of which nothing is known", r.Kind, r.Job)
		}
		w.applyJobRecord(&g.jobs[r.Job-1], r)
	}
	g.shadow(w, r)
}

func (w *World) applyJobRecord(a *account, r *jobs.Record) {
	switch r.Kind {
	case jobs.KindRound:
		if !a.isOver {
			w.fail(OneResult, "a new round of job %d begins before the last has its result", r.Job)
		}
		*a = account{round: a.round + 1, spec: a.spec, attempts: a.attempts}
		w.ledger.ended = false
		return
	case jobs.KindEdited:
		w.applyEdit(a, r)
		return
	case jobs.KindCanceling:
		a.canceling = true
		return
	case jobs.KindLaunching:
		w.applyLaunch(a, r)
		return
	case jobs.KindForgiven:
		e := w.ledger.entry(r.Attempt())
		if e == nil || !e.charged || e.round != a.round || a.isOver {
			w.fail(OwnFailuresOnly, "%s is forgiven and used up no try of its round", r.Attempt())
		}
		e.charged = false
		a.charged--
		return
	case jobs.KindRunning:
		e := w.ledger.entry(r.Attempt())
		if e == nil {
			w.fail(JournalFolds, "%s runs and was never launched", r.Attempt())
		}
		if a.isOver && !e.open {
			w.fail(OneResult, "%s is taken up again though its job has its result", r.Attempt())
		}
		e.open, e.last = true, r.Kind
		return
	}
	if r.Kind != jobs.KindJob {
		w.applyEnd(a, r)
	}
	if a.isOver {
		if r.Seq != 0 {
			w.fail(OneResult, "job %d gets result %d in round %d and has one", r.Job, r.Seq, a.round)
		}
		return
	}
	if !r.Next.Terminal() {
		return
	}
	if next := w.ledger.seq + 1; r.Seq != next && (r.Seq < next || !w.damaged) {
		w.fail(SeqWithoutGaps, "result %d follows result %d", r.Seq, w.ledger.seq)
	}
	w.ledger.seq, w.ledger.seqs[r.Seq] = r.Seq, r.Job
	w.ledger.byExit[r.Seq] = r.Kind == jobs.KindExited
	a.isOver, a.result = true, r.Next
	w.checkBlame(a, r)
	if e := w.ledger.entry(r.Attempt()); r.Kind == jobs.KindExited && e.spec != nil && !e.isUncertain &&
		!e.spec.Equal(a.spec) {
		w.fail(RunsAsEdited, "the result of job %d is that of %s, which ran by another specification", r.Job,
			r.Attempt())
	}
	if r.Next == jobs.Succeeded && (r.Kind != jobs.KindExited || r.Outcome == nil || !r.Outcome.OK()) {
		w.fail(SuccessIsProved, "job %d succeeds by a record %s of %s", r.Job, r.Kind, r.Attempt())
	}
	if r.Next == jobs.Canceled && !w.hasCanceled(r.Job) {
		w.fail(CanceledByPeople, "job %d is canceled: %s", r.Job, r.Reason)
	}
	if r.Next == jobs.Skipped {
		w.checkSkipped(a, r)
	}
	if r.Next == jobs.TimedOut && (r.Outcome == nil || !r.Outcome.TimedOut) {
		w.fail(TrueOutcome, "job %d timed out without a timeout", r.Job)
	}
	if r.Next == jobs.Failed && r.Kind == jobs.KindExited && a.charged < w.tries(r.Job) {
		w.fail(OwnFailuresOnly, "job %d failed with %d of %d tries used", r.Job, a.charged, w.tries(r.Job))
	}
}

// applyEdit applies a new specification. Attempts with the old one are over and no longer count.
func (w *World) applyEdit(a *account, r *jobs.Record) {
	for i, e := range a.attempts {
		if e.open {
			w.fail(RunsAsEdited, "job %d is edited while the fate of %d.%d is not known", r.Job, r.Job, i+1)
		}
	}
	next := account{round: a.round, spec: r.Spec, attempts: a.attempts, canceling: a.canceling}
	if a.isOver {
		next.round, next.canceling = next.round+1, false
		w.ledger.ended = false
	} else {
		for i := range a.attempts {
			if a.attempts[i].round == a.round {
				a.attempts[i].round = 0
			}
		}
	}
	*a = next
}

func (w *World) tries(id jobs.ID) int {
	if n := w.ledger.jobs[id-1].spec.Tries; n > 0 {
		return n
	}
	return w.cfg.Tries
}

func (w *World) applyLaunch(a *account, r *jobs.Record) {
	switch {
	case r.N != len(a.attempts)+1 && !w.damaged:
		w.fail(JournalFolds, "%s is launched after %d attempts", r.Attempt(), len(a.attempts))
	case a.isOver && !w.isRecorded(r):
		w.fail(OneResult, "%s is launched though its job has its result", r.Attempt())
	case a.canceling && !w.isRecorded(r):
		w.fail(CanceledStays, "%s is launched though its job is being canceled", r.Attempt())
	}
	w.checkExecutions(a, r)
	open := 0
	for i := range a.attempts {
		switch e := &a.attempts[i]; {
		case !e.open || w.isRecorded(r):
		case !w.mayCopy(a.spec):
			w.fail(UnknownNotRerun, "%s is launched while the fate of %d.%d is not known", r.Attempt(), r.Job, i+1)
		case e.round != a.round || e.host == r.Host && w.cfg.CopyOn == sched.CopyOnOthers:
			w.fail(CopiesHold, "%s is launched on %s while %d.%d of round %d runs on %s", r.Attempt(), r.Host, r.Job,
				i+1, e.round, e.host)
		default:
			open++
		}
	}
	if open > 0 && (open >= w.cfg.Copies || a.charged+open >= w.tries(r.Job)) {
		w.fail(CopiesHold, "%s is launched beside %d others, with %d of %d tries used up", r.Attempt(), open, a.charged,
			w.tries(r.Job))
	}
	for len(a.attempts) < r.N { // including the numbers that are skipped
		a.attempts = append(a.attempts, entry{isUncertain: true})
	}
	e := &a.attempts[r.N-1]
	*e = entry{host: r.Host, machine: w.ledger.machines[r.Host], round: a.round, spec: a.spec, open: true,
		launched: w.truth.records, epoch: w.ledger.epoch, last: r.Kind}
	if w.isRecorded(r) {
		e.spec, e.isUncertain = nil, true
	}
}

// mayCopy reports whether a job may have several live attempts at a time.
func (w *World) mayCopy(s *jobs.Spec) bool { return w.cfg.Copies > 1 && (s == nil || !s.NoCopies) }

// applyEnd applies the recorded end of an attempt.
func (w *World) applyEnd(a *account, r *jobs.Record) {
	id := r.Attempt()
	e := w.ledger.entry(id)
	if e == nil {
		w.fail(JournalFolds, "%s of %s, which was never launched", r.Kind, id)
	}
	if !e.open && !(e.last == jobs.KindLost && r.Kind != jobs.KindLost) {
		w.fail(OneResult, "%s of %s, which is over: %s", r.Kind, id, e.last)
	}
	e.lostRunning = r.Kind == jobs.KindLost && e.last == jobs.KindRunning
	e.open, e.last = false, r.Kind
	f := w.truth.factOf(id)
	if r.Outcome != nil {
		e.hasOutcome = true
		w.checkOutcome(f, r)
	}
	switch r.Kind {
	case jobs.KindLost:
		e.lost = true
		if e.lostAt == 0 { // it may have come back and been lost again
			e.lostAt = w.truth.records
		}
	case jobs.KindSuperseded, jobs.KindCanceled:
		if r.Outcome == nil && f != nil && f.numStarts > 0 && !f.forgotten && !e.isUncertain {
			w.fail(NeverStartedIsTrue, "%s is recorded as %s without an outcome (%s), and it has started", id,
				r.Kind, r.Reason)
		}
	}
	if r.Charged {
		if e.round == a.round {
			e.charged = true
			a.charged++
		}
		// A failure can be recorded late, while another attempt runs, if the attempt was given up as lost
		// or its record was lost.
		a.hasLateFailure = a.hasLateFailure || e.lost || w.damaged && r.Next == jobs.Running
		if a.charged > w.tries(r.Job) && !a.hasLateFailure {
			w.fail(TriesHold, "job %d has failed %d times of %d", r.Job, a.charged, w.tries(r.Job))
		}
		if r.Outcome == nil || r.Outcome.OK() || r.Outcome.Stopped || f == nil || f.ended == nil {
			w.fail(OwnFailuresOnly, "%s uses up a try and did not fail by itself", id)
		}
	}
}

// checkOutcome compares the recorded outcome of an attempt with what happened.
func (w *World) checkOutcome(f *fact, r *jobs.Record) {
	switch {
	case f == nil || f.ended == nil:
		name := TrueOutcome
		if r.Next == jobs.Succeeded {
			name = SuccessIsProved
		}
		w.fail(name, "%s of %s with an outcome, and it has not ended by itself", r.Kind, r.Attempt())
	default:
		o := *r.Outcome
		o.LastLine = ""
		if o != *f.ended {
			w.fail(TrueOutcome, "%s is recorded with %+v and ended with %+v", r.Attempt(), o, *f.ended)
		}
	}
}
