package runview

import (
	"context"
	"errors"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
)

// Source is a run that can be observed. Its methods are safe for concurrent use. Each returns when
// ctx is done.
type Source interface {
	// Snapshot returns a snapshot of the run, all of one instant. If nothing has changed since
	// Query.After, it waits for a change, for at most Query.Wait.
	Snapshot(ctx context.Context, ask Query) (*Snapshot, error)
	// Match returns all jobs that a filter matches.
	Match(ctx context.Context, filter string) (jobs.Ranges, error)
	// Cost returns the cost of ending these jobs.
	Cost(ctx context.Context, which jobs.Ranges) (Cost, error)
	// Read returns a part of an attempt's output.
	Read(ctx context.Context, r Read) (*Piece, error)
	// Do requests an action and returns when it has been carried out or refused. The source sets the
	// fields By, At, and Epoch.
	Do(ctx context.Context, q action.Request) (*Answer, error)
	// Reply answers a question of the dispatcher; "" refuses it.
	Reply(ctx context.Context, id int64, text string) error
}

// ErrGone is returned by a Source that was closed.
var ErrGone = errors.New("the view of the run was closed")

// Query describes what a screen shows. Fields that are nil or zero are not computed.
type Query struct {
	After  uint64        // Snapshot.Version that the screen has; 0: return any snapshot immediately
	Wait   time.Duration // maximum time to wait for a newer version
	Jobs   *JobsWindow
	Table  *TableQuery
	Groups bool // the failures by cause
	Events *EventsWindow
	Focus  jobs.ID // the job whose Detail is requested
	Host   string  // the host whose HostDetail is requested
}

// JobsWindow selects a part of the list of jobs that Filter matches, in the order of Sort. The
// window follows the job Cursor, with Above rows before it. If Cursor is 0 or not in the list, the
// window is placed around position At.
type JobsWindow struct {
	Filter  string // the package query has its language; "" matches all
	Sort    Sort
	Reverse bool
	Cursor  jobs.ID
	At      int // position in the list; 0: the first; too large: the last
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
	Sorts // number of columns
)

var sortNames = [Sorts]string{"age", "id", "state", "host", "try", "time", "progress", "name", "priority", "queue",
	"memory"}

// SortNames returns the words of all columns, in their order.
func SortNames() []string { return sortNames[:] }

// String returns the word in the header of the list and in `:sort`.
func (s Sort) String() string {
	if int(s) < len(sortNames) {
		return sortNames[s]
	}
	return "?"
}

// EventsWindow selects the newest events that match, oldest first.
type EventsWindow struct {
	Filter string // text, host=ws01, job=17
	All    bool   // all records, not only those for which IsNotable holds
	Rows   int    // at most MaxEvents
}

// Read asks for a part of an attempt's output. A source may return less than its Limit.
type Read = socket.Read

// Piece is the result of a Read.
type Piece = socket.Piece

// Answer describes the result of an action.
type Answer struct {
	Done    int         // number of jobs or hosts that it was carried out for
	Left    int         // number of jobs that were left alone
	Text    string      // what happened or why not, one sentence
	Changed jobs.Ranges // jobs that a Requeue would restore, for an undo
}

// Refused is the error of an action that makes no sense. Its text is the reason.
type Refused = socket.RefusedError

// Phase is the state of a job for display. It also tells what a queued job waits for.
type Phase uint8

// The phases, in the order of SortAge.
const (
	Ending    Phase = iota // runs, and a cancel of it is under way
	Running                // an attempt has started
	Suspended              // has started, and is suspended because a person uses its host
	Away                   // runs on a host that cannot be reached now
	Sent                   // sent to a host, and not known to have started
	Retry                  // failed or lost, waits for its next try
	Failed
	TimedOut
	Queued
	Waits // depends on other jobs that have not ended
	Succeeded
	Canceled
	Skipped
	Phases // number of phases
)

var phaseNames = [...]string{"ending", "run", "suspend", "away", "sent", "retry", "fail", "timeout", "queue", "waits",
	"ok", "cancel", "skip"}

// String returns the word in the list, at most seven letters.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "?"
}

// Terminal reports whether the job is finished.
func (p Phase) Terminal() bool { return p == Failed || p == TimedOut || p >= Succeeded }

