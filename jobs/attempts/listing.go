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
