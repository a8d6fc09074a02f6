package tui

import (
	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

// keys are what can be done with a host.
func (p *hostsPane) keys() []binding {
	return append([]binding{
		{keys: []string{"enter"}, show: "enter", word: "details", group: "Hosts", help: "all that is known of the host, and what happened there",
			when: p.some, do: func(m *model) tea.Cmd { m.modal = &hostModal{name: p.host(m).Name}; return nil }},
		{keys: []string{"d"}, show: "d", word: "drain", group: "Hosts", help: "drain: what runs there finishes, nothing more starts",
			when: p.when(func(h *live.Host) bool { return !resting(h) }), do: p.do(runview.DrainHost)},
		{keys: []string{"d"}, show: "d", word: "use again", group: "Hosts", help: "use a drained or stopped host again",
			when: p.when(resting), do: p.do(runview.UseHost)},
		{keys: []string{"x"}, show: "x", word: "stop now", group: "Hosts", help: "stop now: its jobs are ended and queued again (asks first)",
			when: p.when(func(h *live.Host) bool { return h.State != hostDisabled }), do: p.firm(stopHost)},
		{keys: []string{"+", "="}, show: "+", word: "slots", group: "Hosts", help: "one slot more: one more job may run there at once",
			when: p.when(nil), do: p.slots(1)},
		{keys: []string{"-"}, show: "-", group: "Hosts", help: "one slot less: what runs there goes on, one fewer starts",
			when: p.when(func(h *live.Host) bool { return h.Slots > 0 }), do: p.slots(-1)},
		{keys: []string{"a"}, show: "a", word: "add", group: "Hosts", help: "add a host to the run: its name, and options such as slots=4 tags=gpu",
			when: func(m *model) bool { return !m.over() }, do: func(m *model) tea.Cmd { return m.openCommand("add ") }},
		{keys: []string{"f"}, show: "f", word: "its jobs", group: "Hosts", help: "the jobs of the host: the list of jobs, filtered",
			when: p.some, do: func(m *model) tea.Cmd { return m.showJobs("host=" + p.host(m).Name) }},
		{keys: []string{"/"}, show: "/", group: "Hosts", help: "only hosts with a text in name, state or reason, or by columns: load>4", do: p.openFilter},
		{keys: []string{"s"}, show: "s", word: "sort", group: "Hosts", help: "those in trouble first, or as in the inventory",
			when: p.some, do: func(*model) tea.Cmd { p.trouble = !p.trouble; return nil }},
	}, moving(func() int { return p.h }, p.move)...)
}

// resting says that a host starts nothing because a person wants that.
func resting(h *live.Host) bool { return h.State == hostDraining || h.State == hostDisabled }

func (p *hostsPane) some(m *model) bool { return p.host(m) != nil }

// when is a condition on the host under the cursor, of a run that is dispatched.
func (p *hostsPane) when(f func(*live.Host) bool) func(*model) bool {
	return func(m *model) bool {
		h := p.host(m)
		return h != nil && !m.over() && (f == nil || f(h))
	}
}

// firm does something to the host under the cursor, unless the cursor has just slid there.
func (p *hostsPane) firm(do func(*model, *live.Host) tea.Cmd) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		if m.slid() {
			return nil
		}
		return do(m, p.host(m))
	}
}

func (p *hostsPane) do(verb runview.Verb) func(*model) tea.Cmd {
	return p.firm(func(m *model, h *live.Host) tea.Cmd { return m.act(runview.Action{Do: verb, Host: h.Name}) })
}

// slots changes how many jobs may run on a host, and says what that means.
func (p *hostsPane) slots(by int) func(*model) tea.Cmd {
	return p.firm(func(m *model, h *live.Host) tea.Cmd {
		return m.act(runview.Action{Do: runview.Slots, Host: h.Name, Number: by, Relative: true})
	})
}

// stop asks before the jobs of a host are ended.
func stopHost(m *model, host *live.Host) tea.Cmd {
	h := *host
	text := "nothing of ours runs there; nothing more will start"
	if h.Running > 0 {
		text = plural(h.Running, "job") + " running there will be ended and queued again: what they have done so far is lost"
	}
	m.modal = newConfirmation("Stop "+h.Name+" now?", text, h.Running, func(m *model) tea.Cmd { return m.act(runview.Action{Do: runview.StopHost, Host: h.Name}) })
	return nil
}
