package tui

import (
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/observe/runview"
)

// TestEachCommandHasItsAction checks the action of each command and its error message.
func TestEachCommandHasItsAction(t *testing.T) {
	act := func(a ...action.Request) []action.Request { return a }
	host := func(v action.Name, h string) []action.Request { return act(action.Request{Do: v, Host: h}) }
	slots := func(n int, rel bool) []action.Request {
		return act(action.Request{Do: action.Slots, Host: "ws02", Number: n, Relative: rel})
	}
	prio := func(n int, rel bool) []action.Request {
		return act(action.Request{Do: action.Priority, Jobs: jobs.One(aQueued), Priority: n, Relative: rel})
	}
	for _, c := range []struct {
		line  string
		then  string // keys
		want  []action.Request
		shows string
	}{
		{line: "cancel", want: act(action.Request{Do: action.Cancel, Jobs: jobs.One(aQueued)})},
		{line: "cancel 17", want: act(action.Request{Do: action.Cancel, Jobs: jobs.One(17)})},
		{line: "cancel 17 20-30,31", shows: "Cancel 1 job?"},
		{line: "cancel 17 20-30,31", then: "y",
			want: act(action.Request{Do: action.Cancel,
				Jobs: jobs.Ranges{{First: 17, Last: 17}, {First: 20, Last: 31}}})},
		{line: "cancel 99999999", shows: "there is no job 99999999; the last is 96859"},
		{line: "cancel x", shows: `"x" is not a job number`},
		{line: "cancel 9-3", shows: `"9-3" is not a job number`},
		{line: "requeue 50120", want: act(action.Request{Do: action.Requeue, Jobs: jobs.One(aFailed)})},
		{line: "requeue", shows: "nothing to requeue: job 50137 is queued"},
		{line: "prio 5", want: prio(5, false)},
		{line: "priority -2", want: prio(-2, true)},
		{line: "prio =-2", want: prio(-2, false)},
		{line: "prio +1", want: prio(1, true)},
		{line: "prio high", shows: `"high" is not a priority`},
		{line: "prio 3 58-60", shows: "the jobs are the selected ones, or the one under the cursor"},
		{line: "edit sleep 5; echo done",
			want: act(action.Request{Do: action.Edit, Jobs: jobs.One(aQueued),
				Edit: &jobs.Change{Command: new("sleep 5; echo done")}})},
		{line: "edit", shows: "command of 50137"},
		{line: "undo", shows: "there is nothing to undo"},
		{line: "pause", want: act(action.Request{Do: action.Pause})},
		{line: "continue", want: act(action.Request{Do: action.Continue})},
		{line: "drain ws02", want: host(action.DrainHost, "ws02")},
		{line: "use ws02", want: host(action.UseHost, "ws02")},
		{line: "add ws77", want: host(action.AddHost, "ws77")},
		{line: "add ws77 slots=4  tags=gpu",
			want: act(action.Request{Do: action.AddHost, Host: "ws77", Options: "slots=4  tags=gpu"})},
		{line: "add", shows: "which host? a name that ssh can reach"},
		{line: "drain", shows: "which host? ws01, ws02"},
		{line: "drain ws99", shows: "did you mean \"ws"},
		{line: "stop ws02", shows: "11 jobs"},
		{line: "stop ws02", then: "enter"},
		{line: "stop ws02", then: "y", want: host(action.StopHost, "ws02")},
		{line: "slots ws02 8", want: slots(8, false)},
		{line: "slots ws02 +2", want: slots(2, true)},
		{line: "slots ws02 -2", want: slots(-2, true)},
		{line: "slots ws02", shows: "is not a number of slots, such as 8, +2, or -2"},
		{line: "slots ws02 many", shows: `"many" is not a number of slots`},
		{line: "sort host", shows: "sort:host ▲"},
		{line: "sort host desc", shows: "sort:host ▼"},
		{line: "sort time", shows: "sort:time ▼"},
		{line: "sort time desc", shows: "sort:time ▼"},
		{line: "sort time asc", shows: "sort:time ▲"},
		{line: "sort hots", shows: `did you mean "host"?`},
		{line: "sort host up", shows: `unknown direction "up"`},
		{line: "filter C=0.1", shows: "/C=0.1"},
		{line: "select state=failed", shows: "17 jobs selected"},
		{line: "select", shows: "17 jobs selected"},
		{line: "job 50150", shows: "> 50150"},
		{line: "job", shows: "> 50137"},
		{line: "job 1-3", shows: "one job at a time"},
		{line: "logs 50120", shows: "50120.3 stderr"},
		{line: "detail 50120", shows: "python train.py"},
		{line: "why 50120", shows: "Job 50120 runs on ws02."},
		{line: "view hosts", shows: "[2 Hosts"},
		{line: "view 5", shows: "[5 Events"},
		{line: "view hots", shows: `did you mean "hosts"?`},
		{line: "drain-run", shows: "Drain the run?"},
		{line: "drain-run", then: "n"},
		{line: "drain-run", then: "y", want: act(action.Request{Do: action.DrainRun})},
		{line: "stop-run", then: "y", want: act(action.Request{Do: action.StopRun})},
		{line: "cancel-run", shows: "type 84,639"},
		{line: "cancel-run", then: "y"},
		{line: "cancel-run", then: "8 4 6 3 9 enter", want: act(action.Request{Do: action.Cancel, All: true})},
		{line: "resume", shows: "the run already has a dispatcher"},
		{line: "help", shows: "cancel"},
		{line: "quit", shows: "detach"},
		{line: "", shows: "50137"},
		{line: "  :pause  ", want: act(action.Request{Do: action.Pause})},
		{line: "canel", shows: `there is no command "canel" (did you mean "cancel"?)`},
		{line: "frobnicate", shows: "there are cancel, requeue"},
		{line: "pause now", shows: "pause takes no arguments"},
		{line: "dranirun", shows: "there is no command"},
	} {
		t.Run(c.line+" "+c.then, func(t *testing.T) {
			src := sample()
			src.matches = jobs.Ranges{{First: 1, Last: 17}}
			src.cost = runview.Cost{Queued: 1}
			if strings.HasPrefix(c.line, "cancel-run") {
				src.cost = runview.Cost{Queued: 84_513, Running: 126, Lost: time.Hour}
			}
			m, _ := screenOn(t, src, aQueued, 100, 30)
			typeLine(t, m, ":", c.line)
			press(t, m, c.then)
			checkActions(t, src, c.want...)
			checkSize(t, m, c.line)
			shows(t, m, c.shows)
		})
	}
}

