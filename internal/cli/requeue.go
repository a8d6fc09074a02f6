package cli

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/ask"
	"dcs-tui/observe/runview"
)

func (a *app) requeueCmd() *cobra.Command {
	var sel selection
	var opt requestFlags
	var change jobs.Change
	var files []string
	cmd := &cobra.Command{
		Use:   "requeue [flags] RUN [JOBS...]",
		Short: "Run finished jobs again",
		Long: `Run finished jobs again. Each gets a new round, with all its tries and a new result. JOBS are numbers and
ranges, such as 3 9-17. --file instead compares the run with its changed jobs file: failed jobs run again,
new jobs are added, and queued jobs that the file no longer has are canceled. Without a dispatcher the
request waits for the next resume.`,
		Example: `dcs-tui requeue sweep-20260314-1502 --failed --timeout 4h --mem 8G
dcs-tui requeue sweep-20260314-1502 --where 'state=timed_out or state=skipped' --timeout 4h
dcs-tui requeue sweep-20260314-1502 --file jobs.txt`,
		Args: requireRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) > 0 {
				if len(args) > 1 || sel.failed || sel.all || len(sel.where) > 0 || !change.Empty() {
					return text.Errorf("--file cannot be combined with JOBS or other flags: " +
						"the file determines the jobs and their options")
				}
				return a.requeueFiles(args, files, opt)
			}
			return a.runRequeue(cmd.Context(), args, &sel, opt, &change)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&sel.failed, "failed", false, "jobs that failed or timed out")
	fs.BoolVar(&sel.all, "all", false, "all finished jobs that did not succeed")
	sel.addWhereFlag(fs)
	fs.StringArrayVar(&files, "file", nil,
		"update the run from its changed jobs `FILE` or template; may be given several times")
	endGroup(fs, titleWhich)
	fs.Var(newFlag(&change.Timeout, "TIME", optional(jobs.ParseDuration)), "timeout",
		"end each job after this TIME, such as 90s, 30m, 2h")
	fs.Var(newFlag(&change.MemBytes, "SIZE", optional(jobs.ParseSize)), "mem", "memory that each job needs, such as 8G")
	fs.Var(newFlag(&change.Tries, "N", optional(parseCount)), "tries", "maximum number of attempts of each job")
	fs.Var(newFlag(&change.Slots, "N", optional(parseCount)), "slots", "number of slots that each job uses")
	endGroup(fs, "New options of these jobs")
	opt.addFlags(cmd)
	endGroup(fs, "Confirmation and output")
	return cmd
}

func (a *app) runRequeue(ctx context.Context, args []string, sel *selection, opt requestFlags,
	change *jobs.Change) error {
	if err := sel.parseNamed(args[1:]); err != nil {
		return err
	}
	switch {
	case sel.all && (sel.named != nil || sel.failed || len(sel.where) > 0):
		return text.Errorf("--all cannot be combined with JOBS, --failed, or --where")
	case !sel.all && !sel.failed && sel.named == nil && len(sel.where) == 0:
		return text.Errorf("no jobs were given").WithAdvice("their numbers, --failed, --where state=skipped or --all")
	}
	run, table, err := a.openTable(args)
	if err != nil {
		return err
	}
	ids, err := a.selectJobs(ctx, run, table, sel, func(st jobs.JobState) bool {
		return st.Terminal() && (st != jobs.Succeeded || len(sel.where) > 0)
	})
	if err != nil {
		return err
	}
	ended := slices.DeleteFunc(slices.Clone(ids), func(id jobs.ID) bool { return !table.State(id).Terminal() })
	over := len(ended)
	if over == 0 && !(change.Empty() && mayBeAwaited(run, table, ids)) {
		return a.reportNothing(run, action.Requeue, sel, table, len(ids), opt.json)
	}
	if sel.named == nil && over > 0 { // job numbers need no confirmation
		if err := a.confirm(opt.yes, "requeue", "run "+text.Plural(over, "job")+" of "+text.Line(run.Name())+
			" again"); err != nil {
			return err
		}
	}
	request := &action.Request{Do: action.Requeue, Jobs: jobs.RangesOf(ids), Spare: spareOption(table, ended)}
	if !change.Empty() {
		if err := change.Check(); err != nil {
			return err
		}
		request.Do, request.Edit = action.Edit, change
		request.Jobs = jobs.RangesOf(ended) // an edit would also change queued jobs
	}
	sent, err := a.sendRequests(ctx, run, table, request)
	if err != nil {
		return err
	}
	sent.requests[0].LeftOut = len(ids) - request.Jobs.Count()
	return a.reportRequeued(sent, len(ids)-over, opt.json)
}

