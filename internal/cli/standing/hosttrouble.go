package standing

import (
	"fmt"
	"sort"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
)

// maxTrouble bounds the lines about hosts that were of no use.
const maxTrouble = 5

// fewFailures is how many attempts must have failed on a host before it is compared
// with the others.
const fewFailures = 3

// HostTrouble says which hosts were of no use to a run: those that were never up, and those where attempts failed much more often than on the others. A
// run that went well in the end hides both, and took longer.
func HostTrouble(t *jobs.Table, words map[string]HostWord) []string {
	lines := HostsOfNoUse(t, words)
	for i := range lines {
		lines[i] = [2]string{"hosts: ", "       "}[min(i, 1)] + lines[i]
	}
	return lines
}

// HostsOfNoUse are the sentences of HostTrouble, for the screen's summary.
func HostsOfNoUse(t *jobs.Table, words map[string]HostWord) []string {
	counts := countHosts(t)
	all := hostCount{}
	for _, h := range counts {
		all.Ended += h.Ended
		all.Failed += h.Failed
	}
	var lines []string
	for name, w := range words {
		if counts[name] == nil && w.text != "" && !w.up { // one that was up was not needed
			lines = append(lines, console.CleanLine(name)+" ran nothing: "+console.Shorten(console.CleanLine(console.WithoutSubject(w.text, name))))
		}
	}
	for name, h := range counts {
		others := hostCount{Ended: all.Ended - h.Ended, Failed: all.Failed - h.Failed}
		if h.Failed >= fewFailures && 2*h.Failed > h.Ended && 4*others.Failed < others.Ended {
			lines = append(lines, fmt.Sprintf("%s failed %d of %s, the others %d of %d: is what the jobs need there?",
				console.CleanLine(name), h.Failed, jobs.Plural(h.Ended, "attempt"), others.Failed, others.Ended))
		}
	}
	sort.Strings(lines)
	if more := len(lines) - maxTrouble; more > 0 {
		lines = append(lines[:maxTrouble], fmt.Sprintf("%s more like these", jobs.Plural(more, "host")))
	}
	return lines
}
