package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/sys/unix"

	"dcs-tui/internal/platform"
	"dcs-tui/internal/text"
	"dcs-tui/observe/runview"
)

// Options configure the screen.
type Options struct {
	Source  runview.Source
	In, Out *os.File            // the terminal
	ASCII   bool                // the terminal has no UTF-8
	Colors  string              // "none", "16", or "256"; "auto" or "": what the terminal can show
	Mouse   bool                // enable the mouse: rows can be clicked, but text can no longer be selected
	Keys    map[string][]string // keys by their name in keyTable, instead of its keys
	View    string              // the first view: one of viewNames; "": the jobs
	Columns map[string][]string // headings of the columns by view; nil: those that fit

	// Suspended is called with true when the terminal is returned for a while (ctrl+z), and with
	// false when the screen has it again. It is called by the screen's goroutine. It may be nil.
	Suspended func(bool)

	// Shell returns the command that opens a shell on a host of the run; nil: shells cannot
	// be opened.
	Shell func(host string) (*exec.Cmd, error)
}

var endSignals = []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT}

// Run shows the screen until the user leaves it or a signal arrives. It restores the terminal, and
// returns the newest snapshot, which may be nil.
func Run(o Options) (*runview.Snapshot, error) { return runModel(newModel(o, time.Now)) }

func runModel(m *model) (*runview.Snapshot, error) {
	o := &m.opt
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals...)
	defer func() { signal.Stop(signals); close(signals) }()
	go func() {
		for s := range signals {
			typed := s == syscall.SIGINT || s == syscall.SIGQUIT
			if !typed || m.outside.Load() == nil { // otherwise for the program that has the terminal
				cancel()
			}
		}
	}()
	m.snapshots = newSnapshotter(ctx, o.Source)
	m.fillsCells = o.colorProfile(os.Environ()) == colorprofile.ANSI256
	w := &panicCatcher{model: m, end: cancel}
	program := tea.NewProgram(w, o.programOptions(ctx)...)
	ended := make(chan error, 1)
	go func() {
		_, err := program.Run()
		ended <- err
	}()
	err, stuck := awaitEnd(ctx, ended)
	switch {
	case stuck: // the terminal accepts no output any more; its goroutine still uses the model
		return nil, nil
	case w.crash != nil:
		return m.snap, w.crash
	case err != nil && ctx.Err() == nil && !errors.Is(err, errHungUp):
		return m.snap, fmt.Errorf("this terminal cannot show the screen: %w", err)
	}
	return m.snap, nil
}

// awaitEnd waits for the screen to end. Once ctx has ended, it waits for at most restoreTimeout.
func awaitEnd(ctx context.Context, ended <-chan error) (err error, stuck bool) {
	select {
	case err = <-ended:
		return err, false
	case <-ctx.Done():
	}
	select {
	case err = <-ended:
		return err, false
	case <-time.After(restoreTimeout):
		return nil, true
	}
}

// restoreTimeout is the limit for restoring the terminal. A terminal that was stopped with ctrl+s,
// or whose connection hangs, accepts no output.
const restoreTimeout = 2 * time.Second

// errHungUp is the error of reading from a terminal that is gone.
var errHungUp = errors.New("the terminal has gone")

// keyboard reads keys. Bubble Tea ignores the end of its input, and would wait forever for a
// terminal that is gone.
type keyboard struct{ *os.File }

func (k keyboard) Read(b []byte) (int, error) {
	n, err := k.File.Read(b)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
		err = errHungUp
	}
	return n, err
}

func (o *Options) programOptions(ctx context.Context) []tea.ProgramOption {
	// Bubble Tea wakes up for each frame, even if it is unchanged: 60 frames per second would take
	// half of the cost of an idle screen. With 25, a key is answered 20 ms later on average, and at
	// most 40 ms later.
	const fps = 25
	return []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(keyboard{o.In}), tea.WithOutput(o.Out), tea.WithoutSignalHandler(),
		tea.WithFPS(fps), tea.WithColorProfile(o.colorProfile(os.Environ())),
	}
}

// colorProfile returns the colors that the screen may use: the 16 of the terminal's theme and, for
// the heat map, the palette of 256 colors.
func (o *Options) colorProfile(env []string) colorprofile.Profile {
	switch {
	case o.Colors == "none":
		return colorprofile.ASCII
	case o.Colors == "16":
		return colorprofile.ANSI
	case o.Colors == "256":
		return colorprofile.ANSI256
	}
	return max(colorprofile.ANSI, min(colorprofile.ANSI256, colorprofile.Env(env)))
}

// suspend stops the program until its shell continues it.
func (m *model) suspend() tea.Cmd {
	if !m.opt.hasShell() {
		m.showError("the screen cannot be suspended: no shell with job control has started it (" + m.keyFor("leave") +
			" leaves it, the run continues)")
		return nil
	}
	m.opt.Suspended(true)
	return tea.Suspend
}

// hasShell reports whether a shell would notice that the program stops, that is, whether an
// ancestor in its session is outside its process group. Without one, nobody would continue the
// program.
func (o *Options) hasShell() bool {
	session, err := unix.Getsid(0)
	if err != nil {
		return false
	}
	group := unix.Getpgrp()
	for pid, i := os.Getppid(), 0; pid > 1 && i < 64; pid, i = parentPID(pid), i+1 {
		if s, err := unix.Getsid(pid); err != nil || s != session {
			return false
		}
		if g, err := unix.Getpgid(pid); err != nil || g != group {
			return err == nil
		}
	}
	return false
}

// parentPID returns the parent of a process, or 0 if it is unknown.
func parentPID(pid int) int {
	p, _ := platform.FindProcess(pid)
	return p.Parent
}

// Crash is the error of a screen that has panicked. It does not affect the run.
type Crash struct {
	Value string // value of the panic, cleaned
	Stack string
}

// Error returns the value of the panic, without the stack.
func (c *Crash) Error() string {
	return "the screen has crashed; the run is not touched by that: " + c.Value
}

// panicCatcher catches the panics of a model: in Update, in View, and in commands. The first one
// ends the screen, which restores the terminal as usual.
type panicCatcher struct {
	model *model
	end   func()
	once  sync.Once
	crash *Crash // the first panic
}

// catchPanic records a panic. It must be deferred.
func (w *panicCatcher) catchPanic() {
	r := recover()
	if r == nil {
		return
	}
	stack := debug.Stack()
	w.once.Do(func() {
		w.crash = &Crash{text.Clean(fmt.Sprint(r), 1000), string(stack)}
		w.end()
	})
}

func (w *panicCatcher) Init() (cmd tea.Cmd) {
	defer w.catchPanic()
	return w.wrapCommand(w.model.Init())
}

func (w *panicCatcher) Update(msg tea.Msg) (_ tea.Model, cmd tea.Cmd) {
	defer w.catchPanic()
	_, cmd = w.model.Update(msg)
	return w, w.wrapCommand(cmd)
}

func (w *panicCatcher) View() (v tea.View) {
	v.AltScreen = true // even if drawing panics
	defer w.catchPanic()
	return w.model.View()
}

// wrapCommand returns a command that catches the panics of cmd and of the commands that it returns.
func (w *panicCatcher) wrapCommand(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer w.catchPanic()
		msg = cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = w.wrapCommand(batch[i])
			}
		}
		return msg
	}
}