// mayBeAwaited reports whether one of the jobs may be on a silent host and be given up there. Only
// the dispatcher knows.
func mayBeAwaited(run *rundir.Run, table *jobs.Table, ids []jobs.ID) bool {
	owner, err := journal.ReadOwner(run)
	return err == nil && owner.Liveness() != journal.Dead &&
		slices.ContainsFunc(ids, func(id jobs.ID) bool { return table.State(id) == jobs.Running })
}

// spareOption returns SpareSucceeded if none of the jobs has succeeded. The request then leaves
// alone jobs that have succeeded by the time it is carried out.
func spareOption(table *jobs.Table, over []jobs.ID) action.Spare {
	if slices.ContainsFunc(over, func(id jobs.ID) bool { return table.State(id) == jobs.Succeeded }) {
		return action.SpareNone
	}
	return action.SpareSucceeded
}

// reportRequeued reports the result of a requeue. open is the number of its jobs that were
// unfinished before.
func (a *app) reportRequeued(sent *sentRequests, open int, asJSON bool) error {
	asked := sent.requests[0]
	switch {
	case asJSON:
		return a.printRequestJSON(sent.run, action.Requeue, asked)
	case !asked.Answered:
		a.reportWaiting(sent, "the request for "+text.Plural(asked.Jobs().Count(), "job")+" waits")
		return nil
	}
	left := asked.Left + asked.LeftOut
	request := &action.Request{Do: action.Requeue, Jobs: asked.Jobs()}
	msg := request.Answer(action.Outcome{Done: asked.Done, Left: min(left, open)})
	if n := asked.Done - max(0, asked.Jobs().Count()-open); n > 0 {
		msg += fmt.Sprintf(", %d of them on hosts that cannot be reached, where %s may still run", n,
			text.Verb(n, "it", "they"))
	}
	if n := left - open; n > 0 {
		msg += fmt.Sprintf(", %d left alone: started again or succeeded meanwhile", n)
	}
	a.con.Line(msg)
	if !sent.hasDispatcher && asked.Done > 0 { // the dispatcher died just after its answer
		a.con.Line("nobody dispatches the run now:", "  dcs-tui resume "+refTo(sent.run))
	}
	return nil
}

// requeueFiles updates a run from jobs files that were changed after the run was created: jobs that
// succeeded stay, jobs that failed run again, and new jobs are added.
func (a *app) requeueFiles(args, files []string, opt requestFlags) error {
	run, err := a.openRun(args)
	if err != nil {
		return err
	}
	keepHeapSmall(loadPercent)
	table, err := settledTable(run)
	if err != nil {
		return err
	}
	batch, err := a.readBatch(gridFlagsOf(run), files, false)
	if err != nil {
		return err
	}
	relative := jobs.AbsoluteCwd{Base: run.Settings.Cwd}
	for _, s := range batch.Specs {
		relative.Resolve(s)
	}
	diff, err := ask.Compare(table, batch.Specs)
	if err != nil {
		return err
	}
	a.con.Line(planLines(diff, files)...)
	a.warnMissingColumns(run, batch.Columns)
	if len(diff.Rounds)+len(diff.New)+len(diff.Queued)+len(diff.Changes)+len(diff.Ranked) == 0 {
		a.con.Line("nothing to do")
		return a.reportUpdated(run, diff, nil, 0, opt)
	}
	if err := a.confirm(opt.yes, "requeue", diffSummary(diff)+" in "+text.Line(run.Name())); err != nil {
		return err
	}
	table, err = stillSettledTable(run, table.NumJobs()) // reading and answering take time
	if err != nil {
		return err
	}
	requests := diff.Requests()
	edits := len(requests)
	if len(diff.New) > 0 {
		added, err := ask.SubmitRequests(diff.New)
		if err != nil {
			return err
		}
		requests = append(requests, added...)
	}
	sent, err := a.sendRequests(context.Background(), run, table, requests...)
	if err != nil {
		return err
	}
	left := 0 // number of jobs that were left alone because their state had changed
	for i, request := range requests[:edits] {
		if request.Do != action.Priority && !sent.isWaiting { // the jobs of priorities are in the other requests
			left += sent.requests[i].Left
		}
	}
	return a.reportUpdated(run, diff, sent, left, opt)
}

