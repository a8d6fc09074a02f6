package cli

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// requeueFiles updates a run to jobs files that were changed after the run was made:
// jobs that succeeded stay, jobs that failed run again, new jobs are added.
func (a *app) requeueFiles(args, files []string, opt askOptions) error {
	run, err := a.openRun(args)
	if err != nil {
		return err
	}
	table, err := settledTable(run)
	if err != nil {
		return err
	}
	b, err := a.readBatch(likeRun(run), files, false)
	if err != nil {
		return err
	}
	relative := jobs.AbsoluteCwd{Base: run.Asked.Cwd}
	for _, s := range b.specs {
		relative.Resolve(s)
	}
	m := diffJobs(table, b.specs)
	if err := m.remapDependencies(table); err != nil {
		return err
	}
	m.setQueues(table)
	a.con.Line(m.plan(files)...)
	a.tellColumns(run, b.columns)
	if len(m.rounds)+len(m.fresh)+len(m.queued)+len(m.changes)+len(m.ranked) == 0 {
		a.con.Line("nothing to do")
		return a.tellUpdated(run, m, nil, opt)
	}
	if err := a.agree(opt.yes, "requeue", m.summary()+" in "+console.CleanLine(run.Name())); err != nil {
		return err
	}
	if err := stillSettled(run, table); err != nil { // reading and answering take time
		return err
	}
	requests := m.requests()
	edits := len(requests)
	if len(m.fresh) > 0 {
		added, err := submitRequests(m.fresh)
		if err != nil {
			return err
		}
		requests = append(requests, added...)
	}
	s, err := a.ask(context.Background(), run, requests...)
	if err != nil {
		return err
	}
	for i, q := range requests[:edits] {
		if q.Do != rundir.DoPriority && !s.waits { // the jobs of priorities are in the other requests
			m.left += s.parts[i].Left
		}
	}
	return a.tellUpdated(run, m, s, opt)
}

// settledTable returns the jobs of a run. It is an error if more jobs are being added:
// they would be compared as missing, and added again. For the same reason it reads the
// whole journal, also what the dispatcher has not published yet.
func settledTable(run *rundir.Run) (*jobs.Table, error) {
	names, _, err := run.RequestNames()
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	owner, err := journal.ReadOwner(run)
	alive := err == nil && owner != nil && owner.Life() != journal.Dead
	limit := journal.Limit{End: true}
	if alive {
		limit = journal.Limit{Durable: live.Durable{Epoch: owner.Epoch, Bytes: math.MaxInt64}}
	}
	reader := journal.Follow(run)
	if _, err := reader.Poll(limit, nil); err != nil {
		return nil, exit.Usagef("%w", err)
	}
	table := reader.Table()
	table.AcceptStored()
	// A request that was carried out only has to be removed.
	names = slices.DeleteFunc(names, func(name string) bool { return table.Requests[name] })
	if len(names) > 0 {
		p := exit.Usagef("%s of the run %s not been carried out yet", jobs.Plural(len(names), "request"), jobs.Verb(len(names), "has", "have"))
		if alive {
			return nil, p.WithAdvice("its dispatcher does in a moment; then compare again")
		}
		return nil, p.WithAdvice("dcs-tui resume %s does; then compare again", refTo(run))
	}
	had, err := run.ReadInput()
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	storing := false
	if want, ok := run.Asked.Options[rundir.OptionJobs].(int64); ok {
		storing = alive && len(table.Jobs) < int(want)
	}
	reading := alive && owner.Epoch <= 1 // later dispatchers do not read the pipe
	if storing || had.State == rundir.InputOpen && (had.Again || reading) {
		p := exit.Usagef("not all jobs of the run were made yet: %s", runview.Came(table))
		if alive {
			return nil, p.WithAdvice("compare again when they were")
		}
		return nil, p.WithAdvice("dcs-tui resume %s makes the rest; then compare again", refTo(run))
	}
	return table, nil
}

// stillSettled returns an error if jobs were added since the comparison, or are about to be.
func stillSettled(run *rundir.Run, compared *jobs.Table) error {
	now, err := settledTable(run)
	if err != nil {
		return err
	}
	if n := len(now.Jobs) - len(compared.Jobs); n != 0 {
		return exit.Usagef("nothing was done: %s %s added to the run meanwhile", jobs.Plural(n, "job"), jobs.Verb(n, "was", "were")).WithAdvice("compare again")
	}
	return nil
}