// Snapshot is the state of the run at one instant.
type Snapshot struct {
	Version uint64    // grows with each change
	MadeAt  time.Time // by the clock of this process
	At      time.Time // the same by the clock of the dispatcher, as far as it is known
	Run     Run
	RunProgress
	Over string // how it ended, in a sentence; "" while it lasts
	// Trouble holds sentences, not cleaned, about a run that nobody dispatches: which hosts were
	// useless, and where processes may still be alive.
	Trouble []string

	Stragglers int // running far longer than others of their queue
	Tries      int // of a job that does not set the number

	SlotsBusy, Slots int
	Rates            []float64 // RunProgress.Rate of the last minutes, oldest first: a sparkline

	// Why no host starts a job though jobs are ready, to follow "nothing can start: "; "": one may.
	Stuck    string
	NextSlot *jobs.NextSlot // for jobs that wait for a slot; nil: none does, or there is no dispatcher
	Awaited  *live.Await    // silent hosts that attempts wait for; nil: none
	// Hosts with metrics for which the run waits before it can end; see live.State.
	MetricsOf []string
	Finish    *live.Finish // the dispatcher is ending; nil: it continues
	Question  *live.Question

	Hosts  []live.Host
	Jobs   *Page
	Table  *Table
	Groups []Group // failures, most frequent first, at most MaxGroups
	Events *Events
	Detail *Detail
	Host   *HostDetail
}

// MaxGroups bounds Snapshot.Groups. The last one stands for all further ones.
const MaxGroups = 200

// Run identifies the run and its dispatcher.
type Run struct {
	Name, UID, Dir string
	Lab            string // the inventory's name for people: its file, "2 hosts", or "this machine"
	Created        time.Time
	Epoch          int
	Owner          string // user, machine and process; "": nobody
	Machine        string // of the dispatcher; "": nobody
	Standby        string // machines with a standby dispatcher
	// What a search looks for, COLUMN:max or COLUMN:min; "": the run is not a search.
	Best string
}

// Page is a part of the list of jobs.
type Page struct {
	Filter  string
	Wrong   string // error in the filter, which then matches nothing
	Sort    Sort
	Reverse bool
	Matched int     // rows in the whole list
	First   int     // position of Rows[0]
	Cursor  jobs.ID // of the JobsWindow that it answers
	Rows    []Row
	Settled time.Duration // age of the order: long lists are sorted less often than they change
}

// Row is a row of the list of jobs.
type Row struct {
	ID        jobs.ID
	Phase     Phase
	Title     string // name, or command
	Queue     string
	Params    []jobs.Param
	Priority  int
	Place     int // queued: number of jobs that start before it; 0: it is next; -1: not known
	Host      string
	Slot      int
	Copies    int // number of further open attempts of the job
	Attempt   int // number of the newest attempt; 0: none yet
	Failures  int // tries used up
	Tries     int // maximum
	Round     int
	Started   time.Time // of the attempt that runs, or that counts
	Ended     time.Time
	Suspended time.Duration // of that time; 0 while the attempt has not ended
	Retry     time.Time     // in phase Retry: time of the next try
	Progress  float64       // 0 to 1; -1: not reported
	Said      string        // DCS_PROGRESS as written, if it is not a fraction
	Cause     string        // "exit 137", "timeout", …: why it failed, or why its last try did
	Last      string        // the last line of stderr of that try
	Straggler bool
	CPU       time.Duration
	MaxRSS    int64 // bytes, of its largest process; up to jobs.MemoryFloor: at most that
}

// Group is a set of failed jobs with one cause.
type Group struct {
	Cause string // such as exit 137, SIGSEGV, or timeout
	Last  string // last line of stderr
	Count int
	Tries int         // failed tries of jobs that are being tried again, not in Count
	Hosts []string    // where, most frequent first, at most five
	Jobs  []Row       // some of them, newest first, at most MaxGroupRows
	Which jobs.Ranges // all jobs that Count counts
}

// MaxGroupRows bounds Group.Jobs.
const MaxGroupRows = 20

// Events holds the newest events.
type Events struct {
	Total int // number of kept lines that match
	Wrong string
	Cut   bool // older lines were dropped
	Lines []Event
}

// Event is a line of the event log.
type Event struct {
	Seq  uint64
	At   time.Time
	Host string
	Job  jobs.ID
	Text string
	Bad  bool // a failure or a loss, shown with a warning sign
}

// Detail holds all details of one job.
type Detail struct {
	Row        Row
	*jobs.Spec // Options are never nil
	// Expected run time: the user's estimate, or mean + 2 deviations; 0: not known.
	Estimate time.Duration
	Why      string // one sentence: why it is not running, or its current activity
	Attempts []Attempt
}

// Attempt is one execution.
type Attempt struct {
	ID        jobs.AttemptID
	Host      string
	Slot      int
	Round     int
	State     string
	Result    string // exit 0, SIGKILL, timeout …; "" if there is none
	Reason    string
	Launched  time.Time
	Started   time.Time
	Ended     time.Time
	Suspended time.Duration // as in Row
	CPU       time.Duration
	MaxRSS    int64  // as in Row
	Last      string // last line of stderr
	Charged   bool   // it used up a try
	Far       string // host:directory of its output where only the host has that
}

// Cost is the cost of ending some jobs.
type Cost struct {
	Queued  int           // number of queued jobs
	Running int           // number of running jobs
	Sent    int           // number of jobs sent to a host and not known to have started
	Over    int           // number of finished jobs
	Lost    time.Duration // slot time that the running jobs have used so far
}