// settledTable returns the jobs of a run. It is an error if more jobs are being added: they would
// be missing in the comparison, and be added again. For the same reason it reads the whole journal,
// also records that the dispatcher has not published yet.
func settledTable(run *rundir.Run) (*jobs.Table, error) {
	names, _, err := run.RequestNames()
	if err != nil {
		return nil, err
	}
	owner, err := journal.ReadOwner(run)
	alive := err == nil && owner.Liveness() != journal.Dead
	limit := journal.Limit{End: true}
	if alive {
		limit = journal.Limit{Durable: live.Durable{Epoch: owner.Epoch, Bytes: math.MaxInt64}}
	}
	reader := journal.Follow(run).Packed()
	if _, err := reader.Poll(limit, nil); err != nil {
		return nil, err
	}
	table := reader.Table()
	table.AcceptStored()
	// The file of a request that was carried out only has to be removed.
	names = slices.DeleteFunc(names, func(name string) bool { return table.Requests[name] })
	if len(names) > 0 {
		p := text.Errorf("%s of the run %s not been carried out yet", text.Plural(len(names), "request"),
			text.Verb(len(names), "has", "have"))
		if alive {
			return nil, p.WithAdvice("wait until its dispatcher has done that, then compare again")
		}
		return nil, p.WithAdvice("dcs-tui resume %s carries them out; then compare again", refTo(run))
	}
	had, err := run.ReadInput()
	if err != nil {
		return nil, err
	}
	storing := false
	if want, ok := run.Settings.Options[rundir.OptionJobs].(int64); ok {
		storing = alive && table.NumJobs() < int(want)
	}
	reading := alive && owner.Epoch <= 1 // later dispatchers do not read the pipe
	if storing || had.State == rundir.InputOpen && (had.Again || reading) {
		p := text.Errorf("not all jobs of the run have been created yet: %s", runview.DescribeInput(table))
		if alive {
			return nil, p.WithAdvice("compare again when they have been")
		}
		return nil, p.WithAdvice("dcs-tui resume %s creates the rest; then compare again", refTo(run))
	}
	return table, nil
}

// stillSettledTable is settledTable after n jobs of the run were compared. It returns an error if jobs were
// added since, or are about to be.
func stillSettledTable(run *rundir.Run, n int) (*jobs.Table, error) {
	table, err := settledTable(run)
	if err != nil {
		return nil, err
	}
	if added := table.NumJobs() - n; added != 0 {
		return nil, text.Errorf("nothing was done: %s %s added to the run meanwhile", text.Plural(added, "job"),
			text.Verb(added, "was", "were")).WithAdvice("compare again")
	}
	return table, nil
}

