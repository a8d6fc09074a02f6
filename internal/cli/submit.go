package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dcs-tui/grid"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/ask"
	"dcs-tui/observe/runview"
)

// submitFlags holds the flags of submit.
type submitFlags struct {
	queueFlags
	queue   string
	json    bool
	wait    bool
	end     bool
	options []string // options of the command of wait
}

func (a *app) submitCmd() *cobra.Command {
	var flags submitFlags
	cmd := &cobra.Command{
		Use:   "submit [flags] RUN FILE...|-|--wait -- COMMAND",
		Short: "Add jobs to a run",
		Long: `Add the jobs of files to a run; - reads standard input to its end. Each file is a queue of its own. The
jobs run in the directory of the run, with its environment and options. Without a dispatcher they wait for
the next resume. --wait runs one command on the hosts and exits with its exit code; several words are a
program and its arguments, and one word is a line of shell. See dcs-tui help workflows.`,
		Example: `dcs-tui submit sweep-20260314-1502 urgent.txt --queue-priority urgent=-1
generate-jobs | dcs-tui submit sweep-20260314-1502 - --queue late --share late=2
dcs-tui submit cluster --wait --option slots=4 -- make -j4 report.pdf`,
		Args:              requireRun,
		ValidArgsFunction: completeRunThen(cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() > 0 && !flags.wait {
				return text.Errorf("a command after -- needs --wait").
					WithAdvice("dcs-tui submit RUN --wait -- COMMAND; files of jobs are named without --")
			}
			return a.runSubmit(&flags, args)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&flags.queue, "queue", "", "put jobs that name no queue into the queue `NAME`")
	flags.queueFlags.addFlags(fs)
	addTrustFlag(fs)
	fs.BoolVar(&flags.wait, "wait", false, "run one command, print its output, and exit with its exit code")
	fs.StringArrayVar(&flags.options, "option", nil,
		"with --wait: set the option `KEY=VALUE` of the job, as in a #DCS line")
	endGroup(fs, "One command")
	fs.BoolVar(&flags.end, "end", false, "declare that no more jobs will come: the run ends with its last job")
	fs.BoolVar(&flags.json, "json", false, "print the result as one JSON object on stdout")
	endGroup(fs, "End and output")
	return cmd
}

// Limits of how long submit waits for a run that another command has just begun to make.
const (
	missingTimeout = 200 * time.Millisecond // for its directory
	startTimeout   = 2 * time.Second        // for its first dispatcher
)

// openStarting opens a run. It waits a moment for its creation and its first dispatcher.
func (a *app) openStarting(ref string) (*rundir.Run, error) {
	for began := time.Now(); ; time.Sleep(missingTimeout / 4) {
		run, err := a.openRun([]string{ref})
		if err == nil {
			if owner, _ := journal.ReadOwner(run); owner != nil {
				return run, nil
			}
		}
		limit := startTimeout
		if half := (*rundir.HalfMadeError)(nil); err != nil && !errors.As(err, &half) {
			limit = missingTimeout
		}
		if time.Since(began) > limit {
			return run, err
		}
	}
}

func (a *app) runSubmit(flags *submitFlags, args []string) error {
	files := args[1:]
	switch {
	case flags.wait && flags.end || len(flags.options) > 0 && !flags.wait:
		return text.Errorf("--option needs --wait, which cannot be combined with --end").
			WithAdvice("dcs-tui submit RUN --wait --option slots=4 -- COMMAND")
	case flags.wait && len(files) == 0:
		return text.Errorf("no command was given").WithAdvice("dcs-tui submit RUN --wait -- COMMAND")
	case flags.end && len(files) == 0:
	case len(files) == 0:
		return text.Errorf("no jobs were given").
			WithAdvice("dcs-tui submit RUN FILE, one shell command per line; - reads them from standard input")
	case slices.Contains(files, stdinFile) && len(files) > 1 && !flags.wait:
		return text.Errorf("- cannot be mixed with files").WithAdvice("cat FILE... | dcs-tui submit RUN -")
	}
	run, err := a.openStarting(args[0])
	switch {
	case err != nil:
		return err
	case flags.wait:
		return a.runCommand(flags, run, files)
	}
	if err := checkNotCanceled(run); err != nil {
		return err
	}
	batch := new(grid.Batch)
	if len(files) > 0 {
		if batch, err = a.readBatch(gridFlagsOf(run), files, flags.queue == ""); err != nil {
			return err
		}
	}
	if flags.queue != "" {
		jobs.ChangeOptions(batch.Specs, func(o *jobs.Options) { o.Queue = cmp.Or(o.Queue, flags.queue) })
		batch.Queues = jobs.QueuesOf(batch.Specs)
	}
	if err := flags.check(batch.Queues); err != nil {
		return err
	}
	flags.apply(batch.Specs)
	a.warnMissingColumns(run, batch.Columns)
	requests, err := ask.SubmitRequests(batch.Specs)
	if err != nil {
		return err
	}
	if flags.end {
		requests = append(requests, &action.Request{Do: action.EndInput})
	}
	sent, err := a.sendRequests(context.Background(), run, nil, requests...)
	if err != nil {
		return err
	}
	if flags.json {
		return a.printJSON(sent.json(batch))
	}
	a.reportSubmitted(sent, batch)
	if flags.end && !sent.isWaiting {
		a.con.Line("no more jobs come to " + text.Line(sent.run.Name()) + ": it ends with its last job")
	}
	return nil
}

// checkNotCanceled returns an error if nobody dispatches the run and it was canceled as a whole. A
// dispatcher refuses jobs itself.
func checkNotCanceled(run *rundir.Run) error {
	owner, err := journal.ReadOwner(run)
	if err != nil || owner.Liveness() != journal.Dead {
		return err
	}
	table, err := replayTable(run)
	if err == nil && table.CanceledAll {
		err = text.Errorf("the run %s was canceled and accepts no jobs", text.Line(run.Name())).
			WithAdvice("dcs-tui run starts another run; dcs-tui requeue %s JOBS continues this one", refTo(run))
	}
	return err
}

// gridFlagsOf returns flags to read templates as when the run was created: for its shell, in its
// directory, and with its patterns that name parameters.
func gridFlagsOf(run *rundir.Run) *gridFlags {
	g := &gridFlags{limit: grid.DefaultLimit}
	g.Shell, g.Cwd = run.Settings.Shell, run.Settings.Cwd
	list, _ := run.Settings.Options[rundir.OptionReturns].([]any)
	for _, v := range list {
		if pattern, ok := v.(string); ok {
			g.returns = append(g.returns, pattern)
		}
	}
	return g
}

// warnMissingColumns warns about @result lines that the run does not have. A run has only the lines
// that it was created with.
func (a *app) warnMissingColumns(run *rundir.Run, columns []string) {
	declared, _ := metrics.Declared(run.Settings) // results reports the error
	var flags []string
	for _, c := range columns {
		if !slices.ContainsFunc(declared, func(d *metrics.Metric) bool { return d.String() == c }) {
			flags = append(flags, "--result "+text.ShellWord(c))
		}
	}
	if len(flags) > 0 {
		a.warn("the run has only the @result lines that it was created with; dcs-tui results %s %s shows these metrics",
			refTo(run), strings.Join(flags, " "))
	}
}

// addedJobs returns the number and the ids of the jobs that are part of the run now.
func (s *sentRequests) addedJobs() (n int, which jobs.Ranges) {
	for _, asked := range s.requests {
		if asked.Answered && asked.Done > 0 {
			n += asked.Done
			which = append(which, jobs.Range{First: asked.First, Last: asked.First + jobs.ID(asked.Done) - 1})
		}
	}
	return n, which
}

func (a *app) reportSubmitted(sent *sentRequests, batch *grid.Batch) {
	n, which := sent.addedJobs()
	if n > 0 {
		text := text.Plural(n, "job") + " added to " + text.Line(sent.run.Name()) + ": " + which.String()
		if len(batch.Queues) > 1 || batch.Queues[0] != "" {
			text += ", queue " + queueList(batch.Queues)
		}
		a.con.Line(text)
		if owner, err := journal.ReadOwner(sent.run); err == nil && !sent.isWaiting &&
			owner.Liveness() == journal.Dead {
			a.con.Line("its dispatcher has ended meanwhile; jobs that have not run wait for", "  dcs-tui resume "+
				refTo(sent.run))
		}
	}
	if rest := len(batch.Specs) - n; sent.isWaiting && rest == 0 {
		a.reportWaiting(sent, "the request waits")
	} else if sent.isWaiting {
		a.reportWaiting(sent, text.Plural(rest, "job")+" "+text.Verb(rest, "waits", "wait"))
	}
}

// submitJSON is the output of submit --json.
type submitJSON struct {
	runJSON
	Do       action.Name `json:"do"`
	Requests []string    `json:"requests"`
	Answered bool        `json:"answered"`
	Jobs     int         `json:"jobs"`  // number of jobs that are part of the run now
	Which    string      `json:"which"` // their numbers, 31-42
	Waiting  int         `json:"waiting"`
	Queues   []string    `json:"queues"`
}

func (s *sentRequests) json(batch *grid.Batch) *submitJSON {
	n, which := s.addedJobs()
	j := &submitJSON{runJSON: runJSONOf(s.run), Do: action.Submit, Answered: !s.isWaiting,
		Jobs: n, Which: which.String(), Waiting: len(batch.Specs) - n, Queues: batch.Queues}
	j.Requests = text.Each(s.requests, func(asked *ask.TrackedRequest) string { return asked.Name })
	return j
}

// runCommand adds one job to a run, waits for its end, prints its output, and sets the exit code to
// that of the job. A signal cancels the job.
func (a *app) runCommand(flags *submitFlags, run *rundir.Run, words []string) error {
	spec, err := flags.commandSpec(run, words)
	if err != nil {
		return err
	}
	if err := a.newCommandCheck(run.Settings.Shell)(spec.Command, false); err != nil {
		return err
	}
	requests, err := ask.SubmitRequests([]*jobs.Spec{spec})
	if err != nil {
		return err
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	sent, err := a.sendRequests(context.Background(), run, nil, requests...)
	if err != nil {
		return err
	}
	end, err := a.awaitJobEnd(run, sent.requests[0], stopped)
	if end == nil {
		return err
	}
	if flags.json {
		table, err := replayTable(run)
		if err != nil {
			return err
		}
		result := metrics.Locations(run).Result(table.Job(end.Job))
		if _, err := a.stdout.Write(result.AppendJSON(nil)); err != nil {
			return err
		}
	} else if err := a.printJob(run, end.Job); err != nil {
		return err
	}
	a.exitCode = jobExitCode(end)
	if a.exitCode != exitOK && !flags.json {
		a.con.Line(fmt.Sprintf("job %d: %s", end.Job, text.Line(results.Cause(end.Next, end.Reason, end.Outcome))))
	}
	return nil
}

// commandSpec returns the job of a command: the words of a program and its arguments, or one word
// that is a line of shell or the path of a program. The job runs in the current directory.
func (f *submitFlags) commandSpec(run *rundir.Run, words []string) (*jobs.Spec, error) {
	keys := map[string]any{}
	if here, err := os.Getwd(); err == nil && here != run.Settings.Cwd && len(run.Settings.Send)+
		len(run.Settings.Return) == 0 {
		keys["cwd"] = here
	}
	if f.queue != "" {
		keys["queue"] = f.queue
	}
	for _, option := range f.options {
		key, value, ok := strings.Cut(option, "=")
		if !ok || key == "command" {
			return nil, text.Errorf("--option %s is not KEY=VALUE, such as slots=4", text.Shorten(option))
		}
		keys[key] = value
	}
	keys["command"] = words[0]
	if dir, _ := cmp.Or(keys["cwd"], any(run.Settings.Cwd)).(string); len(words) > 1 || isProgram(words[0], dir) {
		keys["command"] = text.ShellCommand(words)
	}
	line, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	specs, err := jobs.Parse(strings.NewReader(string(line)), "the job", true, 1)
	if err != nil {
		return nil, err
	}
	f.apply(specs)
	return specs[0], nil
}

// isProgram reports whether a word is the path of an executable file, seen from a directory. Such a
// path may contain spaces. make passes its recipe lines as one word, too.
func isProgram(word, dir string) bool {
	if !strings.Contains(word, "/") {
		return false
	}
	if !filepath.IsAbs(word) {
		word = filepath.Join(dir, word)
	}
	info, err := os.Stat(word)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// awaitJobEnd waits until the job of a request has ended, even while the dispatcher is dead and has
// no successor yet. It returns nil if the job was canceled or cannot end.
func (a *app) awaitJobEnd(run *rundir.Run, asked *ask.TrackedRequest, stopped <-chan os.Signal) (*jobs.Record, error) {
	began, said := time.Now(), false
	for {
		asked.Poll()
		owner := asked.Owner()
		switch end := asked.EndRecord(); {
		case end != nil:
			return end, nil
		case asked.Refused != "":
			return nil, text.Errorf("%s", text.Line(asked.Refused))
		case owner == nil || owner.Left:
			if !asked.Answered {
				err := text.Errorf("nobody dispatches the run; the command was not submitted").
					WithAdvice("dcs-tui resume %s --keep-open continues it", refTo(run))
				return nil, withCode(exitLeft, cmp.Or(run.RemoveRequest(asked.Name), error(err)))
			}
			return nil, withCode(exitLeft,
				text.Errorf("nobody dispatches the run any more; job %d is not over", asked.First).
					WithAdvice("dcs-tui resume %s continues it", refTo(run)))
		case !asked.IsDispatched() && !said:
			said = true
			a.warn("the dispatcher of the run has died; waiting for dcs-tui resume %s", refTo(run))
		}
		select {
		case <-stopped:
			a.exitCode = exitCanceled
			if !asked.Answered {
				return nil, run.RemoveRequest(asked.Name)
			}
			_, err := a.sendRequests(context.Background(), run, nil,
				&action.Request{Do: action.Cancel, Jobs: jobs.RangesOf([]jobs.ID{asked.First}),
					Why: "dcs-tui submit --wait was interrupted"})
			return nil, err
		case <-time.After(min(time.Since(began)/20+20*time.Millisecond, pollInterval)):
			// Short jobs are awaited more precisely.
		}
	}
}

// printJob prints the output of the newest attempt of a job.
func (a *app) printJob(run *rundir.Run, id jobs.ID) error {
	src, done, err := a.openOutputs(run)
	if err != nil {
		return err
	}
	defer done()
	snap, err := jobSnapshot(src, run, id)
	if err != nil || len(snap.Detail.Attempts) == 0 {
		return err
	}
	at := &snap.Detail.Attempts[len(snap.Detail.Attempts)-1]
	out := &logWriter{out: a.stdout, tty: isTerminal(a.stdout), quiet: true}
	errs := &logWriter{out: a.stderr, tty: isTerminal(a.stderr), quiet: true}
	return cmp.Or(a.copyLog(src, run, at, jobs.FileOut, false, out), a.copyLog(src, run, at, jobs.FileErr, false, errs))
}

// openOutputs opens a view of a run that can also read outputs that only hosts have.
func (a *app) openOutputs(run *rundir.Run) (src *runview.View, done func(), err error) {
	far := &remoteOutputs{app: a, run: run}
	o := a.viewOptions(run)
	o.Far = far.read
	if src, err = a.openView(run, o); err != nil {
		far.close()
		return nil, nil, err
	}
	return src, func() { src.Close(); far.close() }, nil
}

// jobExitCode returns the exit code of a job: as in a shell, 128 plus the number of the signal that
// ended it; as with timeout(1), 124 after a timeout.
func jobExitCode(end *jobs.Record) int {
	o := end.Outcome
	switch {
	case end.Next == jobs.Succeeded:
		return exitOK
	case end.Next == jobs.Canceled:
		return exitCanceled
	case end.Next == jobs.TimedOut:
		return 124
	case o != nil && o.Signal != "":
		return 128 + jobs.SignalNumber(o.Signal)
	case o != nil && o.Exit > 0:
		return o.Exit
	}
	return exitFailed
}
