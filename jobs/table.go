package jobs

import "fmt"

// Job is a row of the Table, the folded state of one job. Only Fold changes it.
type Job struct {
	Spec     *Spec
	Attempts []*Attempt // all attempts of the job, oldest first; N is index + 1
	Retry    Stamp      // queued, but not launched before this instant; 0: at once
	Seq      int64      // result number of the last terminal state; 0: none
	Reason   string     // why it is in this state, for people; "" if that is obvious
	// The same for programs; "" if they need not know.
	ReasonKind ReasonKind
	Priority   int32 // current priority
	Round      int32 // 1, 2, …
	Failures   int32 // tries used up in this round
	Counted    int32 // number of the attempt that counts (CountedAttempt); 0: none
	State      JobState
	Urgent     bool // its host failed, so it precedes other jobs
}

// Attempt is one execution. Only Fold changes it.
type Attempt struct {
	ID       AttemptID
	Host     string
	Reason   string
	Launched Stamp // by the dispatcher's clock
	Started  Stamp // by the host's clock
	Outcome  *Outcome
	Slot     int32
	// Round of the job; 0: the job was edited since, and the attempt no longer counts.
	Round int32
	// The value of Table.Machines for the machine on which it was launched; 0: unknown.
	Machine int32
	State   AttemptState
	Charged bool // it used up a try
}

// isOpen reports whether the attempt may be alive.
func (a *Attempt) isOpen() bool { return a.State.Open() }

// NeverRan reports whether the attempt was withdrawn before it started, for example a job that was
// sent to a host ahead of time and then needed elsewhere. It also returns true for an entry that
// only fills a number skipped after damage to the journal.
func (a *Attempt) NeverRan() bool {
	return a.Started == 0 && a.Outcome == nil && (a.State == AttemptSuperseded || a.State == AttemptCanceled ||
		a.State == AttemptLost && a.Host == "")
}

// Failed reports whether the attempt ended without success on its own. An attempt that was ended on
// request did not fail, nor did one whose result came too late to count, nor one that asked to be
// run again later.
func (a *Attempt) Failed() bool {
	return a.State == AttemptExited && a.Outcome != nil && !a.Outcome.OK() && !a.Postponed()
}

// Postponed reports whether the attempt asked to be run again later and used up no try.
func (a *Attempt) Postponed() bool { return !a.Charged && a.Outcome.AsksToRunLater() }

// Ran returns the number of attempts of the job that ran, or may have run.
func (j *Job) Ran() int {
	n := 0
	for _, a := range j.Attempts {
		if !a.NeverRan() {
			n++
		}
	}
	return n
}

// Open returns the attempts that may be alive, oldest first.
func (j *Job) Open() []*Attempt {
	var open []*Attempt
	for _, a := range j.Attempts {
		if a.State.Open() {
			open = append(open, a)
		}
	}
	return open
}

