package attempts

import (
	"sync"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// LocalFiles reports which attempts have their files in the run directory, although their hosts
// keep files themselves: they were fetched. It checks only whether the status file is listed,
// because fetch renames that file into place last, with a whole sentinel. LocalFiles is
// safe for concurrent use. A nil *LocalFiles has no attempts.
type LocalFiles struct {
	disk rundir.Disk
	dir  string

	mu sync.Mutex
	l  *listing // nil before the first call of Has
}

// maxShards is the maximum number of shards whose listings are kept. Callers go from job to
// job, so few are enough.
const maxShards = 8

// NewLocalFiles returns the LocalFiles of dir/attempts. It lists each shard when it is first needed.
func NewLocalFiles(d rundir.Disk, dir string) *LocalFiles { return &LocalFiles{disk: d, dir: dir} }

// Has reports whether the attempt's files are here.
func (h *LocalFiles) Has(id jobs.AttemptID) bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.l == nil {
		h.l = list(h.disk, h.dir)
	}
	if len(h.l.shards) > maxShards {
		clear(h.l.shards)
	}
	return h.l.isListed(id, jobs.FileStatus)
}
