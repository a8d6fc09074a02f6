package runview

import (
	"time"

	"dcs-tui/jobs"
)

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
	Text     string // of Reply
	Waiting  bool   // of Cancel: only jobs that still wait; what has started meanwhile is left alone
	Edit     *Change
	Why      string // for the event log; "": by a person
}

// Change is what Edit changes; nil and "" leave as it is.
type Change struct {
	Command  string
	Name     *string
	Timeout  *time.Duration
	MemBytes *int64
	Tries    *int
	Slots    *int
	GPUs     *int
	Tags     *[]string
}

// Answer says what came of an action.
type Answer struct {
	Done    int         // jobs, hosts … it was carried out for
	Left    int         // left alone
	Text    string      // what happened or why not, one sentence
	Changed jobs.Ranges // jobs that a Requeue would bring back: what an undo needs
}

// Refused is the error of an action that makes no sense: its text says why.
type Refused struct{ Why string }

func (e *Refused) Error() string { return e.Why }

// Jobs returns the action for one job.
func (v Verb) Jobs(id jobs.ID) Action { return Action{Do: v, Jobs: jobs.One(id)} }
