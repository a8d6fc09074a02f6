package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/internal/cli/standing"
)

// wish is what a signal or a stop file asks for.
type wish int

const (
	wishNothing wish = iota
	wishDrain        // finish running jobs, start nothing more
	wishStop         // stop dispatching; running jobs go on
	wishCancel       // end everything that runs
	wishDetach       // the terminal is gone: go on without it
	wishQuit         // asked a third time: exit at once
)

// interrupts counts how often a person has asked, because each further Ctrl-C
// asks for more.
type interrupts struct {
	cancel bool // --on-interrupt=cancel
	asked  int
}

// signal says what one signal asks for. Nothing but a confirmed cancel ends a
// running job, so SIGTERM only stops dispatching.
func (i *interrupts) signal(s os.Signal) wish {
	switch s {
	case syscall.SIGHUP:
		return wishDetach
	case syscall.SIGTERM, syscall.SIGQUIT: // not what Go makes of SIGQUIT: a page of registers
		if i.asked = max(i.asked+1, 2); i.asked > 2 {
			return wishQuit
		}
		return wishStop
	case syscall.SIGINT:
		i.asked++
		switch {
		case i.asked == 1 && i.cancel:
			return wishCancel
		case i.asked == 1:
			return wishDrain
		case i.asked == 2:
			return wishStop
		}
		return wishQuit
	}
	return wishNothing // SIGPIPE: the write that failed says so itself
}

// signalWord names a signal as the person who sent it would.
func signalWord(s os.Signal) string {
	switch s {
	case syscall.SIGINT:
		return "Ctrl-C"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGQUIT:
		return "Ctrl-\\"
	}
	return s.String()
}

// listen starts to catch signals for as long as the program lives. SIGPIPE is caught, not ignored: a caught signal
// returns to its default in the processes that we start, an ignored one would
// stay ignored in every job of this machine.
func (a *app) listen() {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGPIPE)
	a.signals = c
	if a.early != nil {
		signal.Stop(a.early)
	}
}

// leaveOnQuit makes Ctrl-\ end the program with a line, as long as nobody listens.
func (a *app) leaveOnQuit() {
	a.early = make(chan os.Signal, 1)
	signal.Notify(a.early, syscall.SIGQUIT)
	go func() {
		<-a.early
		time.AfterFunc(writePatience, func() { os.Exit(exit.Cancelled) }) // a terminal that was stopped takes no line
		a.con.Status("")
		a.con.Line("dcs-tui: ended by Ctrl-\\")
		os.Exit(exit.Cancelled)
	}()
}

// leftAtOnce reports that a person asked to exit at once, and what is left running.
func (s *session) leftAtOnce(why string) {
	s.con.Status("")
	if s.deleted() {
		s.con.Line("dcs-tui: left at once by " + why + "; running jobs go on, and cannot be adopted because the run directory was deleted")
		return
	}
	s.con.Line("dcs-tui: left at once by " + why + "; running jobs go on, `dcs-tui resume " + console.ShellWord(console.CleanLine(standing.Ref(s.run))) + "` adopts them")
}

// leaveTerminal points those of our standard streams that are a terminal to the
// log file, because the terminal is gone and writing to it fails.
func leaveTerminal(log *os.File) {
	for fd := range 3 {
		if !term.IsTerminal(fd) && !deadTerminal(fd) {
			continue
		}
		if fd == 0 {
			if null, err := os.Open(os.DevNull); err == nil {
				unix.Dup3(int(null.Fd()), fd, 0)
				null.Close()
			}
			continue
		}
		unix.Dup3(int(log.Fd()), fd, 0)
	}
}

// deadTerminal recognises a terminal that has hung up: it answers EIO.
func deadTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == unix.EIO
}
