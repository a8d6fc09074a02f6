package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dcs-tui/grid"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
)

// submitFlags holds the flags of submit.
type submitFlags struct {
	queueFlags
	queue   string
	json    bool
	wait    bool
	end     bool
	options []string // of the command, with wait
}

func (a *app) submitCmd() *cobra.Command {
	var f submitFlags
	cmd := &cobra.Command{
		Use:     "submit [flags] RUN FILE...|-|-- COMMAND",
		GroupID: groupRun,
		Short:   "Add jobs to a run",
		Long: `Add the jobs of files to a run: lists of commands, .jsonl files and templates, as run
and grid take them; - reads either of them from standard input, to its end. after counts from
the first job of the file.

Each file is a queue of its own, named after it, unless --queue or its jobs say otherwise.
The jobs run in the directory of the run, with its environment and its options.

With --wait the words behind -- are one command. It runs in this directory, somewhere on
the hosts of the run; then its output is printed, and the exit code is its own: 128 and the
number of a signal that ended it, 124 after a timeout. Ctrl-C or SIGTERM cancels it. As
SHELL = dcs-tui, .SHELLFLAGS = submit RUN --wait -- in a Makefile, and as --cluster-sync of
Snakemake, it makes the run their cluster. docs/clients.md explains it.

--end, with or without jobs, ends a run with --keep-open after its last job.

A dispatcher that is alive takes them in at once, on whatever machine it is, and their
numbers are printed. Without one, or when the run ends in that very moment, they wait
in the run directory, and the next resume takes them in, each once.

RUN is a name in ./dcs-runs or a run directory, and must be given.`,
		Example: `dcs-tui submit sweep-20260314-1502 more.txt
dcs-tui submit sweep-20260314-1502 urgent.txt --queue-priority urgent=-1
generate-jobs | dcs-tui submit sweep-20260314-1502 - --queue late --share late=2
dcs-tui submit cluster --wait --option slots=4 -- make -j4 report.pdf`,
		Args:              runAndJobs,
		ValidArgsFunction: completeRunThenFiles,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.runSubmit(&f, args)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.queue, "queue", "", "NAME of the queue of the jobs that name none themselves")
	f.queueFlags.flags(fs)
	fs.BoolVar(&f.json, "json", false, "print the result as one JSON object on stdout")
	fs.BoolVar(&f.wait, "wait", false, "run one command, print its output, and exit with its code")
	fs.StringArrayVar(&f.options, "option", nil, "with --wait: KEY=VALUE of the job, as in a #DCS line")
	fs.BoolVar(&f.end, "end", false, "no more jobs come: the run ends with its last job")
	return cmd
}

// completeRunThenFiles completes RUN, and then files.
func completeRunThenFiles(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completeRuns(cmd, args, prefix)
}

func (a *app) runSubmit(f *submitFlags, args []string) error {
	files := args[1:]
	switch {
	case f.wait && f.end || len(f.options) > 0 && !f.wait:
		return exit.Usagef("--wait and --option are for one command").WithAdvice("dcs-tui submit RUN --wait --option slots=4 -- COMMAND")
	case f.wait && len(files) == 0:
		return exit.Usagef("which command?").WithAdvice("dcs-tui submit RUN --wait -- COMMAND")
	case f.end && len(files) == 0:
	case len(files) == 0:
		return exit.Usagef("which jobs?").WithAdvice("dcs-tui submit RUN FILE, one shell command a line; - reads them from standard input")
	case slices.Contains(files, stdinFile) && len(files) > 1 && !f.wait:
		return exit.Usagef("- cannot be mixed with files").WithAdvice("cat FILE... | dcs-tui submit RUN -")
	}
	run, err := a.openRun(args[:1])
	switch {
	case err != nil:
		return err
	case f.wait:
		return a.runCommand(f, run, files)
	}
	b := new(grid.Batch)
	if len(files) > 0 {
		if b, err = a.readBatch(likeRun(run), files, f.queue == ""); err != nil {
			return err
		}
	}
	if f.queue != "" {
		jobs.ChangeOptions(b.Specs, func(o *jobs.Options) {
			if o.Queue == "" {
				o.Queue = f.queue
			}
		})
		b.Queues = jobs.QueuesOf(b.Specs)
	}
	if err := f.check(b.Queues); err != nil {
		return err
	}
	f.apply(b.Specs)
	a.tellColumns(run, b.Columns)
	requests, err := submitRequests(b.Specs)
	if err != nil {
		return err
	}
	if f.end {
		requests = append(requests, &rundir.Request{Do: rundir.DoEndInput})
	}
	s, err := a.ask(context.Background(), run, requests...)
	if err != nil {
		return err
	}
	if f.json {
		return a.printJSON(s.json(b))
	}
	if a.tellSubmitted(s, b); f.end && !s.waits {
		a.con.Line("no more jobs come to " + console.CleanLine(s.run.Name()) + ": it ends with its last job")
	}
	return nil
}

