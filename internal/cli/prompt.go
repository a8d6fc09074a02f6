package cli

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
)

// maxSecret is the maximum length of a typed line, in bytes.
const maxSecret = 4096

// askPassphrase reads a passphrase from /dev/tty.
//
// It does not use term.ReadPassword, which cannot be interrupted and leaves the terminal
// without echo after Ctrl-C.
func (a *app) askPassphrase(what string) (secret []byte, err error) {
	if a.con.Held() {
		return nil, errors.New("the key has a passphrase, and the screen is open: run ssh-add for the key first")
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("no terminal to ask for the passphrase: run ssh-add for the key first")
	}
	defer tty.Close()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(interrupted)
	answered := make(chan struct{})
	defer close(answered)
	go func() {
		select {
		case <-interrupted:
			tty.SetReadDeadline(time.Now())
		case <-answered:
		}
	}()
	err = a.con.Suspend(func() error {
		fmt.Fprintf(tty, "%s: ", jobs.Clean(what, 0))
		secret, err = readSecret(tty)
		fmt.Fprintln(tty)
		return err
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if a.signals == nil { // no signal handler is installed
			os.Exit(exit.Cancelled)
		}
		return nil, errors.New("interrupted")
	}
	if err == nil && len(secret) == 0 {
		return nil, errors.New("no passphrase was typed")
	}
	return secret, err
}

// readSecret reads a line without echo. A deadline on tty ends it.
func readSecret(tty *os.File) ([]byte, error) {
	conn, err := tty.SyscallConn()
	if err != nil {
		return nil, err
	}
	var before *unix.Termios
	var ioctl error
	set := func(t *unix.Termios) error {
		err := conn.Control(func(fd uintptr) { ioctl = unix.IoctlSetTermios(int(fd), unix.TCSETSF, t) })
		return errors.Join(err, ioctl)
	}
	err = conn.Control(func(fd uintptr) { before, ioctl = unix.IoctlGetTermios(int(fd), unix.TCGETS) })
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
		k, err := tty.Read(line[n:])
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

// askSecret asks a person for a passphrase: on the attached screens of a background
// dispatcher, else on the terminal.
func (a *app) askSecret(what string) ([]byte, error) {
	if a.questions != nil {
		return a.questions.Ask(what)
	}
	return a.askPassphrase(what)
}
