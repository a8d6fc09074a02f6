package standing

import (
	"fmt"

	"dcs-tui/jobs/journal"
)

// StoppedText says of a stopped owner how it goes on.
func StoppedText(o *journal.Owner) string {
	return fmt.Sprintf("it is stopped (Ctrl-Z, SIGSTOP): kill -CONT %d lets it go on", o.PID)
}
