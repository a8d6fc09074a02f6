package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/exit"
)

// listen starts to catch signals for as long as the program lives. SIGPIPE is caught, not ignored: a caught signal
// returns to its default in the processes that we start, an ignored one would
// stay ignored in every job of this machine.
func (a *app) listen() <-chan os.Signal {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGPIPE)
	a.signals = c
	if a.early != nil {
		signal.Stop(a.early)
	}
	return c
}

// leaveOnQuit makes Ctrl-\ end the program with a line, as long as nobody listens.
func (a *app) leaveOnQuit() {
	a.early = make(chan os.Signal, 1)
	signal.Notify(a.early, syscall.SIGQUIT)
	go func() {
		<-a.early
		time.AfterFunc(run.WriteTimeout, func() { os.Exit(exit.Cancelled) }) // a terminal that was stopped takes no line
		a.con.Status("")
		a.con.Line("dcs-tui: ended by Ctrl-\\")
		os.Exit(exit.Cancelled)
	}()
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
