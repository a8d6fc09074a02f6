package journal

import (
	"encoding/json"
	"os"
	"strings"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// endedCounts is the content of rundir.CountsFile: the counts of a run that has ended, the epoch of
// its last dispatcher, and the sizes of the files that they follow from. A list of runs thus need not
// replay them.
type endedCounts struct {
	Epoch  int              `json:"epoch"`
	Files  map[string]int64 `json:"files"`
	Counts map[string]int   `json:"counts"`
}

// WriteCounts stores the counts of a run whose jobs have all ended, after its journal was closed. The
// file is not durable, and it counts only as long as the files of the run do not change.
func WriteCounts(r *rundir.Run, t *jobs.Table) error {
	if t.Unfinished() > 0 || t.Damaged {
		return nil
	}
	sizes, err := countedFiles(r)
	if err != nil {
		return err
	}
	c := endedCounts{t.Epoch, sizes, map[string]int{}}
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
	f, err := r.Disk.OpenFile(r.Path(rundir.CountsFile), os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	defer f.Close() // opened only for reading
	buf := make([]byte, 1<<20)
	n, _ := f.ReadAt(buf, 0)
	var c endedCounts
	if json.Unmarshal(buf[:n], &c) != nil {
		return nil
	}
	if o, err := ReadOwner(r); err != nil || o == nil || o.Epoch != c.Epoch {
		return nil // a later dispatcher may not have written a record yet
	}
	sizes, err := countedFiles(r)
	if err != nil || len(sizes) != len(c.Files) {
		return nil
	}
	for name, size := range sizes {
		if had, ok := c.Files[name]; !ok || had != size {
			return nil
		}
	}
	t := &jobs.Table{Ended: true}
	for state := range t.Counts {
		t.Counts[state] = c.Counts[jobs.JobState(state).String()]
	}
	return t
}

// countedFiles returns the sizes of the files with the jobs and the records of a run.
func countedFiles(r *rundir.Run) (map[string]int64, error) {
	sizes := map[string]int64{}
	for _, dir := range []string{"", rundir.JournalDir} {
		names, err := r.Disk.Names(r.Path(dir))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			isSpecs := strings.HasPrefix(name, "jobs") && strings.HasSuffix(name, ".jsonl")
			if dir == "" && !isSpecs {
				continue
			}
			info, err := r.Disk.Stat(r.Path(dir, name))
			if err != nil {
				return nil, err
			}
			sizes[dir+"/"+name] = info.Size()
		}
	}
	return sizes, nil
}
