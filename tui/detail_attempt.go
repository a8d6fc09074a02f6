package tui

import (
	"fmt"
	"time"

	"dcs-tui/jobs/runview"
)

// attempt are the lines of one execution.
func (m *model) attempt(a *runview.Attempt, w int) []string {
	style := styleFaint
	switch {
	case a.State == "running" || a.State == "launching":
		style = styleBusy
	case a.Result == "exit 0":
		style = styleGood
	case a.Result != "" || a.State == "lost":
		style = styleBad
	}
	word := a.State
	if a.Result != "" {
		word = a.Result
	}
	head := styleBold.Render(a.ID.String()) + " " + style.Render(m.clean(word)) + " on " + m.clean(a.Host)
	if a.Slot > 0 {
		head += fmt.Sprintf(" slot %d", a.Slot)
	}
	if a.Round > 1 {
		head += fmt.Sprintf(", round %d", a.Round)
	}
	if a.Charged {
		head += ", a try that failed"
	}
	out := m.wrap(head, w)
	add := func(label, text string) { out = append(out, m.labelled("  "+label, text, w)...) }
	add("time", m.times(a))
	if a.CPU > 0 || a.MaxRSS > 0 {
		add("used", fmt.Sprintf("%s of CPU time, %s of memory at most", took(a.CPU), peak(a.MaxRSS)))
	}
	add("reason", m.clean(a.Reason))
	add("stderr", m.line([]byte(a.Last)))
	add("files", m.clean(a.Out))
	add("", m.clean(a.Err))
	return out
}

// times says when an attempt was, and how long it took.
func (m *model) times(a *runview.Attempt) string {
	switch {
	case a.Started.IsZero() && a.Launched.IsZero():
		return ""
	case a.Started.IsZero():
		return "launched " + m.moment(a.Launched)
	case a.Ended.IsZero():
		return fmt.Sprintf("%s, since %s", m.moment(a.Started), clock(m.instant().Sub(a.Started)))
	}
	return fmt.Sprintf("%s to %s, %s", m.moment(a.Started), m.moment(a.Ended), took(a.Ended.Sub(a.Started)))
}

// moment writes an instant by this machine's clock; the day too, when it is not today.
func (m *model) moment(t time.Time) string {
	now := m.instant().Local()
	if t = t.Local(); t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}
