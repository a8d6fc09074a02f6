package shell

import (
	"regexp"
	"strings"
)

// Change is what a command changes that only has an effect on later commands of the same shell.
type Change byte

// The changes.
const (
	NoChange        Change = iota // the command does something else, too
	DirectoryChange               // cd DIR
	StateChange                   // a variable, an option, a module, or another setting
)

// ChangeOf returns what a command changes if it does nothing else. The command must be one of a few
// simple ones: others may do more.
func ChangeOf(command string) Change {
	name, rest, _ := strings.Cut(strings.TrimSpace(command), " ")
	rest = strings.TrimSpace(rest)
	first, _, _ := strings.Cut(rest, " ")
	change := NoChange
	switch name {
	case "cd", "pushd":
		change = DirectoryChange
	case "export", "declare", "typeset", "readonly", "alias":
		if strings.Contains(rest, "=") {
			change = StateChange
		}
	case "source", ".", "unset":
		if rest != "" {
			change = StateChange
		}
	case "set":
		if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
			change = StateChange
		}
	case "module", "ml":
		switch first {
		case "load", "add", "use", "swap", "switch", "purge", "unload", "restore":
			change = StateChange
		}
	case "conda", "mamba", "micromamba":
		if first == "activate" {
			change = StateChange
		}
	default:
		if rest == "" && strings.Contains(name, "=") && isAssignment.MatchString(name) {
			change = StateChange
		}
	}
	if change != NoChange && (strings.ContainsAny(command, ";&|<>\n`") || strings.Contains(command, "$(")) {
		return NoChange
	}
	return change
}

var isAssignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\+?=`)