// AppendRecorded appends the attempts of the job whose outcomes are recorded to ids.
func (j *Job) AppendRecorded(ids []AttemptID) []AttemptID {
	for _, a := range j.Attempts {
		if a.Outcome != nil && !a.State.Open() {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// CountedAttempt returns the attempt whose end determined the state of the job, or nil if there is
// none. It is the attempt of this round whose end was recorded last before the job had its result.
// That need not be the newest one if several ran at a time. One of an earlier round counts if its end
// gave the job its result. One that was superseded does not count.
func (j *Job) CountedAttempt() *Attempt {
	if j.Counted == 0 {
		return nil
	}
	return j.Attempts[j.Counted-1]
}

// Last returns the newest attempt, or nil if there is none.
func (j *Job) Last() *Attempt {
	if len(j.Attempts) == 0 {
		return nil
	}
	return j.Attempts[len(j.Attempts)-1]
}

// Table is the state of a run, the result of folding its journal. It is not safe for concurrent
// use. The goroutine that owns the engine owns it.
type Table struct {
	Specs  []*Spec // known specifications; Specs[i].ID == i+1; may be ahead of Jobs
	Jobs   []Job   // accepted jobs; Jobs[i] is job i+1
	Counts [Skipped + 1]int
	Seq    int64 // the newest result number
	Acked  int64 // results up to here have reached the consumer
	Epoch  int
	// Past holds rows as they were when a new round of their job began, in the order in which those
	// rounds began. A row is kept as long as its result may not have reached the consumer.
	Past []Job
	// Cancels holds the jobs that the user canceled and whose attempts have not all ended. Requests
	// holds the names of the requests that were accepted, 32 bytes each. No name is ever dropped. A
	// file server may lose the removal of a request's file, and a file that reappears must not be
	// treated as a new request.
	Cancels  map[ID]Cancel
	Requests map[string]bool
	// Adjusted holds the jobs whose priority a request has changed, by the name of each request that
	// has no answer yet. A request changes jobs in ascending order. Of a request that has changed a
	// host, it holds an empty list. A relative change that a dispatcher has carried out in part is thus
	// not carried out twice.
	Adjusted map[string]Ranges
	// Requeues holds the jobs that the user requeued while they were being canceled, until their
	// next round begins.
	Requeues map[ID]bool
	// CanceledAll reports whether the user canceled the whole run and nothing was launched since.
	CanceledAll bool
	// Late maps each job that was reported to miss its deadline to the round of that report. A
	// later dispatcher does not report it again.
	Late map[ID]int32

	// Hosts maps host names to the settings that the user made and has not withdrawn.
	Hosts map[string]HostSetting

	// Instances holds all instances that the run has had, by name.
	Instances map[string]Instance
	// Machines numbers the machines that were found behind host names, from 1. At is the number of
	// the machine that was found last behind a name. Only the machine on which an attempt was
	// launched knows what happened to it.
	Machines map[Machine]int32
	At       map[string]int32

	// Inventory maps host names to the user's changes of the inventory file's host set.
	Inventory map[string]HostRequest

	Paused bool // the user paused launching and has not continued it

	// Results counts the results since a person started or continued the run, by state, for --halt.
	Results [Skipped + 1]int

	Ended bool // the last record of the run was written; new work clears it

	// Closed is how the dispatcher of Epoch ended. While it is zero, that dispatcher is running or has
	// crashed.
	Closed Closing

	// Damaged reports whether records of the journal may be missing. Replay sets it if a line was
	// lost, and Fold sets it for a KindDamaged record. Result numbers may then skip forward, but
	// never repeat.
	Damaged bool

	packed *packed // nil: specifications and rows are in Specs and Jobs
}

// Job returns the row of id, or nil if there is none. For a table of NewPacked it is a copy. For
// one of NewWorking it is valid until PackIdle.
func (t *Table) Job(id ID) *Job {
	if p := t.packed; p != nil {
		if !p.isWorking {
			return new(RowReader).Job(t, id)
		}
		if r := t.unpack(id); r != nil {
			return &r.job
		}
		return nil
	}
	if id < 1 || int(id) > len(t.Jobs) {
		return nil
	}
	return &t.Jobs[id-1]
}

// RowOf returns the row with the result that a record has given to its job. A newer round of the
// job may have begun, so the row may be one of Past.
func (t *Table) RowOf(r *Record) *Job {
	j := t.Job(r.Job)
	if !j.State.Terminal() || j.Seq != r.Seq {
		for i := len(t.Past) - 1; i >= 0; i-- {
			if t.Past[i].Seq == r.Seq {
				return &t.Past[i]
			}
		}
	}
	return j
}

// Attempt returns one attempt, or nil if there is none. For a table of NewPacked it may be a copy.
// For one of NewWorking it is valid until PackIdle.
func (t *Table) Attempt(id AttemptID) *Attempt {
	var j *Job
	if t.packed != nil && t.packed.open[id.Job] != nil {
		j = &t.packed.open[id.Job].job
	} else {
		j = t.Job(id.Job)
	}
	if j == nil || id.N < 1 || id.N > len(j.Attempts) {
		return nil
	}
	return j.Attempts[id.N-1]
}

// Unfinished returns the number of jobs that are not terminal.
func (t *Table) Unfinished() int { return t.Counts[Queued] + t.Counts[Running] }

// Judged returns Counts, except that jobs that a search ended count as succeeded. A search that
// ends some of its trials succeeds.
func (t *Table) Judged() (counts [Skipped + 1]int) {
	counts = t.Counts
	for j := range t.RowsIn(Canceled) {
		if j.ReasonKind == ReasonPoorValues {
			counts[Canceled]--
			counts[Succeeded]++
		}
	}
	return counts
}

// Cancel holds why a job is being ended, and the request for it.
type Cancel struct {
	Reason, Request string
	ReasonKind      ReasonKind
}

// CanceledAll is the Record.How of the response to a request that cancels the whole run.
const CanceledAll = "all"

// ThenRequeue is the Record.How of a KindCanceling record for a job that was requeued while it
// was being canceled.
const ThenRequeue = "requeue"

// Closing is how a dispatcher ended.
type Closing struct {
	How    string // one of the Closed constants
	Reason string
}

// Machine is a machine behind the name of a host. ID is random and was generated on the machine.
type Machine struct{ Host, ID string }

// HostRequest is a user's change of the set of hosts.
type HostRequest struct {
	Removed bool   // the host is not used, even if it is in the inventory file
	Options string // options of an added host, as in `hosts add`: "slots=4 tags=gpu"
}

// The values of Record.Count for KindInventory.
const (
	HostAsInFile = iota
	HostAdded
	HostRemoved
)

// machine records which machine is behind the name of a host.
func (t *Table) machine(r *Record) error {
	m := Machine{r.Host, r.Reason}
	if m.Host == "" || m.ID == "" {
		return fmt.Errorf("invalid machine %q of host %q", r.Reason, r.Host)
	}
	if t.Machines[m] == 0 {
		Insert(&t.Machines, m, int32(len(t.Machines)+1))
	}
	Insert(&t.At, m.Host, t.Machines[m])
	return nil
}

// askHost records a user's change of the set of hosts.
func (t *Table) askHost(r *Record) error {
	if r.Host == "" || r.Count < HostAsInFile || r.Count > HostRemoved {
		return fmt.Errorf("unknown change %d of the set of hosts by %q", r.Count, r.Host)
	}
	if r.Count == HostAsInFile {
		delete(t.Inventory, r.Host)
		return nil
	}
	Insert(&t.Inventory, r.Host, HostRequest{Removed: r.Count == HostRemoved, Options: r.Reason})
	return nil
}

// HostSetting is a user's setting for a host. The zero value is no setting.
type HostSetting struct {
	Use   HostUse
	Slots int32 // instead of the number from its rule; 0: the number from its rule
}

// HostUse is how far the user allows a host to be used.
type HostUse uint8

// The values of HostUse.
const (
	HostUsed    HostUse = iota
	HostDrained         // running attempts finish, nothing more starts
	HostStopped         // running attempts were ended to run elsewhere, nothing more starts
)

// setHost records a user's setting for a host.
func (t *Table) setHost(r *Record) error {
	if r.Host == "" || r.Count < 0 || r.Count > int(HostStopped) || r.Slot < 0 {
		return fmt.Errorf("unknown use %d, or too many slots (%d), of host %q", r.Count, r.Slot, r.Host)
	}
	if r.Request != "" && !t.Requests[r.Request] {
		Insert(&t.Adjusted, r.Request, Ranges{})
	}
	w := HostSetting{HostUse(r.Count), int32(r.Slot)}
	if w == (HostSetting{}) {
		delete(t.Hosts, r.Host)
		return nil
	}
	Insert(&t.Hosts, r.Host, w)
	return nil
}

// AcceptStored adds the specifications that are stored but not accepted yet to the table, as queued
// jobs. A user regards them as queued.
func (t *Table) AcceptStored() {
	if n := t.NumSpecs() - t.NumJobs(); n > 0 {
		_ = Fold(t, &Record{Kind: KindAccepted, Job: ID(t.NumJobs() + 1), Count: n})
	}
}
