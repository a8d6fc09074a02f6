package cli

import (
	"context"
	"fmt"
	"maps"
	"math"
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
	"dcs-tui/jobs/specdiff"
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
	for _, s := range b.Specs {
		relative.Resolve(s)
	}
	m, err := specdiff.Of(table, b.Specs)
	if err != nil {
		return err
	}
	a.con.Line(planOf(m, files)...)
	a.tellColumns(run, b.Columns)
	if len(m.Rounds)+len(m.New)+len(m.Queued)+len(m.Changes)+len(m.Ranked) == 0 {
		a.con.Line("nothing to do")
		return a.tellUpdated(run, m, nil, 0, opt)
	}
	if err := a.agree(opt.yes, "requeue", summaryOf(m)+" in "+console.CleanLine(run.Name())); err != nil {
		return err
	}
	if err := stillSettled(run, table); err != nil { // reading and answering take time
		return err
	}
	requests := m.Requests()
	edits := len(requests)
	if len(m.New) > 0 {
		added, err := submitRequests(m.New)
		if err != nil {
			return err
		}
		requests = append(requests, added...)
	}
	s, err := a.ask(context.Background(), run, requests...)
	if err != nil {
		return err
	}
	left := 0 // jobs that were left alone, because their state had changed
	for i, q := range requests[:edits] {
		if q.Do != rundir.DoPriority && !s.waits { // the jobs of priorities are in the other requests
			left += s.parts[i].Left
		}
	}
	return a.tellUpdated(run, m, s, left, opt)
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

// planOf describes what matched, what is new, and what is gone.
func planOf(m *specdiff.Diff, files []string) []string {
	names := slices.Clone(files)
	if i := slices.Index(names, stdinFile); i >= 0 {
		names[i] = "standard input"
	}
	lines := []string{console.CleanLine(strings.Join(names, ", ")) + ": " + jobs.Plural(m.Total, "job")}
	if m.Renamed != "" {
		lines[0] += "; compared with those of " + console.CleanLine(m.Renamed) + ", from which the run was made"
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
	say(m.Succeeded, "in the run and succeeded: not run again")
	say(len(m.Rounds), "in the run and over without success: run again (%s)", ranges(m.Rounds))
	say(m.Open, "in the run and queued or running")
	say(len(m.New), "new: added (%s)", titles(m.New))
	stay(slices.DeleteFunc(slices.Clone(m.Gone), func(id jobs.ID) bool {
		_, queued := slices.BinarySearch(m.Queued, id)
		return queued
	}), "not in the file any more")
	say(len(m.Queued), "of the run %s not in the file any more and still queued: canceled (%s)", jobs.Verb(len(m.Queued), "is", "are"), ranges(m.Queued))
	others := slices.Sorted(maps.Keys(m.Others))
	stay(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(m.Others))...))),
		"of "+console.CleanLine(someNames(others, maxNamedHosts))+" and not in this file")
	for _, c := range m.Changes {
		say(len(c.IDs), "with other options from now on: %s", console.CleanLine(c.String()))
	}
	for _, p := range slices.Sorted(maps.Keys(m.Ranked)) {
		say(len(m.Ranked[p]), "with priority %d from now on (%s)", p, ranges(m.Ranked[p]))
	}
	say(m.Running, "running with the options that they were started with")
	for _, key := range slices.Sorted(maps.Keys(m.Kept)) {
		say(m.Kept[key], "with another %s in the file, which cannot be changed: they keep theirs", key)
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

// summaryOf describes what is to be done, for a question.
func summaryOf(m *specdiff.Diff) string {
	var parts []string
	if n := len(m.Rounds); n > 0 {
		parts = append(parts, "run "+jobs.Plural(n, "job")+" again")
	}
	if n := len(m.New); n > 0 {
		parts = append(parts, "add "+strconv.Itoa(n))
	}
	if n := len(m.Queued); n > 0 {
		parts = append(parts, "cancel "+strconv.Itoa(n))
	}
	if len(parts) == 0 {
		return "change options"
	}
	return strings.Join(parts, ", ")
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
func (a *app) tellUpdated(run *rundir.Run, m *specdiff.Diff, s *answers, left int, opt askOptions) error {
	switch {
	case opt.json:
		return a.printJSON(&updatedJSON{runJSON: jsonOf(run), Do: rundir.DoRequeue, Answered: s == nil || !s.waits, Succeeded: m.Succeeded,
			Again: len(m.Rounds), Open: m.Open, New: len(m.New), Gone: len(m.Gone), Cancelled: len(m.Queued), Changed: m.Changed, Left: left})
	case s == nil: // was reported
	case s.waits:
		a.tellWaits(s, "it waits")
	default:
		text := "done: " + summaryOf(m)
		if left > 0 {
			text += fmt.Sprintf("; %s %s left alone: changed since the comparison", jobs.Plural(left, "job"), jobs.Verb(left, "was", "were"))
		}
		a.con.Line(text)
	}
	return nil
}
