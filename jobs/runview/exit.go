package runview

import "dcs-tui/jobs"

// ExitMeaning explains the exit codes that a POSIX shell gives of its own
// (sh(1), 2.8.2), " (command not found)" for 127: they are what people look up. "" for others.
func ExitMeaning(o *jobs.Outcome) string {
	if o == nil || o.Signal != "" || o.Error != "" || o.TimedOut || o.Stopped {
		return ""
	}
	switch {
	case o.Exit == 126:
		return " (not executable)"
	case o.Exit == 127:
		return " (command not found)"
	case o.Exit > 128:
		if name := jobs.SignalName(o.Exit - 128); name != "" {
			return " (" + name + " in its shell)"
		}
	}
	return ""
}
