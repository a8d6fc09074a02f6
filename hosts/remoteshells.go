package hosts

import (
	"path"
	"slices"
)

// joiningPrograms join the words of the command that they are given with spaces,
// and a shell at the far end splits the text again.
var joiningPrograms = []string{"ssh", "autossh", "slogin", "rsh", "dbclient", "plink"}

// UseSSH advises the way in for whatever our own ssh does not support.
const UseSSH = `let your own ssh reach it: link = "ssh {name}" in the inventory`

// UseSharedSSH advises the way in where somebody must type something. The dispatcher
// has no terminal, so a person opens the connection, and ssh shares it.
const UseSharedSSH = UseSSH + `, over a shared connection (ControlMaster) that you open beforehand, because the dispatcher has no terminal`

// RemoteShells returns how many shells at the far end split the words of a
// "command" link again: one for each word that is ssh, or another program that
// joins its words. What is added to the words must be quoted so often. argv is the
// command as written, before {name} is replaced by what may be the name of such a
// program.
func RemoteShells(argv []string) (n int) {
	for _, word := range argv {
		if slices.Contains(joiningPrograms, path.Base(word)) {
			n++
		}
	}
	return n
}
