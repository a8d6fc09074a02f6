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

	"dcs-tui/internal/text"
)

// Spec is the specification of one job of a run. It is immutable once submitted. The struct is
// small because a run may have a million of them. Settings that many jobs share are in Options, one
// value for all jobs with equal options.
type Spec struct {
	ID      ID
	Line    int    // line of the jobs file; 0: the job is from elsewhere
	Command string // shell text as the user wrote it
	Name    string // "": the command is shown instead
	*Labels
	*Options
}

// Labels are the submitter's own id, the parameters, and the dependencies of a job. They are not
// fields of Spec because most jobs have none of them.
type Labels struct {
	key    string
	params []Param
	after  *Dependencies // nil: none; a pointer, because few jobs have some
}

// NewLabels returns labels, or nil if all are empty.
func NewLabels(key string, params []Param, after ...Dependency) *Labels {
	if key == "" && len(params) == 0 && len(after) == 0 {
		return nil
	}
	l := &Labels{key: key, params: params}
	if len(after) > 0 {
		own := Dependencies(after)
		l.after = &own
	}
	return l
}

// Key returns the submitter's own id, which is unique in the run; "": none.
func (l *Labels) Key() string {
	if l == nil {
		return ""
	}
	return l.key
}

// Params returns the parameters of a grid job.
func (l *Labels) Params() []Param {
	if l == nil {
		return nil
	}
	return l.params
}

func (l *Labels) dependencies() Dependencies {
	if l == nil || l.after == nil {
		return nil
	}
	return *l.after
}

// After returns the jobs that must end before the job may run. They must not be changed.
func (s *Spec) After() Dependencies { return s.Labels.dependencies() }

// SetAfter replaces the dependencies of a job that is not submitted yet.
func (s *Spec) SetAfter(after Dependencies) { s.Labels = NewLabels(s.Key(), s.Params(), after...) }

// ShiftAfter adds n to the numbers of the jobs on which a job depends that is not submitted yet.
func (s *Spec) ShiftAfter(n ID) {
	if after := s.After(); len(after) > 0 && n != 0 {
		s.SetAfter(after.Shift(n))
	}
}

// Param is one parameter of a grid job. The job receives it as DCS_PARAM_<Name>.
type Param struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// EnvVar is one variable of a job's environment.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// OnLost is what happens to a job whose host is declared lost.
type OnLost uint8

// The values of OnLost. The zero value means the run's default (requeue).
const (
	OnLostDefault OnLost = iota
	OnLostRequeue
	OnLostWait
)

var onLostNames = [...]string{"", "requeue", "wait"}

// String returns the word in a jobs file, or "" for the run's default.
func (o OnLost) String() string { return nameOf(onLostNames[:], int(o)) }

// MarshalText writes the word.
func (o OnLost) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the word.
func (o *OnLost) UnmarshalText(b []byte) error {
	*o = OnLost(slices.Index(onLostNames[:], string(b)))
	if len(b) == 0 || int(*o) >= len(onLostNames) {
		return fmt.Errorf("%q is neither requeue nor wait", b)
	}
	return nil
}

