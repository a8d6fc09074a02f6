package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/dispatch/run"
	"dcs-tui/grid"
	"dcs-tui/hosts"
	"dcs-tui/hosts/files"
	"dcs-tui/internal/platform"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
)

func (a *app) runCmd() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] FILE...|-|COMMAND ::: VALUE...",
		Short: "Run the jobs of files",
		Long: `Run the shell commands in files, one job per line; - reads them from standard input as they arrive.
COMMAND ::: VALUE... runs the command once for each value, as GNU parallel does. Without an inventory the
jobs run on this machine. On a terminal a screen shows the run; q leaves the screen, and the run continues
in the background. dcs-tui help jobs explains more.`,
		Example: `dcs-tui run --hosts hosts.toml --tries 1 --timeout 2h sweep.txt
dcs-tui run 'gzip -9 {}' ::: *.log
generate-jobs | dcs-tui run --json - | jq -r .state`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.runRun(cmd, &flags, args) },
	}
	fs := cmd.Flags()
	fs.SetInterspersed(a.separatorArgs == nil) // gzip -9 {} ::: *.log
	flags.addNewRunFlags(fs, "file")
	fs.BoolVar(&flags.dryRun, "dry-run", false, "print what would run where, and start nothing")
	endGroup(fs, titleRun)
	return cmd
}

func (a *app) runRun(cmd *cobra.Command, flags *runFlags, args []string) error {
	streaming, err := flags.checkRun(a, cmd.Flags(), args)
	if err != nil {
		return err
	}
	return a.startRun(cmd, flags, streaming, func() (jobSource, error) {
		switch {
		case a.separatorArgs != nil:
			return a.argumentsSource(flags, strings.Join(args, " "))
		case streaming:
			next := a.scanStdin(flags.Shell).Stream(slices.Values[[]*jobs.Spec](nil)).NextLine
			if !flags.json { // no program reads replies about bad lines
				next = run.JobLines(a.stdinJobs(flags.Shell))
			}
			return jobSource{files: args, description: "jobs from standard input",
				next: flags.queues.applyToEach(next)}, nil
		case len(args) == 0:
			return jobSource{files: []string{"open"}, description: "jobs that will be submitted"}, nil
		}
		return a.filesSource(flags, args)
	})
}

// startRun creates and dispatches a run: behind a screen if this is a terminal, otherwise in this
// process. stdin means that source reads standard input.
func (a *app) startRun(cmd *cobra.Command, flags *runFlags, stdin bool, source func() (jobSource, error)) error {
	if done, err := a.runOnScreen(flags, stdin && isTerminal(os.Stdin)); done {
		return err
	}
	src, err := source()
	if err == nil && flags.Halt.Percent > 0 && (src.isLazy() || flags.KeepOpen) {
		err = text.Errorf("--halt with a percentage needs all jobs at once: it cannot be used with standard input, "+
			"--keep-open, or a grid of more than %d jobs", grid.DefaultLimit).WithAdvice("give a number of jobs")
	}
	if err == nil && flags.shuf && !src.isShuffled {
		err = shuffle(&src, flags.newRand())
	}
	if err != nil {
		return err
	}
	return a.runJobs(cmd, flags, src)
}

// shuffle puts the jobs of src into random order and numbers them again.
func shuffle(src *jobSource, r *rand.Rand) error {
	if src.isLazy() {
		return text.Errorf("--shuf needs all jobs at once: it cannot be used with standard input or a grid "+
			"of more than %d jobs", grid.DefaultLimit)
	}
	for _, s := range src.specs {
		if len(s.After()) > 0 {
			return text.Errorf("--shuf cannot be used: a job has the option after, which determines the order")
		}
	}
	src.source = "" // it would yield the jobs in their original order
	r.Shuffle(len(src.specs), func(i, j int) {
		src.specs[i], src.specs[j] = src.specs[j], src.specs[i]
	})
	for i, s := range src.specs {
		s.ID = jobs.ID(i + 1)
	}
	return nil
}

// newRand returns the source of the random order of jobs.
func (f *runFlags) newRand() *rand.Rand {
	seed := cmp.Or(f.Seed, rand.Uint64())
	return rand.New(rand.NewPCG(seed, seed))
}

