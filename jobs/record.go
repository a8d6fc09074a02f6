package jobs

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Kind is the kind of a record.
type Kind string

// The kinds of record. A record states what was decided or what happened. It never states an input
// from which replay would have to work something out again.
const (
	// A dispatcher took over the run: Epoch, Owner, Files. Count is 1 if a standby started it, without a
	// person.
	KindEpoch Kind = "epoch"
	// Jobs Job to Job+Count-1 of jobs.jsonl are part of the run.
	KindAccepted Kind = "accepted"
	// Attempt Job.N is about to be sent to Host; fsynced before it is sent.
	KindLaunching Kind = "launching"
	// The attempt started in Slot at Started.
	KindRunning Kind = "running"
	// The attempt ended with Outcome; the job becomes Next.
	KindExited Kind = "exited"
	// The attempt ended or was given up without an outcome: Reason; the job becomes Next.
	KindLost Kind = "lost"
	// The attempt never started, or its result came too late; the job becomes Next.
	KindSuperseded Kind = "superseded"
	// The attempt was ended on request (Outcome if known); the job becomes Next.
	KindCanceled Kind = "canceled"
	// The job becomes Next without an attempt: it is canceled, skipped, or failed (Reason).
	KindJob Kind = "job"
	// The attempt is not charged as a try after all, because its host was at fault: Reason.
	KindForgiven Kind = "forgiven"
	// The user canceled the job, and its open attempts are being ended. If How is ThenRequeue, the
	// job is requeued when they have ended. Reason holds the reason.
	KindCanceling Kind = "canceling"
	// The answer to Request, which is never carried out again. Count jobs were changed, and N were
	// left alone. Job is the first submitted job. Reason is set if the request was refused.
	KindRequest Kind = "request"
	// The user requeued the job: it is queued in a new round, and its tries are counted afresh.
	KindRound Kind = "round"
	// The specification of the job is now Spec. A finished job begins a new round. Count is its
	// round from then on; Reason.
	KindEdited Kind = "edited"
	// The job's priority is now Priority.
	KindPriority Kind = "priority"
	// The user's setting for Host, until it is withdrawn: Count is a HostUse, Slot the number of
	// slots (0: by its rule).
	KindHost Kind = "host"
	// Host now names the machine with the id Reason. Attempts that are launched there are attempts
	// of that machine.
	KindMachine Kind = "machine"
	// The user added Host to the run (Count 1, Reason: its options), removed it (Count 2), or
	// withdrew that (0). This overrides the inventory file.
	KindInventory Kind = "inventory"
	// The user paused launching (Count 1) or continued it (0), until the next such record. N is 1 if the
	// user ended a drain, and the results for --halt are counted anew.
	KindPause Kind = "pause"
	// The instance Host of a provider is in the state How (an InstanceState). Reason: its provider
	// while it is being created, otherwise the cause.
	KindInstance Kind = "instance"
	// The consumer has received all results up to and including Seq.
	KindAcked Kind = "acked"
	// An event for the user about Host or Job; changes no state. Count > 0: the job cannot meet its
	// deadline, reported once in round Count.
	KindEvent Kind = "event"
	// Earlier records may be missing for the cause Reason; applies to all later dispatchers.
	KindDamaged Kind = "damaged"
	// Every job is terminal and the hosts are cleaned up; Reason is empty if nothing went wrong.
	KindEnded Kind = "ended"
	// The dispatcher of this epoch ended: Record.Closed, Reason. It is the last record of the epoch. There
	// is none after a crash.
	KindClosed Kind = "closed"
)

// IsKnown reports whether this program knows the kind. A newer version wrote a record of another
// kind.
func (k Kind) IsKnown() bool {
	switch k {
	case KindEpoch, KindAccepted, KindLaunching, KindRunning, KindExited, KindLost, KindSuperseded, KindCanceled,
		KindJob,
		KindForgiven, KindCanceling, KindRequest, KindRound, KindEdited, KindPriority, KindHost,
		KindMachine, KindInventory, KindPause, KindInstance, KindAcked,
		KindEvent, KindDamaged, KindEnded, KindClosed:
		return true
	}
	return false
}

