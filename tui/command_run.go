package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// drainRun lets what runs finish and then ends the dispatcher.
func (m *model) drainRun() tea.Cmd {
	return m.endRun(runview.DrainRun, "drain the run", func(t tally) string {
		return fmt.Sprintf("%s finish, nothing more starts, then the dispatcher ends; %s wait for resume.",
			plural(t.running+t.handed, "running job"), plural(t.queued, "queued job"))
	})
}

// stopRun ends the dispatcher alone.
func (m *model) stopRun() tea.Cmd {
	return m.endRun(runview.StopRun, "stop the run", func(t tally) string {
		return fmt.Sprintf("%s go on without us and are adopted by resume; %s wait for it.",
			plural(t.running+t.handed, "running job"), plural(t.queued, "queued job"))
	})
}

func (m *model) endRun(verb runview.Verb, what string, text func(tally) string) tea.Cmd {
	if m.pic == nil || !m.dispatched(what) {
		return nil
	}
	m.modal = newConfirmation(strings.ToUpper(what[:1])+what[1:]+"?", text(counts(m.pic)), 0, func(m *model) tea.Cmd { return m.act(runview.Action{Do: verb}) })
	return nil
}

// cancelRun ends everything, after a question that says what is lost.
func (m *model) cancelRun() tea.Cmd {
	if m.pic == nil || !m.dispatched("cancel the run") {
		return nil
	}
	all := jobs.Ranges{{First: 1, Last: jobs.ID(max(1, m.pic.Total))}}
	return m.weigh(all, func(m *model, w runview.Weight) tea.Cmd {
		m.modal = newConfirmation("Cancel the whole run?", loss(w), w.Queued+w.Running, func(m *model) tea.Cmd { return m.act(runview.Action{Do: runview.CancelRun}) })
		return nil
	})
}
