package tui

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/query"
	"dcs-tui/observe/runview"
)

// command is a command of the command line. The table of commands is the only place where
// they are named: completion, errors, and the help come from it.
type command struct {
	name  string
	alias []string
	args  string // as the help shows them
	help  string
	words func(m *model) []string // known arguments; nil: none
	do    func(m *model, arg string) (tea.Cmd, error)
}

func (m *model) openCommand(text string) tea.Cmd {
	m.modal = &inputLine{
		prompt: " :", text: newEditableText(text), history: &m.jobs.commands, complete: (*model).completeCommand,
		onConfirm: (*model).runCommand,
	}
	return nil
}

func (m *model) runCommand(line string) (tea.Cmd, error) {
	name, arg, _ := strings.Cut(strings.TrimSpace(strings.TrimLeft(line, ": \t")), " ")
	if name == "" {
		return nil, nil
	}
	c := findCommand(name)
	if c == nil {
		if b := m.bindingOf(name); b != nil && arg == "" {
			return b.do(m), nil
		}
		return nil, query.Unknown("command", name, commandNames())
	}
	arg = strings.TrimSpace(arg)
	if c.args == "" && arg != "" {
		return nil, fmt.Errorf("%s takes no arguments", c.name)
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

func commandNames() []string { return text.Each(commands, func(c command) string { return c.name }) }

func quoted(s string) string { return fmt.Sprintf("%q", text.Clean(s, 40)) }

// completeCommand completes the word before the cursor.
func (m *model) completeCommand(before string) (int, []string) {
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
		start, words := m.completeFilter(arg)
		return len(before) - len(arg) + start, words
	}
	if c.words == nil {
		return len(before), nil
	}
	start := strings.LastIndexByte(before, ' ') + 1
	return start, startingWith(c.words(m), before[start:])
}

// focusedList returns the list of jobs with the focus. If there is none, it opens the jobs.
func (m *model) focusedList() *jobList {
	if m.focus() == pane(m.results) {
		return &m.results.jobList
	}
	if m.focus() != pane(m.jobs) {
		m.openView(tabJobs)
	}
	return &m.jobs.jobList
}

func (m *model) hostNames() []string {
	if m.snap == nil {
		return nil
	}
	return text.Each(m.snap.Hosts, func(h live.Host) string { return h.Name })
}

// checkHost returns an error if the run has no host of that name.
func (m *model) checkHost(name string) error {
	known := m.hostNames()
	switch {
	case name == "":
		return errors.New("which host? " + text.List(known, 20))
	case slices.Contains(known, name):
		return nil
	}
	return query.Unknown("host", name, known)
}

// init breaks an initialization cycle: a command opens the help, which lists the commands.
func init() { commands = commandTable() }

var commands []command

func commandTable() []command {
	const which = "[IDS]"
	simple := func(do func(*model) tea.Cmd) func(*model, string) (tea.Cmd, error) {
		return func(m *model, _ string) (tea.Cmd, error) { return do(m), nil }
	}
	return slices.Concat([]command{
		{name: "cancel", args: which, help: "cancel the selected jobs, that under the cursor, or those named: 17 20-30",
			do: jobsCommand((*model).cancelJobs)},
		{name: "requeue", args: which, help: "run them again, when they are over",
			do: jobsCommand((*model).requeueJobs)},
		{name: "prio", alias: []string{"priority"}, args: "N",
			help: "priority of the selected jobs, or of that under the cursor: smaller goes first; +1 and -1 add to it",
			do:   (*model).commandPriority},
		{name: "edit", args: "[COMMAND]", help: "change the command of the job under the cursor",
			do: (*model).commandEdit},
		{name: "undo", help: "undo the last cancel, for ten seconds",
			do: simple(func(m *model) tea.Cmd { return m.bindingOf("undo").do(m) })},
		{name: "job", args: "ID", help: "go to a job", do: jobCommand((*model).showJob)},
		{name: "detail", alias: []string{"details"}, args: "[ID]", help: "everything that is known of a job",
			do: jobCommand((*model).openDetail)},
		{name: "logs", alias: []string{"log"}, args: "[ID]", help: "its output", do: jobCommand((*model).openOutput)},
		{name: "why", args: "[ID]", help: "why is it not running, or what is it doing",
			do: jobCommand((*model).showWhy)},
		{name: "filter", args: "[TEXT]", help: "show only jobs that match; without text: all",
			do: (*model).commandFilter},
		{name: "select", args: "[FILTER]", help: "select all jobs that match", do: (*model).commandSelect},
		{name: "sort", args: "COLUMN [asc|desc]", help: "sort by " + strings.Join(runview.SortNames(), ", "),
			words: (*model).sortWords, do: (*model).commandSort},
		{name: "view", args: "NAME", help: "show jobs, hosts, failed, results or events",
			words: func(*model) []string { return viewNames() }, do: (*model).commandView},
	}, actionCommands(), []command{
		{name: "shell", args: "[HOST]", help: "a shell on the host, or on that of the job under the cursor",
			words: (*model).hostNames, do: (*model).commandShell},
		{name: "cancel-run", help: "end everything (asks)", do: simple((*model).cancelRun)},
		{name: "resume", help: "start a dispatcher for a run that has none", do: (*model).commandResume},
		{name: "help", help: "the keys and commands", do: simple((*model).openHelp)},
		{name: "quit", alias: []string{"q", "leave"}, help: "leave the screen", do: simple((*model).leave)},
	}, resultCommands())
}

// jobsCommand returns a command for the named jobs or, without an argument, for those that keys
// would act on.
func jobsCommand(do func(*model, jobs.Ranges) tea.Cmd) func(*model, string) (tea.Cmd, error) {
	return func(m *model, arg string) (tea.Cmd, error) {
		if arg == "" {
			return do(m, m.targetJobs()), nil
		}
		which, err := m.parseIDs(arg)
		if err != nil {
			return nil, err
		}
		return do(m, which), nil
	}
}

// jobCommand returns a command for the named job or, without an argument, for the one under the
// cursor.
func jobCommand(do func(*model, jobs.ID) tea.Cmd) func(*model, string) (tea.Cmd, error) {
	return func(m *model, arg string) (tea.Cmd, error) {
		if arg == "" {
			r, ok := m.currentJob()
			if !ok {
				return nil, errors.New("which job? its number")
			}
			return do(m, r.ID), nil
		}
		which, err := m.parseIDs(arg)
		if err != nil {
			return nil, err
		}
		if which.Count() != 1 {
			return nil, errors.New("one job at a time")
		}
		return do(m, which[0].First), nil
	}
}

// parseIDs parses "17 20-30,40".
func (m *model) parseIDs(s string) (jobs.Ranges, error) {
	which, err := jobs.ParseRanges(strings.Join(splitWords(s), ","))
	if err != nil {
		return nil, err
	}
	if last := jobs.ID(max(1, m.snap.Total)); which.Last() > last {
		return nil, fmt.Errorf("there is no job %d; the last is %d", which.Last(), last)
	}
	return which, nil
}

// splitWords splits a list at blanks and commas.
func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,\t", r) })
}

