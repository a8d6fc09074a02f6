package runview

import (
	"context"
	"errors"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// Source is a run that can be observed. Its methods may be called from any goroutine; each
// returns when ctx ends.
type Source interface {
	// Snapshot returns a snapshot of the run with what was asked for, all of one instant.
	// When nothing has changed since Query.After it waits for that, at most Query.Wait.
	Snapshot(ctx context.Context, ask Query) (*Snapshot, error)
	// Match returns all jobs that a filter matches, and the cost of ending them.
	Match(ctx context.Context, filter string) (jobs.Ranges, Cost, error)
	// Cost returns the cost of ending these jobs.
	Cost(ctx context.Context, which jobs.Ranges) (Cost, error)
	// Read returns a piece of what an attempt has printed.
	Read(ctx context.Context, r Read) (*Piece, error)
	// Do asks for an action and returns when it is carried out, or refused.
	Do(ctx context.Context, a Action) (*Answer, error)
}

// ErrGone is returned by a Source that was closed.
var ErrGone = errors.New("the view of the run was closed")

// Query describes what a screen wants to see. What is nil or zero is not looked up.
type Query struct {
	After  uint64        // Snapshot.Version that the screen has; 0: any snapshot will do, at once
	Wait   time.Duration // how long to wait for a newer one
	Jobs   *JobsWindow
	Table  *TableQuery
	Groups bool // the failures by cause
	Events *EventsWindow
	Focus  jobs.ID // the job whose Detail is requestTTL
}

// JobsWindow is a piece of the list of jobs: those that Filter matches, in the order of Sort.
// The window follows the job Cursor, with Above rows before it. If that is 0 or not in the
// list, the window is placed around position At.
type JobsWindow struct {
	Filter  string // the package query has its language; "" matches all
	Sort    Sort
	Reverse bool
	Cursor  jobs.ID
	At      int // position in the list, 0 is the first; beyond the end is the last
	Above   int
	Rows    int // at most MaxRows
}

// MaxRows bounds a window.
const MaxRows = 1000

// Sort is a column to sort by.
type Sort uint8

// The columns. SortAge is the default: running, waiting to retry, failed, queued, and then
// finished jobs, newest first.
const (
	SortAge Sort = iota
	SortID
	SortState
	SortHost
	SortTry
	SortTime
	SortProgress
	SortName
	SortPriority
	SortQueue
	SortMemory
	Sorts // how many there are
)

var sortNames = [...]string{"age", "id", "state", "host", "try", "time", "progress", "name", "priority", "queue", "memory"}

// String is the word in the head of the list and in `:sort`.
func (s Sort) String() string {
	if int(s) < len(sortNames) {
		return sortNames[s]
	}
	return "?"
}

// EventsWindow is a piece of what has happened, oldest first. It ends Back lines
// before the newest line that matches.
type EventsWindow struct {
	Filter string // text, host:ws01, job:17
	All    bool   // every record; otherwise those that are Notable
	Back   int
	Rows   int // at most MaxRows
}

// Read asks for a piece of an attempt's output; a source may return less than its Limit.
type Read = socket.Read

// Piece is what a Read found.
type Piece = socket.Piece

// Verb is something that a person asks for. Those that become requests have the names of
// rundir.
type Verb string

// The verbs. Those on jobs take Jobs and leave alone those they make no sense for.
const (
	Cancel   Verb = rundir.DoCancel   // end jobs that are queued or run
	Requeue  Verb = rundir.DoRequeue  // a new round for jobs that are over
	Edit     Verb = rundir.DoEdit     // change jobs that are queued or over, by Edit; those that are over get a new round
	Priority Verb = rundir.DoPriority // Number, or added to each one's own with Relative

	Pause     Verb = rundir.DoPause     // launch nothing, until …
	Continue  Verb = rundir.DoContinue  // … this, which also ends a drain of the run
	DrainHost Verb = rundir.DoDrainHost // Host finishes what runs and starts nothing more
	StopHost  Verb = rundir.DoStopHost  // Host's jobs are ended and queued again; it starts nothing more
	UseHost   Verb = rundir.DoUseHost   // Host is used again
	Slots     Verb = rundir.DoSlots     // Host gets Number slots, or so many more with Relative

	AddHost     Verb = rundir.DoAddHost     // Host becomes a host of the run, with the options in Text
	RemoveHost  Verb = rundir.DoRemoveHost  // Host finishes what runs there and leaves the run
	ReloadHosts Verb = rundir.DoReloadHosts // the inventory file is read again

	DrainRun  Verb = rundir.DoDrain // running jobs finish, nothing starts, then the dispatcher ends; Continue undoes it
	StopRun   Verb = rundir.DoStop  // the dispatcher ends; what runs goes on, resume adopts it
	CancelRun Verb = "cancel-run"   // everything is ended
	Resume    Verb = "resume"       // a dispatcher is started for a run that has none

	Reply Verb = "reply" // Text answers the question Number; "" refuses it
)

// Action is what a person asks for.
type Action struct {
	Do       Verb
	Jobs     jobs.Ranges
	Host     string
	Number   int
	Relative bool
	Text     string // of Reply; the options of AddHost
	Waiting  bool   // of Cancel: only jobs that still wait; what has started meanwhile is left alone
	Edit     *jobs.Change
	Why      string // for the event log; "": by a person
}

// Answer describes what came of an action.
type Answer struct {
	Done    int         // jobs, hosts … it was carried out for
	Left    int         // left alone
	Text    string      // what happened or why not, one sentence
	Changed jobs.Ranges // jobs that a Requeue would bring back: what an undo needs
}

// Refused is the error of an action that makes no sense: its text says why.
type Refused = socket.RefusedError

// Jobs returns the action for one job.
func (v Verb) Jobs(id jobs.ID) Action { return Action{Do: v, Jobs: jobs.One(id)} }

// Phase is the state of a job for people, which includes what it waits for.
type Phase uint8

// The phases, in the order of SortAge.
const (
	Ending  Phase = iota // runs, and a cancel of it is under way
	Running              // an attempt has started, as far as is known
	Away                 // runs on a host that cannot be reached now
	Handed               // handed to a host and not known to have started
	Retry                // failed or lost, waits for its next try
	Failed
	TimedOut
	Queued
	Waits // for other jobs to end
	Succeeded
	Canceled
	Skipped
	Phases // how many there are
)

var phaseNames = [...]string{"ending", "run", "away", "handed", "retry", "fail", "timeout", "queue", "waits", "ok", "cancel", "skip"}

// String is the word in the list, at most seven letters.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "?"
}