// planLines describes the jobs that are in both, that are new, and that are gone.
func planLines(diff *ask.Diff, files []string) []string {
	names := slices.Clone(files)
	if i := slices.Index(names, stdinFile); i >= 0 {
		names[i] = "standard input"
	}
	lines := []string{text.Line(strings.Join(names, ", ")) + ": " + text.Plural(diff.Total, "job")}
	if diff.Renamed != "" {
		lines[0] += "; compared with those of " + text.Line(diff.Renamed) + ", from which the run was made"
	}
	say := func(n int, format string, args ...any) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("  %6d ", n)+fmt.Sprintf(format, args...))
		}
	}
	ranges := func(ids []jobs.ID) string { return text.ShortenTo(jobs.RangesOf(ids).String(), 40) }
	stay := func(ids []jobs.ID, what string) {
		n := len(ids)
		say(n, "of the run %s %s: left as %s (%s)", text.Verb(n, "is", "are"), what, text.Verb(n, "it is", "they are"),
			ranges(ids))
	}
	say(diff.Succeeded, "in the run and succeeded: not run again")
	say(len(diff.Rounds), "in the run and finished without success: run again (%s)", ranges(diff.Rounds))
	say(diff.Open, "in the run and queued or running")
	say(len(diff.New), "new: added (%s)", someTitles(diff.New))
	stay(slices.DeleteFunc(slices.Clone(diff.Gone), func(id jobs.ID) bool {
		_, queued := slices.BinarySearch(diff.Queued, id)
		return queued
	}), "not in the file any more")
	say(len(diff.Queued), "of the run %s not in the file any more and still queued: canceled (%s)",
		text.Verb(len(diff.Queued), "is", "are"), ranges(diff.Queued))
	others := slices.Sorted(maps.Keys(diff.Others))
	stay(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(diff.Others))...))),
		"of "+text.Line(text.List(others, maxNamedHosts))+" and not in this file")
	for _, c := range diff.Changes {
		say(len(c.IDs), "with other options from now on: %s", text.Line(c.String()))
	}
	for _, p := range slices.Sorted(maps.Keys(diff.Ranked)) {
		say(len(diff.Ranked[p]), "with priority %d from now on (%s)", p, ranges(diff.Ranked[p]))
	}
	say(diff.Running, "running with the options that they were started with")
	for _, key := range slices.Sorted(maps.Keys(diff.Kept)) {
		say(diff.Kept[key], "with another %s in the file, which cannot be changed: they keep theirs", key)
	}
	return lines
}

// someTitles returns the titles of the first jobs.
func someTitles(specs []*jobs.Spec) string {
	list := text.Each(specs[:min(3, len(specs))],
		func(s *jobs.Spec) string { return text.ShortenTo(text.Line(s.Title()), 60) })
	if len(specs) > len(list) {
		list = append(list, "…")
	}
	return strings.Join(list, "; ")
}

// diffSummary describes what an update does, for the confirmation.
func diffSummary(diff *ask.Diff) string {
	var parts []string
	if n := len(diff.Rounds); n > 0 {
		parts = append(parts, "run "+text.Plural(n, "job")+" again")
	}
	if n := len(diff.New); n > 0 {
		parts = append(parts, "add "+strconv.Itoa(n))
	}
	if n := len(diff.Queued); n > 0 {
		parts = append(parts, "cancel "+strconv.Itoa(n))
	}
	if len(parts) == 0 {
		return "change options"
	}
	return strings.Join(parts, ", ")
}

// updateJSON is the output of requeue --file --json.
type updateJSON struct {
	runJSON
	Do        action.Name `json:"do"`
	Answered  bool        `json:"answered"`
	Succeeded int         `json:"succeeded"` // not run again
	Again     int         `json:"again"`
	Open      int         `json:"open"`
	New       int         `json:"new"`
	Gone      int         `json:"gone"`
	Canceled  int         `json:"canceled"` // of gone
	Changed   int         `json:"changed"`
	Left      int         `json:"left_alone"` // of again, changed, and canceled, because their state had changed
}

// reportUpdated reports the result of an update. sent is nil if there was nothing to do.
func (a *app) reportUpdated(run *rundir.Run, diff *ask.Diff, sent *sentRequests, left int, opt requestFlags) error {
	switch {
	case opt.json:
		return a.printJSON(&updateJSON{runJSON: runJSONOf(run), Do: action.Requeue, Answered: sent == nil ||
			!sent.isWaiting, Succeeded: diff.Succeeded,
			Again: len(diff.Rounds), Open: diff.Open, New: len(diff.New), Gone: len(diff.Gone),
			Canceled: len(diff.Queued), Changed: diff.Changed, Left: left})
	case sent == nil: // was reported
	case sent.isWaiting:
		a.reportWaiting(sent, "it waits")
	default:
		msg := "done: " + diffSummary(diff)
		if left > 0 {
			msg += fmt.Sprintf("; %s %s left alone: changed since the comparison", text.Plural(left, "job"),
				text.Verb(left, "was", "were"))
		}
		a.con.Line(msg)
	}
	return nil
}
