package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// takeoverText describes the standby that watched when the dispatcher died, or returns "" if there was
// none. last is what the dispatcher published last, nil if nothing.
func takeoverText(table *jobs.Table, last *live.State) string {
	standby := runview.WatchingStandby(table, last)
	if standby == "" {
		return ""
	}
	return fmt.Sprintf("; a standby on %s takes the run over when it has heard nothing for %.0f s",
		text.Line(standby), journal.StaleAfter.Seconds())
}

// lines returns the status as text.
func (r *runState) lines(c *console) []string {
	dispatched, run, table, p := r.IsDispatched(), r.Run, r.Table, r.progress()
	trouble := c.Paint(yellow, "trouble     ")
	lines := []string{
		c.Paint(bold, text.Line(run.Name())) + "  " + dirOf(run),
		"made        " + run.Settings.Created.Local().Format("2006-01-02 15:04"),
	}
	switch {
	case dispatched:
		lines = append(lines, "dispatched  by "+text.Line(r.Owner.String()))
		if r.Owner.Problem != "" {
			lines = append(lines, trouble+text.Line(r.Owner.Problem))
		}
		if r.Owner.IsStopped() {
			lines = append(lines, trouble+runview.StoppedText(r.Owner))
		}
		s := r.State()
		if s != nil && r.Liveness == journal.Unsure { // only a reader that waits notices that it is silent
			lines = append(lines, "as of       "+s.At.Local().Format("2006-01-02 15:04:05")+" by the clock of "+
				text.Line(r.Owner.Host))
		}
		if s != nil && s.Standby != "" {
			lines = append(lines, "standby     on "+text.Line(s.Standby))
		}
	case table.Unfinished() > 0:
		lines = append(lines, "dispatched  by nobody: "+text.Line(p.End)+takeoverText(table, r.Live))
	}
	if eta := p.Remaining(c.Glyph("±", "+-")); eta != "" {
		lines = append(lines, "ETA         "+eta)
	}
	if s := r.State(); dispatched && s != nil && s.NextSlot != nil {
		lines = append(lines, "queue       "+text.Line(s.NextSlot.Text()))
	}
	if p.Paused {
		lines = append(lines, c.Paint(yellow, "paused      ")+
			"by a person: nothing is launched until dcs-tui continue "+refTo(run))
	}
	if s := r.State(); dispatched && s != nil && s.Awaited != nil {
		end := "dcs-tui requeue " + refTo(run) + " JOBS"
		if s.Awaited.HasLimit {
			end = "dcs-tui hosts stop " + refTo(run) + " " + text.Line(strings.Join(s.Awaited.Hosts, " "))
		}
		lines = append(lines, c.Paint(yellow, "waiting     ")+text.Line(s.Awaited.Text),
			"  "+end+"  ends the wait; the attempts may still run there")
	}
	if s := r.State(); dispatched && s != nil && len(s.MetricsOf) > 0 && table.Unfinished() == 0 {
		lines = append(lines, c.Paint(yellow, "waiting     ")+"for metrics of earlier jobs on "+
			text.Line(text.List(s.MetricsOf, 5)))
	}
	if s := r.State(); dispatched && s != nil && s.Finish.Waiting() != "" {
		lines = append(lines, c.Paint(yellow, "waiting     ")+"for "+text.Line(s.Finish.Waiting()))
	}
	if p.Draining != "" {
		lines = append(lines, c.Paint(yellow, "draining    ")+text.Line(p.Draining)+
			": nothing more is launched until dcs-tui continue "+refTo(run))
	}
	lines = append(lines, summaryLines(c, table, r.State(), dispatched)...)
	lines = append(lines, instanceLines(table, nil)...)
	if dispatched {
		lines = append(lines, hostLines(r.hosts())...)
	} else {
		lines = append(lines, uselessHostLines(table, r.HostEvents)...)
		if left := runview.LeftBehind(table); left != "" {
			lines = append(lines, left)
		}
	}
	lines = append(lines, openLines(table, r.State(), dispatched)...)
	if r.Requests > 0 {
		lines = append(lines, p.RequestsText())
	}
	switch {
	case dispatched && r.Input.IsKeptOpen:
		lines = append(lines, keptOpenText(run))
	case !r.Input.Cut():
	case dispatched && r.Input.State == rundir.InputOpen && r.Owner.Epoch <= 1: // later dispatchers read none
		lines = append(lines, "its input is still being read: more jobs may come")
	default:
		lines = append(lines, runview.InputText(r.Input, table))
	}
	if (table.Unfinished() > 0 || r.Requests > 0) && !dispatched {
		lines = append(lines, "  dcs-tui resume "+refTo(run)+"  continues it")
	}
	return lines
}