// Options are a job's settings apart from its command and name. Jobs share them, so they must not
// be changed. Zero values mean "the run's default".
type Options struct {
	Queue    string `json:"queue,omitzero"`
	Priority int    `json:"priority,omitzero"` // smaller is more urgent
	// Total number of attempts, at least 1; 0: default.
	Tries int `json:"tries,omitzero"`
	// Delay before a retry on a host where the job failed, at least 0; nil: default.
	RetryDelay *time.Duration `json:"retry_delay_ns,omitzero"`
	Timeout    time.Duration  `json:"timeout_ns,omitzero"` // 0: none
	Deadline   time.Time      `json:"deadline,omitzero"`   // latest finish; zero: none
	// The user's estimate of the run time; 0: none.
	Estimate time.Duration `json:"est_ns,omitzero"`
	// Sorted; the host must have all of them.
	Tags     []string `json:"tags,omitempty"`
	GPUs     GPUs     `json:"gpus,omitzero"`
	MemBytes int64    `json:"mem,omitzero"`
	Slots    int      `json:"slots,omitzero"`   // at least 1; 0: 1
	Tokens   []Token  `json:"tokens,omitempty"` // held while the job runs; sorted by name
	// The stored form of Spec.After. Both are nil in memory, because jobs share their Options.
	After   []ID        `json:"after,omitempty"`
	AfterOn []Condition `json:"after_on,omitempty"` // in the order of After; nil: all must succeed
	Env     []EnvVar    `json:"env,omitempty"`      // sorted by name
	Cwd     string      `json:"cwd,omitzero"`
	Setup   string      `json:"setup,omitzero"`
	OnLost  OnLost      `json:"on_lost,omitzero"`
	// Run it on one host at a time, whatever the run's setting (speculate=false).
	NoCopies bool `json:"no_copies,omitzero"`
	// Larger is harder, per component; numbers compare as numbers.
	Hardness []string `json:"hardness,omitempty"`
	// Files that it gets in addition to those of the run: PATH or PATH:DEST.
	Send   []string `json:"send,omitempty"`
	Return []string `json:"return,omitempty"` // patterns of the files that it returns
	// Share, QueuePriority, and QueueSlots are settings of the job's queue. The newest job of the
	// queue that sets one determines it (dispatch/sched).
	Share int `json:"share,omitzero"` // at least 1; 0: not set
	// Smaller is more urgent; 0 resets it; nil: not set.
	QueuePriority *int `json:"queue_priority,omitzero"`
	// Maximum number of slots of the queue's jobs over all hosts, at least 1; 0: not set.
	QueueSlots int `json:"queue_slots,omitzero"`
	// The request (jobs/rundir) that submitted the job; "": it was part of the run from the start.
	Request string `json:"request,omitzero"`
	// File that the job was read from, for messages.
	File string `json:"file,omitzero"`

	// Damage holds why the specification cannot be read. It is "" unless the job's line of
	// jobs.jsonl is damaged. Such a job must not be launched, because its command is unknown.
	Damage string `json:"-"`
}

// NoOptions is the shared value for jobs that set no options.
var NoOptions = &Options{}

// SlotCount returns the number of slots that the job occupies, at least 1.
func (s *Spec) SlotCount() int { return max(1, s.Slots) }

// Title returns the name, or the command when there is none.
func (s *Spec) Title() string { return cmp.Or(s.Name, s.Command) }

// ChangeOptions changes the options of jobs. Jobs that shared a value share the changed value.
func ChangeOptions(specs []*Spec, change func(*Options)) {
	var done map[*Options]*Options
	for _, s := range specs {
		s.Options = changedCopy(&done, s.Options, change)
	}
}

// changedCopy returns a changed copy of options. Jobs share options, so done holds the copies of
// those that were changed before.
func changedCopy(done *map[*Options]*Options, o *Options, change func(*Options)) *Options {
	if (*done)[o] == nil {
		own := *o
		change(&own)
		Insert(done, o, &own)
	}
	return (*done)[o]
}

// QueuesOf returns the queues of jobs, in the order of their first jobs.
func QueuesOf(specs []*Spec) []string {
	var names Numbering[string]
	for _, s := range specs {
		names.Number(s.Queue)
	}
	return names.Values
}

// OptionText is an option in the form of a jobs file.
type OptionText struct{ Key, Value string }

// OptionTexts returns the options that a job sets itself. It omits share, queue_priority, and
// queue_slots, which are settings of the job's queue.
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
	add("after", s.After().String())
	for _, e := range s.Env {
		add("env."+e.Name, e.Value)
	}
	add("cwd", s.Cwd)
	add("setup", s.Setup)
	add("on_lost", s.OnLost.String())
	if s.NoCopies {
		add("speculate", "false")
	}
	add("hardness", joinList(s.Hardness))
	add("send", joinList(s.Send))
	add("return", joinList(s.Return))
	return list
}

// Stamp is an instant in nanoseconds since the Unix epoch; 0 means unknown. It is half the size of
// a time.Time and compares exactly after a round trip.
type Stamp int64

// StampOf converts t. It returns 0 for the zero time.
func StampOf(t time.Time) Stamp {
	if t.IsZero() {
		return 0
	}
	return Stamp(t.UnixNano())
}

// Time converts s. It returns the zero time for 0.
func (s Stamp) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(s))
}

// Sub returns s - t.
func (s Stamp) Sub(t Stamp) time.Duration { return time.Duration(s - t) }

