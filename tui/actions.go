package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

// jobKeys returns the keys for jobs. They work in each pane with a job under a cursor, on the
// selected jobs or, without a selection, on that job.
func (m *model) jobKeys() []binding {
	onJobs := (*model).focusHasJobs
	noJobs := fmt.Sprintf("this is not a list of jobs; %s, %s, or %s leads to one", m.keyFor("next-view"),
		m.keyFor("jobs"), m.keyFor("open"))
	shell := shellKey()
	shell.label = "" // the footer of a list has more important keys
	return withGroup("Jobs", shell,
		key("undo", "undo", "undo the cancel, for ten seconds", (*model).undoCancel).
			onlyIf((*model).canUndo).thatActs(),
		key("cancel", text.If(m.hasEffect(action.Cancel), "cancel"), "cancel: a queued job at once, else it asks first",
			(*model).cancelSelected).onlyIf(onJobs).orSay(noJobs).thatActs(),
		key("requeue", "requeue", "run finished jobs again", (*model).requeueSelected).
			onlyIf(onJobs).orSay(noJobs).thatActs(),
		key("edit", "edit", "change the command of a job that is queued or over", (*model).editCurrent).
			onlyIf(onJobs).orSay(noJobs).thatActs(),
		key("why", "why", "why is it not running, or what is it doing", onCurrent((*model).showWhy)).
			onlyIf(onJobs).orSay(noJobs),
		key("more", "", "more urgent: its priority number gets smaller",
			func(m *model) tea.Cmd { return m.prioritize(-1, true) }).onlyIf(onJobs).orSay(noJobs).thatActs(),
		key("less", "", "less urgent", func(m *model) tea.Cmd { return m.prioritize(1, true) }).
			onlyIf(onJobs).orSay(noJobs).thatActs(),
	)
}

// runKeys returns the keys for the run, which work everywhere. Those that would have no effect are not
// in the footer.
func (m *model) runKeys() []binding {
	pause, help := "pause", "launch nothing more; running jobs continue"
	if m.isPausedOrDraining() {
		pause, help = "continue", "launch again: ends a pause and a drain"
	}
	return withGroup("Run",
		key("command", "cmd", "a command, tab completes it", func(m *model) tea.Cmd { return m.openCommand("") }),
		key("pause", text.If(m.hasEffect(action.Pause), pause), help, (*model).togglePause).thatActs(),
		key("undo", "", "", func(m *model) tea.Cmd { m.showMessage("there is nothing to undo"); return nil }),
	)
}

// focusHasJobs reports whether keys for jobs have a meaning in the focused pane.
func (m *model) focusHasJobs() bool {
	return m.focus().hasJobs()
}

// targetJobs returns the jobs that a key or a command acts on. The cursor stays on its job from
// then on. A job of a list that is not shown is no target.
func (m *model) targetJobs() jobs.Ranges {
	if !m.focusHasJobs() && !m.isShown(m.jobs) {
		m.showError("which jobs? give their numbers, or go to a list of jobs")
		return nil
	}
	m.focus().pinCursor()
	if len(m.focus().selectedJobs(m)) == 0 && m.warnIfSlipped() {
		return nil
	}
	which := m.selectedOrCurrent()
	if len(which) == 0 {
		m.showError(noJobText)
	}
	return which
}

// mayRequest reports whether an action may have an effect on the run as it is, and otherwise shows why
// it has none. Without a dispatcher, the declaration of the action determines that.
func (m *model) mayRequest(q action.Request) bool {
	if m.snap == nil {
		return false
	}
	if target := m.actionTarget(); q.EffectOn(target) == action.IsRefused {
		m.showError(q.WhyRefused(target))
		return false
	}
	return true
}

// actionTarget returns what the effect of an action on the run depends on.
func (m *model) actionTarget() action.Target {
	return action.Target{IsDispatched: !m.isUndispatched(), IsFinished: m.snap.NumLeft() == 0 && !m.snap.More &&
		len(m.snap.MetricsOf) == 0}
}

// hasEffect reports whether an action may change something, now or at the next resume.
func (m *model) hasEffect(name action.Name) bool {
	if m.snap == nil {
		return false
	}
	q := action.Request{Do: name}
	effect := q.EffectOn(m.actionTarget())
	return effect == action.IsCarriedOut || effect == action.IsLeft
}