// Terminal reports whether the job is over.
func (p Phase) Terminal() bool { return p == Failed || p == TimedOut || p >= Succeeded }

// Snapshot is the run at one instant.
type Snapshot struct {
	Version uint64 // grows with each change
	At      time.Time
	Run     Run
	Status  RunStatus
	Over    string // how it ended, in a sentence; "" while it lasts
	// Trouble holds sentences, not cleaned, about a run that nobody dispatches: hosts that were
	// useless, and where processes may still be alive.
	Trouble []string

	Total      int  // accepted jobs
	More       bool // more may come: standard input is open
	Phases     [Phases]int
	Stragglers int // running far longer than others of their queue
	Tries      int // of a job that sets no number itself

	SlotsBusy, Slots int
	Usable           float64       // slots of hosts that take new jobs now, less what others use there
	Rate             float64       // finished jobs per second over the last minute
	Rates            []float64     // the same of the last minutes, oldest first: a sparkline
	ETA              time.Duration // until the queue is done; 0: not known
	Spread           time.Duration // about two times in three it ends within ETA ± Spread; 0: not known

	Paused   bool   // by a person
	Draining string // why nothing more is launched; "": jobs are launched
	Problem  string // the journal cannot be written, …; "": all is well
	Stuck    string // why no host starts a job though jobs are ready, to follow "nothing can start: "; "": one may
	Question *live.Question

	Hosts  []live.Host
	Jobs   *Page
	Table  *Table
	Groups []Group // failures, most frequent first, at most MaxGroups
	Events *Events
	Detail *Detail
}

