package cli

import (
	"fmt"
	"strings"

	"dcs-tui/hosts"
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

// onHost returns the command line that a person types to run a command on a host of the
// run. It reaches the host in the same way as the run does.
func onHost(run *rundir.Run, host string, words ...string) string {
	way, shells := sshTo(sshConfigOf(run), host), 1 // ssh passes its words to a shell on the host as one text
	if text, file, err := run.Inventory(); err == nil {
		if inv, _, err := hosts.Parse([]byte(text), file); err == nil {
			if h := inv.Find(host); h != nil && h.Link == "command" {
				way, shells = shellWords(h.Command), h.Shells
			}
		}
	}
	for i, w := range words {
		words[i] = console.CleanLine(w)
		for range shells {
			words[i] = console.ShellWord(words[i])
		}
	}
	return way + " " + shellWords(words)
}

// shellWords quotes words for a shell and joins them with spaces.
func shellWords(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, console.ShellWord(console.CleanLine(w)))
	}
	return strings.Join(quoted, " ")
}

// catOn returns the command line that shows a file of the run that only a host has.
func catOn(run *rundir.Run, host, path string) string { return onHost(run, host, "cat", path) }

// sshConfigOf is the ssh configuration that a run was made with, "" the user's own.
func sshConfigOf(run *rundir.Run) string {
	if kept, ok := run.Asked.Options["ssh-config"]; ok {
		return fmt.Sprint(kept)
	}
	return ""
}