// keptOpenText returns what ends a run that is dispatched and kept open.
func keptOpenText(run *rundir.Run) string {
	return "it is kept open for more jobs until dcs-tui submit " + refTo(run) + " --end"
}

// summaryLines returns the summary of the jobs, queues, and deadlines of a run. While jobs run, the
// time of the run extends to now.
func summaryLines(c *console, table *jobs.Table, state *live.State, dispatched bool) []string {
	s := results.Summarize(table)
	if dispatched {
		for j := range table.RowsIn(jobs.Running) {
			if at := runview.OpenAttempt(j).Started; at != 0 {
				s.First, s.Last = min(cmp.Or(s.First, at), at), max(s.Last, jobs.StampOf(time.Now()))
				s.UntilNow = true
			}
		}
	}
	s.Idle, s.Undispatched = runview.CountIdle(table, state), !dispatched
	lines := s.Lines(c.TextWidth())
	if n := table.Counts[jobs.Canceled] - table.Judged()[jobs.Canceled]; n > 0 {
		lines = append(lines, "search: "+text.Plural(n, "trial")+" ended early")
	}
	lines = append(lines, queueLines(table, dispatched)...)
	if line := deadlinesText(table, time.Now()); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// uselessHostLines reports which hosts were useless to a run; see runview.UselessHosts.
func uselessHostLines(table *jobs.Table, events map[string]runview.HostEvent) []string {
	lines := runview.UselessHosts(table, events)
	for i := range lines {
		lines[i] = [2]string{"hosts: ", "       "}[min(i, 1)] + text.Line(lines[i])
	}
	return lines
}

// Bounds of the lists of status.
const (
	maxOpenJobs    = 20
	maxListHosts   = 100
	maxListQueues  = 20
	maxQueueLength = 40 // runes of the name of a queue
)

// indentedList returns a title and the first max lines of a list, aligned. It returns nil for an
// empty list.
func indentedList(title string, lines []string, n, max int) []string {
	if len(lines) == 0 {
		return nil
	}
	lines = append([]string{title}, alignColumns(lines[:min(len(lines), max)])...)
	if n > max {
		lines = append(lines, fmt.Sprintf("  and %d more", n-max))
	}
	return lines
}

// alignColumns returns the lines with each cell, which ends with a tab, as wide as the widest one
// of its column.
func alignColumns(lines []string) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	io.WriteString(w, strings.Join(lines, "\n"))
	w.Flush() // a strings.Builder takes everything
	return strings.Split(b.String(), "\n")
}

// hostLines describes the hosts of a run that is dispatched. Idle hosts with the same text share a
// line, unless the text is that they are up.
func hostLines(list []hostStatus) []string {
	var texts []runview.HostText
	by := map[string]*hostStatus{}
	for i := range list {
		h := &list[i]
		text, isEvent := h.now()
		if h.Running > 0 || h.LastAt == nil || h.Files != "" || isEvent && h.lastUp {
			text += "\n" + strconv.Itoa(i) // a line of its own
		}
		by[h.Name] = h
		texts = append(texts, runview.HostText{Host: h.Name, Text: text})
	}
	var lines []string
	for _, g := range runview.GroupHosts(texts) {
		sum := *by[g.Hosts[0]]
		for _, other := range g.Hosts[1:] {
			h := by[other]
			sum.Ended, sum.Failed = sum.Ended+h.Ended, sum.Failed+h.Failed
			if h.LastAt.After(*sum.LastAt) {
				sum.LastAt = h.LastAt
			}
		}
		line := fmt.Sprintf("  %s\t%s, %d ended", text.Line(g.Title()),
			results.RunningText(sum.Running, sum.idle(), true), sum.Ended)
		if sum.Failed > 0 {
			line += fmt.Sprintf(" (%d failed)", sum.Failed)
		}
		said, _, _ := strings.Cut(g.Text, "\n")
		if _, isEvent := sum.now(); sum.LastAt != nil && isEvent {
			line += "; " + sum.LastAt.Local().Format("15:04") + " " + text.Line(said)
		} else if said != "" {
			line += "; " + text.Line(said)
		}
		if sum.Files != "" {
			line += "; " + text.Line(sum.Files)
		}
		lines = append(lines, line)
	}
	return indentedList("hosts", lines, len(lines), maxListHosts)
}