// argumentsSource returns the jobs of a command and its values, which follow the first :::.
func (a *app) argumentsSource(flags *runFlags, command string) (jobSource, error) {
	arguments, err := grid.ParseArguments(flags.Shell, command, a.separatorArgs, a.stdin)
	if err != nil {
		return jobSource{}, err
	}
	returns, err := arguments.SetReturn(flags.returns)
	if err != nil {
		return jobSource{}, err
	}
	var order func(int) []int
	if flags.shuf {
		order = flags.newRand().Perm
	}
	specs, err := arguments.Jobs(grid.DefaultLimit, order)
	if err != nil {
		return jobSource{}, err
	}
	check := a.newCommandCheck(flags.Shell)
	for _, s := range specs {
		if err := check(s.Command, false); err != nil {
			return jobSource{}, fmt.Errorf("job %d: %w", s.ID, err)
		}
	}
	flags.queues.apply(specs)
	name, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	if run.IsFunction(name, os.LookupEnv) {
		a.con.Line(text.Line(name) + " is an exported function of this shell: functions are not passed to jobs " +
			"(--setup can define it)")
	}
	return jobSource{files: []string{cmp.Or(name, "commands")}, specs: specs, returns: returns,
		isShuffled: flags.shuf}, flags.queues.check(jobs.QueuesOf(specs))
}

// smallHeapJobs is the number of jobs of a file from which on the dispatcher keeps its heap small.
const smallHeapJobs = 100_000

// loadPercent is the percentage for keepHeapSmall while jobs are read and not packed yet, when the heap is
// largest, and for the dispatcher of many jobs.
const loadPercent = 10

// filesSource returns the jobs of files and templates for a new run. Each of several files is a
// queue of its own. A single template is run as by dcs-tui grid.
func (a *app) filesSource(flags *runFlags, files []string) (jobSource, error) {
	g := &gridFlags{runFlags: *flags, limit: grid.DefaultLimit}
	if len(files) == 1 && grid.IsTemplate(files[0]) && flags.queues.isEmpty() {
		template, err := a.parseTemplate(g, files[0])
		if err != nil {
			return jobSource{}, err
		}
		a.con.Line(text.Line(files[0]) + " is a template: its jobs are created as by dcs-tui grid")
		return a.gridSource(template, files[0], g)
	}
	undo := keepHeapSmall(loadPercent)
	batch, err := a.readBatch(g, files, len(files) > 1)
	if err != nil {
		return jobSource{}, err
	}
	if len(batch.Specs) < smallHeapJobs {
		undo() // the dispatcher of few jobs would collect garbage all the time
	}
	if err := flags.queues.check(batch.Queues); err != nil {
		return jobSource{}, err
	}
	flags.queues.apply(batch.Specs)
	src := jobSource{files: files, specs: batch.Specs}
	if len(batch.Columns) > 0 {
		src.options = map[string]any{metrics.Option: batch.Columns}
	}
	return src, nil
}

// checkRun checks the command line before anything is read.
func (f *runFlags) checkRun(a *app, fs *pflag.FlagSet, args []string) (streaming bool, err error) {
	if err := f.checkNewRun(fs); err != nil {
		return false, err
	}
	if a.separatorArgs != nil {
		return false, checkValues(fs, a.separatorArgs)
	}
	if len(args) == 0 && !f.KeepOpen {
		return false, text.Errorf("no jobs were given").
			WithAdvice("dcs-tui run FILE, one shell command per line; - reads them from standard input")
	}
	streaming = slices.Contains(args, stdinFile)
	colons := slices.IndexFunc(args, func(word string) bool { return strings.HasPrefix(word, "::") })
	switch {
	case colons >= 0 && strings.Trim(args[colons], ":+") == "":
		return false, text.Errorf("%s is not a separator of values",
			text.Shorten(args[colons])).WithAdvice("did you mean ::: ? dcs-tui run 'echo {}' ::: 1 2 3")
	case colons >= 0:
		return false, text.Errorf("%s has no space after the colons",
			text.Shorten(args[colons])).WithAdvice("dcs-tui run 'echo {}' ::: 1 2 3")
	case isCommand(args):
		return false, text.Errorf("%s is a command without values", text.Shorten(strings.Join(args, " "))).
			WithAdvice("dcs-tui run %s ::: VALUE...; :::: - takes the lines of standard input as values",
				text.ShellWord(args[0]))
	case streaming && len(args) > 1:
		return false, text.Errorf("- cannot be mixed with files").WithAdvice("cat FILE... | dcs-tui run -")
	case streaming && f.dryRun:
		return false, text.Errorf("--dry-run needs a file: jobs on standard input are not known before they come")
	case streaming && isTerminal(os.Stdin):
		a.con.Line("reading jobs from the terminal, one command per line; Ctrl-D ends the input")
	}
	return streaming, nil
}

