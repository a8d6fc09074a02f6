package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
)

// listKeys are the keys of a list of jobs.
func listKeys(l *list) []binding {
	key := func(k, show, word, group, help string, do func(*model) tea.Cmd) binding {
		return binding{keys: []string{k}, show: show, word: word, group: group, help: help, do: do}
	}
	now := func(do func()) func(*model) tea.Cmd { return func(*model) tea.Cmd { do(); return nil } }
	return append([]binding{
		key("enter", "enter", "detail", "Jobs", "details of a job: command, attempts with reasons, files", (*model).detailCurrent),
		key("l", "l", "log", "Jobs", "its output: follow, search, wrap, stdout and stderr", (*model).logCurrent),
		key("space", "space", "select", "List", "select a job, or not", func(m *model) tea.Cmd { return m.pick(l) }),
		key("a", "a", "", "List", "select all jobs that match the filter", func(m *model) tea.Cmd { return m.pickAll(l) }),
		key("/", "/", "filter", "List", "filter the list while you type", func(m *model) tea.Cmd { return m.openFilter(l) }),
		key("s", "s", "", "List", "sort by the next column", now(l.nextSort)),
		key("S", "S", "", "List", "the other way round", now(func() { l.reverse = !l.reverse })),
	}, moving(func() int { return l.h }, func(_ *model, by int) {
		if by <= -far {
			l.home()
			return
		}
		l.move(l.at + by)
	})...)
}

func (m *model) detailCurrent() tea.Cmd {
	if r, ok := m.job(); ok {
		return m.openDetail(r.ID)
	}
	return nil
}

func (m *model) logCurrent() tea.Cmd {
	if r, ok := m.job(); ok {
		return m.openOutput(r.ID)
	}
	return nil
}

// pick selects the job under the cursor, or takes it out, and goes on to the next.
func (m *model) pick(l *list) tea.Cmd {
	if r, ok := l.current(); ok {
		m.jobs.sel.toggle(r.ID)
		l.move(l.at + 1)
	}
	return nil
}

// matchedAll is what a filter matches.
type matchedAll struct {
	filter string
	which  jobs.Ranges
	err    error
}

// pickAll selects all jobs that a list shows, here or not.
func (m *model) pickAll(l *list) tea.Cmd { return m.pickFilter(l.query()) }

func (m *model) pickFilter(filter string) tea.Cmd {
	src := m.src
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		which, _, err := src.Match(ctx, filter)
		return matchedAll{filter, which, err}
	}
}

func (a matchedAll) apply(m *model) tea.Cmd {
	switch n := a.which.Count(); {
	case a.err != nil:
		m.complain("nothing was selected: " + a.err.Error())
	case n == 0:
		m.complain("no job matches: nothing was selected")
	default:
		m.jobs.sel.add(a.which)
		m.say(plural(m.jobs.sel.n, "job") + " selected; esc clears the selection")
	}
	return nil
}

// clear empties the selection, or else the filter; false: both are empty.
func (l *list) clear(sel *selection) bool {
	switch {
	case sel.n > 0:
		sel.set(nil)
	case l.filter != "":
		l.setFilter("")
	default:
		return false
	}
	return true
}
