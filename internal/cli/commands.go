package cli

import (
	"errors"
	"fmt"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/shell"
)

// maxShellWarnings is the number of warnings about jobs that change only their shell.
const maxShellWarnings = 3

// newShellWarning returns a function that warns about the jobs of a file that change only the shell
// that runs them, such as `cd DIR`: lines of a script that are meant for the lines after them.
func (a *app) newShellWarning(file string) func(specs ...*jobs.Spec) {
	n := 0
	return func(specs ...*jobs.Spec) {
		for _, s := range specs {
			change := shell.ChangeOf(s.Command)
			if change == shell.NoChange {
				continue
			}
			advice := "#DCS default setup='LINE', or --setup LINE, runs it before each job"
			if change == shell.DirectoryChange {
				advice = "#DCS default cwd=DIR, or --cwd DIR, sets the directory of the jobs"
			}
			n++
			switch {
			case n <= maxShellWarnings:
				a.warn("%s:%d: %s is a job of its own and has no effect on other jobs: %s", text.Line(file), s.Line,
					text.Shorten(text.Line(s.Command)), advice)
			case n == maxShellWarnings+1:
				a.warn("%s:%d: so is %s, and perhaps others", text.Line(file), s.Line,
					text.Shorten(text.Line(s.Command)))
			}
		}
	}
}

// newCommandCheck returns a check of commands of users for a shell. It refuses those that are not
// complete, and warns about characters that are not what they look like, because a command may mean
// them. isLine reports whether a command ends with its line.
func (a *app) newCommandCheck(shellPath string) func(command string, isLine bool) error {
	checkEnd := shell.Checker(shellPath) // nil: the language of the shell is not known
	warned := map[string]bool{}          // descriptions of characters: one warning for each
	return func(command string, isLine bool) error {
		if checkEnd != nil {
			err := checkEnd(command)
			if incomplete, ok := errors.AsType[*shell.Incomplete](err); isLine && ok {
				return fmt.Errorf("the command is not complete in its line (%s): each line runs by itself; "+
					"put a command of several lines into a script and call that, or into a .jsonl file",
					incomplete.Missing)
			}
			if err != nil {
				return err
			}
		}
		if _, why := jobs.Ambiguous(command); why != "" && !warned[why] {
			warned[why] = true
			a.warn("in the command %s, %s", text.Shorten(command), why)
		}
		return nil
	}
}