// isCommand reports whether the words of a command line are a command instead of names of files.
func isCommand(args []string) bool {
	if len(args) == 0 {
		return false
	}
	_, err := os.Lstat(args[0])
	_, notFound := exec.LookPath(args[0])
	return errors.Is(err, fs.ErrNotExist) && notFound == nil
}

// checkValues returns an error if one of the words from the first ::: on is a flag. It is meant as one:
// otherwise --dry-run would be a value, and the jobs would run.
func checkValues(fs *pflag.FlagSet, words []string) error {
	for _, word := range words {
		name, isLong := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		if isLong && fs.Lookup(name) != nil {
			return text.Errorf("%s follows ::: and would be a value", text.Shorten(word)).
				WithAdvice("options come before the command; as the name of a file, write ./%s", text.ShellWord(word))
		}
	}
	return nil
}

// jobSource yields the jobs of a new run: all of them at once, or one after another while the first
// ones run.
type jobSource struct {
	files []string     // sources of the jobs, for run.toml, messages, and the name of the run
	specs []*jobs.Spec // all jobs, numbered or not; nil: next yields them

	// next yields the next job or line, and io.EOF after the last. Any other error ends the input:
	// the jobs before it continue, and the error is reported at the end. next is called by one
	// goroutine, and may still block when the run ends.
	next func() (jobs.Line, error)
	// description describes the jobs of next in the first line: "jobs from standard input".
	description string
	// source is kept in run.toml (rundir.OptionSource), so that grid.RemainingJobs can yield the jobs that
	// were not stored when the dispatcher ended. "": they cannot be created again.
	source string
	// isShuffled reports whether the jobs have the order of --shuf.
	isShuffled bool
	search     *run.Search    // nil: no job depends on the results of others
	returns    []string       // patterns of --return that are options of the jobs
	options    map[string]any // more options for run.toml
}

// stdinFile is the name of standard input as a file.
const stdinFile = "-"

func (src *jobSource) isLazy() bool {
	return src.next != nil || src.search != nil && src.search.Proposer != nil
}

// isStdin reports whether the jobs are read from standard input.
func (src *jobSource) isStdin() bool { return len(src.files) == 1 && src.files[0] == stdinFile }

// runJobs creates a run of the jobs of src, dispatches it to its end, and sets the exit code. The
// flags have been checked.
func (a *app) runJobs(cmd *cobra.Command, flags *runFlags, src jobSource) error {
	refs, env, err := run.ParseEnv(flags.env, os.LookupEnv)
	if err != nil {
		return err
	}
	flags.returns = slices.DeleteFunc(slices.Clone(flags.returns),
		func(p string) bool { return slices.Contains(src.returns, p) })
	cwd, err := workDir(flags.Cwd)
	if err != nil {
		return err
	}
	relative := jobs.AbsoluteCwd{Base: cwd}
	for _, spec := range src.specs {
		relative.Resolve(spec)
	}
	inv, err := a.selectInventory(flags)
	if err != nil {
		return err
	}
	if err := cmp.Or(checkFiles(cwd, flags, inv.Hosts, src.specs), checkCwd(cwd, inv.Hosts),
		a.loadSSH(&flags.options, reachableHosts(inv)), flags.findStandbys(inv)); err != nil {
		return err
	}
	flags.setSlots(inv)
	if flags.dryRun {
		a.warnSSH(context.Background()) // nobody is dialed, so no warnings follow
		return a.dryRun(flags, src.specs, inv, cwd)
	}
	file := inv.File // absolute: resume may be called from another directory
	if flags.HostList != "" {
		file = "" // run.toml keeps the list
	} else if file != "" {
		if file, err = filepath.Abs(file); err != nil {
			return text.Errorf("inventory file: %w", err)
		}
	}
	asked := rundir.Settings{
		Version: version(), Cwd: cwd, Shell: flags.Shell, Setup: flags.Setup, JobsFile: strings.Join(src.files, " "),
		InventoryFile: file, InventoryText: inv.Text,
		Send: flags.send, Return: flags.returns, KeepFiles: flags.keepFiles, Options: keepFlags(cmd.Flags()),
		EnvNames: refs,
	}
	maps.Copy(asked.Options, src.options)
	if len(src.returns) > 0 {
		asked.Options[rundir.OptionReturns] = src.returns
	}
	if src.source != "" {
		asked.Options[rundir.OptionSource] = src.source
	}
	if !src.isLazy() {
		asked.Options[rundir.OptionJobs] = int64(len(src.specs))
		asked.JobsFile = src.files[0]
	}
	runDir, err := run.Create(flags.runDir, flags.name, asked)
	if err != nil {
		return err
	}
	if src.isLazy() {
		if err := runDir.WriteInput(rundir.Input{State: rundir.InputOpen}); err != nil {
			return err
		}
	}
	owned, err := a.becomeOwner(runDir, false)
	if err != nil {
		return err
	}
	if err := owned.Store(src.specs); err != nil {
		owned.Release()
		return err
	}
	session := a.newDispatchSession(flags, inv, env)
	session.startLine = describeStart(runDir, &src, inv)
	session.jobsAreTyped = src.isStdin() && isTerminal(os.Stdin)
	session.opts.Search = src.search
	session.opts.Lines = src.next
	if src.isLazy() {
		session.opts.Input = rundir.Input{State: rundir.InputOpen, Again: src.source != ""}
	}
	a.exitCode, err = session.runToEnd(owned)
	if err == nil && session.jobsAreTyped && a.exitCode != exitOK && a.exitCode != exitFailed {
		// Otherwise the shell would run the rest of the jobs. An error loses nothing.
		_ = platform.DiscardInput(int(os.Stdin.Fd()))
	}
	return err
}

