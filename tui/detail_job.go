package tui

import (
	"fmt"
	"strings"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// lines are all lines for a width.
func (p *detailPane) lines(m *model, w int) []string {
	d := p.all
	var out []string
	add := func(label, text string) { out = append(out, m.labelled(label, text, w)...) }
	clean := func(label, text string) { add(label, m.clean(text)) }
	clean("why", d.Why)
	if d.Row.Straggler {
		add("", styleWarn.Render(m.g.warn+" runs much longer than others of its queue"))
	}
	whole := func(label, text string) { // shows a text in full
		for l := range strings.SplitSeq(strings.TrimRight(clip(text, maxCommand), "\n"), "\n") {
			if l := m.wholeLine(l); l != "" {
				out = append(out, beside(label, wrapped(l, max(8, w-labelColumn-1)))...)
			}
			label = ""
		}
	}
	if d.Row.Title != d.Command {
		whole("name", d.Row.Title)
	}
	whole("command", d.Command)
	clean("params", paramText(d.Row.Params))
	add("state", m.stateLine(&d.Row))
	add("asks for", m.clean(needs(d)))
	add("limits", m.clean(m.limits(d)))
	clean("setup", d.Setup)
	clean("env", envText(d.Env))
	clean("after", afterText(d.After))
	clean("in", d.Cwd)
	if d.File != "" {
		clean("from", fmt.Sprintf("%s:%d", d.File, d.Line))
	}
	for i := len(d.Attempts) - 1; i >= 0; i-- {
		out = append(out, "")
		out = append(out, m.attempt(&d.Attempts[i], w)...)
	}
	return out
}

// maxCommand bounds how much of a command is shown.
const maxCommand = 64 << 10

// stateLine says where the job stands, with its tries.
func (m *model) stateLine(r *runview.Row) string {
	s := phaseStyle(r.Phase).Render(m.g.phase[min(r.Phase, runview.Phases-1)] + " " + r.Phase.String())
	if r.Host != "" {
		s += " on " + m.clean(r.Host)
	}
	s += fmt.Sprintf(", %d of %d tries failed", r.Failures, r.Tries)
	if r.Attempt > r.Failures+1 {
		s += fmt.Sprintf(" (%s in all: those that a host gave back, or lost, and those of rounds before use up no try)", plural(r.Attempt, "attempt"))
	}
	switch {
	case r.Phase == runview.Retry && !r.Retry.IsZero():
		s += ", next one in " + clock(r.Retry.Sub(m.instant()))
	case r.Phase == runview.Queued && r.Place >= 0:
		s += fmt.Sprintf(", %s before it in the queue", thousands(r.Place))
	}
	if r.Round > 1 {
		s += fmt.Sprintf(", round %d", r.Round)
	}
	if r.Progress >= 0 {
		s += fmt.Sprintf(", %d%% done by its own account", int(r.Progress*100))
	} else if r.Said != "" {
		s += ", it says: " + m.clean(r.Said)
	}
	return s
}

// needs is what a host must offer.
func needs(d *runview.Detail) string {
	s := []string{plural(d.Slots, "slot")}
	if d.GPUs > 0 {
		s = append(s, plural(d.GPUs, "GPU"))
	}
	if d.MemBytes > 0 {
		s = append(s, size(d.MemBytes)+" memory")
	}
	if len(d.Tags) > 0 {
		s = append(s, "tags "+strings.Join(d.Tags, " "))
	}
	return strings.Join(s, ", ")
}

// limits are its queue, priority and times.
func (m *model) limits(d *runview.Detail) string {
	var s []string
	if d.Row.Queue != "" {
		s = append(s, "queue "+d.Row.Queue)
	}
	if d.Row.Priority != 0 {
		s = append(s, fmt.Sprintf("priority %d", d.Row.Priority))
	}
	if d.Timeout > 0 {
		s = append(s, "timeout "+span(d.Timeout))
	}
	if !d.Deadline.IsZero() {
		s = append(s, "deadline "+m.moment(d.Deadline))
	}
	if d.Estimate > 0 {
		s = append(s, "expected to take "+about(d.Estimate))
	}
	return strings.Join(s, ", ")
}

func paramText(params []jobs.Param) string {
	var s []string
	for _, p := range params {
		s = append(s, p.Name+"="+p.Value)
	}
	return strings.Join(s, "  ")
}

func envText(env []jobs.EnvVar) string {
	var s []string
	for _, e := range env {
		s = append(s, e.Name+"="+e.Value)
	}
	return strings.Join(s, "  ")
}

func afterText(ids []jobs.ID) string {
	var s []string
	for _, id := range ids {
		s = append(s, fmt.Sprint(id))
	}
	return strings.Join(s, " ")
}

// clip cuts a text that is looked at only in part.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}

// about writes how long something takes, of less than a minute more exactly than span.
func about(d time.Duration) string {
	if d < 10*time.Second {
		return delay(d)
	}
	return span(d)
}
