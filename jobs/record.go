package jobs

import (
	"fmt"
	"path/filepath"
	"time"
)

// Kind names what a record says.
type Kind string

// The kinds of record. Facts, not inputs: a record states what was decided or
// what happened, never what should be worked out again on replay.
const (
	KindEpoch      Kind = "epoch"      // a dispatcher took the run over: Epoch, Owner, Files
	KindAccepted   Kind = "accepted"   // jobs Job … Job+Count-1 of jobs.jsonl are part of the run
	KindLaunching  Kind = "launching"  // attempt Job.N is about to be handed to Host; fsynced before it is
	KindRunning    Kind = "running"    // the attempt has started, in Slot, at Started
	KindExited     Kind = "exited"     // the attempt is over with Outcome; the job becomes Next
	KindLost       Kind = "lost"       // the attempt is over or given up, no outcome, Reason; the job becomes Next
	KindSuperseded Kind = "superseded" // the attempt never started, or its result came too late; the job becomes Next
	KindCanceled   Kind = "canceled"   // the attempt was ended on request (Outcome if known); the job becomes Next
	KindJob        Kind = "job"        // the job becomes Next without an attempt: canceled, skipped, failed for a reason
	KindForgiven   Kind = "forgiven"   // the attempt uses up no try after all: its host was to blame, Reason
	KindCanceling  Kind = "canceling"  // a person wants the job ended; its open attempts are being ended, Reason. How ThenRequeue: it is to be requeued when they have ended
	KindRequest    Kind = "request"    // the answer to Request, which is never carried out again: done for Count, N left alone, Job is the first submitted one. Reason: why it was refused
	KindRound      Kind = "round"      // requeued by a person: a new round, queued, tries counted afresh
	KindEdited     Kind = "edited"     // the job is from now on as Spec says; one that was over begins a new round; Count is the round it is in then, Reason
	KindPriority   Kind = "priority"   // the job's priority is now Priority
	KindHost       Kind = "host"       // what a person asked of Host holds until it is taken back: Count is a HostUse, Slot how many it was given, 0: by its rule
	KindMachine    Kind = "machine"    // behind the name Host is from now on the machine whose id is Reason: attempts that are launched there are its attempts
	KindInventory  Kind = "inventory"  // a person asked that Host be part of the run (Count 1, Reason: its options) or not (Count 2), whatever the inventory file says; 0 takes that back
	KindPause      Kind = "pause"      // a person paused launching (Count 1) or continued it (0); holds until changed
	KindInstance   Kind = "instance"   // How (an InstanceState) the instance Host of a provider is; Reason: the provider of one that is being created, else why
	KindAcked      Kind = "acked"      // every result up to and including Seq has reached the consumer
	KindEvent      Kind = "event"      // something a person may want to read, about Host or Job; changes no state. Count > 0: that the job cannot meet its deadline, told once in round Count
	KindDamaged    Kind = "damaged"    // earlier records may be missing, and Reason says why; holds for every later dispatcher
	KindEnded      Kind = "ended"      // every job is terminal and the hosts are cleaned up; Reason empty if all is well
	KindClosed     Kind = "closed"     // the dispatcher of this epoch has ended: How, Reason. Its last record; there is none after a crash
)

// Known reports whether this program knows the kind. A record of another kind is from a
// newer version.
func (k Kind) Known() bool {
	switch k {
	case KindEpoch, KindAccepted, KindLaunching, KindRunning, KindExited, KindLost, KindSuperseded, KindCanceled, KindJob,
		KindForgiven, KindCanceling, KindRequest, KindRound, KindEdited, KindPriority, KindHost,
		KindMachine, KindInventory, KindPause, KindInstance, KindAcked,
		KindEvent, KindDamaged, KindEnded, KindClosed:
		return true
	}
	return false
}

// Record is one fact of the journal. Which fields count depends on Kind.
type Record struct {
	Kind     Kind       `json:"k"`
	At       Stamp      `json:"t"`          // when it was recorded, dispatcher's clock
	Job      ID         `json:"j,omitzero"` // with N: the attempt Job.N
	N        int        `json:"n,omitzero"`
	Host     string     `json:"h,omitzero"` // inventory name
	Slot     int        `json:"slot,omitzero"`
	Count    int        `json:"count,omitzero"`
	Next     JobState   `json:"next,omitzero"` // omitted: queued
	Charged  bool       `json:"charged,omitzero"`
	Retry    Stamp      `json:"retry,omitzero"` // do not launch again before
	Seq      int64      `json:"seq,omitzero"`   // result number, given when the job becomes terminal
	Outcome  *Outcome   `json:"o,omitzero"`
	Reason   string     `json:"why,omitzero"`
	Priority int        `json:"prio,omitzero"`
	Started  Stamp      `json:"started,omitzero"`
	Epoch    int        `json:"epoch,omitzero"`
	Owner    string     `json:"owner,omitzero"`
	Files    []FileMark `json:"files,omitzero"`
	How      string     `json:"how,omitzero"`  // one of the Closed constants, an InstanceState, of a request CanceledAll, or of a cancel ThenRequeue
	Request  string     `json:"req,omitzero"`  // name of the request that caused the record; "": none did
	Spec     *Spec      `json:"spec,omitzero"` // the last field, also of the line
}

