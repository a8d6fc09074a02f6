package runview

import (
	"cmp"
	"fmt"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// The rows and details that are shown, made where the desk stands.

// row makes the whole row of a job.
func (k *desk) row(id jobs.ID) Row {
	j := k.table.Job(id)
	p, a := k.phase(id, j)
	r := Row{
		ID: id, Phase: p, Title: j.Spec.Title(), Params: j.Spec.Params, Priority: int(j.Priority), Place: -1,
		Failures: int(j.Failures), Tries: k.triesOf(j), Round: int(j.Round), Attempt: len(j.Attempts), Progress: -1,
	}
	if j.Spec.Options != nil {
		r.Queue = j.Spec.Queue
	}
	if k.core != nil {
		r.Straggler = k.core.Straggler(id)
	}
	if p == Retry {
		r.Retry = j.Retry.Time()
	}
	if a != nil {
		r.Host, r.Slot = a.Host, int(a.Slot)
		r.Started = k.began(a).Time()
		if o := a.Outcome; o != nil {
			r.Started, r.Ended = o.Started.Time(), o.Ended.Time()
			r.CPU, r.MaxRSS = o.CPU, o.MaxRSSBytes
		}
	}
	r.Cause, r.Last = k.cause(p, j, a)
	return r
}

// cause says why a job failed, or why its last try did.
func (k *desk) cause(p Phase, j *jobs.Job, a *jobs.Attempt) (cause, last string) {
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
func (k *desk) detail(id jobs.ID) *Detail {
	j := k.table.Job(id)
	if j == nil {
		return nil
	}
	s := j.Spec
	d := &Detail{Row: k.row(id), Command: s.Command, Line: s.Line, Slots: 1, Why: k.why(id, j)}
	if o := s.Options; o != nil {
		d.Cwd, d.Setup, d.Env, d.Tags, d.Slots, d.GPUs, d.MemBytes = o.Cwd, o.Setup, o.Env, o.Tags, s.SlotCount(), o.GPUs, o.MemBytes
		d.Timeout, d.Deadline, d.Estimate, d.After, d.File = o.Timeout, o.Deadline, o.Estimate, o.After, o.File
	}
	if k.core != nil {
		d.Estimate = k.core.Estimate(id)
	}
	first := max(0, len(j.Attempts)-maxAttempts)
	for _, a := range j.Attempts[first:] {
		d.Attempts = append(d.Attempts, k.attempt(a))
	}
	return d
}

// maxAttempts bounds Detail.Attempts; the newest count.
const maxAttempts = 100

func (k *desk) attempt(a *jobs.Attempt) Attempt {
	v := Attempt{
		ID: a.ID, Host: a.Host, Slot: int(a.Slot), Round: int(a.Round), State: a.State.String(), Reason: a.Reason,
		Launched: a.Launched.Time(), Started: k.began(a).Time(), Charged: a.Charged,
	}
	if o := a.Outcome; o != nil {
		v.Started, v.Ended = o.Started.Time(), o.Ended.Time()
		v.CPU, v.MaxRSS, v.Last = o.CPU, o.MaxRSSBytes, o.LastLine
		v.Result = results.Cause(jobs.Failed, "", o)
	}
	if a.Outcome != nil || a.Started != 0 {
		dir, _ := k.dir(a)
		v.Out, v.Err = jobs.AttemptFile(dir, a.ID, jobs.FileOut), jobs.AttemptFile(dir, a.ID, jobs.FileErr)
	}
	return v
}

// why says why a job is not running, or what it is doing: the core's words, where
// there is one, and otherwise only what the table proves.
func (k *desk) why(id jobs.ID, j *jobs.Job) string {
	switch {
	case k.core != nil:
		return k.core.Why(k.mono, id)
	case j.State == jobs.Queued && k.past.past.Unasked != "":
		return fmt.Sprintf("Job %d waits; the run's dispatcher on %s knows why: dcs-tui why, typed there, says it.", id, k.past.past.Unasked)
	case j.State == jobs.Queued:
		return fmt.Sprintf("Job %d waits: nobody dispatches the run now.", id)
	case j.State == jobs.Running:
		if _, a := k.phase(id, j); a != nil {
			return fmt.Sprintf("Job %d was handed to %s; %s.", id, a.Host, k.become())
		}
	}
	cause, _ := k.cause(Cancelled, j, results.Counted(j))
	if j.State == jobs.Succeeded {
		return fmt.Sprintf("Job %d has succeeded.", id)
	}
	return fmt.Sprintf("Job %d is over (%s): %s.", id, j.State, cause)
}

// become says who knows what has become of a job that was handed over.
func (k *desk) become() string {
	if on := k.past.past.Unasked; on != "" {
		return "the run's dispatcher on " + on + " knows what has become of it: dcs-tui why, typed there, says it"
	}
	return "nobody dispatches the run now, so what has become of it is not known"
}
