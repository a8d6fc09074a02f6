package runview

import (
	"context"
	"errors"
	"time"

	"dcs-tui/dispatch/socket"
	"dcs-tui/jobs"
)

// Source is a run to look at. Its methods may be called from any goroutine; each
// returns when ctx ends.
type Source interface {
	// Look returns a picture of the run with what was asked for, all of one instant.
	// When nothing has changed since Ask.After it waits for that, at most Ask.Wait.
	Look(ctx context.Context, ask Ask) (*Picture, error)
	// Match returns all jobs that a filter matches, and what it would cost to end them.
	Match(ctx context.Context, filter string) (jobs.Ranges, Weight, error)
	// Weigh says what it would cost to end these jobs.
	Weigh(ctx context.Context, which jobs.Ranges) (Weight, error)
	// Read returns a piece of what an attempt has printed.
	Read(ctx context.Context, r Read) (*Piece, error)
	// Do asks for an action and returns when it is carried out, or refused.
	Do(ctx context.Context, a Action) (*Answer, error)
}

// ErrGone is returned by a Source that was closed.
var ErrGone = errors.New("the view of the run was closed")

// Ask says what a screen wants to see. What is nil or zero is not looked up.
type Ask struct {
	After  uint64        // Picture.Version that the screen has; 0: any picture will do, at once
	Wait   time.Duration // how long to wait for a newer one
	Jobs   *JobsWindow
	Table  *TableAsk
	Groups bool // the failures by cause
	Events *EventsWindow
	Focus  jobs.ID // the job whose Detail is wanted
}

// JobsWindow is a piece of the list of jobs: those that Filter matches, in the order
// of Sort. The window follows the job Cursor, with Above rows before it; when that
// is 0, or not in the list, it is placed round position At.
type JobsWindow struct {
	Filter  string // filter.go of jobs/runview has its language; "" matches all
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

// The columns. SortAge is the order at first: running, waiting to retry, failed,
// queued, then finished, newest first.
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
	All    bool   // every record; else what a person wants to know: hosts, failures, retries, requests
	Back   int
	Rows   int // at most MaxRows
}

// Read asks for a piece of an attempt's output; a source may return less than its Limit.
type Read = socket.Read

// Piece is what a Read found.
type Piece = socket.Piece

// Verb is something that a person asks for.
type Verb string

// The verbs. Those on jobs take Jobs and leave alone those they make no sense for.
const (
	Cancel   Verb = "cancel"   // end jobs that are queued or run
	Requeue  Verb = "requeue"  // a new round for jobs that are over
	Edit     Verb = "edit"     // change jobs that are queued or over, by Edit; those that are over get a new round
	Priority Verb = "priority" // Number, or added to each one's own with Relative

	Pause     Verb = "pause"      // launch nothing, until …
	Continue  Verb = "continue"   // … this, which also ends a drain of the run
	DrainHost Verb = "drain-host" // Host finishes what runs and starts nothing more
	StopHost  Verb = "stop-host"  // Host's jobs are ended and queued again; it starts nothing more
	UseHost   Verb = "use-host"   // Host is used again
	Slots     Verb = "slots"      // Host gets Number slots, or so many more with Relative

	AddHost     Verb = "add-host"     // Host becomes a host of the run, with the options in Text
	RemoveHost  Verb = "remove-host"  // Host finishes what runs there and leaves the run
	ReloadHosts Verb = "reload-hosts" // the inventory file is read again

	DrainRun  Verb = "drain-run"  // running jobs finish, nothing starts, then the dispatcher ends; Continue undoes it
	StopRun   Verb = "stop-run"   // the dispatcher ends; what runs goes on, resume adopts it
	CancelRun Verb = "cancel-run" // everything is ended
	Resume    Verb = "resume"     // a dispatcher is started for a run that has none

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

// Answer says what came of an action.
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
