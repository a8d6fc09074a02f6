package attempts

import (
	"sync"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Here records the attempts whose files were fetched from hosts that keep their own files into
// the run directory. The name of the status file is enough: fetch renames it into place as
// the last one, and only with a sentinel. Safe for concurrent use; nil: of none.
type Here struct {
	disk rundir.Disk
	dir  string

	mu sync.Mutex
	l  *listing // nil until somebody asks
}

// shardsHeld bounds the shards that are held: who asks goes from job to job.
const shardsHeld = 8

// NewHere looks into dir/attempts, each shard when it is first asked for.
func NewHere(d rundir.Disk, dir string) *Here { return &Here{disk: d, dir: dir} }

// Has reports whether the attempt's files are here.
func (h *Here) Has(id jobs.AttemptID) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.l == nil {
		h.l = list(h.disk, h.dir)
	}
	if len(h.l.shards) > shardsHeld {
		clear(h.l.shards)
	}
	return h.l.shows(id, jobs.FileStatus)
}
