package cli

import (
	"fmt"
	"slices"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/standing"
	"dcs-tui/jobs"
)

// deletedAdvice returns lines that say what can be done about a run whose directory was
// deleted. No command can open that run.
func (s *summary) deletedAdvice() []string {
	dir := console.CleanLine(s.Run.Dir)
	ref := console.ShellWord(console.CleanLine(standing.Ref(s.Run)))
	lines := []string{dir + " was deleted or moved, and with it the journal and the outputs: no command can resume or cancel this run",
		"  if it was moved, put it back; then dcs-tui resume " + ref + " adopts the running jobs and continues the run"}
	running := map[string]int{}
	n := 0
	for i := range s.Table.Jobs {
		if j := &s.Table.Jobs[i]; j.State == jobs.Running {
			for _, a := range j.Open() {
				running[a.Host]++
				n++
			}
		}
	}
	if n == 0 {
		return lines
	}
	var hosts []string
	for host, n := range running {
		hosts = append(hosts, fmt.Sprintf("%s (%d)", console.CleanLine(host), n))
	}
	slices.Sort(hosts)
	// Each process of the run has the run's random name in its environment.
	return append(lines, jobs.Plural(n, "job")+" may still run, on "+someNames(hosts, 4)+"; nobody collects the results. On such a host this ends all jobs of the run:",
		"  kill $(grep -lsz '^DCS_COOKIE="+s.Run.UID()+"/' /proc/[0-9]*/environ | cut -d/ -f3)")
}
