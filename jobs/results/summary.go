package results

import (
	"cmp"
	"slices"
	"time"

	"dcs-tui/jobs"
)

// Summary holds the numbers of a run in its current state.
type Summary struct {
	Jobs         int
	Counts       [jobs.Skipped + 1]int // by jobs.JobState
	Idle                               // as the caller counts it
	Undispatched bool                  // set by the caller: it is not known whether jobs run

	Attempts int
	Retried  int // number of jobs that ran more than once, in all their rounds
	Lost     int // number of attempts lost with their host
	Avoided  int // jobs skipped or stopped because one that is no harder had timed out

	First, Last jobs.Stamp    // first start and last end of an attempt, by hosts' clocks; 0: none
	UntilNow    bool          // set by the caller: jobs run, so Last is the present
	Busy        time.Duration // run time of all finished attempts
	Wasted      time.Duration // run time of attempts that did not count
	CPU         time.Duration

	MaxRSSBytes int64 // memory of the largest job; 0: none finished
	MaxRSSJob   jobs.ID
	Longest     time.Duration
	LongestJob  jobs.ID // 0: no job ran

	Hosts    []HostSummary // by name
	Failures []Group       // largest first, then by first job
}

// Group is a set of failed jobs with one cause: the same exit code, signal or reason, and
// a last line of stderr that differs at most in numbers.
type Group struct {
	Cause    string // as Result.Cause returns it
	LastLine string // last line of stderr of the first job; like Cause, not cleaned for a terminal
	Count    int
	Examples []Example // the first few jobs
}

// Example is a failed job, with the attempt that counts and its host.
type Example struct {
	Job     jobs.ID
	Attempt jobs.AttemptID // zero if no attempt has an outcome
	Host    string
}

// maxExamples bounds Group.Examples.
const maxExamples = 5

// HostSummary holds the numbers of one host.
type HostSummary struct {
	Host     string
	Attempts int // number of attempts that ran there
	Failed   int // of Attempts; one that was ended on request did not fail
	Lost     int // of Attempts
	Busy     time.Duration
}

// Wall returns the time from the first start to the last end.
func (s *Summary) Wall() time.Duration { return max(0, s.Last.Sub(s.First)) }

// Summarize counts a table, in one pass over its attempts.
func Summarize(t *jobs.Table) *Summary {
	s := &Summary{Jobs: t.NumJobs(), Counts: t.Counts}
	var causes Causes
	hosts := map[string]*HostSummary{}
	id := jobs.ID(0)
	for j := range t.RowsWithOptions() {
		id++
		counted := j.CountedAttempt()
		ran := 0
		for _, a := range j.Attempts {
			if a.NeverRan() {
				continue
			}
			ran++
			h := hosts[a.Host]
			if h == nil {
				h = &HostSummary{Host: a.Host}
				hosts[a.Host] = h
			}
			s.addAttempt(a, a == counted, h)
		}
		if ran > 1 {
			s.Retried++
		}
		if j.Avoided() {
			s.Avoided++
		}
		if j.State == jobs.Failed || j.State == jobs.TimedOut {
			s.addFailure(&causes, id, j, counted)
		}
	}
	for _, h := range hosts {
		s.Hosts = append(s.Hosts, *h)
	}
	slices.SortFunc(s.Hosts, func(a, b HostSummary) int { return cmp.Compare(a.Host, b.Host) })
	slices.SortStableFunc(s.Failures, func(a, b Group) int { return cmp.Compare(b.Count, a.Count) })
	return s
}

func (s *Summary) addFailure(causes *Causes, id jobs.ID, j *jobs.Job, counted *jobs.Attempt) {
	n := causes.Number(FailureOf(j.State, j.Reason, counted))
	if n > len(s.Failures) {
		s.Failures = append(s.Failures, Group{Cause: causes.Keys[n].Cause, LastLine: causes.Keys[n].LastLine})
	}
	g := &s.Failures[n-1]
	g.Count++
	if len(g.Examples) < maxExamples {
		e := Example{Job: id}
		if counted != nil && counted.Outcome != nil {
			e.Attempt, e.Host = counted.ID, counted.Host
		}
		g.Examples = append(g.Examples, e)
	}
}

func (s *Summary) addAttempt(a *jobs.Attempt, counted bool, h *HostSummary) {
	s.Attempts++
	h.Attempts++
	if a.State == jobs.AttemptLost {
		s.Lost++
		h.Lost++
	}
	o := a.Outcome
	if o == nil {
		return
	}
	if a.Failed() {
		h.Failed++
	}
	s.CPU += o.CPU
	if o.Started == 0 {
		return // it could not be started, so it has no times
	}
	took := o.Elapsed()
	s.Busy += took
	h.Busy += took
	if !counted {
		s.Wasted += took
	}
	if s.First == 0 || o.Started < s.First {
		s.First = o.Started
	}
	s.Last = max(s.Last, o.Ended)
	if o.MaxRSSBytes > s.MaxRSSBytes {
		s.MaxRSSBytes, s.MaxRSSJob = o.MaxRSSBytes, a.ID.Job
	}
	if took > s.Longest {
		s.Longest, s.LongestJob = took, a.ID.Job
	}
}
