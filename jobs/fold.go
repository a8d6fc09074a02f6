package jobs

import (
	"errors"
	"fmt"
	"slices"
)

// Fold applies one record to the table. Only Fold changes the state of a job or an attempt, both
// live and on replay. An error means that the record does not fit the state, because the journal is
// damaged or the program has a defect. The table is then unchanged.
func Fold(t *Table, r *Record) error {
	if err := checkRecord(r); err != nil {
		return err
	}
	switch r.Kind {
	case KindEpoch:
		if r.Epoch <= t.Epoch {
			return fmt.Errorf("epoch %d does not follow epoch %d", r.Epoch, t.Epoch)
		}
		t.Epoch, t.Closed = r.Epoch, Closing{}
		if r.Count == 0 {
			t.Results = [Skipped + 1]int{}
		}
		return nil
	case KindEvent:
		if r.Count > 0 && r.Job > 0 && int(r.Job) <= t.NumJobs() {
			Insert(&t.Late, r.Job, int32(r.Count))
		}
		return nil
	case KindHost:
		return t.setHost(r)
	case KindInstance:
		return t.foldInstance(r)
	case KindMachine:
		return t.machine(r)
	case KindInventory:
		return t.askHost(r)
	case KindPause:
		if r.Count != 0 && r.Count != 1 {
			return fmt.Errorf("unknown pause %d", r.Count)
		}
		t.Paused = r.Count == 1
		if r.N == 1 {
			t.Results = [Skipped + 1]int{}
		}
		return nil
	case KindEnded:
		t.Ended = true
		return nil
	case KindDamaged:
		t.Damaged = true
		return nil
	case KindAcked:
		if r.Seq > t.Seq {
			if !t.Damaged {
				return fmt.Errorf("result %d was acknowledged but the newest is %d", r.Seq, t.Seq)
			}
			t.Seq = r.Seq // the record of the result was lost; its number is not reused
		}
		t.Acked = max(t.Acked, r.Seq)
		t.Past = slices.DeleteFunc(t.Past, func(j Job) bool { return j.Seq <= t.Acked })
		if len(t.Past) == 0 {
			t.Past = nil
		}
		return nil
	case KindAccepted:
		return t.accept(r)
	case KindRequest:
		Insert(&t.Requests, r.Request, true)
		delete(t.Adjusted, r.Request)
		if len(t.Adjusted) == 0 {
			t.Adjusted = nil
		}
		t.CanceledAll = t.CanceledAll || r.How == CanceledAll
		return nil
	case KindClosed:
		t.Closed = Closing{r.Closed(), r.Reason}
		return nil
	}
	j := t.row(r.Job)
	if j == nil {
		return fmt.Errorf("%s: there is no job %d", r.Kind, r.Job)
	}
	switch r.Kind {
	case KindLaunching:
		t.CanceledAll = false
		return t.launch(j, r)
	case KindRunning:
		return t.recordStart(j, r)
	case KindExited, KindLost, KindSuperseded, KindCanceled:
		return t.endAttempt(j, r)
	case KindJob:
		if j.State.Terminal() {
			return fmt.Errorf("job %d is already %s", r.Job, j.State)
		}
		return t.moveTo(j, r)
	case KindRound:
		// If records were lost, the result of the last attempt may be one of them. The new round is
		// still applied.
		if !j.State.Terminal() && !(t.Damaged && j.State == Queued) {
			return fmt.Errorf("job %d is %s: no new round", r.Job, j.State)
		}
		t.nextRound(j, r.Reason)
		t.dropRequeue(r.Job)
		return nil
	case KindEdited:
		t.dropRequeue(r.Job)
		return t.edit(j, r)
	case KindForgiven:
		a := t.Attempt(r.Attempt())
		if a == nil || !a.Charged || a.Round != j.Round {
			return fmt.Errorf("attempt %s has used up no try", r.Attempt())
		}
		a.Charged = false
		j.Failures--
		return nil
	case KindCanceling:
		// If records were lost, the launch may be one of them. The cancel is still applied.
		if j.State != Running && !(t.Damaged && j.State == Queued) {
			return fmt.Errorf("job %d is %s: there is nothing to end", r.Job, j.State)
		}
		if r.How == ThenRequeue {
			Insert(&t.Requeues, r.Job, true)
			return nil
		}
		Insert(&t.Cancels, r.Job, Cancel{r.Reason, r.Request, ReasonKind(r.How)})
		t.dropRequeue(r.Job)
		return nil
	case KindPriority:
		j.Priority = int32(r.Priority)
		if r.Request != "" && !t.Requests[r.Request] {
			which := t.Adjusted[r.Request]
			which.Add(r.Job)
			Insert(&t.Adjusted, r.Request, which)
		}
		return nil
	}
	return fmt.Errorf("unknown record kind %q", r.Kind)
}