// openLines lists the jobs that run, and then those that were only sent to a host. If nobody
// dispatches the run, it lists the jobs that may run, with the time of their start, because it is
// not known how long they ran.
func openLines(table *jobs.Table, state *live.State, dispatched bool) []string {
	isSuspended := runview.SuspendedJobs(table, state)
	title, sent, running := "running", "sent", "running"
	if !dispatched {
		title, sent, running = "may run, without a dispatcher", "may have started", "has started"
	}
	var lines, waiting []string
	for j := range table.RowsIn(jobs.Running) {
		if len(lines) == maxOpenJobs {
			break
		}
		a := runview.OpenAttempt(j)
		since, list := running, &lines
		switch {
		case a.State == jobs.AttemptLaunching:
			since, list = sent, &waiting
		case a.Started == 0:
		case dispatched:
			since = text.Duration(time.Since(a.Started.Time()))
			if isSuspended(j) {
				since += ", suspended"
			}
		default:
			since = "since " + a.Started.Time().Local().Format("2006-01-02 15:04:05")
		}
		switch n := runview.Copies(j); {
		case n == 1:
			since += ", 1 copy"
		case n > 1:
			since += fmt.Sprintf(", %d copies", n)
		}
		if len(*list) < maxOpenJobs {
			*list = append(*list, fmt.Sprintf("  %-6s  %s  %s  %s", a.ID, text.Line(a.Host), since,
				text.Shorten(text.Line(j.Spec.Title()))))
		}
	}
	return indentedList(title, append(lines, waiting...), table.Counts[jobs.Running], maxOpenJobs)
}

// queueLines describes each queue, if there are several:
//
//	late  12 jobs: 10 succeeded, 2 queued; 3m 20s of run time; share 2
func queueLines(table *jobs.Table, dispatched bool) []string {
	list := runview.CountQueues(table)
	if len(list) < 2 {
		return nil
	}
	var lines []string
	for _, q := range list[:min(len(list), maxListQueues)] {
		name := text.ShortenTo(text.Line(cmp.Or(q.Name, "(no name)")), maxQueueLength)
		line := "  " + name + "\t" + text.Plural(q.Total, "job") + ": " +
			strings.Join(results.StateCounts(q.Counts, results.Idle{}, dispatched), ", ")
		if q.Busy > 0 {
			line += "; " + text.Duration(q.Busy) + " of run time"
		}
		if q.Share != 1 {
			line += fmt.Sprintf("; share %d", q.Share)
		}
		if q.Priority != 0 {
			line += fmt.Sprintf("; priority %d", q.Priority)
		}
		if q.Slots > 0 {
			line += "; at most " + text.Plural(q.Slots, "slot")
		}
		lines = append(lines, line)
	}
	return indentedList("queues", lines, len(list), maxListQueues)
}

// deadlinesText counts the deadlines that were met and missed. It returns "" if no job has a
// deadline.
func deadlinesText(table *jobs.Table, now time.Time) string {
	d := runview.CountDeadlines(table, now)
	var parts []string
	for k, what := range []string{"met", "missed", "cannot be met", "to come"} {
		if n := [...]int{d.Met, d.Missed, d.Late, d.Open}[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	if parts == nil {
		return ""
	}
	return "deadlines: " + strings.Join(parts, ", ")
}
