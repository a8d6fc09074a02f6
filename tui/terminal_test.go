package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/ptytest"
	"dcs-tui/internal/ttyguard"
	"dcs-tui/observe/runview"
)

// TestMain also runs this binary as the guard of its own screens, and as the program that has a
// screen on its own terminal.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ttyguard.Word {
		os.Exit(ttyguard.Main())
	}
	if how := os.Getenv("TUI_DIES"); how != "" {
		os.Exit(runGuarded(how))
	}
	os.Exit(m.Run())
}

// runGuarded runs a guarded screen over the sample, as internal/cli does. how selects the failure.
// It returns the exit code.
func runGuarded(how string) int {
	src := sample()
	good := src.snapshot
	looks := 0
	src.snapshot = func(ask runview.Query) (*runview.Snapshot, error) {
		snap, err := good(ask)
		if looks++; looks > 1 {
			switch how {
			case "panic in a command":
				panic("in a command\x1b]0;owned\x07")
			case "panic elsewhere":
				go panic("elsewhere")
				select {}
			}
		}
		snap.Version = uint64(looks)
		return snap, err
	}
	done, err := ttyguard.Start(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	m := newModel(Options{Source: src, Suspended: ttyguard.SetSuspended, In: os.Stdin,
		Out: os.Stdout}, time.Now)
	if how == "panic in Update" {
		m.panes[tabJobs] = &panickingPane{jobsPane: m.jobs}
	}
	_, err = runModel(m)
	done()
	var crash *Crash
	fmt.Printf("left: crashed %v, %v\n", errors.As(err, &crash), err)
	return 0
}

// panickingPane panics after it has been drawn a few times.
type panickingPane struct {
	*jobsPane
	drawn int
}

func (p *panickingPane) draw(m *model, w, h int, focused bool) []string {
	if p.drawn++; p.drawn > 5 {
		panic("a pane that panics")
	}
	return p.jobsPane.draw(m, w, h, focused)
}

// TestPanicsAreCaught checks that panics in Update, View, and commands are caught, and that the
// first one ends the screen.
func TestPanicsAreCaught(t *testing.T) {
	n := 0
	w := &panicCatcher{end: func() { n++ }} // every call panics because there is no model
	w.Update(nil)
	w.View()
	w.Init()
	w.wrapCommand(func() tea.Msg { panic("x") })()
	batch := w.wrapCommand(func() tea.Msg { return tea.BatchMsg{func() tea.Msg { panic("y") }} })().(tea.BatchMsg)
	batch[0]()
	if n != 1 || w.crash == nil || w.crash.Stack == "" {
		t.Errorf("ended %d times, %v", n, w.crash)
	}
}

// startScreen starts runGuarded in this binary on a terminal. With a shell, the terminal has a shell
// with job control, as a user's has, which finds the binary as $TEST_EXE.
func startScreen(t *testing.T, how string, shell bool) *ptytest.Program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	if shell {
		cmd = exec.Command("bash", "--norc", "--noprofile", "-i")
	}
	cmd.Env = append(os.Environ(), "TUI_DIES="+how, "TERM=xterm", "TEST_EXE="+exe, "PS1=prompt:")
	return ptytest.Start(t, cmd)
}

const (
	entered = "\x1b[?1049h"
	gone    = "\x1b[?1049l"
)

// TestTheTerminalIsRestored checks that, whatever ends the screen, the terminal settings are
// restored, messages are on the normal screen, and no process remains (rule 11).
func TestTheTerminalIsRestored(t *testing.T) {
	for _, c := range []struct {
		how    string
		keys   string
		signal syscall.Signal
		says   string // on the normal screen; "": no output is possible
	}{
		{how: "quit by signal", signal: syscall.SIGTERM, says: "left: crashed false, <nil>"},
		{how: "hang-up", signal: syscall.SIGHUP, says: "left: crashed false, <nil>"},
		{how: "interrupt", signal: syscall.SIGINT, says: "left: crashed false, <nil>"},
		{how: "panic in Update", says: "crashed true, the screen has crashed"},
		{
			how:  "panic in a command",
			says: "crashed true, the screen has crashed; the run is not touched by that: in a command␛]0;owned␇",
		},
		{how: "panic elsewhere", says: "panic: elsewhere"},
		{how: "kill", signal: syscall.SIGKILL},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			d := startScreen(t, c.how, false)
			d.Until(entered)
			if c.signal != 0 {
				d.Until("sweep") // a snapshot is visible
				syscall.Kill(d.Process.Pid, c.signal)
			}
			shown := d.End()
			last := strings.LastIndex(shown, gone)
			after := shown[last+1:] // on the normal screen
			if last < 0 || !strings.Contains(after, c.says) {
				t.Errorf("shown at last: %q", shown[max(0, len(shown)-1500):])
			}
			if strings.Contains(after, "\x1b]") {
				t.Errorf("text of the panic has escape sequences: %q", after)
			}
			for _, mode := range []string{"\x1b[?25h", "\x1b[?2004l"} {
				checkContains(t, shown, mode, "a mode is taken back")
			}
			equal(t, ptytest.Settings(t, d.Person), d.Before, "the terminal")
		})
	}
}

