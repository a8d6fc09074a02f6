package standing

import (
	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// HostTrouble says which hosts were of no use to a run; see runview.HostsOfNoUse.
func HostTrouble(t *jobs.Table, words map[string]runview.HostWord) []string {
	lines := runview.HostsOfNoUse(t, words)
	for i := range lines {
		lines[i] = [2]string{"hosts: ", "       "}[min(i, 1)] + console.CleanLine(lines[i])
	}
	return lines
}
