package results

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// Result is the result of one round of a job, as a consumer gets it. Delivery is at least once:
// a second Result with the same UID can be dropped.
type Result struct {
	Run      string // name of the run
	UID      string // "<run uid>.<job>.<round>"
	Job      jobs.ID
	Round    int    // 1, 2 … a requeue opens a new one
	Seq      int64  // number of this delivery within the run, 1, 2 …
	Key      string // the id that the submitter gave the job; "": none
	Name     string
	Queue    string
	Command  string
	Params   []jobs.Param
	State    jobs.JobState
	Reason   string // why it is in that state, "" if the rest shows it
	Attempts int    // number of attempts that ran, in all rounds
	Failures int    // number of tries used up in this round

	// The fields of the attempt that counts. They are zero if no attempt counts.
	Attempt jobs.AttemptID
	Host    string
	Slot    int    // 0: not known
	Stdout  string // paths; "" when the attempt is not known to have started
	Stderr  string
	Apart   bool // its host does not share its files, so other files of the job are not here

	Output    []byte // output of the job, if requested; nil: not requested, or see OutputErr
	OutputErr error
	// The size of an output that was left out because it is too large. OutputErr is set, too.
	OutputBytes int64

	Created jobs.Stamp    // when the job was accepted, by the dispatcher's clock
	Outcome *jobs.Outcome // nil: the job never ran, or its end was not observed
}

// Exit returns the exit code. ok is false if a signal ended the job, if it could not be started or
// never ran, or if its end was not observed.
func (r *Result) Exit() (code int, ok bool) {
	o := r.Outcome
	if o == nil || o.Signal != "" || o.Error != "" && o.Exit == 0 && !o.Unreturned {
		return 0, false
	}
	return o.Exit, true
}

var noOutcome jobs.Outcome

// outcome returns the outcome, or a zero one if there is none.
func (r *Result) outcome() *jobs.Outcome { return cmp.Or(r.Outcome, &noOutcome) }

// Signal returns the name of the signal that ended the job, or "".
func (r *Result) Signal() string { return r.outcome().Signal }

// Started returns when the job started, by its host's clock, or 0 if that is not known.
func (r *Result) Started() jobs.Stamp { return r.outcome().Started }

// Ended returns when the job ended, by its host's clock, or 0 if that is not known.
func (r *Result) Ended() jobs.Stamp { return r.outcome().Ended }

// Elapsed returns the run time of the attempt that counts, or 0 if it is not known.
func (r *Result) Elapsed() time.Duration { return r.outcome().Elapsed() }

// Cause explains in a few words why a job did not succeed: "exit 1", "SIGKILL",
// "timed out", or a reason in words. It is not cleaned for a terminal.
func Cause(state jobs.JobState, reason string, o *jobs.Outcome) string {
	switch {
	// Even if an attempt has an outcome: how it ended is not why the job was ended.
	case reason != "" && (o == nil || state == jobs.Skipped || state == jobs.Canceled):
		return reason
	case o == nil:
		return state.String()
	case o.DiskFull:
		plain := *o
		plain.DiskFull = false
		return Cause(state, reason, &plain) + ", its disk was full"
	case o.ProcessLimit.IsSet():
		plain := *o
		plain.ProcessLimit = jobs.ProcessLimit{}
		return Cause(state, reason, &plain) + ", its host had reached a limit on processes"
	case o.Unreturned:
		return o.Error
	case o.Error != "":
		return "not started: " + o.Error
	case o.Memory == jobs.MemoryLimit:
		return "memory limit"
	case o.Memory != 0:
		return "out of memory"
	case o.TimedOut:
		return "timed out"
	case o.Stopped:
		return "stopped"
	case o.Signal != "":
		return o.Signal
	case o.Exit == 0 && reason != "":
		return reason
	}
	return fmt.Sprintf("exit %d", o.Exit)
}

var failureKinds = []string{"exit", "signal", "timeout", "start", "files", "disk", "processes", "memory"}

// FailureKind returns the kind of a failure, by which queries select it.
func FailureKind(o *jobs.Outcome) string {
	switch {
	case o.DiskFull:
		return "disk"
	case o.ProcessLimit.IsSet():
		return "processes"
	case o.Unreturned:
		return "files"
	case o.Error != "":
		return "start"
	case o.Memory != 0:
		return "memory"
	case o.TimedOut:
		return "timeout"
	case o.Signal != "":
		return "signal"
	}
	return "exit"
}

// Failure is the key by which failures are grouped: a cause and the last line of stderr.
type Failure struct{ Cause, LastLine string }

