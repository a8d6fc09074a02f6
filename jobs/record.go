package jobs

// Kind names what a record says.
type Kind string

// The kinds of record. Facts, not inputs: a record says what was decided or
// what happened, never what should be worked out again on replay.
const (
	KindEpoch      Kind = "epoch"      // a dispatcher took the run over: Epoch, Owner, Files
	KindAccepted   Kind = "accepted"   // jobs Job … Job+Count-1 of jobs.jsonl are part of the run
	KindLaunching  Kind = "launching"  // attempt Job.N is about to be handed to Host; fsynced before it is
	KindRunning    Kind = "running"    // the attempt has started, in Slot, at Started
	KindExited     Kind = "exited"     // the attempt is over with Outcome; the job becomes Next
	KindLost       Kind = "lost"       // the attempt is over or given up, no outcome, Reason; the job becomes Next
	KindSuperseded Kind = "superseded" // the attempt never started, or its result came too late; the job becomes Next
	KindCancelled  Kind = "cancelled"  // the attempt was ended on request (Outcome if known); the job becomes Next
	KindJob        Kind = "job"        // the job becomes Next without an attempt: cancelled, skipped, failed for a reason
	KindForgiven   Kind = "forgiven"   // the attempt uses up no try after all: its host was to blame, Reason
	KindCancelling Kind = "cancelling" // a person wants the job ended; its open attempts are being ended, Reason
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
	case KindEpoch, KindAccepted, KindLaunching, KindRunning, KindExited, KindLost, KindSuperseded, KindCancelled, KindJob,
		KindForgiven, KindCancelling, KindRequest, KindRound, KindEdited, KindPriority, KindHost,
		KindMachine, KindInventory, KindPause, KindInstance, KindAcked,
		KindEvent, KindDamaged, KindEnded, KindClosed:
		return true
	}
	return false
}

// Record is one fact of the journal. Which fields count depends on Kind.
type Record struct {
	Kind     Kind       `json:"k"`
	At       Stamp      `json:"t"`           // when it was recorded, dispatcher's clock
	Job      ID         `json:"j,omitempty"` // with N: the attempt Job.N
	N        int        `json:"n,omitempty"`
	Host     string     `json:"h,omitempty"` // inventory name
	Slot     int        `json:"slot,omitempty"`
	Count    int        `json:"count,omitempty"`
	Next     JobState   `json:"next,omitempty"` // omitted: queued
	Charged  bool       `json:"charged,omitempty"`
	Retry    Stamp      `json:"retry,omitempty"` // do not launch again before
	Seq      int64      `json:"seq,omitempty"`   // result number, given when the job becomes terminal
	Outcome  *Outcome   `json:"o,omitempty"`
	Reason   string     `json:"why,omitempty"`
	Priority int        `json:"prio,omitempty"`
	Started  Stamp      `json:"started,omitempty"`
	Epoch    int        `json:"epoch,omitempty"`
	Owner    string     `json:"owner,omitempty"`
	Files    []FileMark `json:"files,omitempty"`
	How      string     `json:"how,omitempty"`  // one of the Closed constants, or an InstanceState
	Request  string     `json:"req,omitempty"`  // name of the request that caused the record; "": none did
	Spec     *Spec      `json:"spec,omitempty"` // the last field, also of the line
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
