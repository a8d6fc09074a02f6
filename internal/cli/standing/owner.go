package standing

import (
	"fmt"
	"os"
	"strings"

	"dcs-tui/jobs/journal"
)

// Stopped says that the owner is a process of this machine that somebody has
// stopped: it hears nothing until it is let go on.
func Stopped(o *journal.Owner) bool {
	if o.Life() != journal.Alive {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", o.PID))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b[max(0, strings.LastIndexByte(string(b), ')')):]), " ")
	return strings.HasPrefix(rest, "T")
}

// StoppedText says of a stopped owner how it goes on.
func StoppedText(o *journal.Owner) string {
	return fmt.Sprintf("it is stopped (Ctrl-Z, SIGSTOP): kill -CONT %d lets it go on", o.PID)
}