// onlyTarget returns the row of the only target, if it is known.
func (m *model) onlyTarget(which jobs.Ranges) (runview.Row, bool) {
	r, ok := m.currentJob()
	return r, ok && slices.Equal(which, jobs.One(r.ID))
}

func (m *model) cancelSelected() tea.Cmd { return m.cancelJobs(m.targetJobs()) }

// cancelJobs cancels jobs. A single queued job is canceled immediately, with an undo; everything
// else after a question that describes what is lost (rule 9).
func (m *model) cancelJobs(which jobs.Ranges) tea.Cmd {
	if len(which) == 0 {
		return nil
	}
	if r, ok := m.onlyTarget(which); ok && (r.Phase.Terminal() || r.Phase == runview.Ending) {
		m.showError(fmt.Sprintf("nothing to cancel: %s %s", jobName(r.ID), phaseInfoOf(r.Phase).verbPhrase))
		return nil
	}
	return m.withCost(which, func(m *model, cost runview.Cost) tea.Cmd {
		n := cost.Queued + cost.Sent + cost.Running
		// If the question states that no running job is lost, jobs that start meanwhile continue.
		q := action.Request{Do: action.Cancel, Jobs: which}
		if cost.Running+cost.Sent == 0 {
			q.Spare = action.SpareStarted
		}
		do := func(m *model) tea.Cmd { return m.startAction(q) }
		switch {
		case n == 0:
			m.showError("nothing to cancel: " + m.jobsSubject(which) + " over already")
			return nil
		case which.Count() == 1 && cost.Running+cost.Sent == 0:
			return do(m)
		}
		what := text.Plural(n, "job")
		if which.Count() == 1 {
			what = jobName(which[0].First)
		}
		m.modal = newConfirmation("Cancel "+what+"?", describeCost(cost), n, do)
		return nil
	})
}

// jobsSubject returns the subject of a sentence: "job 17 is", "these 12 jobs are".
func (m *model) jobsSubject(which jobs.Ranges) string {
	if which.Count() == 1 {
		return jobName(which[0].First) + " is"
	}
	return "these " + text.Plural(which.Count(), "job") + " are"
}

// isOnSilentHost reports whether the job waits for a host that cannot be reached. A requeue ends
// that wait.
func (m *model) isOnSilentHost(r *runview.Row) bool {
	return m.snap != nil && slices.ContainsFunc(m.snap.Hosts, func(h live.Host) bool {
		return h.Name == r.Host && isSilent(&h)
	})
}

func (m *model) requeueSelected() tea.Cmd { return m.requeueJobs(m.targetJobs()) }

// requeueJobs runs finished jobs again. It asks first if there are many jobs, because they repeat
// all their work.
func (m *model) requeueJobs(which jobs.Ranges) tea.Cmd {
	if len(which) == 0 {
		return nil
	}
	if r, ok := m.onlyTarget(which); ok && !r.Phase.Terminal() && !m.isOnSilentHost(&r) {
		m.showError(fmt.Sprintf("nothing to requeue: %s %s", jobName(r.ID), phaseInfoOf(r.Phase).verbPhrase))
		return nil
	}
	do := func(m *model) tea.Cmd { return m.startAction(action.Request{Do: action.Requeue, Jobs: which}) }
	if which.Count() <= manyJobs {
		return do(m)
	}
	return m.withCost(which, func(m *model, cost runview.Cost) tea.Cmd {
		if cost.Over == 0 {
			m.showError("nothing to requeue: none of these jobs is over")
			return nil
		}
		msg := "each begins a new round, whatever its result was"
		if n := cost.Queued + cost.Sent + cost.Running; n > 0 {
			msg += "; " + text.Thousands(n) + " that are queued or run stay as they are"
		}
		m.modal = newConfirmation("Run "+text.Plural(cost.Over, "job")+" again?", msg, cost.Over, do)
		return nil
	})
}

