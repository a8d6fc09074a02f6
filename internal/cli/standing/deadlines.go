package standing

import (
	"strconv"
	"strings"
	"time"

	"dcs-tui/jobs"
)

// ranFor is how long a job has been running, by the dispatcher's clock; 0 if it does not.
func ranFor(j *jobs.Job, now time.Time) time.Duration {
	if a := j.Last(); a != nil && a.State == jobs.AttemptRunning {
		return max(0, now.Sub(a.Launched.Time()))
	}
	return 0
}

// deadlinesText counts what became of deadlines (B6), "" when no job has one.
func deadlinesText(t *jobs.Table, now time.Time) string {
	var met, missed, tight, open int
	var last *jobs.Options
	none := true // of the options seen last
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if j.Spec.Options != last {
			last = j.Spec.Options
			none = last == nil || last.Deadline.IsZero()
		}
		if none {
			continue
		}
		left := j.Spec.Deadline.Sub(now)
		switch {
		case j.State == jobs.Succeeded:
			if o := LastOutcome(j); o != nil && o.Ended.Time().After(j.Spec.Deadline) {
				missed++
			} else {
				met++
			}
		case j.State.Terminal() || left <= 0:
			missed++ // without success
		case j.Spec.Estimate-ranFor(j, now) > left:
			tight++
		default:
			open++
		}
	}
	if met+missed+tight+open == 0 {
		return ""
	}
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{{met, " met"}, {missed, " missed"}, {tight, " cannot be met any more"}, {open, " to come"}} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+p.text)
		}
	}
	return "deadlines: " + strings.Join(parts, ", ")
}
