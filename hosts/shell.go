package hosts

import (
	"dcs-tui/internal/text"
	"path"
	"slices"
	"strings"
)

// joiningPrograms lists programs that join the words of their command with spaces. A
// shell at the far end splits the text again.
var joiningPrograms = []string{"ssh", "autossh", "slogin", "rsh", "dbclient", "plink"}

// RemoteShells returns how many shells at the far end split the words of a "command"
// link again: one for each word that is ssh or another program that joins its words.
// Words that are appended must be quoted that many times. argv is the command as
// written, before {name} is replaced: a host may have the name of such a program.
func RemoteShells(argv []string) (n int) {
	for _, word := range argv {
		if slices.Contains(joiningPrograms, path.Base(word)) {
			n++
		}
	}
	return n
}

// ShellQuote quotes s as one word for a POSIX shell, csh, or fish. A backslash before a
// quote has another meaning in fish, so a quote in s is put in double quotes. In csh a
// newline ends the word.
func ShellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" }

// bourneShells are shells with the grammar and the quoting of /bin/sh.
var bourneShells = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox"}

// IsBourneShell reports whether a shell of jobs ("": /bin/sh) understands what /bin/sh does. It may
// be started by another program, as in "apptainer exec image.sif /bin/sh".
func IsBourneShell(shell string) bool {
	words := strings.Fields(shell)
	return len(words) == 0 || slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains(bourneShells, path.Base(word))
	})
}

// JoinSetups joins the setups of a host, a run, and a job, some of which may be "". The first one
// that fails decides, because the helper puts the text between braces. Only a Bourne shell has
// braces.
func JoinSetups(shell string, setups ...string) string {
	separator := "\n"
	if IsBourneShell(shell) {
		separator = "\n} && {\n"
	}
	return text.Join(separator, setups...)
}