// jobsDiff compares a jobs file that was changed with the run that was made of it. Jobs
// are the same if their command, parameters, and occurrence are: the second of two equal
// jobs in the file is the second of them in the run.
type jobsDiff struct {
	total     int       // jobs in the file
	inRun     []jobs.ID // by place in the file; 0 for a new job
	succeeded int
	open      int       // queued or running
	again     []jobs.ID // finished without success, with the same options: requeued
	rounds    []jobs.ID // all jobs that run again, also those with other options
	fresh     []*jobs.Spec
	gone      []jobs.ID            // not in the file any more
	queued    []jobs.ID            // those of gone that can be canceled
	changes   []jobsChange         // of queued jobs and jobs that run again
	ranked    map[int][]jobs.ID    // the same jobs, by new priority
	changed   int                  // jobs in changes and ranked
	kept      map[string]int       // number of jobs by option that differs and cannot be changed
	renamed   string               // former name of the file in the run; "": the name has not changed
	others    map[string][]jobs.ID // jobs of other files of the run that are not in this file; they stay
	running   int                  // running jobs whose options have changed
	left      int                  // jobs that the requests left alone, because their state had changed
}

// jobsChange is a change of some jobs.
type jobsChange struct {
	jobs.Change
	ids []jobs.ID
}

// diffJobs compares the jobs of a file with those of a run.
func diffJobs(t *jobs.Table, specs []*jobs.Spec) *jobsDiff {
	m := &jobsDiff{total: len(specs), ranked: map[int][]jobs.ID{}, kept: map[string]int{}, others: map[string][]jobs.ID{}}
	have := map[string][]jobs.ID{}
	key := func(s *jobs.Spec) string { return fmt.Sprintf("%q %q", s.Command, s.Params) }
	for i := range t.Jobs {
		k := key(t.Jobs[i].Spec)
		have[k] = append(have[k], jobs.ID(i+1))
	}
	files, found := map[string]bool{}, map[jobs.ID]bool{}
	byText := map[string]int{} // index in changes
	for _, s := range specs {
		files[filepath.Base(s.File)] = true
		k := key(s)
		var id jobs.ID
		if ids := have[k]; len(ids) > 0 {
			id, have[k] = ids[0], ids[1:]
			found[id] = true
			m.match(t.Job(id), id, s, byText)
		} else {
			m.fresh = append(m.fresh, s)
		}
		m.inRun = append(m.inRun, id)
	}
	slices.Sort(m.rounds)
	m.missing(t, files, found)
	return m
}

// match adds a job of the run that is in the file.
func (m *jobsDiff) match(j *jobs.Job, id jobs.ID, s *jobs.Spec, byText map[string]int) {
	if j.State == jobs.Succeeded {
		m.succeeded++
		return
	}
	change, kept := optionsChanged(j.Spec, s)
	for _, key := range kept {
		m.kept[key]++
	}
	// A priority that was set on the screen stays, unless the file has changed its own.
	ranked := s.Priority != j.Spec.Priority && s.Priority != int(j.Priority) && j.State != jobs.Running
	if ranked {
		m.ranked[s.Priority] = append(m.ranked[s.Priority], id)
	}
	edited := !change.Empty() && j.State != jobs.Running
	if edited {
		text := change.String()
		k, ok := byText[text]
		if !ok {
			k = len(m.changes)
			byText[text] = k
			m.changes = append(m.changes, jobsChange{Change: change})
		}
		m.changes[k].ids = append(m.changes[k].ids, id)
	} else if !change.Empty() {
		m.running++
	}
	if edited || ranked {
		m.changed++
	}
	switch {
	case !j.State.Terminal():
		m.open++
		return
	case !edited:
		m.again = append(m.again, id)
	}
	m.rounds = append(m.rounds, id)
}

// missing finds the jobs of these files that the files no longer contain, and the jobs
// of the run's other files, which stay. If the run was made of a single file, that file
// may have been renamed. If it was made of several files, nothing shows which of them
// was renamed.
func (m *jobsDiff) missing(t *jobs.Table, files map[string]bool, found map[jobs.ID]bool) {
	of := map[string]bool{}
	known := false
	for i := range t.Jobs {
		name := filepath.Base(t.Jobs[i].Spec.File)
		of[name] = true
		known = known || files[name]
	}
	if !known && len(of) == 1 {
		files = of
		for name := range of {
			m.renamed = name
		}
	}
	for i := range t.Jobs {
		j, id := &t.Jobs[i], jobs.ID(i+1)
		name := filepath.Base(j.Spec.File)
		switch {
		case found[id]:
			continue
		case !files[name]:
			m.others[name] = append(m.others[name], id)
			continue
		}
		m.gone = append(m.gone, id)
		if j.State == jobs.Queued || j.State == jobs.Running && runview.OpenAttempt(j).State == jobs.AttemptLaunching {
			m.queued = append(m.queued, id) // or sent to a host, and not known to have started
		}
	}
}

