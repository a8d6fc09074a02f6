package standing

import (
	"strconv"

	"dcs-tui/internal/cli/console"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// MaxFault is how many runes of a fault of the input are repeated.
const MaxFault = 60

// InputText says which jobs of the input are missing from a run.
func InputText(i rundir.Input, t *jobs.Table) string {
	why := "its input was not read to its end"
	if i.State == rundir.InputBad {
		why = "its input was read no further than " + console.ShortenTo(console.CleanLine(i.Fault), MaxFault)
	}
	if i.Again && i.State == rundir.InputOpen {
		return "not all of its jobs were made yet: " + Came(t) + "; resume makes the rest"
	}
	return why + ": " + Came(t) + "; feed the rest to a new run"
}

// Came says how many jobs of a stream are part of the run.
func Came(t *jobs.Table) string {
	n := len(t.Specs)
	switch n {
	case 0:
		return "no job had come"
	case 1:
		return "1 job had come"
	}
	text := strconv.Itoa(n) + " jobs had come"
	if last := t.Specs[n-1]; last != nil && last.Line > 0 {
		text += ", the last in line " + strconv.Itoa(last.Line)
	}
	return text
}