// Record is one fact of the journal. Kind determines which fields are used.
type Record struct {
	Kind    Kind     `json:"k"`
	At      Stamp    `json:"t"`          // when it was recorded, by the dispatcher's clock
	Job     ID       `json:"j,omitzero"` // with N: the attempt Job.N
	N       int      `json:"n,omitzero"`
	Host    string   `json:"h,omitzero"` // name in the inventory
	Slot    int      `json:"slot,omitzero"`
	Count   int      `json:"count,omitzero"`
	Next    JobState `json:"next,omitzero"` // omitted: queued
	Charged bool     `json:"charged,omitzero"`
	Retry   Stamp    `json:"retry,omitzero"` // do not launch before this time
	// Result number, assigned when the job becomes terminal.
	Seq      int64      `json:"seq,omitzero"`
	Outcome  *Outcome   `json:"o,omitzero"`
	Reason   string     `json:"why,omitzero"`
	Priority int        `json:"prio,omitzero"`
	Started  Stamp      `json:"started,omitzero"`
	Epoch    int        `json:"epoch,omitzero"`
	Owner    string     `json:"owner,omitzero"`
	Files    []FileMark `json:"files,omitzero"`
	// A Closed constant but ClosedReached, an InstanceState, CanceledAll for a request, ThenRequeue for a
	// cancel, a ReasonKind, or what a job has Reported.
	How     string `json:"how,omitzero"`
	Request string `json:"req,omitzero"`  // name of the request that caused the record; "": none
	Spec    *Spec  `json:"spec,omitzero"` // the last field, also in the line
}

// ReasonKind tells programs the reason of a record (Record.How), which Record.Reason describes for
// people.
type ReasonKind string

// The reasons that programs distinguish. All others are "".
const (
	ReasonPoorValues ReasonKind = "poor_values" // a search canceled the job because of its poor values
	ReasonTooHard    ReasonKind = "too_hard"    // the job was skipped because a job that is no harder timed out
	ReasonHostUp     ReasonKind = "host_up"     // KindEvent: Host came up
)

// Reported is a value that a job has reported at a step of a search.
type Reported struct{ Step, Value float64 }

const (
	reportedHow  = "reported:%v,%v" // step and value
	reportedText = "job %d reported %v at step %v"
)

// Event returns the event that records what a job has reported.
func (v Reported) Event(at Stamp, job ID) Record {
	return Record{Kind: KindEvent, At: at, Job: job, How: fmt.Sprintf(reportedHow, v.Step, v.Value),
		Reason: fmt.Sprintf(reportedText, job, v.Value, v.Step)}
}

// Reported returns what the job of the event has reported. ok is false for other records.
func (r *Record) Reported() (v Reported, ok bool) {
	n, _ := fmt.Sscanf(r.How, reportedHow, &v.Step, &v.Value)
	return v, r.Kind == KindEvent && n == 2
}

// FileMark marks the end of an older journal file. Bytes beyond Length are not part of the run,
// whoever wrote them.
type FileMark struct {
	Name   string `json:"name"`
	Length int64  `json:"len"`
	CRC    uint32 `json:"crc"` // CRC-32C of the first Length bytes
}

// The ways in which a dispatcher ends (Record.Closed).
const (
	ClosedDone    = "done"     // every job is terminal
	ClosedDrained = "drained"  // drained on request, or because of too many failures
	ClosedReached = "reached"  // halted by the results for which the user gave --halt; jobs may be left
	ClosedStopped = "stopped"  // stopped on request; attempts may be running
	ClosedNoHosts = "no_hosts" // no host was usable
)

// SetClosed makes r the record of a dispatcher that ended in the way how. Older programs take a record with
// another How for damage, so ClosedReached is stored as ClosedDrained with the state Succeeded.
func (r *Record) SetClosed(how string) {
	r.Kind, r.How = KindClosed, how
	if how == ClosedReached {
		r.How, r.Next = ClosedDrained, Succeeded
	}
}

// Closed returns how the dispatcher ended that wrote a KindClosed record.
func (r *Record) Closed() string {
	if r.How == ClosedDrained && r.Next == Succeeded {
		return ClosedReached
	}
	return r.How
}

// Attempt returns the attempt of the record.
func (r *Record) Attempt() AttemptID { return AttemptID{r.Job, r.N} }

// JobState is the state of a job. The zero value is Queued.
type JobState uint8

// The job states. Queued and Running are open; the others are terminal.
const (
	Queued JobState = iota
	Running
	Succeeded
	Failed
	TimedOut
	Canceled
	Skipped
)

var jobStateNames = [...]string{"queued", "running", "succeeded", "failed", "timed_out", "canceled", "skipped"}

// String returns the word used in journals, JSON and on the screen.
func (s JobState) String() string { return nameOf(jobStateNames[:], int(s)) }

// Clause describes what happened to a job, as a continuation of its name.
func (s JobState) Clause() string {
	switch s {
	case Succeeded, Failed:
		return "has " + s.String()
	case TimedOut:
		return "has timed out"
	case Canceled, Skipped:
		return "was " + s.String()
	}
	return "is " + s.String()
}