// optionsChanged returns the options that the file sets otherwise than the run: those
// that can be changed, and the keys of those that cannot.
func optionsChanged(old, now *jobs.Spec) (c jobs.Change, kept []string) {
	if old.Damage != "" {
		return c, nil
	}
	setIfChanged(&c.Name, old.Name, now.Name)
	setIfChanged(&c.Timeout, old.Timeout, now.Timeout)
	setIfChanged(&c.MemBytes, old.MemBytes, now.MemBytes)
	setIfChanged(&c.Tries, old.Tries, now.Tries)
	setIfChanged(&c.Slots, old.Slots, now.Slots)
	setIfChanged(&c.GPUs, old.GPUs, now.GPUs)
	if !slices.Equal(old.Tags, now.Tags) {
		tags := append([]string{}, now.Tags...)
		c.Tags = &tags
	}
	for _, o := range []struct {
		key  string
		same bool
	}{
		{"retry_delay", old.RetryDelay == now.RetryDelay || old.RetryDelay != nil && now.RetryDelay != nil && *old.RetryDelay == *now.RetryDelay},
		{"deadline", old.Deadline.Equal(now.Deadline)}, {"est", old.Estimate == now.Estimate},
		{"env", slices.Equal(old.Env, now.Env)}, {"cwd", old.Cwd == now.Cwd}, {"setup", old.Setup == now.Setup},
		{"on_lost", old.OnLost == now.OnLost}, {"hardness", slices.Equal(old.Hardness, now.Hardness)},
	} {
		if !o.same {
			kept = append(kept, o.key)
		}
	}
	return c, kept
}

func setIfChanged[T comparable](to **T, old, now T) {
	if old != now {
		*to = &now
	}
}

// remapDependencies changes the numbers in after of new jobs to their numbers among the
// new jobs. It drops dependencies on jobs that have succeeded.
func (m *jobsDiff) remapDependencies(t *jobs.Table) error {
	number := map[jobs.ID]jobs.ID{} // in the file, among the new jobs
	for i, s := range m.fresh {
		number[s.ID] = jobs.ID(i + 1)
	}
	for i, s := range m.fresh {
		if len(s.After) == 0 {
			continue
		}
		own := *s.Options
		own.After = nil
		for _, dep := range s.After {
			switch {
			case number[dep] > 0:
				own.After = append(own.After, number[dep])
			case t.Job(m.inRun[dep-1]).State != jobs.Succeeded:
				return exit.Usagef("%s:%d: this job is new and comes after job %d of the file, which the run has and which has not succeeded", s.File, s.Line, dep).
					WithAdvice("run that again first, then compare again")
			}
		}
		spec := *s
		spec.Options = &own
		m.fresh[i] = &spec
	}
	return nil
}

// setQueues puts new jobs without a queue into that of the other jobs of their file.
func (m *jobsDiff) setQueues(t *jobs.Table) {
	queue := map[string]string{}
	for i := len(t.Jobs) - 1; i >= 0; i-- { // the first job of a file counts
		queue[t.Jobs[i].Spec.File] = t.Jobs[i].Spec.Queue
	}
	changeOptions(m.fresh, func(o *jobs.Options) {
		if o.Queue == "" {
			o.Queue = queue[o.File]
		}
	})
}

// plan describes what matched, what is new, and what is gone.
func (m *jobsDiff) plan(files []string) []string {
	names := slices.Clone(files)
	if i := slices.Index(names, stdinFile); i >= 0 {
		names[i] = "standard input"
	}
	lines := []string{console.CleanLine(strings.Join(names, ", ")) + ": " + jobs.Plural(m.total, "job")}
	if m.renamed != "" {
		lines[0] += "; compared with those of " + console.CleanLine(m.renamed) + ", from which the run was made"
	}
	say := func(n int, format string, args ...any) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("  %6d ", n)+fmt.Sprintf(format, args...))
		}
	}
	ranges := func(ids []jobs.ID) string { return console.ShortenTo(jobs.RangesOf(ids).String(), 40) }
	stay := func(ids []jobs.ID, what string) {
		n := len(ids)
		say(n, "of the run %s %s: left as %s (%s)", jobs.Verb(n, "is", "are"), what, jobs.Verb(n, "it is", "they are"), ranges(ids))
	}
	say(m.succeeded, "in the run and succeeded: not run again")
	say(len(m.rounds), "in the run and over without success: run again (%s)", ranges(m.rounds))
	say(m.open, "in the run and queued or running")
	say(len(m.fresh), "new: added (%s)", titles(m.fresh))
	stay(slices.DeleteFunc(slices.Clone(m.gone), func(id jobs.ID) bool {
		_, queued := slices.BinarySearch(m.queued, id)
		return queued
	}), "not in the file any more")
	say(len(m.queued), "of the run %s not in the file any more and still queued: canceled (%s)", jobs.Verb(len(m.queued), "is", "are"), ranges(m.queued))
	others := slices.Sorted(maps.Keys(m.others))
	stay(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(m.others))...))),
		"of "+console.CleanLine(someNames(others, maxNamedHosts))+" and not in this file")
	for _, c := range m.changes {
		say(len(c.ids), "with other options from now on: %s", console.CleanLine(c.String()))
	}
	for _, p := range slices.Sorted(maps.Keys(m.ranked)) {
		say(len(m.ranked[p]), "with priority %d from now on (%s)", p, ranges(m.ranked[p]))
	}
	say(m.running, "running with the options that they were started with")
	for _, key := range slices.Sorted(maps.Keys(m.kept)) {
		say(m.kept[key], "with another %s in the file, which cannot be changed: they keep theirs", key)
	}
	return lines
}

