package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"dcs-tui/dispatch/view"
)

// Options say what is shown and where.
type Options struct {
	Source  view.Source
	In, Out *os.File // the terminal; nil: standard input and output
	ASCII   bool     // the terminal has no UTF-8
	NoColor bool
	Mouse   bool   // take the mouse: rows can be clicked, text can no longer be selected
	Notice  string // a line to begin with
	Signals bool   // end the screen on SIGTERM, SIGHUP, SIGINT and SIGQUIT
}

// Left is how a person left the screen.
type Left struct {
	Over   bool          // the run was over, or nobody dispatched it
	Signal os.Signal     // that ended the screen; nil: a person did
	Last   *view.Picture // the newest seen; may be nil
}

// ErrTerminal is returned when the terminal cannot show the screen.
var ErrTerminal = errors.New("this terminal cannot show the screen")

// Run shows the screen until a person leaves it, ctx ends or a signal comes. The
// terminal is then as it was.
func Run(ctx context.Context, o Options) (Left, error) {
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var caught os.Signal
	if o.Signals {
		signals := make(chan os.Signal, 4)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
		defer signal.Stop(signals)
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			select {
			case caught = <-signals:
				cancel(errors.New(caught.String()))
			case <-stop:
			}
		}()
		defer func() { close(stop); <-ended }()
	}
	m := newModel(o, time.Now)
	m.look = newLooker(ctx, o.Source)
	program := tea.NewProgram(m, o.program(ctx)...)
	_, err := program.Run()
	m.look.end()
	left := Left{Over: m.over(), Last: m.pic}
	switch {
	case ctx.Err() != nil && err != nil: // a signal, or whoever called us wants it to end
		left.Signal = caught
		return left, nil
	case err != nil:
		return left, fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	return left, nil
}

// program are the options of Bubble Tea.
func (o *Options) program(ctx context.Context) []tea.ProgramOption {
	opts := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler(), tea.WithFPS(30),
	}
	if o.NoColor {
		opts = append(opts, tea.WithColorProfile(colorprofile.ASCII))
	} else {
		opts = append(opts, tea.WithColorProfile(colorprofile.ANSI)) // 16 colours, of the terminal's own theme
	}
	return opts
}
