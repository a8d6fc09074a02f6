package jobs

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spec is what was asked: one job of a run. Specs are immutable once submitted.
// The struct is small because a run may have a million of them; what many jobs
// share stands in Options, one value for all jobs with equal options.
type Spec struct {
	ID       ID      `json:"id"`
	Line     int     `json:"line,omitzero"` // line of the jobs file, 0 if it came from elsewhere
	Command  string  `json:"command"`       // shell text, the user's own
	Name     string  `json:"name,omitzero"` // "" means: show the command
	Key      string  `json:"key,omitzero"`  // the id that its submitter gave it, unique in the run; "": none
	Params   []Param `json:"params,omitempty"`
	*Options `json:"options,omitempty"`
}

// Param is one parameter of a grid job; it reaches the job as DCS_PARAM_<Name>.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// EnvVar is one variable of a job's environment.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// OnLost describes what to do with a job whose host is declared lost.
type OnLost uint8

// The choices for OnLost; the zero value takes the run's default (requeue).
const (
	OnLostDefault OnLost = iota
	OnLostRequeue
	OnLostWait
)

var onLostNames = [...]string{"", "requeue", "wait"}

// String returns the word of a jobs file, "" for the run's default.
func (o OnLost) String() string { return nameOf(onLostNames[:], int(o)) }

// MarshalText writes the word.
func (o OnLost) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the word.
func (o *OnLost) UnmarshalText(b []byte) error {
	if *o = OnLost(slices.Index(onLostNames[:], string(b))); len(b) == 0 || int(*o) >= len(onLostNames) {
		return fmt.Errorf("%q is neither requeue nor wait", b)
	}
	return nil
}

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

// MarshalText writes the word.
func (c Condition) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the word.
func (c *Condition) UnmarshalText(b []byte) error {
	i, err := indexOf(conditionNames[:], string(b), "condition")
	*c = Condition(i)
	return err
}

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
	Queue      string         `json:"queue,omitzero"`
	Priority   int            `json:"priority,omitzero"`       // smaller is more urgent
	Tries      int            `json:"tries,omitzero"`          // attempts in all, at least 1; 0: default
	RetryDelay *time.Duration `json:"retry_delay_ns,omitzero"` // delay before a retry on a host where it failed, at least 0; nil: default
	Timeout    time.Duration  `json:"timeout_ns,omitzero"`     // 0: none
	Deadline   time.Time      `json:"deadline,omitzero"`       // latest finish; zero: none
	Estimate   time.Duration  `json:"est_ns,omitzero"`         // the user's own guess of the run time; 0: none
	Tags       []string       `json:"tags,omitempty"`          // sorted; each must be a tag of the host
	GPUs       GPUs           `json:"gpus,omitzero"`
	MemBytes   int64          `json:"mem,omitzero"`
	Slots      int            `json:"slots,omitzero"`   // at least 1; 0: 1
	Tokens     []Token        `json:"tokens,omitempty"` // that it holds while it runs; sorted by name
	After      []ID           `json:"after,omitempty"`
	AfterOn    []Condition    `json:"after_on,omitempty"` // of the jobs of After, in the same order; nil: all must succeed
	Env        []EnvVar       `json:"env,omitempty"`      // sorted by name
	Cwd        string         `json:"cwd,omitzero"`
	Setup      string         `json:"setup,omitzero"`
	OnLost     OnLost         `json:"on_lost,omitzero"`
	NoCopies   bool           `json:"no_copies,omitzero"` // run it on one host at a time, whatever the run does (speculate=false)
	Hardness   []string       `json:"hardness,omitempty"` // the larger the harder, component by component; numbers as numbers
	Send       []string       `json:"send,omitempty"`     // files that it gets besides those of the run: PATH or PATH:DEST
	Return     []string       `json:"return,omitempty"`   // patterns of the files that it returns
	// Share, QueuePriority, and QueueSlots are those of the job's queue, as the newest job of
	// it says that says anything (dispatch/sched).
	Share         int    `json:"share,omitzero"`          // at least 1; 0: says nothing
	QueuePriority *int   `json:"queue_priority,omitzero"` // smaller is more urgent; 0 resets it; nil: not given
	QueueSlots    int    `json:"queue_slots,omitzero"`    // the most slots that its jobs may occupy over all hosts, at least 1; 0: says nothing
	Request       string `json:"request,omitzero"`        // the request (jobs/rundir) that the job was submitted with; "": it is of the run from the start
	File          string `json:"file,omitzero"`           // where the job was read from, for messages

	// Damage holds why the specification cannot be read any more, "" for all but
	// jobs whose line of jobs.jsonl is damaged. Such a job must not be launched:
	// its command is not known.
	Damage string `json:"-"`
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

