package jobs

import (
	"fmt"
	"strings"
	"time"
)

// Spec is what was asked: one job of a run. Specs are immutable once submitted.
// The struct is small because a run may have a million of them; what many jobs
// share stands in Options, one value for all jobs with equal options.
type Spec struct {
	ID      ID
	Line    int    // line of the jobs file, 0 if it came from elsewhere
	Command string // shell text, the user's own
	Name    string // "" means: show the command
	Key     string // the id that its submitter gave it, unique in the run; "": none
	Params  []Param
	*Options
}

// Param is one parameter of a grid job; it reaches the job as DCS_PARAM_<Name>.
type Param struct{ Name, Value string }

// EnvVar is one variable of a job's environment.
type EnvVar struct{ Name, Value string }

// OnLost says what to do with a job whose host is given up as lost.
type OnLost uint8

// The choices for OnLost; the zero value takes the run's default (requeue).
const (
	OnLostDefault OnLost = iota
	OnLostRequeue
	OnLostWait
)

// Condition is how a job must end that another one comes after.
type Condition uint8

// The conditions; the zero value is the usual one.
const (
	AfterSuccess Condition = iota
	AfterEnd               // however it ends
	AfterFailure           // it fails or times out
)

var conditionNames = [...]string{"ok", "any", "failed"}

// String returns the word of a jobs file.
func (c Condition) String() string { return nameOf(conditionNames[:], int(c)) }

// Met reports whether a job in this state lets those run that come after it.
func (c Condition) Met(s JobState) bool {
	switch c {
	case AfterEnd:
		return s.Terminal()
	case AfterFailure:
		return s == Failed || s == TimedOut
	}
	return s == Succeeded
}

// AfterCondition returns the condition of the job at place i of After.
func (o *Options) AfterCondition(i int) Condition {
	if i < len(o.AfterOn) {
		return o.AfterOn[i]
	}
	return AfterSuccess
}

// AfterText returns the jobs that a job comes after as a jobs file says it.
func (o *Options) AfterText() string {
	var items []string
	for i, id := range o.After {
		if c := o.AfterCondition(i); c != AfterSuccess {
			items = append(items, fmt.Sprintf("%s:%d", c, id))
		} else {
			items = append(items, fmt.Sprint(id))
		}
	}
	return strings.Join(items, ",")
}

// Options are a job's settings apart from its command and name. They are shared
// between jobs and must not be changed. Zero values mean "the run's default".
type Options struct {
	Queue    string
	Priority int           // smaller is more urgent
	Tries    int           // attempts in all, at least 1; 0: default
	Timeout  time.Duration // 0: none
	Deadline time.Time     // latest finish; zero: none
	Estimate time.Duration // the user's own guess of the run time; 0: none
	Tags     []string      // sorted; each must be a tag of the host
	GPUs     GPUs
	MemBytes int64
	Slots    int     // at least 1; 0: 1
	Tokens   []Token // that it holds while it runs; sorted by name
	After    []ID
	AfterOn  []Condition // of the jobs of After, in the same order; nil: all must succeed
	Env      []EnvVar    // sorted by name
	Cwd      string
	Setup    string
	OnLost   OnLost
	NoCopies bool     // run it on one host at a time, whatever the run does (speculate=false)
	Send     []string // files that it gets besides those of the run: PATH or PATH:DEST
	Return   []string // patterns of the files that it returns
	Hardness []string // the larger the harder, component by component; numbers as numbers
	// Share, QueuePriority, and QueueSlots are those of the job's queue, as the newest job of
	// it says that says anything (dispatch/sched).
	Share         int            // at least 1; 0: says nothing
	QueuePriority *int           // smaller is more urgent; 0 resets it; nil: not given
	QueueSlots    int            // the most slots that its jobs may occupy over all hosts, at least 1; 0: says nothing
	RetryDelay    *time.Duration // delay before a retry on a host where it failed, at least 0; nil: default
	Request       string         // the request (jobs/rundir) that the job was submitted with; "": it is of the run from the start
	File          string         // where the job was read from, for messages

	// Damage says why the specification cannot be read any more, "" for all but
	// jobs whose line of jobs.jsonl is damaged. Such a job must not be launched:
	// its command is not known.
	Damage string
}

// NoOptions is the shared value of jobs that set nothing.
var NoOptions = &Options{}

// SlotCount returns how many slots the job occupies, at least 1.
func (s *Spec) SlotCount() int { return max(1, s.Slots) }

// Title returns the name, or the command when there is none.
func (s *Spec) Title() string {
	if s.Name != "" {
		return s.Name
	}
	return s.Command
}
