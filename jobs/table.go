package jobs

import (
	"fmt"
	"strings"
)

// Job is a row of the Table: the folded state of one job.
// Only Fold writes it.
type Job struct {
	Spec     *Spec
	Attempts []*Attempt // every one it ever had, oldest first; N is index + 1
	Retry    Stamp      // queued, but not before this instant; 0: at once
	Seq      int64      // result number of the last terminal state, 0: none
	Reason   string     // why it is in this state, "" when that is obvious
	Priority int32      // as it is now
	Round    int32      // 1, 2 …
	Failures int32      // tries used up in this round
	State    JobState
	Urgent   bool // its host failed: goes before others
}

// Attempt is one execution. Only Fold writes it.
type Attempt struct {
	ID       AttemptID
	Host     string
	Reason   string
	Launched Stamp // dispatcher's clock
	Started  Stamp // host's clock
	Outcome  *Outcome
	Slot     int32
	Round    int32 // of the job; 0: the job was edited since, and the attempt counts for nothing any more
	Machine  int32 // the value of Table.Machines for the machine on which it was launched; 0: not known. Not kept by a Packer
	State    AttemptState
	Charged  bool // it used up a try
}

// NeverRan reports whether the attempt was taken back before it had started (a job handed
// to a host ahead of time and then needed elsewhere, for example), or is nothing but
// a number that was left free after damage to the journal.
func (a *Attempt) NeverRan() bool {
	return a.Started == 0 && a.Outcome == nil && (a.State == AttemptSuperseded || a.State == AttemptCanceled || a.State == AttemptLost && a.Host == "")
}

// Failed reports whether the attempt ended without success by itself. An attempt that
// was ended on request did not fail, nor did one whose result came too late to count.
func (a *Attempt) Failed() bool {
	return a.State == AttemptExited && a.Outcome != nil && !a.Outcome.OK()
}

// Ran returns how many attempts of the job have run, or may have.
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

// Last returns the newest attempt, nil if there was none.
func (j *Job) Last() *Attempt {
	if len(j.Attempts) == 0 {
		return nil
	}
	return j.Attempts[len(j.Attempts)-1]
}

// Table is the state of a run: what folding its journal gives. It is not safe
// for concurrent use; the goroutine that owns the core owns it.
type Table struct {
	Specs  []*Spec // known specs; Specs[i].ID == i+1; may be ahead of Jobs
	Jobs   []Job   // accepted jobs; Jobs[i] is job i+1
	Counts [Skipped + 1]int
	Seq    int64 // the newest result number
	Acked  int64 // results up to here have reached the consumer
	Epoch  int
	// Past are rows as they were when a new round of their job began, in the order in
	// which those began, as long as that result may not have reached the consumer.
	Past []Job
	// Cancels are the jobs that a person wants ended and whose attempts have not all
	// ended yet. Requests are the names of the requests that were taken in, 32 bytes
	// each. None is ever forgotten: a file server may lose the removal of a request's file,
	// and the file that is back must not be taken for a new request.
	Cancels  map[ID]Cancel
	Requests map[string]bool
	// Requeues are the jobs that a person has requeued while they were being canceled, until
	// their next round begins.
	Requeues map[ID]bool
	// CanceledAll reports whether a person canceled the whole run and nothing was launched since.
	CanceledAll bool
	// Late are the jobs of which was told that they cannot meet their deadlines, and in which
	// round that was: a later dispatcher does not tell of them again.
	Late map[ID]int32

	// Hosts is what people asked of hosts and have not taken back, by name.
	Hosts map[string]HostWish

	// Instances are all instances that the run has had, by name.
	Instances map[string]Instance
	// Machines numbers the machines that were found behind hosts' names, from 1 on. At is
	// the number of the one that was found last behind a name. Only the machine on which an
	// attempt was launched can tell what happened to it.
	Machines map[Machine]int32
	At       map[string]int32

	// Inventory is what people asked for beside the inventory file, by name of the host.
	Inventory map[string]HostRequest

	Paused bool // a person has paused launching, and has not continued it

	Ended bool // the last record of the run was written; cleared by new work

	// Closed is how the last dispatcher that recorded its end ended. If its epoch is not
	// Epoch, the dispatcher of Epoch continues or has crashed.
	Closed Closing

	// Damaged reports that records of the journal may be missing. Replay sets it
	// when a line was lost, and Fold for a KindDamaged record. Result numbers may
	// then jump forward; they still never repeat.
	Damaged bool

	packed *packed // nil: rows are in Jobs
}