// describeStart returns the first line without the name of the run: its jobs, hosts, and directory.
func describeStart(run *rundir.Run, src *jobSource, inv *hosts.Inventory) string {
	what := text.Plural(len(src.specs), "job")
	if src.description != "" {
		what = src.description
	}
	where := "this machine"
	if inv.File != "" {
		var parts []string
		if n := len(inv.Hosts); n > 0 || len(inv.Providers) == 0 {
			parts = append(parts, text.Plural(n, "host"))
		}
		if n := len(inv.Providers); n > 0 {
			parts = append(parts, "the instances of "+text.Plural(n, "provider"))
		}
		where = strings.Join(parts, " and ") + " of " + text.Line(inv.File)
	}
	return what + " on " + where + ", kept in " + dirOf(run)
}

// workDir returns the absolute directory in which jobs run: the flag, or else the current
// directory. os.Getwd prefers $PWD, which on an automounted home is the path that other
// machines have.
func workDir(flag string) (string, error) {
	if flag == "" {
		wd, err := os.Getwd()
		if err != nil {
			return "", text.Errorf("cannot determine the current directory: %w", err).WithAdvice("--cwd names another")
		}
		return wd, nil
	}
	path, err := filepath.Abs(flag)
	if err != nil {
		return "", text.Errorf("--cwd %s: %w", text.Shorten(flag), err)
	}
	return path, nil
}

// checkFiles refuses files to send that do not exist, and invalid patterns. Files of a job with
// dependencies may not exist yet, because earlier jobs may return them.
func checkFiles(cwd string, flags *runFlags, hs []*hosts.Host, specs []*jobs.Spec) error {
	source := files.NewSource(cwd)
	if err := source.CheckItems(flags.send); err != nil {
		return text.Errorf("--send: %w", err)
	}
	for _, h := range hs {
		if err := source.CheckItems(h.Send); err != nil {
			return text.Errorf("%s:%d: send of %s: %w", h.File, h.Line, h.Name, err)
		}
	}
	checked := map[string]bool{}
	for _, s := range specs {
		key := strings.Join(s.Send, "\x00")
		if len(s.After()) > 0 || checked[key] {
			continue
		}
		checked[key] = true
		if err := source.CheckItems(s.Send); err != nil {
			return &jobs.ParseError{File: s.File, Line: s.Line, Err: fmt.Errorf("send: %w", err)}
		}
	}
	if _, err := jobs.ParseReturn(flags.returns); err != nil {
		return text.Errorf("--return: %w", err)
	}
	return nil
}

// checkCwd refuses a directory that does not exist if only this machine uses it. Other hosts report
// a missing directory themselves.
func checkCwd(cwd string, hs []*hosts.Host) error {
	if slices.ContainsFunc(hs, func(h *hosts.Host) bool { return h.Link != "local" }) {
		return nil
	}
	info, err := os.Stat(cwd)
	if err != nil {
		return text.Errorf("the directory of the jobs: %w", err).WithAdvice("--cwd names another")
	}
	if !info.IsDir() {
		return text.Errorf("%s is not a directory; the jobs cannot run in it", text.Shorten(cwd))
	}
	return nil
}

// isControl reports whether a rune may control a terminal. The output of a dry run may be piped to
// one.
func isControl(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }

// maxDryRunCommand is the maximum length of a command that a dry run prints whole, in bytes.
const maxDryRunCommand = 64 << 10

