package cli

import (
	"strings"
	"time"

	"dcs-tui/jobs"
)

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
			if o := lastOutcome(j); o != nil && o.Ended.Time().After(j.Spec.Deadline) {
				missed++
			} else {
				met++
			}
		case j.State.Terminal() || left <= 0:
			missed++ // without success
		case j.State == jobs.Queued && j.Spec.Estimate > left:
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
			parts = append(parts, itoa(p.n)+p.text)
		}
	}
	return "deadlines: " + strings.Join(parts, ", ")
}