// Outcome is how one execution ended, as its supervisor observed it. It holds the exit code or
// signal, times by the host's wall clock, and resource usage.
type Outcome struct {
	Exit    int    `json:"exit"`            // meaningful when Signal is ""
	Signal  string `json:"signal,omitzero"` // "SIGKILL"; "" when it exited by itself
	Started Stamp  `json:"started"`
	Ended   Stamp  `json:"ended"`
	// User and system time of the job and of the children that it waited for.
	CPU time.Duration `json:"cpu_ns,omitzero"`
	// How long dcs had suspended it because an owner of its host wanted that.
	Suspended time.Duration `json:"suspended_ns,omitzero"`
	// Memory of the largest process; at most MemoryFloor: see there.
	MaxRSSBytes int64 `json:"max_rss,omitzero"`
	// Dcs ended it because its timeout had passed.
	TimedOut bool `json:"timed_out,omitzero"`
	// Dcs ended it because the dispatcher requested it.
	Stopped bool `json:"stopped,omitzero"`
	// It failed while the disk of its files or of its directory was full; at first that uses up no
	// try.
	DiskFull bool `json:"disk_full,omitzero"`
	// It failed while its host had reached a limit on processes; at first that uses up no try.
	ProcessLimit ProcessLimit `json:"limit,omitzero"`
	// It did not create a file that it returns, or one could not be copied; Error names it.
	Unreturned bool  `json:"unreturned,omitzero"`
	Files      int32 `json:"files,omitzero"` // number of files that it returns
	// Descendants that were alive after its shell had exited.
	LeftChildren int32     `json:"left_children,omitzero"`
	Memory       MemoryEnd `json:"memory,omitzero"`
	// Why it could not be started (missing cwd, missing shell, …).
	Error string `json:"error,omitzero"`
	// Last line of stderr of a failed job, at most 200 bytes, not sanitized.
	LastLine string `json:"last_line,omitzero"`
}

// MemoryEnd is the reason for which a job was ended because of its memory.
type MemoryEnd uint8

// The values of MemoryEnd. The zero value means that it was not ended because of its memory.
const (
	// It used more than it requested (Options.MemBytes); MaxRSSBytes is then the sum over its
	// processes.
	MemoryLimit MemoryEnd = 1 + iota
	OutOfMemory           // the kernel killed it because the machine was out of memory
)

var memoryEndNames = [...]string{"", "limit", "oom"}

// MarshalText writes the word used in JSON.
func (m MemoryEnd) MarshalText() ([]byte, error) {
	return []byte(nameOf(memoryEndNames[:], int(m))), nil
}

// UnmarshalText reads the word.
func (m *MemoryEnd) UnmarshalText(b []byte) error {
	return parseWord(m, memoryEndNames[:], b, "cause")
}

// ProcessLimit is a limit of a host on the number of processes and threads. The zero value is none.
type ProcessLimit struct {
	Kind LimitKind
	Max  int64
	// Directory of the control group that has the limit, if Kind is LimitPids. The sentinel of an
	// attempt has no space for it.
	Path string
}

// LimitKind is the kind of a limit on processes.
type LimitKind uint8

// The kinds. The zero value means that no limit was reached.
const (
	LimitPids   LimitKind = 1 + iota // pids.max of a control group
	LimitUser                        // RLIMIT_NPROC, which counts the processes of the user
	LimitSystem                      // kernel.threads-max or kernel.pid_max, which count those of all users
)

var limitKindNames = [...]string{"", "pids", "nproc", "system"}

// MarshalText writes what JSON holds: kind, value, and path, such as "pids 40 /sys/fs/cgroup/box".
func (l ProcessLimit) MarshalText() ([]byte, error) {
	b := fmt.Appendf(nil, "%s %d", nameOf(limitKindNames[:], int(l.Kind)), l.Max)
	if l.Path != "" {
		b = append(append(b, ' '), l.Path...)
	}
	return b, nil
}

// UnmarshalText reads the output of MarshalText.
func (l *ProcessLimit) UnmarshalText(b []byte) error {
	word, rest, _ := strings.Cut(string(b), " ")
	number, path, _ := strings.Cut(rest, " ")
	if err := parseWord(&l.Kind, limitKindNames[:], []byte(word), "limit"); err != nil {
		return err
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return fmt.Errorf("limit on processes %q: %w", b, err)
	}
	l.Max, l.Path = n, path
	return nil
}

// IsSet reports whether a limit was reached.
func (l ProcessLimit) IsSet() bool { return l.Kind != 0 }

