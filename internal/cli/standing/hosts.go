package standing

import (
	"fmt"
	"sort"
	"time"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// hostCount is what a run has had of one host.
type hostCount struct {
	Name    string `json:"name"`
	Running int    `json:"running"`     // open attempts
	Handed  int    `json:"handed_over"` // those of them that are not known to have started
	Ended   int    `json:"ended"`       // attempts with an outcome
	Failed  int    `json:"failed"`      // those of Ended that failed; one that was ended on request did not fail

	Last   string     `json:"last_event,omitempty"` // what its dispatcher said last of it, while it is dispatched
	LastAt *time.Time `json:"last_event_at,omitempty"`
}

// countHosts counts what each host has had of a run.
func countHosts(t *jobs.Table) map[string]*hostCount {
	counts := map[string]*hostCount{}
	for i := range t.Jobs {
		for _, a := range t.Jobs[i].Attempts {
			if a.Host == "" {
				continue // a number left free after damage to the journal
			}
			h := counts[a.Host]
			if h == nil {
				h = &hostCount{Name: a.Host}
				counts[a.Host] = h
			}
			switch {
			case a.State.Open():
				h.Running++
				if a.State == jobs.AttemptLaunching {
					h.Handed++
				}
			case a.Outcome != nil:
				h.Ended++
				if a.Failed() {
					h.Failed++
				}
			}
		}
	}
	return counts
}

// hosts counts, and tells what was said last, of each host.
func (l *Look) hosts() []hostCount {
	counts := countHosts(l.Table)
	if l.Alive() {
		for name, w := range l.Words {
			h := counts[name]
			if h == nil {
				h = &hostCount{Name: name}
				counts[name] = h
			}
			at := w.At.Time().UTC()
			h.Last, h.LastAt = w.Text, &at
		}
	}
	list := make([]hostCount, 0, len(counts))
	for _, h := range counts {
		list = append(list, *h)
	}
	sort.Slice(list, func(i, k int) bool { return list[i].Name < list[k].Name })
	return list
}

// maxHosts bounds the list of hosts.
const maxHosts = 100

// hostLines say how each host stands while the run is dispatched: what it has of the
// run, and what its dispatcher said last of it.
func (l *Look) hostLines() []string {
	if !l.Alive() {
		return nil
	}
	var lines []string
	width := 0
	list := l.hosts()
	for _, h := range list {
		width = max(width, len([]rune(console.CleanLine(h.Name))))
	}
	for i, h := range list {
		if i == 0 {
			lines = append(lines, "hosts")
		}
		if i == maxHosts {
			return append(lines, fmt.Sprintf("  and %d more", len(list)-maxHosts))
		}
		text := fmt.Sprintf("  %-*s  %s, %d ended", width, console.CleanLine(h.Name), runview.RunningText(h.Running, h.Handed, true), h.Ended)
		if h.Failed > 0 {
			text += fmt.Sprintf(" (%d failed)", h.Failed)
		}
		if h.LastAt != nil {
			text += "; " + h.LastAt.Local().Format("15:04") + " " + console.CleanLine(console.WithoutSubject(h.Last, h.Name))
		}
		lines = append(lines, text)
	}
	return lines
}
