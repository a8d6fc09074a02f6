package cli

import (
	"errors"
	"fmt"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/shell"
)

// commandCheck checks commands of users before a run gets them. It refuses those that are not
// complete, and warns about characters that are not what they look like: a command may mean them.
type commandCheck struct {
	warn       func(format string, args ...any)
	incomplete func(command string) error // nil: the language of the shell is not known
	warned     map[string]bool            // descriptions of characters: one warning for each
}

// newCommandCheck returns a check of commands for a shell.
func (a *app) newCommandCheck(shellPath string) *commandCheck {
	return &commandCheck{warn: a.warn, incomplete: shell.Checker(shellPath), warned: map[string]bool{}}
}

// check checks a command of a jobs file. isLine reports whether the command ends with its line.
func (c *commandCheck) check(command string, isLine bool) error {
	err := c.checkEnd(command)
	if incomplete := (*shell.Incomplete)(nil); isLine && errors.As(err, &incomplete) {
		return fmt.Errorf("the command is not complete in its line (%s): each line runs by itself; "+
			"put a command of several lines into a script and call that, or into a .jsonl file", incomplete.Missing)
	}
	if err != nil {
		return err
	}
	if _, why := jobs.Ambiguous(command); why != "" && !c.warned[why] {
		c.warned[why] = true
		c.warn("in the command %s, %s", text.Shorten(command), why)
	}
	return nil
}

// checkEnd refuses a command that is not complete. It does not warn.
func (c *commandCheck) checkEnd(command string) error {
	if c.incomplete == nil {
		return nil
	}
	return c.incomplete(command)
}