// ChangeOptions changes the options of jobs. Options that jobs share stay shared.
func ChangeOptions(specs []*Spec, change func(*Options)) {
	done := map[*Options]*Options{}
	for _, s := range specs {
		o := done[s.Options]
		if o == nil {
			own := *s.Options
			change(&own)
			o = &own
			done[s.Options] = o
		}
		s.Options = o
	}
}

// QueuesOf returns the queues of jobs, in the order of their first jobs.
func QueuesOf(specs []*Spec) []string {
	var names []string
	seen := map[string]bool{}
	for _, s := range specs {
		if !seen[s.Queue] {
			seen[s.Queue] = true
			names = append(names, s.Queue)
		}
	}
	return names
}

// OptionText is an option of a job as a jobs file sets it.
type OptionText struct{ Key, Value string }

// OptionTexts returns the options that a job sets itself, without share, queue_priority,
// and queue_slots, which are those of its queue.
func (s *Spec) OptionTexts() (list []OptionText) {
	add := func(key string, value any) {
		if !reflect.ValueOf(value).IsZero() {
			list = append(list, OptionText{key, fmt.Sprint(value)})
		}
	}
	add("name", s.Name)
	add("queue", s.Queue)
	add("priority", s.Priority)
	add("tries", s.Tries)
	if s.RetryDelay != nil {
		add("retry_delay", s.RetryDelay.String())
	}
	add("timeout", s.Timeout)
	if !s.Deadline.IsZero() {
		add("deadline", strings.TrimSuffix(s.Deadline.Local().Format("2006-01-02T15:04:05"), ":00"))
	}
	add("est", s.Estimate)
	add("tags", strings.Join(s.Tags, ","))
	add("gpus", s.GPUs)
	if s.MemBytes > 0 {
		add("mem", FormatSize(s.MemBytes))
	}
	add("slots", s.Slots)
	add("tokens", s.TokenText())
	add("after", s.AfterText())
	for _, e := range s.Env {
		add("env."+e.Name, e.Value)
	}
	add("cwd", s.Cwd)
	add("setup", s.Setup)
	add("on_lost", s.OnLost.String())
	if s.NoCopies {
		add("speculate", "false")
	}
	add("hardness", strings.Join(s.Hardness, ","))
	add("send", strings.Join(s.Send, ","))
	add("return", strings.Join(s.Return, ","))
	return list
}

// Stamp is an instant: nanoseconds since the Unix epoch, 0 when unknown. It is
// half the size of a time.Time and compares exactly after a round trip.
type Stamp int64

// StampOf converts t; the zero time gives 0.
func StampOf(t time.Time) Stamp {
	if t.IsZero() {
		return 0
	}
	return Stamp(t.UnixNano())
}

// Time converts back; 0 gives the zero time.
func (s Stamp) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(s))
}

// Sub returns s - t.
func (s Stamp) Sub(t Stamp) time.Duration { return time.Duration(s - t) }