// Terminal reports whether the round is over.
func (s JobState) Terminal() bool { return s >= Succeeded }

// MarshalText writes the word.
func (s JobState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *JobState) UnmarshalText(b []byte) error {
	return parseWord(s, jobStateNames[:], b, "job state")
}

// AttemptState is the state of one execution.
type AttemptState uint8

// The attempt states. A launching attempt was sent to a host, or is about to be sent. The host may
// have buffered it, or may never have received it.
const (
	AttemptLaunching AttemptState = iota
	AttemptRunning
	AttemptExited     // ended with a known outcome
	AttemptLost       // given up, or known to be dead, without an outcome
	AttemptSuperseded // never started, withdrawn, or another attempt's result was accepted
	AttemptCanceled   // ended on request
)

var attemptStateNames = [...]string{"launching", "running", "exited", "lost", "superseded", "canceled"}

// String returns the word used in journals, JSON and on the screen.
func (s AttemptState) String() string { return nameOf(attemptStateNames[:], int(s)) }

// Open reports whether the attempt may still be alive on a host.
func (s AttemptState) Open() bool { return s <= AttemptRunning }

// MarshalText writes the word.
func (s AttemptState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *AttemptState) UnmarshalText(b []byte) error {
	return parseWord(s, attemptStateNames[:], b, "attempt state")
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("state(%d)", i)
}

// parseWord sets a value to the index of its name.
func parseWord[T ~uint8](value *T, names []string, word []byte, what string) error {
	i := slices.Index(names, string(word))
	if i < 0 {
		return fmt.Errorf("unknown %s %q", what, word)
	}
	*value = T(i)
	return nil
}

// Instance is a host that a provider created for the run.
type Instance struct {
	Provider string
	State    InstanceState
	Created  Stamp // when its creation was recorded
	Up       Stamp // when it first responded; 0: never
	Gone     Stamp // 0: it may exist
}

// InstanceState is the state of an instance (Record.How).
type InstanceState string

// The states of an instance. Each is recorded before the action that it describes.
const (
	// The create command is about to run, or has run.
	InstanceCreating InstanceState = "creating"
	InstanceUp       InstanceState = "up" // it has responded
	// The terminate command is about to run, or has run.
	InstanceTerminating InstanceState = "terminating"
	InstanceGone        InstanceState = "gone" // it no longer exists, or never did
)

// Age returns how long the instance has existed, as far as is known.
func (i Instance) Age(now Stamp) time.Duration {
	if i.Gone != 0 {
		now = i.Gone
	}
	return max(0, now.Sub(i.Created))
}

// foldInstance applies a record of an instance. A name is never reused, but an instance that was
// believed gone may be found again.
func (t *Table) foldInstance(r *Record) error {
	i, known := t.Instances[r.Host]
	state := InstanceState(r.How)
	switch {
	case r.Host == "":
		return fmt.Errorf("an instance without a name is %q", r.How)
	case known != (state != InstanceCreating), state == InstanceUp && i.State != InstanceCreating &&
		i.State != InstanceGone, state == InstanceGone && i.State == InstanceGone:
		return fmt.Errorf("the instance %s is %q and cannot become %q", r.Host, i.State, r.How)
	}
	i.State = state
	switch state {
	case InstanceCreating:
		i.Provider, i.Created = r.Reason, r.At
	case InstanceUp:
		i.Gone, i.Up = 0, cmp.Or(i.Up, r.At)
	case InstanceTerminating:
		i.Gone = 0
	case InstanceGone:
		i.Gone = r.At
	default:
		return fmt.Errorf("unknown state of an instance %q", r.How)
	}
	Insert(&t.Instances, r.Host, i)
	return nil
}

// InstanceText describes a record of an instance in a sentence.
func (r *Record) InstanceText() string {
	text := "the instance " + r.Host
	switch InstanceState(r.How) {
	case InstanceCreating:
		return text + " of provider " + r.Reason + " is being created"
	case InstanceTerminating:
		text += " is being terminated"
	default:
		text += " is " + r.How
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// AbsoluteCwd resolves the relative working directories of jobs against Base.
type AbsoluteCwd struct {
	Base string
	done map[*Options]*Options // see changed
}

// Resolve makes the working directory of s absolute if it is relative.
func (c *AbsoluteCwd) Resolve(s *Spec) {
	if s.Options == nil || s.Cwd == "" || filepath.IsAbs(s.Cwd) {
		return
	}
	s.Options = changedCopy(&c.done, s.Options, func(o *Options) { o.Cwd = filepath.Join(c.Base, o.Cwd) })
}