// TestCommandsLeaveHiddenJobsAlone checks that a command without a job's number does nothing in a
// view that shows no job, whatever job the cursor of the hidden list is on.
func TestCommandsLeaveHiddenJobsAlone(t *testing.T) {
	for _, line := range []string{"cancel", "requeue", "prio 5", "edit", "edit true"} {
		t.Run(line, func(t *testing.T) {
			src := sample()
			m, _ := screenOn(t, src, aQueued, 100, 30)
			typeLine(t, m, ":", "view hosts")
			typeLine(t, m, ":", line)
			checkActions(t, src)
			shows(t, m, "which jobs? give their numbers", "[2 Hosts")
		})
	}
}

// TestEveryCommandHasHelp checks that every command has a help text and that the table has no
// duplicates.
func TestEveryCommandHasHelp(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range commands {
		for _, n := range append([]string{c.name}, c.alias...) {
			if seen[n] {
				t.Errorf("%s is given twice", n)
			}
			seen[n] = true
		}
		if c.help == "" || c.do == nil {
			t.Errorf("%s has no help or does nothing", c.name)
		}
	}
}

// TestTabCompletesAndCycles checks that tab completes the common prefix first and then cycles
// through the candidates.
func TestTabCompletesAndCycles(t *testing.T) {
	m := newScreen(t, sample(), 100, 30)
	for _, c := range []struct{ typed, keys, want string }{
		{"req", "tab", "requeue "},
		{"dr", "tab", "drain"},
		{"drain", "tab", "drain-run "},
		{"drain w", "tab", "drain ws"},
		{"drain ws0", "tab", "drain ws01"},
		{"drain ws0", "tab tab", "drain ws02"},
		{"drain ws0", "shift+tab", "drain ws09"},
		{"stop ws1", "tab tab tab tab", "stop ws10"},
		{"sort pr", "tab", "sort progress"},
		{"sort pr", "tab tab", "sort priority"},
		{"sort pri", "tab", "sort priority "},
		{"view re", "tab", "view results "},
		{"filter sta", "tab", "filter state="},
		{"filter x !host=ws1", "tab", "filter x !host=ws10"},
		{"select gam", "tab", "select gamma="},
		{"filter state=retr", "tab", "filter state=retry "},
		{"nothing x", "tab", "nothing x"},
		{"cancel ", "tab", "cancel "},
	} {
		t.Run(c.typed, func(t *testing.T) {
			m.modal = nil
			m.openCommand(c.typed)
			press(t, m, c.keys)
			equal(t, m.modal.(*inputLine).text.String(), c.want, "%q %s", c.typed, c.keys)
			checkSize(t, m, c.typed)
		})
	}
}