// MaxGroups bounds Snapshot.Groups. The last one stands for all further ones.
const MaxGroups = 200

// Run names the run and its dispatcher.
type Run struct {
	Name, UID, Dir string
	Lab            string // the inventory's name for people: its file, or "this machine"
	Created        time.Time
	Epoch          int
	Owner          string // user, machine and process; "": nobody
	Machine        string // of the dispatcher; "": nobody
	Standby        string // the machines on which a standby dispatcher watches
	Best           string // what a search looks for, COLUMN:max or COLUMN:min; "": the run is not a search
}

// Page is a piece of the list of jobs.
type Page struct {
	Filter  string
	Wrong   string // what is wrong with the filter; it then matches nothing
	Sort    Sort
	Reverse bool
	Matched int // rows in the whole list
	First   int // position of Rows[0]
	Cursor  int // position of JobsWindow.Cursor; -1: not in the list
	Rows    []Row
	Settled time.Duration // age of the order: long lists are sorted less often than they change
}

// Row is a line of the list of jobs.
type Row struct {
	ID        jobs.ID
	Phase     Phase
	Title     string // name, or command
	Queue     string
	Params    []jobs.Param
	Priority  int
	Place     int // queued: how many start before it, by order alone; 0: the next. -1: not known
	Host      string
	Slot      int
	Copies    int // further attempts that are open, of a speculative copy
	Attempt   int // number of the newest; 0: none yet
	Failures  int // tries used up
	Tries     int // maximum
	Round     int
	Started   time.Time // of the attempt that runs, or that counted
	Ended     time.Time
	Retry     time.Time // Phase Retry: when
	Progress  float64   // 0 to 1; -1: it has said nothing
	Said      string    // its DCS_PROGRESS as written, if that is not a fraction
	Cause     string    // "exit 137", "timeout", …: why it failed, or why its last try did
	Last      string    // the last line of stderr of that try
	Straggler bool
	CPU       time.Duration
	MaxRSS    int64 // bytes, of its largest process; up to jobs.MemoryFloor: at most that
}

// Group are failed jobs with one cause.
type Group struct {
	Cause string // exit 137, SIGSEGV, timeout …
	Last  string // last line of stderr
	Count int
	Tries int         // failed tries of jobs that are being tried again, not in Count
	Hosts []string    // where, most frequent first, at most five
	Jobs  []Row       // some of them, newest first, at most MaxGroupRows
	Which jobs.Ranges // all of Count
}

// MaxGroupRows bounds Group.Jobs.
const MaxGroupRows = 20

// Events is a piece of the event log.
type Events struct {
	Total int // lines that match, of those kept
	Back  int // lines after Lines
	Wrong string
	Cut   bool // older ones are not kept
	Lines []Event
}

// Event is something that happened.
type Event struct {
	Seq  uint64
	At   time.Time
	Host string
	Job  jobs.ID
	Text string
	Bad  bool // a failure, a loss: worth a warning sign
}

// Detail is all that is known of one job.
type Detail struct {
	Row        Row
	*jobs.Spec               // with Options, whatever the job sets
	Estimate   time.Duration // how long such a job takes: the user's guess, or mean + 2 deviations; 0: not known
	Why        string        // one sentence: why it is not running, or what it is doing
	Asked      bool          // the dispatcher said so
	Attempts   []Attempt
}

// Attempt is one execution.
type Attempt struct {
	ID       jobs.AttemptID
	Host     string
	Slot     int
	Round    int
	State    string
	Result   string // exit 0, SIGKILL, timeout …; "" if there is none
	Reason   string
	Launched time.Time
	Started  time.Time
	Ended    time.Time
	CPU      time.Duration
	MaxRSS   int64  // as in Row
	Last     string // last line of stderr
	Charged  bool   // it used up a try
	Out, Err string // paths; host:path where only the host has them
}

// Cost is the cost of ending some jobs.
type Cost struct {
	Queued  int           // of them, waiting
	Running int           // of them, running
	Handed  int           // of them, handed to a host and not known to have started
	Over    int           // of them, over already
	Lost    time.Duration // time of slots spent so far by what runs
}
