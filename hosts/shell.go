package hosts

import (
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