// Text names the limit and its value, such as "pids.max of /sys/fs/cgroup/box is 40". It is not
// cleaned for a terminal.
func (l ProcessLimit) Text() string {
	name := "the limit on processes"
	switch l.Kind {
	case LimitPids:
		name = "pids.max"
		name += text.If(l.Path != "", " of "+l.Path)
	case LimitUser:
		name = "RLIMIT_NPROC (ulimit -u)"
	case LimitSystem:
		name = "the system's limit on processes (kernel.threads-max, kernel.pid_max)"
	}
	return fmt.Sprintf("%s is %d", name, l.Max)
}

// MemoryFloor is a lower bound of Outcome.MaxRSSBytes, up to small deviations, however small the
// job is. The kernel starts counting a process at the size of the supervisor that started it, 12 to
// 15 MB as measured. A value up to MemoryFloor means only that the job needed no more, and is shown
// as "<16M".
const MemoryFloor = 16 << 20

// OK reports whether the command itself succeeded.
func (o *Outcome) OK() bool {
	return o.Exit == 0 && o.Signal == "" && o.Error == "" && !o.TimedOut && !o.Stopped && o.Memory == 0
}

// ExitRunLater is EX_TEMPFAIL of sysexits.h: the job asks to run again later.
const ExitRunLater = 75

// IsHostFull reports whether the job failed while its host lacked space or processes.
func (o *Outcome) IsHostFull() bool { return o.DiskFull || o.ProcessLimit.IsSet() }

// AsksToRunLater reports whether the job asked to run again later. It returns false if o is nil.
func (o *Outcome) AsksToRunLater() bool {
	return o != nil && o.Exit == ExitRunLater && o.Signal == "" && o.Error == "" && !o.TimedOut && !o.Stopped
}

// Elapsed returns the run time by the host's clock, without the time that the job was suspended. It
// is never negative.
func (o *Outcome) Elapsed() time.Duration { return max(0, o.Ended.Sub(o.Started)-o.Suspended) }

// Hardness is one component of the difficulty of a job (Options.Hardness). It is a number, or a
// text that is neither less nor more than any other.
type Hardness struct {
	Num   Decimal
	Text  string // if it is not a number
	IsNum bool
}

// ParseHardness parses a component.
func ParseHardness(s string) Hardness {
	if x, ok := ParseDecimal(s); ok {
		return Hardness{Num: x, IsNum: true}
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil && math.IsInf(x, 0) { // written as inf, in one of its forms
		return Hardness{Num: infinity(x < 0), IsNum: true}
	}
	return Hardness{Text: s}
}

// HardnessBatch identifies jobs whose hardnesses are compared with each other.
type HardnessBatch struct {
	queue, file string
	n           int // number of components
}

// HardnessBatch returns the batch of the jobs with these options.
func (o *Options) HardnessBatch() HardnessBatch {
	return HardnessBatch{o.Queue, o.File, len(o.Hardness)}
}

// CompareHardness orders jobs of a batch from easy to hard, by their components in lexicographic
// order. A harder job thus never precedes an easier one. Among equals, those with more time come
// first; a limit of 0 is none.
func CompareHardness(a, b []Hardness, limitA, limitB time.Duration) int {
	if c := slices.CompareFunc(a, b, Hardness.Compare); c != 0 {
		return c
	}
	return cmp.Compare(uint64(limitB-1), uint64(limitA-1)) // no limit is the largest
}

// AtMost reports whether a is at most as hard as b. It is a partial order, because a text compares
// only with itself.
func (a Hardness) AtMost(b Hardness) bool {
	if a.IsNum && b.IsNum {
		return a.Num.Compare(b.Num) <= 0
	}
	return a == b
}

// Compare is a total order that extends the partial one: numbers precede texts.
func (a Hardness) Compare(b Hardness) int {
	switch {
	case a.IsNum && b.IsNum:
		return a.Num.Compare(b.Num)
	case a.IsNum:
		return -1
	case b.IsNum:
		return 1
	}
	return cmp.Compare(a.Text, b.Text)
}

// TooHardReason returns the reason of a job that is skipped because job by, which is no harder,
// timed out.
func TooHardReason(by *Spec, after time.Duration) string {
	why := fmt.Sprintf("it is at least as hard as job %d, which timed out after %s",
		by.ID, after.Round(time.Millisecond))
	return why + text.If(by.Name != "", ": "+text.Clean(by.Name, 80))
}

// Avoided reports whether the job was not run, or not to its end, because a job that is no harder
// had timed out.
func (j *Job) Avoided() bool { return j.State == Skipped && j.ReasonKind == ReasonTooHard }