// Outcome is how one execution ended, as its supervisor saw it: exact exit or
// signal, times of the host's wall clock, and what it used.
type Outcome struct {
	Exit         int           `json:"exit"`            // meaningful when Signal is ""
	Signal       string        `json:"signal,omitzero"` // "SIGKILL"; "" when it exited by itself
	Started      Stamp         `json:"started"`
	Ended        Stamp         `json:"ended"`
	CPU          time.Duration `json:"cpu_ns,omitzero"`        // user and system, the job and the children it waited for
	Suspended    time.Duration `json:"suspended_ns,omitzero"`  // for how long we had suspended it, because an owner of its host wanted that
	MaxRSSBytes  int64         `json:"max_rss,omitzero"`       // of the largest process; at most MemoryFloor: see there
	TimedOut     bool          `json:"timed_out,omitzero"`     // we ended it because its timeout had passed
	Stopped      bool          `json:"stopped,omitzero"`       // we ended it because the dispatcher asked
	DiskFull     bool          `json:"disk_full,omitzero"`     // it failed, and the disk of its files or of its directory was full: at first that uses up no try
	Unreturned   bool          `json:"unreturned,omitzero"`    // it made no file that it returns, or one could not be brought here; Error says which
	Files        int32         `json:"files,omitzero"`         // how many files it returns
	LeftChildren int32         `json:"left_children,omitzero"` // descendants alive when its shell had exited
	Memory       string        `json:"memory,omitzero"`        // MemoryLimit or OutOfMemory; "": not ended for its memory
	Error        string        `json:"error,omitzero"`         // it could not be started (cwd missing, shell missing …)
	LastLine     string        `json:"last_line,omitzero"`     // the last line of stderr of a job that failed, at most 200 bytes, unsanitised
}

// Why a job was ended for its memory (Outcome.Memory).
const (
	MemoryLimit = "limit" // it used more than it asked for (Options.MemBytes); MaxRSSBytes is then of all its processes
	OutOfMemory = "oom"   // the kernel ended it because the machine had no memory left
)

// MemoryFloor is a size that Outcome.MaxRSSBytes does not go below by much, however small
// the job: the kernel begins to count a process at the size that our supervisor had when
// it started it, 12 to 15 MB as seen. A value up to it says only that the job needed
// no more, and is to be shown as "<16M".
const MemoryFloor = 16 << 20

// OK reports whether the command itself succeeded.
func (o *Outcome) OK() bool {
	return o.Exit == 0 && o.Signal == "" && o.Error == "" && !o.TimedOut && !o.Stopped && o.Memory == ""
}

// Elapsed returns the run time on the host's clock, less the time that it was suspended. It is
// never negative.
func (o *Outcome) Elapsed() time.Duration { return max(0, o.Ended.Sub(o.Started)-o.Suspended) }

// Hardness is a component of how hard a job is (Options.Hardness): a number, or a text
// that is neither less nor more than any other.
type Hardness struct {
	Num   float64
	Text  string // if it is no number
	IsNum bool
}

// ParseHardness reads a component.
func ParseHardness(s string) Hardness {
	if x, err := strconv.ParseFloat(s, 64); err == nil && !math.IsNaN(x) {
		return Hardness{Num: x + 0, IsNum: true} // -0 is 0
	}
	return Hardness{Text: s}
}

// AtMost reports whether a is at most as hard as b. It is a partial order: texts compare
// with themselves only.
func (a Hardness) AtMost(b Hardness) bool {
	if a.IsNum && b.IsNum {
		return a.Num <= b.Num
	}
	return a == b
}

// Compare is a total order that includes the partial one: numbers, then texts.
func (a Hardness) Compare(b Hardness) int {
	switch {
	case a.IsNum && b.IsNum:
		return cmp.Compare(a.Num, b.Num)
	case a.IsNum:
		return -1
	case b.IsNum:
		return 1
	}
	return cmp.Compare(a.Text, b.Text)
}

// tooHard begins the reason of every job that a timeout has avoided.
const tooHard = "it is at least as hard as job "

// TooHard is the reason of a job that is skipped because another one, which is no
// harder, has timed out after so long.
func TooHard(by *Spec, after time.Duration) string {
	why := fmt.Sprintf("%s%d, which timed out after %s", tooHard, by.ID, after.Round(time.Millisecond))
	if by.Name != "" {
		why += ": " + Clean(by.Name, 80)
	}
	return why
}

// Avoided reports whether the job was not run, or not to its end, because one that is no
// harder had timed out.
func (j *Job) Avoided() bool { return j.State == Skipped && strings.HasPrefix(j.Reason, tooHard) }