// FileMark fixes an older journal file: what lies beyond Length is not part of
// the run, whoever wrote it.
type FileMark struct {
	Name   string `json:"name"`
	Length int64  `json:"len"`
	CRC    uint32 `json:"crc"` // CRC-32C of the first Length bytes
}

// The ways in which a dispatcher ends, in Record.How.
const (
	ClosedDone    = "done"     // every job is terminal
	ClosedDrained = "drained"  // asked to drain, or too many failures
	ClosedStopped = "stopped"  // asked to stop; attempts may be running
	ClosedNoHosts = "no_hosts" // no host could be used
)

// Attempt returns the attempt a record is about.
func (r *Record) Attempt() AttemptID { return AttemptID{r.Job, r.N} }

// JobState is where a job stands. The zero value is Queued.
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

// Terminal reports whether the round is over.
func (s JobState) Terminal() bool { return s >= Succeeded }

// MarshalText writes the word.
func (s JobState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *JobState) UnmarshalText(b []byte) error {
	i, err := indexOf(jobStateNames[:], string(b), "job state")
	*s = JobState(i)
	return err
}

// AttemptState is where one execution stands.
type AttemptState uint8

// The attempt states. Launching means handed (or about to be handed) to a host:
// it may be buffered there, or may never have arrived.
const (
	AttemptLaunching AttemptState = iota
	AttemptRunning
	AttemptExited     // over, with a known outcome
	AttemptLost       // given up or proved dead without an outcome
	AttemptSuperseded // never started, withdrawn, or another attempt's result was accepted
	AttemptCanceled   // ended because a person asked
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
	i, err := indexOf(attemptStateNames[:], string(b), "attempt state")
	*s = AttemptState(i)
	return err
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("state(%d)", i)
}

func indexOf(names []string, word, what string) (int, error) {
	for i, n := range names {
		if n == word {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q", what, word)
}

// Instance is a host that a provider created for the run.
type Instance struct {
	Provider string
	State    InstanceState
	Created  Stamp // when its creation was recorded
	Up       Stamp // when it first answered; 0: never
	Gone     Stamp // 0: it may exist
}

// InstanceState is how far an instance has come, in Record.How.
type InstanceState string

// The states of an instance. Each is recorded before what it says is done.
const (
	InstanceCreating    InstanceState = "creating"    // the create command is about to run, or has run
	InstanceUp          InstanceState = "up"          // it has answered
	InstanceTerminating InstanceState = "terminating" // the terminate command is about to run, or has run
	InstanceGone        InstanceState = "gone"        // it does not exist any more, or never did
)

// Lasted returns how long the instance has existed, as far as is known.
func (i Instance) Lasted(now Stamp) time.Duration {
	if i.Gone != 0 {
		now = i.Gone
	}
	return max(0, now.Sub(i.Created))
}

// instance applies a record of an instance. A name is never used twice, but an instance
// that was taken for gone may be found again.
func (t *Table) instance(r *Record) error {
	i, known := t.Instances[r.Host]
	state := InstanceState(r.How)
	switch {
	case r.Host == "":
		return fmt.Errorf("an instance without a name is %q", r.How)
	case known != (state != InstanceCreating), state == InstanceUp && i.State != InstanceCreating && i.State != InstanceGone, state == InstanceGone && i.State == InstanceGone:
		return fmt.Errorf("the instance %s is %q and cannot become %q", r.Host, i.State, r.How)
	}
	switch i.State = state; state {
	case InstanceCreating:
		i.Provider, i.Created = r.Reason, r.At
	case InstanceUp:
		i.Gone = 0
		if i.Up == 0 {
			i.Up = r.At
		}
	case InstanceTerminating:
		i.Gone = 0
	case InstanceGone:
		i.Gone = r.At
	default:
		return fmt.Errorf("no instance is %q", r.How)
	}
	if t.Instances == nil {
		t.Instances = map[string]Instance{}
	}
	t.Instances[r.Host] = i
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

// AbsoluteCwd makes the relative working directories of jobs absolute, below Base.
type AbsoluteCwd struct {
	Base string
	done map[*Options]*Options // jobs share options: each is copied once
}

// Resolve changes the working directory of s if it is relative.
func (c *AbsoluteCwd) Resolve(s *Spec) {
	if s.Options == nil || s.Cwd == "" || filepath.IsAbs(s.Cwd) {
		return
	}
	o := c.done[s.Options]
	if o == nil {
		copied := *s.Options
		copied.Cwd = filepath.Join(c.Base, s.Cwd)
		o = &copied
		if c.done == nil {
			c.done = map[*Options]*Options{}
		}
		c.done[s.Options] = o
	}
	s.Options = o
}
