package standing

import (
	"fmt"
	"strings"

	"dcs-tui/dispatch/sched"
	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
)

// maxReasons is how many hosts the last line names, maxReason how much it repeats
// of what was said when each of them failed.
const maxReasons, maxReason = 3, 60

// NoHosts is why a run ends without a host, in a line: the whole messages, and
// what to do about them, stand above.
func NoHosts(hs []sched.HostView) string {
	if len(hs) == 0 {
		return "there is no host"
	}
	var parts []string
	for _, h := range hs {
		if h.Reason == "" {
			continue
		}
		if len(parts) == maxReasons {
			parts = append(parts, fmt.Sprintf("%d more", len(hs)-maxReasons))
			break
		}
		parts = append(parts, console.CleanLine(h.Name)+" ("+shortReason(h.Reason, h.Name)+")")
	}
	text := "no host could be used"
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ") + "; see above"
	}
	return text
}

// shortReason is the first clause of why a host cannot be used.
func shortReason(reason, host string) string {
	reason = console.CleanLine(console.WithoutSubject(reason, host))
	for _, sep := range []string{" (", "; ", ": "} {
		if first, _, found := strings.Cut(reason, sep); found && len(first) >= 8 {
			reason = first
		}
	}
	return jobs.Clean(reason, maxReason)
}
