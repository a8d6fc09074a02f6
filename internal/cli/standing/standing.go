package standing

import (
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// Look is a run as its files show it.
type Look struct {
	Run   *rundir.Run
	Table *jobs.Table
	Owner *journal.Owner
	Input rundir.Input
	Words map[string]runview.HostWord // what the present dispatcher said last of each host
	Asked int                         // requests that wait
}

// Read reads a run without owning it. warn is told what could not be read.
func Read(run *rundir.Run, warn func(format string, args ...any)) (*Look, error) {
	words := map[string]runview.HostWord{}
	limit, owner, _, err := journal.Observe(run)
	if err != nil {
		warn("%v", err)
	}
	reader := journal.Follow(run)
	if _, err := reader.Poll(limit, func(_ int, r *jobs.Record) { runview.Hear(words, r) }); err != nil {
		return nil, exit.Usagef("%w", err)
	}
	for _, w := range reader.Report().Warnings {
		warn("%s", w)
	}
	table := reader.Table()
	table.AcceptStored()
	had, err := run.ReadInput()
	if err != nil {
		warn("%v", err)
	}
	return &Look{run, table, owner, had, words, Requests(run, table, warn)}, nil
}

// Requests counts the requests that wait in the run directory.
func Requests(run *rundir.Run, t *jobs.Table, warn func(format string, args ...any)) (n int) {
	names, _, err := run.RequestNames()
	if err != nil {
		warn("%v", err)
	}
	for _, name := range names {
		if !t.Requests[name] { // one that was taken in is only waiting to be removed
			n++
		}
	}
	return n
}

// WholeTable is what the journal of a run says, with jobs that are stored and not yet
// part of it as AcceptStored shows them.
func WholeTable(run *rundir.Run) (*jobs.Table, error) {
	t, _, err := journal.Replay(run)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	t.AcceptStored()
	return t, nil
}

// Alive says whether somebody dispatches the run, as far as this machine can tell.
func (l *Look) Alive() bool { return l.Owner != nil && l.Owner.Life() != journal.Dead }