// FailureOf returns the Failure of a job. a is the attempt that shows it, which may be nil.
func FailureOf(state jobs.JobState, reason string, a *jobs.Attempt) Failure {
	if a == nil || a.Outcome == nil {
		return Failure{Cause: Cause(state, reason, nil)}
	}
	return Failure{Cause(state, reason, a.Outcome), a.Outcome.LastLine}
}

// Causes numbers distinct failures in the order in which they are added, from 1. Failures whose
// last lines differ only in numbers, such as a seed or a step, are one failure. The zero value has
// none.
type Causes struct {
	Keys    []Failure // the first failure with each number
	numbers map[Failure]int
}

// maxCauses bounds the number of distinct failures. Further ones share OtherCauses.
const maxCauses = 1000

// OtherCauses is the key of failures beyond maxCauses.
var OtherCauses = Failure{Cause: "other causes"}

// Number returns the number of a failure, and adds the failure if it is new.
func (c *Causes) Number(f Failure) int {
	if c.numbers == nil {
		c.numbers, c.Keys = map[Failure]int{}, make([]Failure, 1)
	}
	key := Failure{f.Cause, withoutNumbers(f.LastLine)}
	n, ok := c.numbers[key]
	if !ok && len(c.Keys) > maxCauses {
		f, key = OtherCauses, OtherCauses
		n, ok = c.numbers[key]
	}
	if !ok {
		n = len(c.Keys)
		c.Keys, c.numbers[key] = append(c.Keys, f), n
	}
	return n
}

// withoutNumbers returns s with a 0 for each sequence of digits.
func withoutNumbers(s string) string {
	inNumber := false
	return strings.Map(func(r rune) rune {
		wasInNumber := inNumber
		inNumber = '0' <= r && r <= '9'
		switch {
		case !inNumber:
			return r
		case wasInNumber:
			return -1
		}
		return '0'
	}, s)
}

// RunInfo holds the common data of a run's results.
type RunInfo struct {
	UID, Name string
	Created   jobs.Stamp
	Dir       string            // the run directory
	HostDirs  map[string]string // host:path of the attempts of each host that does not share Dir
	// Here reports which attempts on such hosts have had their files copied to the run directory;
	// nil: none.
	Here func(jobs.AttemptID) bool
}

// row returns what a Result holds in every state of a job.
func (p *RunInfo) row(j *jobs.Job) Result {
	r := Result{
		Run: p.Name, Job: j.Spec.ID, Round: int(j.Round), Name: j.Spec.Name, Command: j.Spec.Command,
		Params: j.Spec.Params(),
		State:  j.State, Attempts: j.Ran(), Failures: int(j.Failures), Created: p.Created,
	}
	if j.Spec.Options != nil {
		r.Queue = j.Spec.Queue
	}
	return r
}

// Result makes the result of a terminal job, with the paths of its host.
func (p *RunInfo) Result(j *jobs.Job) Result {
	r, a := p.facts(j)
	r.UID = p.UID + "." + strconv.Itoa(int(j.Spec.ID)) + "." + strconv.Itoa(int(j.Round))
	if a == nil || a.Outcome == nil && a.Started == 0 {
		return r
	}
	dir := p.Dir
	if r.Apart && (p.Here == nil || !p.Here(a.ID)) {
		dir = p.HostDirs[a.Host]
	}
	r.Stdout = jobs.AttemptFile(dir, a.ID, jobs.FileOut)
	r.Stderr = strings.TrimSuffix(r.Stdout, string(jobs.FileOut)) + string(jobs.FileErr)
	return r
}

// facts makes the result of a terminal job without its UID and its paths. It also returns the
// attempt that counts.
func (p *RunInfo) facts(j *jobs.Job) (Result, *jobs.Attempt) {
	r := p.row(j)
	r.Seq, r.Key, r.Reason = j.Seq, j.Spec.Key(), j.Reason
	a := j.CountedAttempt()
	if a != nil {
		r.Attempt, r.Host, r.Slot, r.Outcome = a.ID, a.Host, int(a.Slot), a.Outcome
		r.Apart = p.HostDirs[a.Host] != ""
	}
	return r, a
}

// UnfinishedResult returns an unfinished job as a result without an outcome.
func (p *RunInfo) UnfinishedResult(j *jobs.Job) Result {
	r := p.row(j)
	for _, a := range j.Open() {
		if j.State != jobs.Running {
			break // an attempt of an earlier round
		}
		if r.Host == "" || a.State == jobs.AttemptRunning {
			r.Host, r.Slot = a.Host, int(a.Slot)
		}
	}
	return r
}