// likeRun returns flags that read templates as when the run was made: for its shell and in
// its directory.
func likeRun(run *rundir.Run) *gridFlags {
	g := &gridFlags{limit: grid.DefaultLimit}
	g.Shell, g.Cwd = run.Asked.Shell, run.Asked.Cwd
	return g
}

// tellColumns warns about @result lines that the run does not have. A run has only those
// that it was made with.
func (a *app) tellColumns(run *rundir.Run, columns []string) {
	declared, _ := metrics.Declared(run.Asked) // results reports what is wrong with a declaration
	var flags []string
	for _, c := range columns {
		if !slices.ContainsFunc(declared, func(d *metrics.Metric) bool { return d.String() == c }) {
			flags = append(flags, "--result "+console.ShellWord(c))
		}
	}
	if len(flags) > 0 {
		a.warn("the table of the run has only the @result lines that it was made with; dcs-tui results %s %s shows these figures", refTo(run), strings.Join(flags, " "))
	}
}

// submitRequests returns requests that add jobs to a run, each at most as large as a
// request may be.
func submitRequests(specs []*jobs.Spec) ([]*rundir.Request, error) {
	blocks := submitBlocks(specs)
	if len(blocks) > 1 && slices.ContainsFunc(specs, func(s *jobs.Spec) bool { return len(s.After) > 0 }) {
		return nil, exit.Usagef("jobs that come after others must be submitted in one piece, of at most %d MiB", rundir.MaxSubmit>>20).
			WithAdvice("give them in several files, each with the jobs that belong together")
	}
	var requests []*rundir.Request
	for _, block := range blocks {
		requests = append(requests, &rundir.Request{Do: rundir.DoSubmit, Specs: rundir.JobsText(block)})
	}
	return requests, nil
}

// submitBlocks splits jobs so that each block fits into a request, and numbers the jobs
// of each block from 1.
func submitBlocks(specs []*jobs.Spec) (blocks [][]*jobs.Spec) {
	if len(specs) == 0 {
		return nil
	}
	size, from := 0, 0
	var text []byte
	for i, s := range specs {
		text = jobs.AppendSpecJSON(text[:0], s)
		if size += len(text) + 1; size > rundir.MaxSubmit && i > from {
			blocks = append(blocks, specs[from:i])
			from, size = i, len(text)+1
		}
	}
	blocks = append(blocks, specs[from:])
	for _, b := range blocks {
		for i, s := range b {
			s.ID = jobs.ID(i + 1)
		}
	}
	return blocks
}

// added returns how many jobs are part of the run now, and which.
func (s *answers) added() (n int, which jobs.Ranges) {
	for _, e := range s.parts {
		if e.Answered && e.Done > 0 {
			n += e.Done
			which = append(which, jobs.Range{First: e.First, Last: e.First + jobs.ID(e.Done) - 1})
		}
	}
	return n, which
}

func (a *app) tellSubmitted(s *answers, b *grid.Batch) {
	n, which := s.added()
	if n > 0 {
		text := jobs.Plural(n, "job") + " added to " + console.CleanLine(s.run.Name()) + ": " + which.String()
		if len(b.Queues) > 1 || b.Queues[0] != "" {
			text += ", queue " + queueList(b.Queues)
		}
		a.con.Line(text)
		if owner, err := journal.ReadOwner(s.run); err == nil && !s.waits && (owner == nil || owner.Life() == journal.Dead) {
			a.con.Line("its dispatcher has left meanwhile; what has not run yet waits for", "  dcs-tui resume "+refTo(s.run))
		}
	}
	if rest := len(b.Specs) - n; s.waits && rest == 0 {
		a.tellWaits(s, "the request waits")
	} else if s.waits {
		a.tellWaits(s, jobs.Plural(rest, "job")+" "+jobs.Verb(rest, "waits", "wait"))
	}
}

// submittedJSON is what submit --json prints.
type submittedJSON struct {
	runJSON
	Do       string   `json:"do"`
	Requests []string `json:"requests"`
	Answered bool     `json:"answered"`
	Jobs     int      `json:"jobs"`  // that are part of the run now
	Which    string   `json:"which"` // their numbers, 31-42
	Waiting  int      `json:"waiting"`
	Queues   []string `json:"queues"`
}

func (s *answers) json(b *grid.Batch) *submittedJSON {
	n, which := s.added()
	j := &submittedJSON{runJSON: jsonOf(s.run), Do: rundir.DoSubmit, Requests: []string{}, Answered: !s.waits,
		Jobs: n, Which: which.String(), Waiting: len(b.Specs) - n, Queues: b.Queues}
	for _, e := range s.parts {
		j.Requests = append(j.Requests, e.Name)
	}
	return j
}
