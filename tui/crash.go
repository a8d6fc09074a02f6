package tui

import (
	"fmt"
	"runtime/debug"
	"sync"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
)

// Crash is the error of a screen that has panicked. The run is not touched by it.
type Crash struct {
	Value string // of the panic, cleaned
	Stack string
}

func (c *Crash) Error() string {
	return "the screen has crashed; the run is not touched by that: " + c.Value
}

// watched is the model with its panics caught: in Update, in View and in commands. The
// first one ends the screen, which gives the terminal back as it always does.
type watched struct {
	model *model
	end   func(error)
	once  sync.Once
	crash *Crash // the one that end was called with
}

// caught is deferred.
func (w *watched) caught() {
	r := recover()
	if r == nil {
		return
	}
	stack := debug.Stack()
	w.once.Do(func() {
		w.crash = &Crash{jobs.Clean(fmt.Sprint(r), 1000), string(stack)}
		w.end(w.crash)
	})
}

func (w *watched) Init() (cmd tea.Cmd) {
	defer w.caught()
	return w.command(w.model.Init())
}

func (w *watched) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer w.caught()
	_, cmd = w.model.Update(msg)
	return w, w.command(cmd)
}

func (w *watched) View() (v tea.View) {
	v.AltScreen = true // also when it panics
	defer w.caught()
	return w.model.View()
}

// command watches a command, and those that it brings.
func (w *watched) command(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer w.caught()
		msg = cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = w.command(batch[i])
			}
		}
		return msg
	}
}