// Job returns the row of id, nil if there is none. Of a packed table it is a copy.
func (t *Table) Job(id ID) *Job {
	if t.packed != nil {
		return new(RowReader).Job(t, id)
	}
	if id < 1 || int(id) > len(t.Jobs) {
		return nil
	}
	return &t.Jobs[id-1]
}

// Attempt returns one attempt, nil if there is none. Of a packed table it may be a copy.
func (t *Table) Attempt(id AttemptID) *Attempt {
	var j *Job
	if t.packed != nil {
		j = t.packed.open[id.Job]
	}
	if j == nil {
		j = t.Job(id.Job)
	}
	if j == nil || id.N < 1 || id.N > len(j.Attempts) {
		return nil
	}
	return j.Attempts[id.N-1]
}

// Unfinished returns how many jobs are not terminal.
func (t *Table) Unfinished() int { return t.Counts[Queued] + t.Counts[Running] }

// Pruned begins the reason of every job that a search has ended for its poor values.
const Pruned = "halving: "

// Judged returns Counts with the jobs that a search has ended among those that succeeded: a
// search that ends some of its trials succeeds.
func (t *Table) Judged() (counts [Skipped + 1]int) {
	if counts = t.Counts; counts[Canceled] == 0 {
		return counts
	}
	for j := range t.Rows() {
		if j.State == Canceled && strings.HasPrefix(j.Reason, Pruned) {
			counts[Canceled]--
			counts[Succeeded]++
		}
	}
	return counts
}

// Cancel holds the reason why a job is being ended, and the request for it.
type Cancel struct{ Reason, Request string }

// CanceledAll is the Record.How of an answered request to cancel the whole run.
const CanceledAll = "all"

// ThenRequeue is the Record.How of a KindCanceling record for a job that was requeued while it
// was being canceled.
const ThenRequeue = "requeue"

// Closing is how a dispatcher ended.
type Closing struct {
	Epoch  int
	How    string // one of the Closed constants
	Reason string
}

// Machine is a machine behind the name of a host. ID is random and was made on the machine.
type Machine struct{ Host, ID string }

// HostRequest is how a person changed the set of hosts.
type HostRequest struct {
	Removed bool   // the host is not used, also if it is in the inventory file
	Options string // of an added host, as in `hosts add`: "slots=4 tags=gpu"
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
		return fmt.Errorf("no machine %q can be behind host %q", r.Reason, r.Host)
	}
	if t.Machines == nil {
		t.Machines, t.At = map[Machine]int32{}, map[string]int32{}
	}
	if t.Machines[m] == 0 {
		t.Machines[m] = int32(len(t.Machines) + 1)
	}
	t.At[m.Host] = t.Machines[m]
	return nil
}

// askHost keeps how a person changed the set of hosts.
func (t *Table) askHost(r *Record) error {
	if r.Host == "" || r.Count < HostAsInFile || r.Count > HostRemoved {
		return fmt.Errorf("nobody can ask for change %d of the set of hosts by %q", r.Count, r.Host)
	}
	if r.Count == HostAsInFile {
		delete(t.Inventory, r.Host)
		return nil
	}
	if t.Inventory == nil {
		t.Inventory = map[string]HostRequest{}
	}
	t.Inventory[r.Host] = HostRequest{Removed: r.Count == HostRemoved, Options: r.Reason}
	return nil
}

// HostWish is what a person asked of a host; the zero value is nothing.
type HostWish struct {
	Use   HostUse
	Slots int32 // instead of as many as its rule gives; 0: those
}

// HostUse is how far a person lets a host be used.
type HostUse uint8

// The uses of a host.
const (
	HostUsed    HostUse = iota
	HostDrained         // what runs there finishes, nothing more starts
	HostStopped         // what ran there was ended to run elsewhere, nothing more starts
)

// wish keeps what a person asked of a host.
func (t *Table) wish(r *Record) error {
	if r.Host == "" || r.Count < 0 || r.Count > int(HostStopped) || r.Slot < 0 {
		return fmt.Errorf("nobody can ask for use %d and %d slots of host %q", r.Count, r.Slot, r.Host)
	}
	w := HostWish{HostUse(r.Count), int32(r.Slot)}
	if w == (HostWish{}) {
		delete(t.Hosts, r.Host)
		return nil
	}
	if t.Hosts == nil {
		t.Hosts = map[string]HostWish{}
	}
	t.Hosts[r.Host] = w
	return nil
}

// AcceptStored adds jobs that are stored and not part of the run yet to the table, as
// queued jobs, which is what they are to a person.
func (t *Table) AcceptStored() {
	if n := t.NumSpecs() - t.NumJobs(); n > 0 {
		_ = Fold(t, &Record{Kind: KindAccepted, Job: ID(t.NumJobs() + 1), Count: n})
	}
}
