package standing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/results"
)

// maxAbsent is how many attempts of a host a line names.
const maxAbsent = 5

// Absent says of each host that attempts may still run on and that is not in
// the inventory which they are and how long they are waited for: nobody can be
// asked, so the rule for lost hosts decides (DESIGN 7), after the default
// lost_after; what is only handed over may start until its lease has run out, which
// --buffer makes longer.
func Absent(t *jobs.Table, hs []*hosts.Host, buffer time.Duration) []string {
	known := map[string]bool{}
	for _, h := range hs {
		known[h.Name] = true
	}
	open := map[string][]string{}
	var names []string
	waits := map[string]time.Duration{}
	for i := range t.Jobs {
		if t.Jobs[i].State != jobs.Running {
			continue
		}
		for _, a := range t.Jobs[i].Open() {
			if known[a.Host] {
				continue
			}
			if open[a.Host] == nil {
				names = append(names, a.Host)
			}
			open[a.Host] = append(open[a.Host], a.ID.String())
			wait := hosts.DefaultLostAfter
			if a.State == jobs.AttemptLaunching {
				wait = max(wait, buffer)
			}
			waits[a.Host] = max(waits[a.Host], wait)
		}
	}
	slices.Sort(names)
	var lines []string
	for _, name := range names {
		ids := open[name]
		what, they := "attempts ", "unless the run directory shows how they end, or that the host goes on, they are given up and their jobs run"
		if len(ids) == 1 {
			what, they = "attempt ", "unless the run directory shows how it ends, or that the host goes on, it is given up and its job runs"
		}
		if more := len(ids) - maxAbsent; more > 0 {
			ids = append(ids[:maxAbsent:maxAbsent], fmt.Sprintf("%d more", more))
		}
		lines = append(lines, fmt.Sprintf("%s is not in the inventory, %s%s may still run there: %s again elsewhere in %s; an inventory that has the host (--hosts) lets it be asked instead",
			name, what, strings.Join(ids, ", "), they, results.HumanDuration(waits[name])))
	}
	return lines
}