// Insert sets an entry of a map, which may be nil.
func Insert[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// checkRecord returns an error for a record that no state of the table could make valid. A record
// must not index out of range, and a success needs a successful outcome.
func checkRecord(r *Record) error {
	switch {
	case r.Next > Skipped:
		return fmt.Errorf("%s: job %d cannot become %s", r.Kind, r.Job, r.Next)
	case int(int32(r.Priority)) != r.Priority || int(int32(r.Slot)) != r.Slot:
		return fmt.Errorf("%s: priority %d or slot %d is out of range", r.Kind, r.Priority, r.Slot)
	case r.Kind == KindExited && r.Outcome == nil:
		return fmt.Errorf("attempt %s exited without an outcome", r.Attempt())
	case r.Kind == KindRequest && r.Request == "":
		return errors.New("the answer to a request does not name it")
	case r.Kind == KindClosed &&
		!slices.Contains([]string{ClosedDone, ClosedDrained, ClosedStopped, ClosedNoHosts}, r.How):
		return fmt.Errorf("unknown end of a dispatcher %q", r.How)
	case r.Seq != 0 && r.Next == Succeeded && (r.Kind != KindExited || !r.Outcome.OK()):
		return fmt.Errorf("%s: job %d cannot succeed without a successful outcome", r.Kind, r.Job)
	}
	return nil
}

// keepUndelivered saves a row whose result the consumer may not have received. The result of an
// earlier round must be delivered, too.
func (t *Table) keepUndelivered(j *Job) {
	if j.Seq <= t.Acked || t.packed != nil && !t.packed.isWorking {
		return
	}
	past := *j
	past.Attempts = slices.Clone(past.Attempts)
	for i, a := range past.Attempts {
		past.Attempts[i] = new(*a) // later records change that of the job
	}
	// Not sorted, because thousands may be requeued at once.
	t.Past = append(t.Past, past)
}

// dropRequeue cancels the requeue of a job that was to follow its cancel.
func (t *Table) dropRequeue(id ID) {
	delete(t.Requeues, id)
	if len(t.Requeues) == 0 {
		t.Requeues = nil
	}
}

func (t *Table) nextRound(j *Job, why string) {
	if j.State.Terminal() {
		t.keepUndelivered(j)
	}
	t.setState(j, Queued)
	j.Round, j.Failures, j.Counted, j.Retry = j.Round+1, 0, 0, 0
	j.Reason, j.ReasonKind, j.Urgent = why, "", false
	t.Ended = false
}

func (t *Table) accept(r *Record) error {
	first, have := int(r.Job), t.NumJobs()
	if first != have+1 || r.Count < 0 || r.Count > t.NumSpecs()-have {
		return fmt.Errorf("%d accepted jobs from %d on do not follow %d jobs of which %d have specifications",
			r.Count, first, have, t.NumSpecs())
	}
	if p := t.packed; p != nil {
		p.rows = append(p.rows, make([]address, r.Count)...)
	} else {
		t.Jobs = slices.Grow(t.Jobs, r.Count)
		for _, s := range t.Specs[first-1 : first-1+r.Count] {
			t.Jobs = append(t.Jobs, Job{Spec: s, Round: 1, Priority: int32(s.Priority)})
		}
	}
	t.Counts[Queued] += r.Count
	t.Ended = t.Ended && r.Count == 0
	return nil
}

// launch adds an attempt. After damage, records of others may be missing. Skipped numbers get an
// entry without a host, which a later record may fill in. If an attempt is found alive and its job
// has a result, Next is the state of the job, which keeps its result.
func (t *Table) launch(j *Job, r *Record) error {
	if j.State.Terminal() && !(t.Damaged && r.Next == j.State) {
		return fmt.Errorf("job %d is %s and cannot be launched", r.Job, j.State)
	}
	a := Attempt{ID: r.Attempt(), Host: r.Host, Machine: t.At[r.Host], Launched: r.At, Round: j.Round}
	next := len(j.Attempts) + 1
	switch {
	case r.N == next:
	case !t.Damaged || r.Host == "" || r.N < 1 || r.N >= next+maxGap || r.N < next && !j.Attempts[r.N-1].isMissing():
		return fmt.Errorf("attempt %s does not follow %d earlier ones", r.Attempt(), len(j.Attempts))
	}
	for ; next < r.N; next++ {
		j.addAttempt(Attempt{ID: AttemptID{r.Job, next}, Launched: r.At, Round: j.Round, State: AttemptLost,
			Reason: "no record of it is left"})
	}
	if r.N < next {
		*j.Attempts[r.N-1] = a
	} else {
		j.addAttempt(a)
	}
	if !j.State.Terminal() {
		j.Retry = 0
		t.setState(j, Running)
	}
	return nil
}

// isMissing reports whether no record of the attempt is left.
func (a *Attempt) isMissing() bool { return a.Host == "" && a.State == AttemptLost }

// addAttempt appends an attempt. The first one shares an allocation with the list, because most of
// a million jobs have one attempt.
func (j *Job) addAttempt(a Attempt) {
	if j.Attempts != nil {
		j.Attempts = append(j.Attempts, new(a))
		return
	}
	first := &struct {
		attempt Attempt
		list    [1]*Attempt
	}{attempt: a}
	first.list[0] = &first.attempt
	j.Attempts = first.list[:]
}

// maxGap is the maximum number of attempt numbers that a record may skip after damage.
const maxGap = 1000

// recordStart records that an attempt has started. An attempt that was declared lost may return
// alive. It is then open again, and its job runs again.
func (t *Table) recordStart(j *Job, r *Record) error {
	a := t.Attempt(r.Attempt())
	if a == nil || !a.State.Open() && (a.State != AttemptLost || j.State.Terminal()) {
		return fmt.Errorf("attempt %s cannot be running", r.Attempt())
	}
	if a.State == AttemptLost {
		a.Reason, j.Reason, j.ReasonKind, j.Retry, j.Urgent = "", "", "", 0, false
		t.setState(j, Running)
		if int(j.Counted) == r.N {
			j.Counted = 0
		}
	}
	a.State, a.Slot, a.Started = AttemptRunning, int32(r.Slot), r.Started
	a.setMissingHost(r)
	return nil
}

// setMissingHost sets the host of an attempt whose launch record was lost to damage. A later record
// of the attempt names the host, and only that host can be queried about it.
func (a *Attempt) setMissingHost(r *Record) {
	if a.Host == "" {
		a.Host = r.Host
	}
}

// endAttempt closes an attempt. The job moves to Next unless it is already terminal or another of
// its attempts is still open. If it is terminal, a late exit of a superseded copy changes only the
// attempt. If another attempt is open, Next is Running.
func (t *Table) endAttempt(j *Job, r *Record) error {
	a := t.Attempt(r.Attempt())
	if a == nil {
		return fmt.Errorf("%s: there is no attempt %s", r.Kind, r.Attempt())
	}
	// An attempt that was declared lost may return with an outcome.
	late := a.State == AttemptLost && r.Kind != KindLost
	if !a.State.Open() && !late {
		return fmt.Errorf("attempt %s is already %s", a.ID, a.State)
	}
	if !j.State.Terminal() {
		if err := t.moveTo(j, r); err != nil {
			return err
		}
		if r.Kind != KindSuperseded && a.Round == j.Round || r.Kind == KindExited && r.Seq != 0 {
			j.Counted = int32(r.N)
		}
	} else if r.Next != j.State || r.Seq != 0 {
		return fmt.Errorf("attempt %s cannot make job %d %s: it is %s", a.ID, r.Job, r.Next, j.State)
	}
	switch r.Kind {
	case KindExited:
		a.State = AttemptExited
	case KindLost:
		a.State = AttemptLost
	case KindSuperseded:
		a.State = AttemptSuperseded
	case KindCanceled:
		a.State = AttemptCanceled
	}
	a.setMissingHost(r)
	a.Reason = r.Reason
	if r.Outcome != nil {
		a.Outcome = r.Outcome
		a.Started = r.Outcome.Started
	}
	if r.Slot != 0 {
		a.Slot = int32(r.Slot)
	}
	if r.Charged && a.Round == j.Round {
		a.Charged = true
		j.Failures++
	}
	return nil
}

// moveTo changes an open job to r.Next and assigns the result number if that is terminal.
func (t *Table) moveTo(j *Job, r *Record) error {
	if r.Next.Terminal() {
		if r.Seq != t.Seq+1 && !(t.Damaged && r.Seq > t.Seq) {
			return fmt.Errorf("result number %d does not follow %d", r.Seq, t.Seq)
		}
		t.Seq, j.Seq = r.Seq, r.Seq
		t.Results[r.Next]++
		delete(t.Cancels, r.Job)
		if r.Next != Canceled {
			t.dropRequeue(r.Job)
		}
	} else if r.Seq != 0 {
		return fmt.Errorf("job %d gets a result number though it becomes %s", r.Job, r.Next)
	}
	j.Retry, j.Reason, j.ReasonKind = r.Retry, r.Reason, ReasonKind(r.How)
	j.Urgent = r.Kind == KindLost && r.Next == Queued
	t.setState(j, r.Next)
	return nil
}

func (t *Table) setState(j *Job, s JobState) {
	t.Counts[j.State]--
	t.Counts[s]++
	j.State = s
}

// edit gives a job another specification. Attempts of the old one must be over. They no longer
// count, even if one that was declared lost returns. A job that has a result keeps it as the result
// of its earlier round, with the specification of that round, and begins a new round. All this is
// one record. A torn tail therefore leaves neither a result under a command that did not produce it
// nor a new round without the change.
func (t *Table) edit(j *Job, r *Record) error {
	switch {
	case r.Spec == nil || r.Spec.Options == nil || r.Spec.ID != r.Job:
		return fmt.Errorf("job %d is edited without a specification of its own", r.Job)
	case j.State == Running:
		return fmt.Errorf("job %d is %s and cannot be edited", r.Job, j.State)
	}
	for _, a := range j.Attempts {
		if a.State.Open() {
			return fmt.Errorf("job %d cannot be edited: its attempt %s may be alive", r.Job, a.ID)
		}
	}
	if j.State.Terminal() || t.Damaged && r.Count > int(j.Round) {
		t.nextRound(j, r.Reason)
	} else {
		for _, a := range j.Attempts {
			if a.Round == j.Round {
				a.Round = 0
			}
		}
		j.Failures, j.Counted, j.Retry, j.Reason, j.ReasonKind = 0, 0, 0, r.Reason, ""
	}
	t.setSpec(j, r.Spec)
	return nil
}
