package cli

import (
	"fmt"
	"strings"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs/rundir"
)

// sshTo begins the command by which a person reaches a host as we do: with the same ssh
// configuration; "" is the user's own.
func sshTo(config, host string, flags ...string) string {
	words := append([]string{"ssh"}, flags...)
	if config != "" {
		words = append(words, "-F", console.ShellWord(console.CleanLine(config)))
	}
	return strings.Join(append(words, console.ShellWord(console.CleanLine(host))), " ")
}

// catOn is the command that shows a file of the run that only a host has.
func catOn(run *rundir.Run, host, path string) string {
	// Quoted twice: ssh hands its words to a shell over there as one text.
	return sshTo(sshConfigOf(run), host) + " cat " + console.ShellWord(console.ShellWord(console.CleanLine(path)))
}

// sshConfigOf is the ssh configuration that a run was made with, "" the user's own.
func sshConfigOf(run *rundir.Run) string {
	if kept, ok := run.Asked.Options["ssh-config"]; ok {
		return fmt.Sprint(kept)
	}
	return ""
}
