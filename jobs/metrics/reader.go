package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/attempts"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// MaxRead is how many bytes of an output, or of a file, are searched: its end.
const MaxRead = 1 << 20

const (
	firstRead = 64 << 10 // most outputs are shorter, and most metrics stand at the end
	batch     = 32       // jobs that one goroutine takes at a time
)

// Reader finds metrics and remembers them: an output does not change once its
// attempt is over, so a table that is made again, live, costs only what is new. Not
// safe for concurrent use.
type Reader struct {
	// Fetch returns the last n bytes, or fewer, of the standard output of an attempt
	// that only its host has, and the length of all of it. nil: nobody can; the metrics
	// of such jobs are those that were kept (KeptFile), or empty. It is called by several
	// goroutines at a time, and what is found with it is kept.
	Fetch func(ctx context.Context, r *results.Result, n int64) (end []byte, size int64, err error)

	disk    rundir.Disk
	runDir  string
	cwd     string
	columns []*Metric
	files   bool // a column stands in a file
	stdout  bool // a column stands in the standard output
	known   map[jobs.AttemptID][]string
	kept    *store
	cache   *store // nil: none

	part      int           // outputs that are read between two looks at the clock
	saveEvery time.Duration // how often what a long reading has found is remembered on the way
}

// NewReader makes a Reader for a run and the columns that are wanted.
func NewReader(run *rundir.Run, columns []*Metric) *Reader {
	r := &Reader{disk: run.Disk, runDir: run.Dir, cwd: run.Asked.Cwd, columns: columns, known: map[jobs.AttemptID][]string{}, kept: &store{disk: run.Disk, dir: run.Dir, name: KeptFile},
		part: 256 * batch, saveEvery: 10 * time.Second}
	for _, c := range columns {
		r.files = r.files || c.File != ""
		r.stdout = r.stdout || c.File == ""
	}
	return r
}

// Found are the values that a Reader found.
type Found struct {
	// Values are, for each job of the list and each column, the value or "". A job of
	// which nothing was read has nil.
	Values [][]string
	Notes  []string // what could not be read and why, a sentence each, not cleaned
}

// Read finds the metrics of a list of results, in its order; cwds[i] is the directory
// of job i where that is not the run's, and may be nil. The error is ctx's.
// What a long reading has found is remembered on the way: a hundred thousand outputs of
// a slow file server take minutes, and people lose patience.
func (r *Reader) Read(ctx context.Context, list []results.Result, cwd func(i int) string) (*Found, error) {
	f := &Found{Values: make([][]string, len(list))}
	if len(r.columns) == 0 {
		return f, nil
	}
	p := reading{Reader: r, list: list, cwd: cwd, values: f.Values, names: &names{disk: r.disk}, troubles: newTroubles()}
	saved := time.Now()
	for from := 0; from < len(list) && ctx.Err() == nil; from += r.part {
		p.read(ctx, from, min(from+r.part, len(list)))
		if time.Since(saved) >= r.saveEvery {
			p.save()
			saved = time.Now()
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(err, r.kept.write(1)) // what was found is not lost
	}
	p.save()
	f.Notes = p.troubles.notes()
	if err := r.kept.write(1); err != nil {
		f.Notes = append(f.Notes, err.Error())
	}
	return f, nil
}

// reading is one call of Read.
type reading struct {
	*Reader
	list     []results.Result
	cwd      func(i int) string
	values   [][]string // of list
	names    *names
	mu       sync.Mutex
	troubles troubles
}

// read fills in the values of a part of the list.
func (p *reading) read(ctx context.Context, first, end int) {
	var (
		next  atomic.Int64
		tasks sync.WaitGroup
		fresh = map[jobs.AttemptID][]string{} // the workers read known meanwhile
	)
	next.Store(int64(first))
	for range workers(end - first) {
		tasks.Go(func() {
			w := worker{Reader: p.Reader, ctx: ctx, names: p.names, fresh: map[jobs.AttemptID][]string{}, troubles: newTroubles()}
			for ctx.Err() == nil {
				from := int(next.Add(batch)) - batch
				if from >= end {
					break
				}
				for i := from; i < min(from+batch, end) && ctx.Err() == nil; i++ {
					own := ""
					if p.cwd != nil {
						own = p.cwd(i)
					}
					p.values[i] = w.job(&p.list[i], own)
				}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.troubles.merge(&w.troubles)
			maps.Copy(fresh, w.fresh)
		})
	}
	tasks.Wait()
	if ctx.Err() == nil {
		maps.Copy(p.known, fresh)
	}
}

// save writes the cache: what is new of at least so many outputs, and a part of all, so that a
// table that is requested again and again during a run does not write each time.
func (p *reading) save() {
	if p.cache != nil {
		_ = p.cache.write(max(worthCache, len(p.list)/20)) // it is only a cache
	}
}

// workers is how many outputs are read at a time: enough to hide the delay of a
// file server, few enough not to be felt on it.
func workers(jobs int) int {
	return max(1, min(4*runtime.GOMAXPROCS(0), 16, (jobs+batch-1)/batch))
}

// remote reports whether only its host has what an attempt wrote.
func (r *Reader) remote(res *results.Result) bool {
	return !strings.HasPrefix(res.Stdout, r.runDir+"/")
}

// Option is the key of run.toml's options under which the columns stand that a
// template declared, each as Parse reads it (Metric.String writes it).
const Option = "results"

// BestOption is the key of run.toml's options under which stands what a search looks for, as
// results.ParseBest reads it.
const BestOption = "best"

// Best returns what a search looks for, "" if the run is none.
func Best(asked *rundir.Asked) string {
	best, _ := asked.Options[BestOption].(string)
	return best
}

// Declared returns the columns that were declared when the run was made.
func Declared(asked *rundir.Asked) ([]*Metric, error) {
	list, _ := asked.Options[Option].([]any)
	if texts, ok := asked.Options[Option].([]string); ok { // not read from a file
		for _, t := range texts {
			list = append(list, t)
		}
	}
	var columns []*Metric
	for _, v := range list {
		text, ok := v.(string)
		if !ok {
			return columns, fmt.Errorf("%s: options.%s holds %v, which is no text", rundir.AskedFile, Option, v)
		}
		c, err := Parse(text)
		if err != nil {
			return columns, fmt.Errorf("%s: options.%s: %w", rundir.AskedFile, Option, err)
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// Locations returns what the results of a run have in common: the run, the directories of
// its hosts, and which outputs are in the run directory.
func Locations(run *rundir.Run) *results.Place {
	return &results.Place{UID: run.UID(), Name: run.Name(), Created: jobs.StampOf(run.Asked.Created), Dir: run.Dir,
		HostDirs: run.HostDirs(), Here: attempts.NewHere(run.Disk, run.Dir).Has}
}

const (
	maxFetches  = 4                // outputs that are asked of hosts at a time
	fetchWithin = 20 * time.Second // one of them
)

// Fetching makes a Reader.Fetch of end, which reads the last n bytes of the standard
// output of an attempt on its host and returns the length of all of it: it is requested no
// more than most, for few outputs at a time, and has fetchWithin for each.
func Fetching(most int64, end func(ctx context.Context, id jobs.AttemptID, n int) ([]byte, int64, error)) func(context.Context, *results.Result, int64) ([]byte, int64, error) {
	turns := make(chan struct{}, maxFetches)
	return func(ctx context.Context, r *results.Result, n int64) ([]byte, int64, error) {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		defer func() { <-turns }()
		ctx, cancel := context.WithTimeout(ctx, fetchWithin)
		defer cancel()
		return end(ctx, r.Attempt, int(min(n, most)))
	}
}
