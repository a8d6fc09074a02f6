package runview

import (
	"fmt"
	"slices"
	"strings"

	"dcs-tui/jobs"
)

// LeftBehind says of a run whose jobs are all over, and which nobody dispatches any
// more, what its journal does not show to have been ended: a run ends only when every
// host has been left clean. "" if it has ended, or goes on.
func LeftBehind(t *jobs.Table) string {
	if t.Ended || len(t.Jobs) == 0 || t.Unfinished() > 0 {
		return ""
	}
	var lost []string // hosts that were given up with something on them
	for i := range t.Jobs {
		for _, a := range t.Jobs[i].Attempts {
			if a.State == jobs.AttemptLost && a.Host != "" && !slices.Contains(lost, a.Host) {
				lost = append(lost, a.Host)
			}
		}
	}
	const most = 5
	slices.Sort(lost)
	where := "hosts"
	if n := len(lost); n > most {
		where = strings.Join(lost[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	} else if n > 0 {
		where = strings.Join(lost, ", ")
	}
	return "processes that jobs left behind may still be alive on " + where + ": resume ends them"
}