// dryRun prints which jobs could run where according to the inventory. It starts nothing.
func (a *app) dryRun(flags *runFlags, specs []*jobs.Spec, inv *hosts.Inventory, cwd string) error {
	w := bufio.NewWriter(a.stdout)
	where := "this machine (no inventory)"
	if inv.File != "" {
		where = text.Line(inv.File)
	}
	fmt.Fprintf(w, "%s on %s of %s, in %s\n", text.Plural(len(specs), "job"), text.Plural(len(inv.Hosts), "host"),
		where, text.Line(cwd))
	for _, h := range inv.Hosts {
		fmt.Fprintf(w, "  %s  %s\n", text.Line(h.Name), text.Line(h.Limits()))
	}
	var impossible []*jobs.Spec
	tokens := map[string]int{}
	for _, t := range inv.TokensWith(flags.Tokens) {
		tokens[t.Name] = t.Count
	}
	unknown, onTerminal := false, isTerminal(a.stdout)
	for _, s := range specs {
		command := s.Command // as it is executed, for a file or a program
		if onTerminal || len(command) > maxDryRunCommand || strings.ContainsFunc(command, isControl) {
			command = text.Clean(command, 200)
		}
		text := fmt.Sprintf("%d  %s", s.ID, command)
		if opts := optionsText(flags, s); opts != "" {
			text += "  [" + opts + "]"
		}
		fit := slices.DeleteFunc(slices.Clone(inv.Hosts), func(h *hosts.Host) bool { return !canFit(s, h) })
		unknown = unknown || slices.ContainsFunc(fit, func(h *hosts.Host) bool {
			return s.MemBytes > 0 || s.GPUs > 0 && h.GPUNumbers(nil) == nil || s.SlotCount() > 1 && h.Slots.Fixed == 0
		})
		if slices.ContainsFunc(s.Tokens, func(t jobs.Token) bool { return t.Count > tokens[t.Name] }) {
			fit = nil
		}
		switch {
		case len(fit) == 0:
			text += "  no host can run it"
			impossible = append(impossible, s)
		case len(fit) < len(inv.Hosts):
			text += "  on " + hostNames(fit)
		}
		fmt.Fprintln(w, text)
	}
	if unknown {
		fmt.Fprintln(w, "Memory, GPUs, and cores that are not in the inventory are known only after connecting: "+
			"these hosts may lack them.")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(impossible) > 0 {
		first := impossible[0]
		return text.Errorf("%s cannot run on any host of %s; the first is job %d (%s:%d), which needs %s",
			text.Plural(len(impossible), "job"), where,
			first.ID, first.File, first.Line,
			needsText(first)).WithAdvice("dcs-tui hosts list shows what the hosts have")
	}
	return nil
}

// canFit reports whether a host has what a job needs according to the inventory. Memory, GPUs, and
// cores may be known only after connecting.
func canFit(s *jobs.Spec, h *hosts.Host) bool {
	slots, gpus := h.KeptFrom(s.Queue)
	return h.IsOpenTo(s.Queue) && h.HasTags(s.Tags) &&
		(h.GPUNumbers(nil) == nil || len(h.GPUNumbers(nil))-gpus >= s.GPUs.Devices()) &&
		(h.Slots.Fixed == 0 || h.Slots.Fixed-slots >= s.SlotCount())
}

// needsText describes what a job needs of a host.
func needsText(s *jobs.Spec) string {
	var parts []string
	if len(s.Tags) > 0 {
		parts = append(parts, "tags "+text.Line(strings.Join(s.Tags, ",")))
	}
	if s.GPUs > 0 {
		parts = append(parts, s.GPUs.Text())
	}
	if s.SlotCount() > 1 {
		parts = append(parts, text.Plural(s.Slots, "slot"))
	}
	if s.MemBytes > 0 {
		parts = append(parts, text.Size(s.MemBytes))
	}
	if len(s.Tokens) > 0 {
		parts = append(parts, "tokens "+text.Line(s.TokenText()))
	}
	if parts == nil {
		return "a host that is not kept for other queues"
	}
	return strings.Join(parts, ", ")
}

// optionsText returns the options of a job in the form of a jobs file.
func optionsText(flags *runFlags, s *jobs.Spec) string {
	own, o := *s, *s.Options
	own.Options, o.Timeout = &o, cmp.Or(o.Timeout, flags.Timeout)
	return strings.Join(text.Each(own.OptionTexts(), func(o jobs.OptionText) string {
		return o.Key + "=" + text.ShellWord(text.Clean(o.Value, 40))
	}), " ")
}
