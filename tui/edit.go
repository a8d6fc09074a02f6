package tui

import (
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

func (m *model) editCurrent() tea.Cmd {
	r, ok := m.job()
	if !ok {
		m.complain("there is no job under the cursor yet")
		return nil
	}
	if l, ok := m.focus().(interface{ hold() }); ok {
		l.hold()
	}
	if m.slid() {
		return nil
	}
	if m.jobs.sel.n > 0 && !equal(m.jobs.sel.which, jobs.One(r.ID)) {
		m.complain("only one job can be edited at a time: esc clears the selection")
		return nil
	}
	if !editable(r.Phase) {
		m.complain(fmt.Sprintf("cannot edit: %s %s; c cancels it, then it can be edited", jobName(r.ID), stands(r.Phase)))
		return nil
	}
	return m.edit(r.ID)
}

func editable(p runview.Phase) bool {
	return p.Terminal() || p == runview.Queued || p == runview.Waits || p == runview.Retry
}

// edit opens a line with the command of a job. A changed job is queued again.
func (m *model) edit(id jobs.ID) tea.Cmd {
	return m.detailFor(&waiting{keeps: true}, id, func(m *model, d *runview.Detail) tea.Cmd {
		if !editable(d.Row.Phase) {
			m.complain(fmt.Sprintf("cannot edit: %s %s by now", jobName(id), stands(d.Row.Phase)))
			return nil
		}
		m.modal = &input{
			prompt: fmt.Sprintf(" command of %d: ", id), text: newEdited(d.Command), lines: true, past: &m.jobs.edits,
			done: func(m *model, text string) (tea.Cmd, error) { return m.edited(id, d.Command, text) },
			left: func(m *model) tea.Cmd { m.say("nothing was changed"); return nil },
			note: func(m *model, w int) []string {
				if d.Row.Phase.Terminal() {
					return []string{styleFaint.Render(" " + jobName(id) + " " + stands(d.Row.Phase) + "; enter queues it again with the new command")}
				}
				return nil
			},
		}
		return nil
	})
}

// edited gives a job its new command.
func (m *model) edited(id jobs.ID, old, command string) (tea.Cmd, error) {
	switch {
	case strings.TrimSpace(command) == "":
		return nil, errors.New("the command is empty; esc leaves it as it was")
	case command == old:
		m.say("the command is as it was: nothing was changed; r requeues")
		return nil, nil
	}
	return m.act(runview.Action{Do: runview.Edit, Jobs: jobs.One(id), Edit: &runview.Change{Command: command}}), nil
}