// hostCommand returns a command for a host. do gets the text after the host's name.
func hostCommand(do func(m *model, host, rest string) (tea.Cmd, error)) func(*model, string) (tea.Cmd, error) {
	return func(m *model, arg string) (tea.Cmd, error) {
		name, rest, _ := strings.Cut(arg, " ")
		if err := m.checkHost(name); err != nil {
			return nil, err
		}
		return do(m, name, strings.TrimSpace(rest))
	}
}

// argumentCommands carry out the actions that take more than the name of a host.
var argumentCommands = map[action.Name]func(m *model, arg string) (tea.Cmd, error){
	action.Slots: hostCommand((*model).setHostSlots), action.AddHost: (*model).commandAdd,
}

// actionCommands returns the commands that only request an action, from its declaration.
func actionCommands() (list []command) {
	for _, a := range action.All {
		if a.Screen.Name == "" {
			continue
		}
		c := command{name: a.Screen.Name, args: a.Screen.Args, help: a.Screen.Help, do: argumentCommands[a.Name]}
		if a.IsOnHost() && a.Name != action.AddHost {
			c.words = (*model).hostNames
		}
		switch {
		case c.do != nil:
		case a.IsOnHost():
			c.do = hostActionCommand(a)
		case a.Running != "":
			c.do = endRunCommand(a)
		default:
			c.do = func(m *model, _ string) (tea.Cmd, error) {
				return m.startAction(action.Request{Do: a.Name}), nil
			}
		}
		list = append(list, c)
	}
	return list
}

// hostActionCommand returns a command that takes only the name of a host.
func hostActionCommand(a *action.Action) func(*model, string) (tea.Cmd, error) {
	return hostCommand(func(m *model, host, rest string) (tea.Cmd, error) {
		if rest != "" {
			return nil, fmt.Errorf("only the name of a host: %s", quoted(host+" "+rest))
		}
		if a.Name == action.StopHost { // asks with what is known of the host
			m.hosts.moveToHost(host)
			return stopHost(m, m.hosts.currentHost(m)), nil
		}
		return m.startAction(action.Request{Do: a.Name, Host: host}), nil
	})
}

// commandAdd adds a host to the run.
func (m *model) commandAdd(arg string) (tea.Cmd, error) {
	name, options, _ := strings.Cut(strings.TrimSpace(arg), " ")
	if name == "" {
		return nil, errors.New("which host? a name that ssh can reach, and options such as slots=4 tags=gpu")
	}
	return m.startAction(action.Request{Do: action.AddHost, Host: name, Options: strings.TrimSpace(options)}), nil
}

func (m *model) setHostSlots(host, arg string) (tea.Cmd, error) {
	n, relative, err := parseNumber(arg)
	if err != nil || !relative && n < 0 {
		return nil, fmt.Errorf("%s is not a number of slots, such as 8, +2, or -2", quoted(arg))
	}
	return m.startAction(action.Request{Do: action.Slots, Host: host, Number: n, Relative: relative}), nil
}

