package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// MaxRead is the number of bytes that are searched at the end of an output or a file.
const MaxRead = 1 << 20

const (
	firstRead = 64 << 10 // most outputs are shorter, and most metrics are near the end
	batch     = 32       // jobs that one goroutine takes at a time
)

// Reader finds metrics and remembers them. Outputs do not change once their attempts are over, so
// remaking a table only reads new outputs. It is not safe for concurrent use.
type Reader struct {
	// Fetch returns the last n bytes, or fewer, of a standard output that only its host has, and
	// the length of the whole output. If it is nil, metrics of such jobs are those in KeptFile, or
	// empty. Several goroutines call Fetch concurrently. The metrics in fetched outputs are kept in
	// KeptFile.
	Fetch func(ctx context.Context, r *results.Result, n int64) (end []byte, size int64, err error)

	disk    rundir.Disk
	runDir  string
	cwd     string
	columns []*Metric
	files   []string // of the metrics, each once; "" is the standard output
	known   map[jobs.AttemptID][]string
	kept    *store
	cache   *store // nil: none

	part int // number of outputs that are read before what was found is saved
}

// NewReader makes a Reader of the given metrics for a run.
func NewReader(run *rundir.Run, columns []*Metric) *Reader {
	r := &Reader{disk: run.Disk, runDir: run.Dir, cwd: run.Settings.Cwd, columns: columns,
		known: map[jobs.AttemptID][]string{}, kept: &store{disk: run.Disk, dir: run.Dir, name: KeptFile},
		part: 256 * batch}
	for _, c := range columns {
		if !slices.Contains(r.files, c.File) {
			r.files = append(r.files, c.File)
		}
	}
	return r
}

// Found is the result of a Read.
type Found struct {
	// Values holds the value of each metric for each job of the list, or "". The values of a job
	// are nil if none of its outputs was read.
	Values [][]string
	Notes  []string // what could not be read and why; sentences, not cleaned
}

// Read finds the metrics of a list of results, in its order. cwd returns the working directory of
// job i, or "" for that of the run; cwd may be nil. The error is that of ctx. Read saves what it
// has found in parts, because reading a hundred thousand outputs on a slow file server takes minutes,
// and the lines of a million take much memory.
func (r *Reader) Read(ctx context.Context, rows *results.Rows, cwd func(i int) string) (*Found, error) {
	f := &Found{Values: make([][]string, rows.Len())}
	if len(r.columns) == 0 {
		return f, nil
	}
	if !slices.ContainsFunc(r.files, func(file string) bool { return file != "" }) {
		cwd = nil // no file is looked for there
	}
	p := reading{Reader: r, cwd: cwd, values: f.Values,
		names: &dirListings{disk: r.disk,
			dirs: map[string]func() (map[string]struct{}, error){}}, problems: newProblems()}
	for from := 0; from < rows.Len() && ctx.Err() == nil; from += r.part {
		p.first, p.list = from, rows.Slice(from, min(from+r.part, rows.Len()))
		p.read(ctx)
		p.names.forget(filepath.Join(r.runDir, rundir.AttemptsDir))
		p.saveCache(rows.Len())
	}
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(err, r.kept.write(1)) // keep what was found
	}
	f.Notes = p.problems.notes()
	if err := r.kept.write(1); err != nil {
		f.Notes = append(f.Notes, err.Error())
	}
	return f, nil
}

// reading is one call of Read.
type reading struct {
	*Reader
	list     []results.Result // the part that is being read
	first    int              // index of the first result in list
	cwd      func(i int) string
	values   [][]string // values of each result
	names    *dirListings
	mu       sync.Mutex
	problems problems
}