func (m *model) prioritize(n int, relative bool) tea.Cmd {
	which := m.targetJobs()
	if len(which) == 0 {
		return nil
	}
	if r, ok := m.onlyTarget(which); ok && r.Phase.Terminal() {
		m.showError(fmt.Sprintf("its priority changes nothing: %s %s", jobName(r.ID), phaseInfoOf(r.Phase).verbPhrase))
		return nil
	}
	return m.startAction(action.Request{Do: action.Priority, Jobs: which, Priority: n, Relative: relative})
}

// isPausedOrDraining reports whether the run is paused or drains.
func (m *model) isPausedOrDraining() bool {
	return m.snap != nil && (m.snap.Paused || m.snap.Draining != "")
}

// togglePause pauses launching, or continues it.
func (m *model) togglePause() tea.Cmd {
	if m.isPausedOrDraining() {
		return m.startAction(action.Request{Do: action.Continue})
	}
	return m.startAction(action.Request{Do: action.Pause})
}

// canUndo reports whether there is an action to undo and its time has not passed.
func (m *model) canUndo() bool { return m.undo != nil && !m.now().After(m.undo.expiresAt) }

// undoCancel requeues the jobs that the last cancel has ended.
func (m *model) undoCancel() tea.Cmd {
	which := m.undo.jobs
	m.undo = nil // a second u has no effect
	return m.startAction(action.Request{Do: action.Requeue, Jobs: which, Why: "undo"})
}

func (m *model) clearSelectionAfter(q action.Request) {
	switch q.Do {
	case action.Cancel, action.Requeue, action.Edit:
		if slices.Equal(q.Jobs, m.jobs.sel.which) {
			m.jobs.sel.set(nil)
		}
	}
}

// jobToEdit returns the job that a key or a command edits. Without exactly one it shows why.
func (m *model) jobToEdit() (runview.Row, bool) {
	which := m.targetJobs()
	r, ok := m.onlyTarget(which)
	if !ok && len(which) > 0 {
		m.showError("only one job can be edited at a time: " + m.keyFor("back") + " clears the selection")
	}
	return r, ok
}

func (m *model) editCurrent() tea.Cmd {
	r, ok := m.jobToEdit()
	if !ok {
		return nil
	}
	if !isEditable(r.Phase) {
		m.showError(fmt.Sprintf("cannot edit: %s %s; %s cancels it, then it can be edited", jobName(r.ID),
			phaseInfoOf(r.Phase).verbPhrase, m.keyFor("cancel")))
		return nil
	}
	return m.openEdit(r.ID)
}

func isEditable(p runview.Phase) bool {
	return p.Terminal() || p == runview.Queued || p == runview.Waits || p == runview.Retry
}

// openEdit opens a line with the command of a job. An edited job is queued again.
func (m *model) openEdit(id jobs.ID) tea.Cmd {
	return m.withDetailIn(&waitModal{keepsText: true}, id, func(m *model, detail *runview.Detail) tea.Cmd {
		if !isEditable(detail.Row.Phase) {
			m.showError(fmt.Sprintf("cannot edit: %s %s by now", jobName(id), phaseInfoOf(detail.Row.Phase).verbPhrase))
			return nil
		}
		m.modal = &inputLine{
			prompt: fmt.Sprintf(" command of %d: ", id), text: newEditableText(detail.Command), multiline: true,
			history:   &m.jobs.edits,
			onConfirm: func(m *model, text string) (tea.Cmd, error) { return m.setCommand(id, detail.Command, text) },
			onCancel:  func(m *model) tea.Cmd { m.showMessage("nothing was changed"); return nil },
			noteLines: func(m *model, w int) []string {
				if detail.Row.Phase.Terminal() {
					return []string{styleFaint.Render(" " + jobName(id) + " " +
						phaseInfoOf(detail.Row.Phase).verbPhrase + "; enter queues it again with the new command")}
				}
				return nil
			},
		}
		return nil
	})
}

func (m *model) setCommand(id jobs.ID, old, command string) (tea.Cmd, error) {
	switch {
	case strings.TrimSpace(command) == "":
		return nil, errors.New("the command is empty; esc leaves it as it was")
	case command == old:
		m.showMessage("the command is as it was: nothing was changed; " + m.keyFor("requeue") + " requeues")
		return nil, nil
	}
	return m.startAction(action.Request{Do: action.Edit, Jobs: jobs.One(id), Edit: &jobs.Change{Command: &command}}),
		nil
}
