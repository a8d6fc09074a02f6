package journal

import (
	"crypto/rand"
	"encoding/json"
	"math"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// endedCounts is the content of rundir.CountsFile: the counts of a run that has ended, and the end of
// the journal from which they were computed. A list of runs thus need not replay it.
type endedCounts struct {
	Epoch  int            `json:"epoch"` // of the newest file of the journal
	Bytes  int64          `json:"bytes"` // length of that file
	Counts map[string]int `json:"counts"`
}

// WriteCounts stores the counts of a run whose jobs have all ended, after its journal was closed. The
// file is not durable. It counts as long as the journal ends there: nobody has taken the run over, and
// no backup has replaced files.
func WriteCounts(r *rundir.Run, t *jobs.Table) error {
	if t.Unfinished() > 0 || t.Damaged {
		return nil
	}
	size, err := sizeOf(r, fileOf(t.Epoch))
	if err != nil {
		return err
	}
	c := endedCounts{t.Epoch, size, map[string]int{}}
	for state, n := range t.Counts {
		c.Counts[jobs.JobState(state).String()] = n
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	unique := r.Path("." + rundir.CountsFile + "." + rand.Text()[:12]) // a list of runs may write it, too
	return rundir.ReplaceVolatile(r.Disk, r.Path(rundir.CountsFile), unique, append(text, '\n'), nil)
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
	files, err := listFiles(r)
	if err != nil || newestEpoch(files) != c.Epoch {
		return nil
	}
	if size, err := sizeOf(r, fileOf(c.Epoch)); err != nil || size != c.Bytes {
		return nil
	}
	t := &jobs.Table{Ended: true}
	for state := range t.Counts {
		n, ok := c.Counts[jobs.JobState(state).String()]
		if !ok || n < 0 || n > math.MaxInt32 {
			return nil // another version wrote it
		}
		t.Counts[state] = n
	}
	return t
}
