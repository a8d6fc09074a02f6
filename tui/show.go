package tui

import (
	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
)

// showJobs shows the list of jobs with a filter.
func (m *model) showJobs(filter string) tea.Cmd {
	m.jobs.filter = filter
	m.jobs.home()
	m.open(tabJobs)
	return nil
}

// showJob shows the list of jobs with the cursor on one of them.
func (m *model) showJob(id jobs.ID) tea.Cmd {
	m.jobs.filter = ""
	m.jobs.follow(id)
	m.open(tabJobs)
	return nil
}
