package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runindex"
	"dcs-tui/observe/runview"
	"dcs-tui/tui"
)

// defaultLimit is the number of runs that are listed by default. Listing a run reads its journal.
const defaultLimit = 20

// runEntry is a run in a list of runs, and a line of `runs list --json`.
type runEntry struct {
	runJSON
	Dir       string         `json:"dir"`
	Made      time.Time      `json:"made"`
	Elsewhere bool           `json:"elsewhere"` // it is not in ./dcs-runs
	Machine   *string        `json:"machine"`   // of its dispatcher; null if nobody dispatches it
	Jobs      map[string]int `json:"jobs"`      // by state; null if they cannot be read
	Total     int            `json:"total"`
	Paused    bool           `json:"paused,omitempty"`
	Draining  string         `json:"draining,omitempty"`
	Requests  int            `json:"requests,omitempty"` // that wait for a dispatcher
	Problem   string         `json:"problem,omitempty"`  // why the run cannot be read

	line string // its progress, for people; not cleaned
}

func readRunEntry(found rundir.Entry) *runEntry {
	e := &runEntry{runJSON: runJSON{V: 1, Run: found.Name}, Dir: found.Dir, Made: found.Made.UTC()}
	if abs, err := filepath.Abs(found.Dir); err == nil {
		e.Dir = abs
	}
	if err := e.read(found.Dir); err != nil {
		e.Problem = firstLine(err.Error())
	}
	return e
}

func (e *runEntry) read(dir string) error {
	run, err := rundir.Open(dir)
	if err != nil {
		return err
	}
	e.UID = run.UID()
	r := journal.NewReader(run, nil)
	_ = r.Watch(true) // a file that cannot be read shows nothing
	if r.IsDispatched() {
		e.Machine = &r.Owner.Host
	}
	table, err := listedTable(run, r.IsDispatched())
	if err != nil {
		return err
	}
	p, cut := runview.ProgressOf(table, r), ""
	waiting, _ := run.WaitingNames(table) // likewise
	p.Requests = len(waiting)
	if input, err := run.ReadInput(); err == nil && input.Cut() && !p.More {
		cut = "input not read to its end"
		if input.IsKeptOpen {
			cut = "kept open for more jobs"
		}
	}
	e.line = p.Line(cut)
	e.Total, e.Paused, e.Draining = p.Total, p.Paused, p.Draining
	if !r.IsDispatched() {
		e.Requests = p.Requests
	}
	e.Jobs = map[string]int{}
	for state, n := range table.Counts {
		e.Jobs[jobs.JobState(state).String()] = n
	}
	return nil
}

// listedTable returns the table of a run for a list. If the run has ended, the table may have only
// counts, and they are stored if they were not: a dispatcher may have been killed before it did that,
// and an earlier version stored others.
func listedTable(run *rundir.Run, isDispatched bool) (*jobs.Table, error) {
	names, _, err := run.RequestNames()
	isIdle := err == nil && len(names) == 0 && !isDispatched
	if isIdle {
		if t := journal.ReadCounts(run); t != nil {
			return t, nil
		}
	}
	table, err := replayTable(run)
	if err == nil && isIdle && isOwn(run) && table.Ended &&
		table.Closed.How == jobs.ClosedDone { // nothing follows that record
		_ = journal.WriteCounts(run, table) // without them, the journal is replayed again
	}
	return table, err
}

