package hosts

import "fmt"

// ExitError is what Stream.Wait returns when the command ran and did not exit
// with 0. Any other error of Wait means that nobody knows how it ended.
type ExitError struct {
	Code   int    // exit code; -1 when a signal ended the command
	Signal string // "SIGKILL"; "" when it exited by itself
}

// Error says how it ended.
func (e *ExitError) Error() string {
	if e.Signal != "" {
		return "ended by " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}
