package cli

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"

	"dcs-tui/jobs"
)

// askPassphrase reads a passphrase from the terminal, whatever standard input
// and output are. sshlink asks once a key.
func (a *app) askPassphrase(what string) ([]byte, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("there is no terminal to ask for it: run ssh-add for the key first")
	}
	defer tty.Close()
	var secret []byte
	err = a.con.Suspend(func() error {
		fmt.Fprintf(tty, "%s: ", jobs.Clean(what, 0))
		secret, err = term.ReadPassword(int(tty.Fd()))
		fmt.Fprintln(tty)
		return err
	})
	if err == nil && len(secret) == 0 {
		return nil, errors.New("none was typed")
	}
	return secret, err
}