// isOwn reports whether a run belongs to this user. Root writes nothing for another one.
func isOwn(run *rundir.Run) bool {
	info, err := os.Stat(run.Dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// ref returns the argument that names the run in a command.
func (e *runEntry) ref() string {
	if e.Elsewhere {
		return text.Path(e.Dir)
	}
	return e.Run
}

// rowsOf returns the header and a row for each run. Names have at most maxName characters, unless it
// is 0; of a long path, the end is left.
func rowsOf(entries []*runEntry, maxName int) []string {
	rows := []string{"NAME\tMADE\tDISPATCHED\tJOBS"}
	for _, e := range entries {
		name, dispatched, line := []rune(text.Line(e.ref())), "", e.line
		if n := len(name) - maxName; e.Elsewhere && maxName > 0 && n > 0 {
			name = append([]rune("..."), name[n+3:]...)
		}
		if e.Machine != nil {
			dispatched = "on " + text.Line(*e.Machine)
		}
		if e.Problem != "" {
			line = e.Problem
		}
		made := e.Made.Local().Format("2006-01-02 15:04")
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s", string(name), made, dispatched, text.Line(line)))
	}
	return alignColumns(rows)
}

// runsHere returns the runs in ./dcs-runs, the newest first, and the number of those beyond the limit.
func runsHere(limit int) (entries []*runEntry, older int, err error) {
	runs, err := rundir.List(rundir.Base)
	if err != nil {
		return nil, 0, err
	}
	if limit > 0 && len(runs) > limit {
		runs, older = runs[:limit], len(runs)-limit
	}
	for _, r := range runs {
		entries = append(entries, readRunEntry(r))
	}
	return entries, older, nil
}

// otherRuns finds the runs of the user in other directories, which may be on file systems that hang.
type otherRuns struct {
	index runindex.Index
	looks patientCalls[runPlace]
	reads patientCalls[*runEntry]
}

// runPlace is what is known of the directory of a run in the index.
type runPlace struct {
	found                  rundir.Entry
	info                   fs.FileInfo // of the directory; nil: not known
	isVisible, isForgotten bool
}

const (
	// maxIndexed is the number of entries of the index that are read, the newest.
	maxIndexed = 1000
	// lookTimeout is how long a list waits for file systems.
	lookTimeout = 3 * time.Second
	// readTimeout is how long a command waits until the journals of the listed runs are read.
	readTimeout = time.Minute
)

// list returns the runs in other directories, the newest first, at most limit unless it is 0. Runs
// that cannot be read now come last, with the reason. older is the number of those beyond the limit.
// err is that of an index that exists and cannot be read.
func (o *otherRuns) list(limit int, wait time.Duration) (entries []*runEntry, older int, err error) {
	byDir := map[string]*runindex.Entry{}
	var dirs []string
	indexed, err := o.index.Entries(maxIndexed)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, 0, err
	}
	here, _ := os.Stat(rundir.Base)
	for _, e := range indexed {
		if byDir[e.Dir] == nil {
			byDir[e.Dir] = e
			dirs = append(dirs, e.Dir)
		}
	}
	places := o.looks.get(dirs, lookTimeout, func(dir string) (p runPlace) {
		if above, err := os.Stat(filepath.Dir(dir)); err == nil && here != nil && os.SameFile(above, here) {
			return runPlace{isForgotten: true} // it is listed here
		}
		p.found, p.isVisible, p.isForgotten = o.index.Look(byDir[dir])
		p.info, _ = os.Stat(dir)
		return p
	})
	var shown []string
	var hidden []*runEntry
	seen := map[string]fs.FileInfo{} // directories of the visible runs, by the id of the run
	for _, dir := range dirs {
		p, isKnown := places[dir]
		uid := byDir[dir].UID
		isRepeated := p.info != nil && seen[uid] != nil && os.SameFile(p.info, seen[uid]) // through a symbolic link
		if p.isVisible && p.info != nil {
			seen[uid] = p.info
		}
		switch {
		case isKnown && (p.isForgotten || isRepeated):
		case isKnown && p.isVisible && (limit == 0 || len(shown) < limit):
			shown = append(shown, dir)
		case isKnown && p.isVisible:
			older++
		default:
			problem := "its file system does not answer"
			if isKnown {
				problem = "not visible here now; it was dispatched on " + byDir[dir].Machine
			}
			hidden = append(hidden, unreadRun(byDir[dir], problem))
		}
	}
	read := o.reads.get(shown, wait, func(dir string) *runEntry { return readRunEntry(places[dir].found) })
	for _, dir := range shown {
		e := cmp.Or(read[dir], unreadRun(byDir[dir], "its directory has not answered yet"))
		e.Elsewhere = true
		entries = append(entries, e)
	}
	return append(entries, hidden...), older, nil
}

// unreadRun describes a run of the index that cannot be read.
func unreadRun(e *runindex.Entry, problem string) *runEntry {
	return &runEntry{
		runJSON:   runJSON{V: 1, Run: filepath.Base(e.Dir), UID: e.UID},
		Dir:       e.Dir,
		Made:      e.Made(),
		Elsewhere: true,
		Problem:   problem,
	}
}

// patientCalls calls functions that may hang, in goroutines of their own, at most one at a time for each
// key, and keeps their last results.
type patientCalls[T any] struct {
	mu    sync.Mutex
	calls map[string]*patientCall[T]
}

type patientCall[T any] struct {
	done   chan struct{} // closed when the call has returned; nil: none is under way
	result T
	has    bool // result is that of a call
}

// maxPatient bounds the calls that are made at once.
const maxPatient = 32

// get calls f for each key, unless an earlier call for it is still under way, and returns the results
// that are known after at most wait. It does not wait for earlier calls.
func (p *patientCalls[T]) get(keys []string, wait time.Duration, f func(key string) T) map[string]T {
	places := make(chan struct{}, maxPatient)
	timeout := time.After(wait)
	var waits []chan struct{}
	p.mu.Lock()
	for _, key := range keys {
		c := p.calls[key]
		if c == nil {
			c = &patientCall[T]{}
			jobs.Insert(&p.calls, key, c)
		}
		if c.done == nil {
			c.done = make(chan struct{})
			waits = append(waits, c.done)
			go p.call(key, c, c.done, places, f)
		}
	}
	p.mu.Unlock()
waiting:
	for _, done := range waits {
		select {
		case <-done:
		case <-timeout:
			break waiting
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := map[string]T{}
	for _, key := range keys {
		if c := p.calls[key]; c.has {
			known[key] = c.result
		}
	}
	return known
}

func (p *patientCalls[T]) call(
	key string, c *patientCall[T], done chan struct{}, places chan struct{}, f func(string) T,
) {
	places <- struct{}{}
	result := f(key)
	<-places
	p.mu.Lock()
	c.result, c.has, c.done = result, true, nil
	p.mu.Unlock()
	close(done)
}

// runChoices returns the list of runs as they are now, for the screen: those here, then those in other
// directories.
func (o *otherRuns) runChoices() tui.Choices {
	const maxName = 36
	entries, older, _ := runsHere(defaultLimit)             // a directory that cannot be read now has no rows
	elsewhere, more, _ := o.list(defaultLimit, lookTimeout) // nor has an index
	entries, older = append(entries, elsewhere...), older+more
	rows := rowsOf(entries, maxName)
	c := tui.Choices{
		Title:  rows[0],
		Footer: "enter attach  R resume  P prune  q leave  ? keys   dcs-tui --help lists the commands",
	}
	if older > 0 {
		c.Footer = fmt.Sprintf("and %d older  %s", older, c.Footer)
	}
	for i, row := range rows[1:] {
		id := entries[i].Run
		if entries[i].Elsewhere {
			id = entries[i].Dir
		}
		c.Rows = append(c.Rows, tui.Choice{ID: id, Text: row})
	}
	return c
}

// dirOfChoice returns the directory of a row of runChoices.
func dirOfChoice(id string) string {
	if filepath.IsAbs(id) {
		return id
	}
	return filepath.Join(rundir.Base, id)
}

type listFlags struct {
	limit     int
	all, json bool
}

func (a *app) runRunsList(flags listFlags) error {
	entries, older, err := runsHere(flags.limit)
	if err != nil {
		return err
	}
	if flags.all {
		elsewhere, more, err := a.others().list(flags.limit, readTimeout)
		if err != nil {
			a.warn("the runs in other directories are not known: %v", err)
		}
		entries, older = append(entries, elsewhere...), older+more
	}
	switch {
	case flags.json:
		for _, e := range entries {
			if err := a.printJSON(e); err != nil {
				return err
			}
		}
		return nil
	case len(entries) == 0 && flags.all:
		a.con.Line("there are no runs in ./" + rundir.Base + ", and none are known in other directories")
		return nil
	case len(entries) == 0:
		a.con.Line("there are no runs in ./" + rundir.Base +
			"; dcs-tui runs list --all lists those in other directories")
		return nil
	}
	for _, row := range rowsOf(entries, 0) {
		if _, err := fmt.Fprintln(a.stdout, row); err != nil {
			return err
		}
	}
	if older > 0 {
		a.con.Line(fmt.Sprintf("and %d older; --limit 0 lists all", older))
	}
	return nil
}

// others returns what finds runs in other directories. It keeps what it has found while the program
// runs.
func (a *app) others() *otherRuns {
	if a.otherRuns == nil {
		a.otherRuns = &otherRuns{index: runindex.OfUser()}
	}
	return a.otherRuns
}

// indexRun adds a run to the user's index in the background. The returned function waits a moment until
// that is done, because the program would otherwise end too early after a short run.
func indexRun(run *rundir.Run) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = runindex.OfUser().Add(run) // without an index, the run is only not listed in other directories
	}()
	return func() {
		select {
		case <-done:
		case <-time.After(indexTimeout):
		}
	}
}

// indexTimeout is how long the end of a run waits for the index, whose file system may hang.
const indexTimeout = 2 * time.Second
