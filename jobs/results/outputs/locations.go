package outputs

import (
	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// Locations returns what the results of a run have in common: the run, the directories of
// its hosts, and which outputs are in the run directory.
func Locations(run *rundir.Run) *results.Place {
	return &results.Place{UID: run.UID(), Name: run.Name(), Created: jobs.StampOf(run.Asked.Created), Dir: run.Dir,
		HostDirs: run.HostDirs(), Here: attempts.NewHere(run.Disk, run.Dir).Has}
}