// FuzzCommand checks that no typed line panics, and that none ends a job without a question.
func FuzzCommand(f *testing.F) {
	for _, c := range commands {
		f.Add(c.name + " " + c.args)
	}
	f.Add("cancel 1-99999999999999999999")
	f.Add("slots ws02 99999999999")
	f.Add("filter \"\\")
	f.Add(": :\t cancel\x00")
	src := sample()
	src.cost = runview.Cost{Running: 3, Queued: 2}
	m := newModel(Options{Source: src}, func() time.Time { return noon })
	m.w, m.h = 80, 24
	f.Fuzz(func(t *testing.T, line string) {
		src.doneActions = nil
		m.modal, m.extra, m.jobs.sel = nil, nil, selection{}
		m.openView(tabJobs)
		m.jobs.setFilter("")
		refresh(t, m)
		m.completeCommand(line)
		m.completeFilter(line)
		cmd, err := m.runCommand(line)
		if err != nil && (err.Error() == "" || text.Clean(err.Error(), 0) != err.Error()) {
			t.Errorf("the error is not clean: %q", err)
		}
		if cmd != nil && !strings.Contains(line, "q") && !strings.Contains(line, "leave") {
			runCommands(t, m, cmd)
		}
		for _, a := range src.doneActions {
			switch a.Do {
			case action.Cancel, action.StopHost, action.DrainRun, action.StopRun:
				t.Errorf("%q did %+v at once", line, a)
			}
		}
		checkHarmless(t, m, "fuzz")
	})
}

// TestWrongLineStaysForCorrection checks that up and down move through the history, and that a line
// with an error stays for correction.
func TestWrongLineStaysForCorrection(t *testing.T) {
	src := sample()
	m, _ := screenOn(t, src, aQueued, 80, 24)
	typeLine(t, m, ":", "sort host")
	typeLine(t, m, ":", "sort nme")
	if p, ok := m.modal.(*inputLine); !ok || p.text.String() != "sort nme" {
		t.Fatal("a line with an error is gone")
	}
	press(t, m, "left left a enter")
	equal(t, m.jobs.sort, runview.SortName, "the order")
	press(t, m, ": d up up up up down")
	equal(t, m.modal.(*inputLine).text.String(), "sort nme", "the past")
	press(t, m, "down down down")
	equal(t, m.modal.(*inputLine).text.String(), "d", "what was being typed")
}

// TestEditKeepsEveryCharacter checks that editing keeps each character of a job's command.
// Newlines, tabs, and control characters are displayed as symbols.
func TestEditKeepsEveryCharacter(t *testing.T) {
	const command = "for i in 1 2\ndo\techo \"$i \x1b[31m\" 日本\ndone"
	src := sampleWith(func(snap *runview.Snapshot) {
		if snap.Detail != nil {
			snap.Detail.Command = command
		}
	})
	m, _ := screenOn(t, src, aFailed, 80, 24)
	press(t, m, "e", "␊do echo")
	checkHarmless(t, m, "edit")
	m.Update(pasteMessage(" # more\r\nlines\r\n"))
	press(t, m, "enter")
	checkActions(t, src, action.Request{Do: action.Edit, Jobs: jobs.One(aFailed),
		Edit: &jobs.Change{Command: new(command + " # more\nlines")}})
}

// TestLineNeverExceedsItsWidth checks that the line never exceeds its width, and that the cursor is
// always visible.
func TestLineNeverExceedsItsWidth(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	for _, text := range []string{"", "short", strings.Repeat("long text ", 40), strings.Repeat("日本", 100),
		strings.Repeat("e\u0301", 300), strings.Repeat("\x1b]52;c;", 50)} {
		t.Run(text, func(t *testing.T) {
			e := newEditableText(text)
			for e.pos = range len(e.text) + 1 {
				for _, w := range []int{0, 3, 4, 5, 20, 71} {
					if got := width(e.draw(m, w)); got != w {
						t.Fatalf("%q at %d: %d cells of %d", text, e.pos, got, w)
					}
				}
				if s := e.draw(m, 30); !strings.Contains(s, "\x1b[7m") {
					t.Fatalf("%q at %d: the cursor is not seen: %q", text, e.pos, s)
				}
			}
		})
	}
}