// titles returns the titles of the first jobs.
func titles(specs []*jobs.Spec) string {
	var list []string
	for _, s := range specs[:min(3, len(specs))] {
		list = append(list, console.ShortenTo(console.CleanLine(s.Title()), 60))
	}
	if len(specs) > len(list) {
		list = append(list, "…")
	}
	return strings.Join(list, "; ")
}

// summary says what is to be done, for a question.
func (m *jobsDiff) summary() string {
	var parts []string
	if n := len(m.rounds); n > 0 {
		parts = append(parts, "run "+jobs.Plural(n, "job")+" again")
	}
	if n := len(m.fresh); n > 0 {
		parts = append(parts, "add "+strconv.Itoa(n))
	}
	if n := len(m.queued); n > 0 {
		parts = append(parts, "cancel "+strconv.Itoa(n))
	}
	if len(parts) == 0 {
		return "change options"
	}
	return strings.Join(parts, ", ")
}

// requests returns the requests that update the run, in this order: no job that is gone
// starts meanwhile. Jobs whose state has changed since the comparison are left alone:
// those that have succeeded do not run again, and those that are gone and run stay.
func (m *jobsDiff) requests() []*rundir.Request {
	var list []*rundir.Request
	if len(m.queued) > 0 {
		list = append(list, &rundir.Request{Do: rundir.DoCancel, Jobs: jobs.RangesOf(m.queued), Spare: rundir.SpareStarted, Why: "not in the jobs file any more"})
	}
	for _, c := range m.changes {
		list = append(list, &rundir.Request{Do: rundir.DoEdit, Jobs: jobs.RangesOf(c.ids), Spare: rundir.SpareSucceeded, Edit: &c.Change})
	}
	if len(m.again) > 0 {
		list = append(list, &rundir.Request{Do: rundir.DoRequeue, Jobs: jobs.RangesOf(m.again), Spare: rundir.SpareSucceeded})
	}
	for _, p := range slices.Sorted(maps.Keys(m.ranked)) { // last: finished jobs must be queued again before
		list = append(list, &rundir.Request{Do: rundir.DoPriority, Jobs: jobs.RangesOf(m.ranked[p]), Priority: p})
	}
	return list
}

// updatedJSON is what requeue --file --json prints.
type updatedJSON struct {
	runJSON
	Do        string `json:"do"`
	Answered  bool   `json:"answered"`
	Succeeded int    `json:"succeeded"` // not run again
	Again     int    `json:"again"`
	Open      int    `json:"open"`
	New       int    `json:"new"`
	Gone      int    `json:"gone"`
	Cancelled int    `json:"cancelled"` // of gone
	Changed   int    `json:"changed"`
	Left      int    `json:"left_alone"` // of again, changed, and cancelled: their state had changed
}

// tellUpdated reports what was done. s is nil if there was nothing to do.
func (a *app) tellUpdated(run *rundir.Run, m *jobsDiff, s *answers, opt askOptions) error {
	switch {
	case opt.json:
		return a.printJSON(&updatedJSON{runJSON: jsonOf(run), Do: rundir.DoRequeue, Answered: s == nil || !s.waits, Succeeded: m.succeeded,
			Again: len(m.rounds), Open: m.open, New: len(m.fresh), Gone: len(m.gone), Cancelled: len(m.queued), Changed: m.changed, Left: m.left})
	case s == nil: // was reported
	case s.waits:
		a.tellWaits(s, "it waits")
	default:
		text := "done: " + m.summary()
		if m.left > 0 {
			text += fmt.Sprintf("; %s %s left alone: changed since the comparison", jobs.Plural(m.left, "job"), jobs.Verb(m.left, "was", "were"))
		}
		a.con.Line(text)
	}
	return nil
}
