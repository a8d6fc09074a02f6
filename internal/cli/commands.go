package cli

import (
	"errors"
	"fmt"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/shell"
)

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