// read finds the metrics of the list.
func (p *reading) read(ctx context.Context) {
	var (
		next  atomic.Int64
		tasks sync.WaitGroup
		fresh = map[jobs.AttemptID][]string{} // the workers read p.known concurrently
	)
	for range workers(len(p.list)) {
		tasks.Go(func() {
			w := worker{Reader: p.Reader, ctx: ctx, names: p.names, fresh: map[jobs.AttemptID][]string{},
				problems: newProblems()}
			for ctx.Err() == nil {
				from := int(next.Add(batch)) - batch
				if from >= len(p.list) {
					break
				}
				for i := from; i < min(from+batch, len(p.list)) && ctx.Err() == nil; i++ {
					own := ""
					if p.cwd != nil {
						own = p.cwd(p.first + i)
					}
					p.values[p.first+i] = w.readJob(&p.list[i], own)
				}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.problems.merge(&w.problems)
			maps.Copy(fresh, w.fresh)
		})
	}
	tasks.Wait()
	if ctx.Err() == nil {
		maps.Copy(p.known, fresh)
	}
}

// saveCache writes the cache if enough is new, compared with n outputs in all. A table that is
// remade often during a run therefore does not write it each time.
func (p *reading) saveCache(n int) {
	if p.cache != nil {
		_ = p.cache.write(max(worthCache, n/20)) // an error only costs time
	}
}

// workers returns the number of outputs that are read concurrently: enough to hide the latency of a
// file server, but not so many as to overload it.
func workers(jobs int) int {
	return max(1, min(4*runtime.GOMAXPROCS(0), 16, (jobs+batch-1)/batch))
}

// isRemote reports whether only the host has the output of an attempt.
func (r *Reader) isRemote(res *results.Result) bool {
	return !strings.HasPrefix(res.Stdout, r.runDir+"/")
}

// Option is the key in run.toml's options for the metrics that a template declared, each in the
// form that Parse parses.
const Option = "results"

// BestOption is the key in run.toml's options for the objective of a search, in the form that
// results.ParseBest parses.
const BestOption = "best"

// Best returns the objective of a search, or "" if the run is not a search.
func Best(settings *rundir.Settings) string {
	best, _ := settings.Options[BestOption].(string)
	return best
}

// Declared returns the metrics that were declared when the run was created.
func Declared(settings *rundir.Settings) ([]*Metric, error) {
	list, _ := settings.Options[Option].([]any)
	// The options were not read from a file.
	if texts, ok := settings.Options[Option].([]string); ok {
		for _, t := range texts {
			list = append(list, t)
		}
	}
	var columns []*Metric
	for _, v := range list {
		text, ok := v.(string)
		if !ok {
			return columns, fmt.Errorf("%s: options.%s holds %v, which is not a text", rundir.SettingsFile, Option, v)
		}
		c, err := Parse(text)
		if err != nil {
			return columns, fmt.Errorf("%s: options.%s: %w", rundir.SettingsFile, Option, err)
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// Merge returns the metrics of a list and more, each of which replaces one of the same name.
func Merge(list []*Metric, more ...*Metric) []*Metric {
	list = slices.Clone(list)
	for _, c := range more {
		if i := slices.IndexFunc(list, func(o *Metric) bool { return o.Name == c.Name }); i >= 0 {
			list[i] = c
		} else {
			list = append(list, c)
		}
	}
	return list
}

// Locations returns the common data of a run's results: the run, the directories of its hosts, and
// which outputs are in the run directory.
func Locations(run *rundir.Run) *results.RunInfo {
	return &results.RunInfo{UID: run.UID(), Name: run.Name(), Created: jobs.StampOf(run.Settings.Created), Dir: run.Dir,
		HostDirs: run.HostDirs(), Here: attempts.NewLocalFiles(run.Disk, run.Dir).Has}
}

const (
	maxFetches   = 4                // outputs that are fetched concurrently
	fetchTimeout = 20 * time.Second // for one output
)

// NewFetch makes a Reader.Fetch from end, which reads the last n bytes of the standard output of an
// attempt on its host and returns the length of the whole output. It requests at most most bytes,
// limits the number of concurrent fetches, and gives each fetchTimeout.
func NewFetch(most int64, end func(ctx context.Context, id jobs.AttemptID, n int) ([]byte, int64, error)) func(
	context.Context, *results.Result, int64) ([]byte, int64, error) {
	turns := make(chan struct{}, maxFetches)
	return func(ctx context.Context, r *results.Result, n int64) ([]byte, int64, error) {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		defer func() { <-turns }()
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		return end(ctx, r.Attempt, int(min(n, most)))
	}
}
