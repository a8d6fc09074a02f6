package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/muesli/cancelreader"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/platform"
	"dcs-tui/internal/text"
)

// maxSecret is the maximum length of a passphrase, in bytes.
const maxSecret = 4096

// askPassphrase reads a passphrase from /dev/tty.
//
// It does not use term.ReadPassword, which cannot be interrupted and leaves the terminal
// without echo after Ctrl-C.
func (a *app) askPassphrase(what string) (secret []byte, err error) {
	if a.con.IsHolding() {
		return nil, errors.New("the key has a passphrase, and the screen is open: run ssh-add for the key first")
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("no terminal to ask for the passphrase: run ssh-add for the key first")
	}
	defer tty.Close()
	interrupted, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM,
		syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	keys, err := cancelreader.NewReader(tty) // on macOS, /dev/tty has no deadlines
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	defer keys.Close()
	answered := context.AfterFunc(interrupted, func() { keys.Cancel() })
	defer answered()
	err = a.con.Suspend(func() error {
		fmt.Fprintf(tty, "%s: ", text.Clean(what, 0))
		secret, err = readSecret(tty, keys)
		fmt.Fprintln(tty)
		return err
	})
	if errors.Is(err, cancelreader.ErrCanceled) {
		if a.signals == nil { // no signal handler is installed
			os.Exit(exitCanceled)
		}
		return nil, errors.New("interrupted")
	}
	if err == nil && len(secret) == 0 {
		return nil, errors.New("no passphrase was typed")
	}
	return secret, err
}

// readSecret reads a line without echo. keys reads from tty.
func readSecret(tty *os.File, keys io.Reader) ([]byte, error) {
	conn, err := tty.SyscallConn()
	if err != nil {
		return nil, err
	}
	var before *unix.Termios
	var ioctl error
	set := func(t *unix.Termios) error {
		err := conn.Control(func(fd uintptr) { ioctl = platform.SetTermiosFlush(int(fd), t) })
		return errors.Join(err, ioctl)
	}
	err = conn.Control(func(fd uintptr) { before, ioctl = platform.Termios(int(fd)) })
	if err := errors.Join(err, ioctl); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	silent := *before
	silent.Lflag &^= unix.ECHO
	silent.Lflag |= unix.ICANON | unix.ISIG
	silent.Iflag |= unix.ICRNL
	if err := set(&silent); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	defer set(before)
	var line [maxSecret]byte
	n := 0
	for n < len(line) {
		k, err := keys.Read(line[n:])
		n += k
		if n > 0 && line[n-1] == '\n' {
			return []byte(strings.TrimRight(string(line[:n]), "\r\n")), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the passphrase is too long")
}

// askSecret asks for a passphrase, on the attached screens if this is a background dispatcher, and
// else on the terminal.
func (a *app) askSecret(what string) ([]byte, error) {
	if a.questions != nil {
		return a.questions.Ask(what)
	}
	return a.askPassphrase(what)
}

// catchSignals starts to catch signals until the program ends. SIGPIPE is caught, not ignored: in
// child processes a caught signal has its default action again, but an ignored one would stay
// ignored in every job on this machine.
func (a *app) catchSignals() <-chan os.Signal {
	c := make(chan os.Signal, 16)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGPIPE)
	a.signals = c
	if a.quitSignals != nil {
		signal.Stop(a.quitSignals)
	}
	return c
}

// cancelOnSignal returns a context that the first signal cancels; its cause names the signal. A
// second signal calls quit, because whatever handles the first one hangs. SIGPIPE is ignored: the
// write that failed returns an error.
func cancelOnSignal(parent context.Context, signals <-chan os.Signal,
	quit func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() { // until the process ends
		for sig := range signals {
			switch {
			case sig == syscall.SIGPIPE:
			case ctx.Err() != nil:
				quit()
				return
			default:
				cancel(errors.New(run.SignalName(sig)))
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// exitOnQuit makes Ctrl-\ end the program with a message until catchSignals is called.
func (a *app) exitOnQuit() {
	a.quitSignals = make(chan os.Signal, 1)
	signal.Notify(a.quitSignals, syscall.SIGQUIT)
	go func() {
		<-a.quitSignals
		// Writing to a stopped terminal blocks.
		time.AfterFunc(run.WriteTimeout, func() { os.Exit(exitCanceled) })
		a.con.Status("")
		a.con.Line("dcs-tui: ended by Ctrl-\\")
		os.Exit(exitCanceled)
	}()
}

// leaveTerminal redirects the standard streams that are a terminal to the log file, because the
// terminal is gone and writing to it fails.
func leaveTerminal(log *os.File) {
	for fd := range 3 {
		if !term.IsTerminal(fd) && !isHungUp(fd) {
			continue
		}
		if fd == 0 {
			if null, err := os.Open(os.DevNull); err == nil {
				unix.Dup2(int(null.Fd()), fd)
				null.Close()
			}
			continue
		}
		unix.Dup2(int(log.Fd()), fd)
	}
}

// isHungUp reports whether fd is a terminal that has hung up.
func isHungUp(fd int) bool {
	_, err := platform.Termios(fd)
	return err == unix.EIO
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}
