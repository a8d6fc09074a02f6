package journal

import (
	"encoding/json"
	"math"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// endedCounts is the content of rundir.CountsFile: the counts of a run that has ended, and the epoch
// of its last dispatcher. A list of runs thus need not replay them. Only a later epoch changes jobs
// and records.
type endedCounts struct {
	Epoch  int            `json:"epoch"`
	Counts map[string]int `json:"counts"`
}

// WriteCounts stores the counts of a run whose jobs have all ended, after its journal was closed. The
// file is not durable, and it counts only as long as nobody takes the run over.
func WriteCounts(r *rundir.Run, t *jobs.Table) error {
	if t.Unfinished() > 0 || t.Damaged {
		return nil
	}
	c := endedCounts{t.Epoch, map[string]int{}}
	for state, n := range t.Counts {
		c.Counts[jobs.JobState(state).String()] = n
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	path := r.Path(rundir.CountsFile)
	return rundir.ReplaceVolatile(r.Disk, path, path+".tmp", append(text, '\n'), nil)
}

// ReadCounts returns a table that has only counts, or nil if they are not stored or outdated.
func ReadCounts(r *rundir.Run) *jobs.Table {
	const limit = 1 << 20 // a longer file is not of this program, and fails to parse
	b, _, err := rundir.ReadPart(r.Disk, r.Path(rundir.CountsFile), 0, limit)
	if err != nil {
		return nil
	}
	var c endedCounts
	if json.Unmarshal(b, &c) != nil {
		return nil
	}
	if o, err := ReadOwner(r); err != nil || o == nil || o.Epoch != c.Epoch {
		return nil // a later dispatcher may not have written a record yet
	}
	t := &jobs.Table{Ended: true}
	for state := range t.Counts {
		n, ok := c.Counts[jobs.JobState(state).String()]
		if !ok || n < 0 || n > math.MaxInt32 {
			return nil // it is of another program
		}
		t.Counts[state] = n
	}
	return t
}
