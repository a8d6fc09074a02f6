//go:build linux

package remote

import "path/filepath"

// script puts the setup before the command, in the same shell. A job whose setup
// fails would run in the wrong environment: it fails instead, with the setup's
// exit code. Shells that are not of Bourne's family have no word for that.
func script(shell []string, setup, command string) string {
	if setup == "" {
		return command
	}
	switch name := filepath.Base(shell[0]); name {
	case "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox":
		return "{ " + setup + "\n} || exit\n" + command
	}
	return setup + "\n" + command
}