// parseNumber parses 8, +2, -2. Numbers with a sign are relative.
func parseNumber(s string) (n int, relative bool, err error) {
	v, err := strconv.ParseInt(s, 10, 32)
	return int(v), strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-"), err
}

// commandPriority sets a priority. =-5 sets a negative one; -5 makes the job more urgent by five.
func (m *model) commandPriority(arg string) (tea.Cmd, error) {
	absolute, is := strings.CutPrefix(arg, "=")
	n, relative, err := parseNumber(absolute)
	if err != nil {
		return nil, fmt.Errorf("%s is not a priority, such as 5, +1, -1, or =-5; jobs with smaller numbers start "+
			"first; the jobs are the selected ones, or the one under the cursor", quoted(arg))
	}
	return m.prioritize(n, relative && !is), nil
}

func (m *model) commandEdit(arg string) (tea.Cmd, error) {
	if arg == "" {
		return m.editCurrent(), nil
	}
	r, ok := m.jobToEdit()
	switch {
	case !ok:
		return nil, nil
	case !isEditable(r.Phase):
		return nil, fmt.Errorf("cannot edit: %s %s", jobName(r.ID), phaseInfoOf(r.Phase).verbPhrase)
	}
	return m.setCommand(r.ID, "", arg)
}

func (m *model) commandFilter(arg string) (tea.Cmd, error) {
	m.focusedList().setFilter(arg)
	m.jobs.filters.add(arg)
	return nil, nil
}

func (m *model) commandSelect(arg string) (tea.Cmd, error) {
	if arg == "" {
		return m.focusedList().selectAll(m), nil
	}
	return m.selectMatches(arg), nil
}

func (m *model) commandSort(arg string) (tea.Cmd, error) {
	f := strings.Fields(arg)
	if len(f) == 0 || len(f) > 2 {
		return nil, errors.New("sort by one of " + strings.Join(runview.SortNames(), ", "))
	}
	if way := f[len(f)-1]; len(f) == 2 && way != "asc" && way != "desc" {
		return nil, fmt.Errorf("unknown direction %s: use asc or desc", quoted(way))
	}
	if p := m.results; m.focus() == pane(p) && p.hasTable {
		return nil, p.commandSort(f[0], len(f) == 2 && f[1] == "desc")
	}
	i := slices.Index(runview.SortNames(), f[0])
	if i < 0 {
		return nil, query.Unknown("column", f[0], runview.SortNames())
	}
	l := m.focusedList()
	l.sort = runview.Sort(i)
	l.reverse = len(f) == 2 && (f[1] == "desc") != highestFirst(l.sort)
	return nil, nil
}

// sortWords returns the columns that the focused list can be sorted by.
func (m *model) sortWords() []string {
	names := runview.SortNames()
	if p := m.results; m.focus() == pane(p) && p.hasTable {
		names = columnNames(p.tableColumns())
		if p.groups.isShown {
			names = p.groupSortColumns()[1:]
		}
	}
	return append(slices.Clip(names), "asc", "desc")
}

func viewNames() []string { return text.Each(tabNames[:], strings.ToLower) }

func (m *model) commandView(arg string) (tea.Cmd, error) {
	for i, n := range viewNames() {
		if n == strings.ToLower(arg) || arg == itoa(i+1) {
			m.openView(tab(i))
			return nil, nil
		}
	}
	return nil, query.Unknown("view", arg, viewNames())
}

func (m *model) commandResume(string) (tea.Cmd, error) {
	if !m.isUndispatched() {
		return nil, errors.New("the run already has a dispatcher")
	}
	return m.startAction(action.Request{Do: action.Resume}), nil
}

// endRunCommand returns a command that ends the dispatcher, after a question that describes what
// happens to its jobs.
func endRunCommand(a *action.Action) func(*model, string) (tea.Cmd, error) {
	return func(m *model, _ string) (tea.Cmd, error) {
		q := action.Request{Do: a.Name}
		if m.mayRequest(q) {
			what := q.Text()
			m.modal = newConfirmation(strings.ToUpper(what[:1])+what[1:]+"?",
				fmt.Sprintf("Running jobs (%d) %s; queued jobs (%d) %s.", m.snap.NumRunning(), a.Running,
					m.snap.NumQueued(), a.Queued), 0,
				func(m *model) tea.Cmd { return m.startAction(q) })
		}
		return nil, nil
	}
}

// cancelRun cancels all jobs, after a question that describes what is lost.
func (m *model) cancelRun() tea.Cmd {
	if m.snap == nil {
		return nil
	}
	all := jobs.Ranges{{First: 1, Last: jobs.ID(max(1, m.snap.Total))}}
	return m.withCost(all, func(m *model, cost runview.Cost) tea.Cmd {
		m.modal = newConfirmation("Cancel the whole run?", describeCost(cost), cost.Running+cost.Sent+cost.Queued,
			func(m *model) tea.Cmd { return m.startAction(action.Request{Do: action.Cancel, All: true}) })
		return nil
	})
}
