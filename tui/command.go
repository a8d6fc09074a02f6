package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/query"
	"dcs-tui/jobs/runview"
)

// command is one of the command line's. The table of commands is the only place where
// they are named: completion, errors and the help come from it.
type command struct {
	name  string
	alias []string
	args  string // as the help shows them
	help  string
	words func(m *model) []string // that may stand as arguments; nil: none are known
	do    func(m *model, arg string) (tea.Cmd, error)
}

// openCommand opens the command line.
func (m *model) openCommand(text string) tea.Cmd {
	m.modal = &input{
		prompt: " :", text: newEdited(text), past: &m.jobs.commands, complete: (*model).commandWords,
		done: (*model).command,
	}
	return nil
}

// command carries out a line.
func (m *model) command(line string) (tea.Cmd, error) {
	name, arg, _ := strings.Cut(strings.TrimSpace(strings.TrimLeft(line, ": \t")), " ")
	if name == "" {
		return nil, nil
	}
	c := findCommand(name)
	if c == nil {
		return nil, query.Unknown("command", name, commandNames())
	}
	arg = strings.TrimSpace(arg)
	if c.args == "" && arg != "" {
		return nil, fmt.Errorf("%s takes nothing after it", c.name)
	}
	return c.do(m, arg)
}

func findCommand(name string) *command {
	for i := range commands {
		if c := &commands[i]; c.name == name || slices.Contains(c.alias, name) {
			return c
		}
	}
	return nil
}

func commandNames() []string {
	names := make([]string, len(commands))
	for i := range commands {
		names[i] = commands[i].name
	}
	return names
}

func quoted(s string) string { return fmt.Sprintf("%q", jobs.Clean(s, 40)) }

// some lists at most n words.
func some(words []string, n int) string {
	if len(words) > n {
		return strings.Join(words[:n], ", ") + fmt.Sprintf(" and %d more", len(words)-n)
	}
	return strings.Join(words, ", ")
}

// commandWords completes the word before the cursor.
func (m *model) commandWords(before string) (int, []string) {
	skip := len(before) - len(strings.TrimLeft(before, ": \t"))
	name, arg, is := strings.Cut(before[skip:], " ")
	if !is {
		return skip, startingWith(commandNames(), name)
	}
	c := findCommand(name)
	if c == nil {
		return len(before), nil
	}
	if c.name == "filter" || c.name == "select" {
		start, words := m.filterWords(arg)
		return len(before) - len(arg) + start, words
	}
	if c.words == nil {
		return len(before), nil
	}
	start := strings.LastIndexByte(before, ' ') + 1
	return start, startingWith(c.words(m), before[start:])
}

// list is the list of jobs that commands are about: the focused one, else the jobs.
func (m *model) listNow() *list {
	if m.focus() == pane(m.result) {
		return &m.result.list
	}
	if m.focus() != pane(m.jobs) {
		m.open(tabJobs)
	}
	return &m.jobs.list
}

func (m *model) hostNames() []string {
	if m.pic == nil {
		return nil
	}
	names := make([]string, len(m.pic.Hosts))
	for i := range m.pic.Hosts {
		names[i] = m.pic.Hosts[i].Name
	}
	return names
}

// hostNamed checks the name of a host.
func (m *model) hostNamed(name string) error {
	known := m.hostNames()
	switch {
	case name == "":
		return errors.New("which host? " + some(known, 20))
	case slices.Contains(known, name):
		return nil
	}
	return query.Unknown("host", name, known)
}

var sortNames = func() []string {
	var names []string
	for s := range runview.Sorts {
		names = append(names, s.String())
	}
	return names
}()

// init breaks the circle: the help, which a command opens, lists the commands.
func init() { commands = commandTable() }

var commands []command
