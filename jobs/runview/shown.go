package runview

import (
	"cmp"
	"fmt"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// The rows and details that are shown, made where the desk stands.

// row makes the whole row of a job.
func (v *View) row(id jobs.ID) Row {
	j := v.job(id)
	p, a := v.phase(id, j)
	r := Row{
		ID: id, Phase: p, Title: j.Spec.Title(), Params: j.Spec.Params, Priority: int(j.Priority), Place: -1,
		Failures: int(j.Failures), Tries: v.triesOf(j), Round: int(j.Round), Attempt: len(j.Attempts), Progress: -1,
	}
	if j.Spec.Options != nil {
		r.Queue = j.Spec.Queue
	}
	r.Straggler = v.straggles(id, p)
	if p == Retry {
		r.Retry = j.Retry.Time()
	}
	if a != nil {
		r.Host, r.Slot = a.Host, int(a.Slot)
		r.Started = v.startOf(a).Time()
		if o := a.Outcome; o != nil {
			r.Started, r.Ended = o.Started.Time(), o.Ended.Time()
			r.CPU, r.MaxRSS = o.CPU, o.MaxRSSBytes
		}
	}
	r.Cause, r.Last = v.cause(p, j, a)
	if v.state != nil && p <= Away {
		if text, ok := v.state.Progress[jobs.AttemptID{Job: id, N: r.Attempt}.String()]; ok {
			r.Progress, r.Said = jobs.ReadProgress(text)
		}
	}
	return r
}

// cause says why a job failed, or why its last try did.
func (v *View) cause(p Phase, j *jobs.Job, a *jobs.Attempt) (cause, last string) {
	state, reason := j.State, j.Reason
	switch {
	case p == Succeeded:
		return "", ""
	case p.Terminal():
	case j.Failures > 0 || p == Retry:
		if a = lastTry(j); a == nil {
			return reason, ""
		}
		state, reason = jobs.Failed, cmp.Or(a.Reason, reason)
	default:
		return "", ""
	}
	var o *jobs.Outcome
	if a != nil {
		o = a.Outcome
	}
	if o != nil {
		last = o.LastLine
	}
	return results.Cause(state, reason, o), last
}

// detail makes all that is known of a job.
func (v *View) detail(id jobs.ID) *Detail {
	j := v.job(id)
	if j == nil {
		return nil
	}
	s := j.Spec
	d := &Detail{Row: v.row(id), Command: s.Command, Line: s.Line, Slots: 1, Why: v.why(id, j)}
	if o := s.Options; o != nil {
		d.Cwd, d.Setup, d.Env, d.Tags, d.Slots, d.GPUs, d.MemBytes, d.Tokens = o.Cwd, o.Setup, o.Env, o.Tags, s.SlotCount(), o.GPUs, o.MemBytes, o.TokenText()
		d.Timeout, d.Deadline, d.Estimate, d.After, d.File = o.Timeout, o.Deadline, o.Estimate, o.AfterText(), o.File
	}
	if d.Estimate == 0 && v.state != nil {
		for _, q := range v.state.Queues {
			if q.Name == d.Row.Queue {
				d.Estimate = q.Mean + 2*q.Deviation
			}
		}
	}
	for _, a := range lastAttempts(j) {
		d.Attempts = append(d.Attempts, v.attempt(a))
	}
	return d
}

func (v *View) attempt(a *jobs.Attempt) Attempt {
	x := Attempt{
		ID: a.ID, Host: a.Host, Slot: int(a.Slot), Round: int(a.Round), State: a.State.String(), Reason: a.Reason,
		Launched: a.Launched.Time(), Started: v.startOf(a).Time(), Charged: a.Charged,
	}
	if o := a.Outcome; o != nil {
		x.Started, x.Ended = o.Started.Time(), o.Ended.Time()
		x.CPU, x.MaxRSS, x.Last = o.CPU, o.MaxRSSBytes, o.LastLine
		x.Result = results.Cause(jobs.Failed, "", o)
	}
	if a.Outcome != nil || a.Started != 0 {
		x.Out, x.Err = v.fileOf(a, jobs.FileOut), v.fileOf(a, jobs.FileErr)
	}
	return x
}

// why says why a job is not running, or what it is doing, as far as the table proves it.
func (v *View) why(id jobs.ID, j *jobs.Job) string {
	become := "nobody dispatches the run now, so what has become of it is not known"
	waits := "nobody dispatches the run now"
	if v.facts.dispatched {
		who := fmt.Sprintf("the run's dispatcher on %s knows why: dcs-tui why, typed there, says it", v.facts.owner.Host)
		become, waits = "the run's dispatcher on "+v.facts.owner.Host+" knows what has become of it: dcs-tui why, typed there, says it", who
	}
	_, a := v.phase(id, j)
	switch {
	case j.State == jobs.Queued:
		return fmt.Sprintf("Job %d waits; %s.", id, waits)
	case j.State == jobs.Running && a != nil:
		return fmt.Sprintf("Job %d was handed to %s; %s.", id, a.Host, become)
	case j.State == jobs.Succeeded:
		return fmt.Sprintf("Job %d has succeeded.", id)
	}
	cause, _ := v.cause(Cancelled, j, results.Counted(j))
	return fmt.Sprintf("Job %d is over (%s): %s.", id, j.State, cause)
}
