package runview

import (
	"cmp"
	"strings"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/results"
)

// RunProgress describes how far a run has come. The screen and all commands show it in the same
// words, which are those of its methods.
type RunProgress struct {
	Status RunStatus
	End    string      // why nobody dispatches the run, not cleaned; "" while somebody does
	Total  int         // accepted jobs
	More   bool        // more may be added: standard input is open
	Phases [Phases]int // jobs by phase
	// Idle.Sent counts jobs of any phase.
	results.Idle
	Rate   float64       // finished jobs per second over the last minute
	ETA    time.Duration // until the queue is done; 0: not known
	Spread time.Duration // the end is within ETA ± Spread in 2 of 3 cases; 0: not known

	Paused   bool   // by a person
	Draining string // why nothing more is launched; "": jobs are launched
	Problem  string // the journal cannot be written, …; "": all is well
	Requests int    // number of requests that are not carried out yet
}

// ProgressOf returns the progress of the run whose table is t. r has watched its owner and
// live.json; nil: nobody dispatches the run.
func ProgressOf(t *jobs.Table, r *journal.Reader) *RunProgress {
	r = cmp.Or(r, new(journal.Reader))
	p := &RunProgress{Paused: t.Paused && t.Unfinished() > 0}
	if !r.IsDispatched() {
		p.Status, p.End = endOf(t, t.Unfinished(), r.Owner, r.Liveness)
	}
	if s := r.State(); s != nil {
		p.More, p.Rate, p.ETA, p.Spread, p.Draining, p.Problem = s.More, s.Rate, s.ETA, s.Spread, s.Draining, s.Problem
	}
	p.Count(t.Counts, CountIdle(t, r.State()))
	return p
}

// Count sets the numbers of jobs from those by state.
func (p *RunProgress) Count(counts [jobs.Skipped + 1]int, idle results.Idle) {
	p.Total = 0
	for state, n := range counts {
		p.Total += n
		p.Phases[phaseOf[state]] = n
	}
	p.Idle, p.Phases[Running] = idle, counts[jobs.Running]-idle.Sum()
	p.Phases[Suspended], p.Phases[Sent] = idle.Suspended, idle.Sent
}

// endOf returns the status of a run that nobody dispatches, and a clause about the end of its last
// dispatcher. left is the number of unfinished jobs, and o the owner.
func endOf(t *jobs.Table, left int, o *journal.Owner, alive journal.Liveness) (RunStatus, string) {
	status, end := StatusStopped, "no dispatcher has started it"
	switch {
	case o == nil && t.Closed.How == "" && t.Epoch > 0:
		status, end = StatusSilent, "its owner file is missing; the jobs that its last dispatcher started continue"
	case t.Closed.How != "" || o != nil && o.Left:
		end = closedText(t.Closed)
	case o != nil && alive == journal.Dead:
		status, end = StatusCrashed, o.String()+" has died; the jobs that it started continue"
	case o != nil:
		status, end = StatusSilent, o.String()+" sends no heartbeat; the jobs that it started continue"
	}
	if left == 0 {
		status = StatusFinished
	}
	return status, end
}

// sum returns the number of jobs in some phases.
func (p *RunProgress) sum(phases ...Phase) (n int) {
	for _, phase := range phases {
		n += p.Phases[phase]
	}
	return n
}

// NumRunning returns the number of jobs that run, are suspended, or were sent to a host.
func (p *RunProgress) NumRunning() int { return p.sum(Running, Suspended, Ending, Away, Sent) }

// NumQueued returns the number of jobs that wait for a slot, for their next try, or for other jobs.
func (p *RunProgress) NumQueued() int { return p.sum(Queued, Waits, Retry) }

// NumFailed returns the number of jobs that failed or timed out.
func (p *RunProgress) NumFailed() int { return p.sum(Failed, TimedOut) }

// NumCanceled returns the number of jobs that were canceled or skipped.
func (p *RunProgress) NumCanceled() int { return p.sum(Canceled, Skipped) }

// NumOver returns the number of finished jobs.
func (p *RunProgress) NumOver() int { return p.Phases[Succeeded] + p.NumFailed() + p.NumCanceled() }

// NumLeft returns the number of unfinished jobs.
func (p *RunProgress) NumLeft() int { return max(0, p.Total-p.NumOver()) }

// RunningText describes how many jobs run: "6 running, 5 sent".
func (p *RunProgress) RunningText() string {
	return results.RunningText(p.NumRunning(), p.Idle, p.Status.IsDispatched())
}

// QueuedText describes how many jobs are queued: "84,513 queued".
func (p *RunProgress) QueuedText() string { return text.Thousands(p.NumQueued()) + " queued" }

// SucceededText describes how many jobs succeeded: "12,204 ok".
func (p *RunProgress) SucceededText() string { return text.Thousands(p.Phases[Succeeded]) + " ok" }

// Counts describes how many jobs are in each state: "12 of 20 ok, 1 failed, 2 running, 5 queued".
func (p *RunProgress) Counts() string {
	counts := [jobs.Skipped + 1]int{jobs.Running: p.NumRunning(), jobs.Queued: p.NumQueued()}
	for state := jobs.Failed; state <= jobs.Skipped; state++ {
		counts[state] = p.Phases[phaseOf[state]]
	}
	parts := results.StateCounts(counts, p.Idle, p.Status.IsDispatched())
	ok := text.Thousands(p.Phases[Succeeded]) + " of " + text.Thousands(p.Total) + " ok"
	return strings.Join(append([]string{ok}, parts...), ", ")
}

// Remaining describes how long the run will take: "4 min ± 20 s" if plusMinus is "±", and "4 min" if
// it is "". Remaining returns "" if that is not known, as while no job runs.
func (p *RunProgress) Remaining(plusMinus string) string {
	if p.ETA <= 0 || p.NumLeft() == 0 || p.NumRunning() == p.Idle.Sum() {
		return ""
	}
	if plusMinus == "" || p.Spread <= 0 {
		return text.Span(p.ETA)
	}
	return text.Span(p.ETA) + " " + plusMinus + " " + text.Span(p.Spread)
}

// ETAText describes when the run is expected to end: "ETA 4 min, more may come". It returns "" if
// nothing is known of that.
func (p *RunProgress) ETAText(plusMinus string) string {
	eta, more := p.Remaining(plusMinus), ""
	if eta != "" {
		eta = "ETA " + eta
	}
	if p.More {
		more = "more may come"
	}
	return text.Join(", ", eta, more)
}

// Line describes the progress in one line, which is not cleaned: the numbers of jobs, what keeps
// jobs from being launched, and when the run ends. further are parts to follow.
func (p *RunProgress) Line(further ...string) string {
	parts := []string{p.Counts()}
	switch {
	case p.Problem != "":
		parts = append(parts, "launching nothing: "+p.Problem)
	case p.Paused:
		parts = append(parts, "paused")
	}
	if p.Draining != "" {
		parts = append(parts, "draining")
	}
	if len(parts) == 1 && p.Status.IsDispatched() {
		parts = append(parts, p.ETAText(""))
		if p.Rate > 0 {
			parts = append(parts, text.Rate(p.Rate))
		}
	}
	if p.Requests > 0 && !p.Status.IsDispatched() {
		parts = append(parts, p.RequestsText())
	}
	return text.Join(", ", append(parts, further...)...)
}

// RequestsText describes how many requests have not been carried out.
func (p *RunProgress) RequestsText() string {
	if p.Status.IsDispatched() {
		return text.Plural(p.Requests, "request") + " not carried out yet"
	}
	return text.Plural(p.Requests, "request") + " for the next resume"
}
