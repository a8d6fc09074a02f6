package attempts

import (
	"sync"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// Here says of which attempts the files are whole in a directory of attempts: it shows
// their sentinel, which is the last of them that is written there, or brought there from
// a host that keeps its own. Safe for concurrent use; nil: of none.
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

// Has says whether the attempt's files are here.
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
	return h.l.shows(id, jobs.FileExit)
}