// TestSuspendReturnsTheTerminal checks that ctrl+z returns the terminal to the shell and that fg
// redraws the screen. If the program is killed while suspended, it does not disturb the shell.
func TestSuspendReturnsTheTerminal(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	d := startScreen(t, "suspended", true)
	d.Until("prompt:")
	fmt.Fprint(d.Person, "stty -g | tr -d '\\n'; echo ' <1'; \"$TEST_EXE\"\r")
	before := lastWord(d.Until(" <1\r\n"))
	d.Until(entered)
	d.Until("sweep")
	raw := ptytest.Settings(t, d.Person)
	fmt.Fprint(d.Person, "\x1a")
	d.Until(gone)
	d.Until("prompt:")
	fmt.Fprint(d.Person, "stty -g | tr -d '\\n'; echo ' <2'; fg\r")
	equal(t, lastWord(d.Until(" <2\r\n")), before, "suspended, stty -g")
	d.Until(entered)
	d.Until("sweep")
	equal(t, ptytest.Settings(t, d.Person), raw, "after fg the terminal")
	fmt.Fprint(d.Person, "\x1a")
	d.Until("prompt:")
	fmt.Fprint(d.Person, "kill -9 %1; wait; stty -g | tr -d '\\n'; echo ' <3'\r")
	shown := d.Until(" <3\r\n")
	if !strings.Contains(shown, before) || strings.Contains(shown, "\x18") {
		t.Errorf("killed asleep, stty -g was %q; shown %q", before, shown)
	}
}

func lastWord(s string) string {
	words := strings.Fields(s)
	return words[len(words)-2]
}

// TestSuspendWithoutAShell checks that ctrl+z shows a message and does not stop the program if no
// shell would notice.
func TestSuspendWithoutAShell(t *testing.T) {
	d := startScreen(t, "no shell", false)
	d.Until("sweep")
	fmt.Fprint(d.Person, "\x1a")
	d.Until("no shell with job control")
	syscall.Kill(d.Process.Pid, syscall.SIGTERM)
	d.Until("left: crashed false")
	d.End()
}

// TestScreenEndsWithItsTerminal checks that the screen ends if the terminal goes away without a
// signal.
func TestScreenEndsWithItsTerminal(t *testing.T) {
	d := startScreen(t, "hung up", false)
	d.Until("sweep")
	d.Person.Close()
	ended := make(chan error, 1)
	go func() { ended <- d.Wait() }()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Error("it goes on without a terminal")
	}
}

// TestAHangingTerminalIsLeft checks that a terminal that accepts no output does not keep the program
// from ending.
func TestAHangingTerminalIsLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, stuck := awaitEnd(ctx, make(chan error)); !stuck {
		t.Error("the end of the screen was not awaited")
	}
}

// TestListOfRunsHasTheKeysOfLists checks that the keys of lists also work in the list of runs,
// which scrolls.
func TestListOfRunsHasTheKeysOfLists(t *testing.T) {
	var list Choices
	for i := range 40 {
		list.Rows = append(list.Rows, Choice{ID: "run" + itoa(i), Text: "run" + itoa(i) + " a text"})
	}
	c := &chooser{m: newScreen(t, sample(), 80, 24), list: list,
		keys: []ChoiceKey{{Key: "enter"}, {Key: "P", Help: "remove", Question: "remove"}}}
	c.Update(tea.WindowSizeMsg{Width: 80, Height: 13})
	for _, step := range []struct {
		key     string
		at, top int
	}{{"j", 1, 0}, {"k", 0, 0}, {"k", 0, 0}, {"G", 39, 30}, {"j", 39, 30}, {"pgup", 29, 29}, {"g", 0, 0}, {"pgdown", 10,
		1}, {"up", 9, 1}} {
		t.Run(step.key, func(t *testing.T) {
			if c.Update(keyMessage(step.key)); c.cursorRow != step.at || c.top != step.top {
				t.Errorf("%s: at %d from %d, want %d from %d", step.key, c.cursorRow, c.top, step.at, step.top)
			}
		})
	}
	shown := func() string { return plainText(c.View().Content) }
	c.Update(keyMessage("?"))
	checkContains(t, shown(), "P             remove", "the keys")
	checkContains(t, shown(), "ctrl+d        down half a page", "the keys")
	c.Update(keyMessage("?"))
	c.Update(keyMessage("P"))
	checkContains(t, shown(), "remove run9? y: yes", "the question")
	if c.Update(keyMessage("enter")); c.done {
		t.Error("enter confirms a question")
	}
	// The list is read again: the cursor stays on its run, and a question about a run that has gone ends.
	c.Update(choicesRead{list: Choices{Rows: list.Rows[5:]}})
	equal(t, c.list.Rows[c.cursorRow].ID, "run9", "the run under the cursor")
	c.Update(keyMessage("P"))
	c.Update(choicesRead{list: Choices{Rows: list.Rows[20:]}})
	if c.Update(keyMessage("y")); c.done {
		t.Error("a question about one run removes another")
	}
	c.Update(keyMessage("P"))
	if c.Update(keyMessage("y")); c.key != "P" || !c.done {
		t.Errorf("y to a question chooses %q", c.key)
	}
	c.Update(choicesRead{list: list})
	equal(t, c.list.Rows[c.cursorRow].ID, "run24", "the chosen run after another read of the list")
	c.key, c.done = "", false
	c.Update(choicesRead{})
	if c.Update(keyMessage("enter")); c.done {
		t.Error("enter chooses a row of an empty list")
	}
	c.Update(choicesRead{list: list})
	if c.Update(keyMessage("enter")); c.key != "enter" || !c.done {
		t.Errorf("enter chooses %q", c.key)
	}
}
