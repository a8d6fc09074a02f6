package attempts

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// listing holds the names in the directory of attempts: the shards, and the files of those that
// were listed.
type listing struct {
	d      rundir.Disk
	dir    string // holds attempts/
	top    map[string]bool
	errs   firstError
	shards map[string]map[string]bool
}

// list lists dir/attempts. If it does not exist, it has no attempts.
func list(d rundir.Disk, dir string) *listing {
	l := &listing{d: d, dir: dir, shards: map[string]map[string]bool{}}
	l.top = l.names(filepath.Join(dir, "attempts"))
	return l
}

// listShard is list for one shard. It does not read dir/attempts, which may have thousands of packs.
func listShard(d rundir.Disk, dir, shard string) *listing {
	return &listing{d: d, dir: dir, top: map[string]bool{shard: true}, shards: map[string]map[string]bool{}}
}

func (l *listing) names(dir string) map[string]bool {
	names, err := l.d.Names(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.errs.add(err)
	}
	set := make(map[string]bool, len(names)) // names that were read before an error count
	for _, n := range names {
		set[n] = true
	}
	return set
}

// shardNames returns the names in the directory of a shard. It lists each directory once.
func (l *listing) shardNames(name string) map[string]bool {
	if names, done := l.shards[name]; done {
		return names
	}
	var names map[string]bool
	if l.top[name] || l.hasPack(name) {
		names = l.names(filepath.Join(l.dir, "attempts", name))
	}
	l.shards[name] = names
	return names
}

// hasPack reports whether there is a pack of a shard, whose directory may be gone.
func (l *listing) hasPack(shard string) bool {
	for n := range l.top {
		if of, ok := rundir.PackedName(n); ok && of == shard {
			return true
		}
	}
	return false
}

// allShards returns the names of all shards, in the order of their jobs.
func (l *listing) allShards() []string {
	var out []string
	for n := range l.top {
		if shard, ok := rundir.PackedName(n); ok {
			n = shard
		}
		if i, err := strconv.Atoi(n); err == nil && i >= 0 && jobs.ShardDir(jobs.ID(i*jobs.ShardSize)) == n {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return slices.Compact(out)
}

// mayHold reports whether a shard may hold attempts of one of these jobs.
func mayHold(only jobs.Ranges, shard string) bool {
	n, err := strconv.Atoi(shard)
	first := jobs.ID(n * jobs.ShardSize)
	return err != nil || only.Overlaps(first, first+jobs.ShardSize-1)
}

// startedAttempts returns the attempts of a shard that have a status file, in order.
func (l *listing) startedAttempts(shard string) []jobs.AttemptID {
	var ids []jobs.AttemptID
	for n := range l.shardNames(shard) {
		name, ok := strings.CutSuffix(n, "."+string(jobs.FileStatus))
		if id, err := jobs.ParseAttemptID(name); ok && err == nil && jobs.ShardDir(id.Job) == shard {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, jobs.AttemptID.Compare)
	return ids
}

// isListed reports whether a file of the attempt was listed.
func (l *listing) isListed(id jobs.AttemptID, f jobs.File) bool {
	return l.shardNames(jobs.ShardDir(id.Job))[id.String()+"."+string(f)]
}

// read returns up to n bytes, from offset on, of a file that was listed. A negative offset
// counts from the end. It returns nothing of what is not a regular file, such as a link or a
// pipe that a job has put there.
func (l *listing) read(path string, offset, n int64) []byte {
	b, _, err := rundir.ReadPart(l.d, path, offset, n)
	switch {
	case err == nil:
		return b
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO),
		errors.Is(err, rundir.ErrNotRegular), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ESPIPE):
	default:
		l.errs.add(err)
	}
	return nil
}

// firstError holds the first of several errors, or the first that reports a pack: callers must know of that,
// because attempts may be in it.
type firstError struct {
	first error
	more  int
}

func (t *firstError) add(err error) {
	if t.first != nil {
		t.more++
	}
	if t.first == nil || rundir.LacksPack(err) && !rundir.LacksPack(t.first) {
		t.first = err
	}
}

func (t *firstError) err() error {
	switch {
	case t.first == nil:
		return nil
	case t.more > 0:
		return fmt.Errorf("reading the directory of attempts: %w (and %d more)", t.first, t.more)
	}
	return fmt.Errorf("reading the directory of attempts: %w", t.first)
}

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

// HostAttempts is the state of the attempts of one host as the directory shows it.
type HostAttempts struct {
	Finished []Fate           // with a whole sentinel of this host
	Claimed  []jobs.AttemptID // with a claim of this host, and no whole sentinel
	Never    []jobs.AttemptID // with a tombstone of this host: they will never start there
	// Content of the host's heartbeat file without its newline; "" if none is listed.
	Heartbeat string
	Machine   string // content of the host's machine file; "" if none is listed
}

// ReadHostAttempts returns the state of attempts of one host. dir is the directory that holds
// attempts/. What another host wrote does not count. Attempts may have been missed if there is an
// error; those that were found are returned with it.
func ReadHostAttempts(d rundir.Disk, dir, run, host string, ids []jobs.AttemptID) (HostAttempts, error) {
	l := list(d, dir)
	s := HostAttempts{Heartbeat: l.readHostFile(HeartbeatFile(dir, host)),
		Machine: l.readHostFile(MachineFile(dir, host))}
	for _, id := range ids {
		switch f := l.readFate(run, id); {
		// Nor does a tombstone of another host: in a directory that only looks like this
		// host's, it would mean that a running attempt never started.
		case f.Host != host:
		case f.State == NeverStarts:
			s.Never = append(s.Never, id)
		case f.State == Finished:
			s.Finished = append(s.Finished, f)
		case f.State == Claimed:
			s.Claimed = append(s.Claimed, id)
		}
	}
	return s, l.errs.err()
}

// HeartbeatFile returns the path of the file that a host's supervisors rewrite every 10 s while
// they run jobs. It holds the wall clock in nanoseconds, a blank, and the boot id. dir is the
// directory that holds attempts/.
func HeartbeatFile(dir, host string) string { return filepath.Join(dir, "attempts", "heartbeat."+host) }

// MachineFile returns the path of the file with the id of a host's machine, which its helper writes.
// Only who can read the directory that holds attempts/ knows it, besides the dispatcher.
func MachineFile(dir, host string) string { return filepath.Join(dir, "attempts", "machine."+host) }

// maxHostFile is the maximum number of bytes of these files that are read.
const maxHostFile = 128

// readHostFile returns the content of one of these files.
func (l *listing) readHostFile(path string) string {
	if !l.top[filepath.Base(path)] {
		return ""
	}
	return strings.TrimSuffix(string(l.read(path, 0, maxHostFile)), "\n")
}
