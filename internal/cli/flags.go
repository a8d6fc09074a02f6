package cli

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sched/fairshare"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/internal/trust"
	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
)

// runFlags holds the flags of run, grid and resume.
type runFlags struct {
	options // kept in run.toml

	// The other fields apply to this invocation only.
	noTUI         bool
	screen        screenFlags
	json          bool
	output        bool
	maxOutput     int64 // bytes of an output in a result of --json; 0: the default
	order         bool  // of output
	tag           bool
	shuf          bool
	joblog        string
	dryRun        bool
	name          string
	runDir        string
	hosts         string
	env           []string
	send, returns []string
	keepFiles     bool
	force         bool
	standby       bool
	background    bool          // of standby
	standbys      []*hosts.Host // hosts of StandbyOn; findStandbys sets it
	queues        queueFlags
}

// addNewRunFlags adds the flags of the commands that create a run. file describes their argument.
func (f *runFlags) addNewRunFlags(fs *pflag.FlagSet, file string) {
	fs.SetNormalizeFunc(parallelName)
	f.addHostFlags(fs)
	f.addSlotFlags(fs)
	f.queues.addFlags(fs)
	f.addNewJobFlags(fs)
	f.addJobFlags(fs)
	f.addFailureFlags(fs)
	fs.StringVar(&f.name, "name", "", "`NAME` of the run (default: made from the "+file+"'s name and the time)")
	fs.StringVar(&f.runDir, "run-dir", "", "keep the run in `DIRECTORY` instead of dcs-runs/NAME")
	f.addEndFlags(fs)
	f.addOutputFlags(fs)
	fs.BoolVarP(&f.order, "keep-order", "k", false, "print output in the order of the jobs (implies --output)")
	fs.BoolVar(&f.tag, "tag", false,
		"begin each line of output with the job's values or name, and a tab (implies --output)")
	endGroup(fs, titleOutput)
}

// check refuses values and combinations that no parser of a single flag refuses.
func (f *runFlags) check() error {
	if f.maxOutput > 0 && !(f.json && f.output) {
		return text.Errorf("--output-max limits the outputs in results: it needs --json and --output")
	}
	return f.options.check()
}

// checkNewRun checks the flags before anything is read.
func (f *runFlags) checkNewRun(fs *pflag.FlagSet) error {
	if err := cmp.Or(f.check(), f.checkCopies(givenCopyFlag(fs))); err != nil {
		return err
	}
	if f.hosts != "" && f.HostList != "" {
		return text.Errorf("--hosts and --host both name hosts: choose one")
	}
	if f.json && (f.order || f.tag) {
		return text.Errorf("--keep-order and --tag cannot be combined with --json; " +
			"--json --output prints the output as a field of each result")
	}
	f.output = f.output || f.order || f.tag
	if f.name != "" {
		if err := rundir.CheckName(f.name); err != nil {
			return text.Errorf("--name: %w", err)
		}
	}
	return nil
}

// Titles of groups of flags that several commands have.
const (
	titleHosts  = "Hosts"
	titleWhich  = "Which jobs"
	titleJobs   = "Jobs and their files"
	titleRun    = "The run"
	titleOutput = "Output"
)

// addHostFlags adds the flags that select hosts and control connections to them.
func (f *runFlags) addHostFlags(fs *pflag.FlagSet) {
	addHostsFlag(fs, &f.hosts)
	fs.StringVar(&f.HostList, "host", "",
		"run on `HOST,...` instead of an inventory; each is [SLOTS/][USER@]HOST[:PORT], or : for this machine")
	addSSHFlags(fs, &f.SSHConfig, &f.AcceptNew)
	fs.StringVar(&f.StandbyOn, "standby-on", "",
		"keep a standby dispatcher on one of `HOST,...`, which takes the run over if this one dies; "+
			"a host that does not see the run directory gets a mirror of it")
	fs.Var(newFlag(&f.MaxBackoff, "TIME", jobs.ParseDuration), "backoff-cap",
		"longest delay between two attempts to connect to a host (default 1m)")
	fs.Var(newFlag(&f.GiveUpAfter, "TIME", jobs.ParseDuration), "give-up",
		"end the run when nothing has been possible for this TIME (default 10m)")
	endGroup(fs, titleHosts)
}

// addSlotFlags adds the flags that control how many jobs run at once.
func (f *runFlags) addSlotFlags(fs *pflag.FlagSet) {
	fs.VarP(newFlag(&f.Slots, "N|-N", optional(parseSlots)), "jobs", "j",
		"slots of each host, instead of those in the inventory: N, or -N for all cores but N")
	fs.Var(newFlag(&f.MaxSlots, "N", parseCount), "max-slots",
		"use at most N slots at once, over all hosts (default: no limit)")
	fs.Var(newCommaFlag(&f.Tokens, "NAME=N,...", addToken), "tokens",
		"let jobs hold at most N tokens of a kind, such as licenses, over all hosts "+
			"(default: [tokens] of the inventory)")
	fs.Var(newFlag(&f.HalfLife, "TIME", jobs.ParseDuration), "half-life",
		"half-life of fair-share usage: slot time that a queue used this TIME ago counts half (default 1h)")
	fs.Var(newFlag(&f.QueuePolicy, "share|lottery", fairshare.ParsePolicy), "queue-policy",
		"choose the next queue by its used share, or by lot with as many tickets as its share (default share)")
	fs.Var(newFlag(&f.RunShare, "N|off", parseRunShare), "run-share",
		"weight N of this run among your runs on shared hosts (default 1); "+
			"off: share no slots with other runs and users")
	fs.Var(newFlag(&f.LaunchDelay, "TIME", parseLaunchDelay), "delay",
		"minimum TIME between two job starts, over all hosts")
	fs.Var(newFlag(&f.Buffer, "TIME", jobs.ParseDuration), "buffer",
		"send hosts enough jobs to work for this TIME without this machine, such as 30m for a laptop that will sleep")
	endGroup(fs, "How much runs at once")
}

func addHostsFlag(fs *pflag.FlagSet, file *string) {
	fs.Var(newFlag(file, "string", parseInventoryName), "hosts",
		"inventory `FILE` (default: ./hosts.toml, else ~/.config/dcs-tui/hosts.toml, "+
			"else /etc/dcs-tui/hosts.toml, else this machine)")
}

// addPackFlag adds the flag for the number of jobs from which on a run packs files. 0 is never.
func addPackFlag(fs *pflag.FlagSet, least *int) {
	*least = run.MaxUnpacked
	fs.Var(newFlag(least, "N|off", parsePackFiles), "pack-files",
		"in a run of at least N jobs, move the small outputs of jobs that have ended into archives, attempts/*.zip")
}

// addSSHFlags adds the flags of every command that connects to hosts.
func addSSHFlags(fs *pflag.FlagSet, config *string, acceptNew *bool) {
	fs.Var(newFlag(config, "string", absolutePath), "ssh-config", "read `FILE` instead of ~/.ssh/config")
	fs.BoolVar(acceptNew, "accept-new", false,
		"accept and store the key of a host that is not known yet (a changed key is always refused)")
	addTrustFlag(fs)
}

// addTrustFlag adds the flag of every command that reads files with commands in them.
func addTrustFlag(fs *pflag.FlagSet) {
	trusted := appending(func(name string) (string, error) { return name, trust.AddOwner(name) })
	fs.Var(newCommaFlag(new([]string), "string", trusted), "trust-owner",
		"also use an inventory, jobs file, or ssh configuration that belongs to `USER` "+
			"(default: only yours and root's)")
}

// addNewJobFlags adds the flags for the environment of jobs, which is fixed when the run is made.
func (f *runFlags) addNewJobFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.env, "env", nil,
		"set `NAME=VALUE` for the jobs; NAME alone passes the current value and stores only its hash")
	fs.StringVar(&f.Setup, "setup", "",
		"shell `LINE` to run before each job, in the same shell, such as: module load cuda")
	fs.StringArrayVar(&f.send, "send", nil,
		"copy `PATH[:DEST]` to each host, and again when it changes; "+
			"each job runs in a directory of its own that has it")
	fs.StringArrayVar(&f.returns, "return", nil,
		"copy files that match `PATTERN`, such as out/*.csv, back here before a job counts as succeeded")
	fs.BoolVar(&f.keepFiles, "keep-files", false, "leave the files of jobs on the hosts")
	fs.Var(newFlag(&f.Cwd, "string", parseCwd), "cwd", "run the jobs in `DIRECTORY` (default: this one)")
	fs.StringVar(&f.Shell, "shell", "", "`SHELL` that runs the jobs (default /bin/sh)")
	fs.BoolVar(&f.shuf, "shuf", false, "run the jobs in random order")
}

// addJobFlags adds the flags for the processes of jobs.
func (f *runFlags) addJobFlags(fs *pflag.FlagSet) {
	fs.Var(newFlag(&f.Timeout, "TIME", parseTimeout), "timeout",
		"end a job after this TIME, such as 90s, 30m, 2h")
	fs.Var(newFlag(&f.Warn, "SIGNAL@TIME", parseWarning), "warn-signal",
		"send SIGNAL to the processes of a job that handle it, TIME before its timeout, the end of its allocation, "+
			"or the stop of its host; for example USR1@60s")
	fs.BoolVar(&f.KeepChildren, "keep-children", false, "do not end processes that jobs leave behind")
	endGroup(fs, titleJobs)
}

// addFailureFlags adds the flags for retries and lost hosts. Options of a job replace them.
func (f *runFlags) addFailureFlags(fs *pflag.FlagSet) {
	f.Tries, f.Copies = 3, 2
	fs.Var(newFlag(&f.Tries, "N", parseTries), "tries", "maximum number of attempts of a job")
	fs.Var(newFlag(&f.RetryDelay, "TIME", optional(jobs.ParseDelay)), "retry-delay",
		"wait this TIME before a retry on the same host; 0: do not wait (default: depends on the run time, at most 1m)")
	fs.BoolVar(&f.ForgiveHosts, "forgive-hosts", false,
		"with --tries 1, run jobs again that failed on a host where others fail, too")
	fs.BoolVar(&f.RetryTimeouts, "retry-timeouts", false, "retry jobs that timed out")
	fs.Var(newFlag(&f.RetryOn, "QUERY", parseFailures), "retry-on",
		"retry only failures that match QUERY, such as 'exit=137 or cause=timeout'")
	fs.Var(newFlag(&f.NoRetryOn, "QUERY", parseFailures), "no-retry-on",
		"do not retry failures that match QUERY, such as 'exit<3'")
	fs.Var(newFlag(&f.TimeoutGrowth, "FACTOR", parseGrowth), "timeout-growth",
		"multiply the timeout of a job by FACTOR after each failure")
	fs.Var(newFlag(&f.MemGrowth, "FACTOR", parseGrowth), "mem-growth",
		"multiply mem= of a job by FACTOR after each failure, up to the memory of the largest host")
	fs.IntVar(&f.MaxPostpone, "max-postpone", 100,
		"run a job that exits with 75 again later, at most `N` times, without counting a try; 0: 75 is a failure")
	fs.Var(newChoice(&f.OnLost, "requeue", "wait"), "on-lost",
		"requeue the jobs of a lost host, or wait for the host (default requeue)")
	fs.BoolVar(&f.Speculate, "speculate", false,
		"run jobs on a second host, too, when slots are free; the first success counts")
	fs.Var(newFlag(&f.Copies, "N", parseCountTo(jobs.MaxTries)), "copies",
		"with --speculate: maximum number of attempts of a job at the same time, within its tries")
	fs.Var(newFlag(&f.CopyAt, "idle|submit", sched.ParseCopyAt), "copy-at",
		"with --speculate: copy a job while slots are idle, or start all its attempts at once if that many more "+
			"slots are idle than jobs wait (default idle)")
	fs.Var(newFlag(&f.CopyOn, "others|any", sched.ParseCopyOn), "copy-on",
		"with --speculate: run a copy on a host without an attempt of the job, or if none has a free slot on any "+
			"host (default others)")
	fs.Var(newFlag(&f.StragglerFactor, "F", parseGrowth), "straggler-factor",
		"a job is a straggler after F times the expected run time (default: straggler_factor of its host, else 2)")
	fs.Var(newFlag(&f.StragglerAge, "TIME", jobs.ParseDuration), "straggler-age",
		"no job is a straggler before this TIME (default: straggler_age of its host, else 5s)")
	fs.Var(newFlag(&f.Halt, "N|N%|WHEN,WHAT=N", parseHalt), "halt",
		"start no more jobs after N or N% have failed; now,fail=1 also ends running jobs; "+
			"soon,success=N and soon,done=N count others")
	endGroup(fs, "When something fails")
}

// addEndFlags adds the flags that control when and how the run ends.
func (f *runFlags) addEndFlags(fs *pflag.FlagSet) {
	fs.Var(newChoice(&f.OnInterrupt, "drain", "cancel"), "on-interrupt",
		"what Ctrl-C does: drain finishes running jobs, cancel ends them (default drain)")
	fs.BoolVar(&f.KeepOpen, "keep-open", false, "wait for more jobs until dcs-tui submit --end declares the last one")
	fs.StringVar(&f.OnDone, "on-done", "",
		"shell `COMMAND` to run when the run ends; its environment has DCS_RUN, DCS_RUN_DIR, DCS_STATE, "+
			"and counts such as DCS_FAILED")
	endGroup(fs, titleRun)
}

// addForceFlag adds the flag that takes a run over from a dispatcher.
func (f *runFlags) addForceFlag(fs *pflag.FlagSet) {
	fs.BoolVar(&f.force, "force", false,
		"take the run over even if its dispatcher may be alive; that dispatcher can then change nothing more")
}

// addOutputFlags adds the flags that control what this invocation shows.
func (f *runFlags) addOutputFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.noTUI, "no-tui", false, "print lines instead of showing the screen, and dispatch in this process")
	fs.BoolVar(&f.json, "json", false, "print one JSON object per finished job on stdout, in completion order")
	fs.BoolVar(&f.output, "output", false,
		"print the whole stdout of each job when it ends; with --json, as a field of its result")
	fs.Var(newFlag(&f.maxOutput, "SIZE", jobs.ParseSize), "output-max",
		"with --json --output: leave an output larger than SIZE out of the result, "+
			"which has its size instead (default 32M)")
	fs.Var(newFlag(&f.joblog, "string", parseJobLog), "joblog", "write a job log in GNU parallel's format to `FILE`")
	addPackFlag(fs, &f.PackFiles)
	f.screen.addFlags(fs)
	fs.Uint64Var(&f.Seed, "seed", 0, "seed of the jitter")
	fs.MarkHidden("seed")
	endGroup(fs, titleOutput)
}

// options holds the settings of a run. run.toml keeps those that were given.
type options struct {
	// schedConfig completes it.
	sched.Config
	Setup, Cwd, Shell  string
	OnLost             string
	RetryOn, NoRetryOn func(*jobs.Outcome) bool // see finalFailures
	Warn               warning
	Speculate          bool
	KeepChildren       bool
	PackFiles          int
	Slots              *hosts.SlotRule // slots of each host; nil: those of the inventory
	OnInterrupt        string
	OnDone             string
	KeepOpen           bool
	SSHConfig          string
	AcceptNew          bool
	HostList           string // hosts on the command line; "": those of the inventory
	StandbyOn          string // hosts for a standby dispatcher
}

// setSlots sets the slots of hosts to those of --jobs, if it was given.
func (o *options) setSlots(inv *hosts.Inventory) {
	if o.Slots != nil {
		inv.SetSlots(*o.Slots)
	}
}

// check refuses values that no parser of a single flag refuses.
func (o *options) check() error {
	if o.MaxPostpone < 0 {
		return text.Errorf("--max-postpone %d is negative; with 0, exit code 75 is a failure like any other",
			o.MaxPostpone)
	}
	if o.Speculate && o.CopyAt == sched.CopyAtSubmit && o.LaunchDelay > 0 {
		return text.Errorf("--copy-at submit starts all attempts of a job at once, and --delay one after the " +
			"other: give only one of them")
	}
	for flag, value := range map[string]string{"--setup": o.Setup, "--cwd": o.Cwd, "--shell": o.Shell} {
		if strings.ContainsRune(value, 0) {
			return text.Errorf("%s contains a NUL byte", flag)
		}
	}
	return nil
}

// givenCopyFlag returns the name of a given flag that has no effect without --speculate, or "".
func givenCopyFlag(fs *pflag.FlagSet) string {
	for _, name := range []string{"copies", "copy-at", "copy-on"} {
		if fs.Changed(name) {
			return name
		}
	}
	return ""
}

// checkCopies returns an error if a flag about copies was given and there are no copies.
func (o *options) checkCopies(flag string) error {
	if flag == "" || o.Speculate {
		return nil
	}
	return text.Errorf("--%s needs --speculate", flag)
}

// queueFlags holds the settings of queues on the command line. They become options of the jobs, as
// if the files had them.
type queueFlags struct {
	share, priority, slots map[string]int
}

func (q *queueFlags) addFlags(fs *pflag.FlagSet) {
	fs.Var(newPerQueue(&q.share, 1, jobs.MaxShare), "share",
		"give the queue slot time in proportion to N (default 1); each of several files is a queue of its name")
	fs.Var(newPerQueue(&q.priority, math.MinInt32, math.MaxInt32), "queue-priority",
		"start jobs of queues with a smaller N first, whatever the shares are (default 0)")
	fs.Var(newPerQueue(&q.slots, 1, jobs.MaxSlots), "queue-slots",
		"use at most N slots for the queue, over all hosts (default: no limit)")
	endGroup(fs, "Queues")
}

func (q *queueFlags) isEmpty() bool {
	return len(q.share)+len(q.priority)+len(q.slots) == 0
}

// apply sets the options of jobs in these queues.
func (q *queueFlags) apply(specs []*jobs.Spec) {
	if q.isEmpty() {
		return
	}
	jobs.ChangeOptions(specs, func(o *jobs.Options) {
		if n, ok := q.share[o.Queue]; ok {
			o.Share = n
		}
		if n, ok := q.priority[o.Queue]; ok {
			o.QueuePriority = &n
		}
		if n, ok := q.slots[o.Queue]; ok {
			o.QueueSlots = n
		}
	})
}

// applyToEach returns a function that calls next, and apply for the job that it returns.
func (q *queueFlags) applyToEach(next func() (jobs.Line, error)) func() (jobs.Line, error) {
	return func() (jobs.Line, error) {
		l, err := next()
		if l.Spec != nil {
			q.apply([]*jobs.Spec{l.Spec})
		}
		return l, err
	}
}

// check refuses flags for queues that no job is in.
func (q *queueFlags) check(queues []string) error {
	check := func(flag string, given map[string]int) error {
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if slices.Contains(queues, name) {
				continue
			}
			p := text.Errorf("--%s %s: no job is in a queue of that name", flag, text.Shorten(name))
			if near := text.Nearest(name, queues); near != "" {
				return p.WithAdvice("did you mean %s?", text.ShellWord(near))
			}
			return p.WithAdvice("the queues are: %s", queueList(queues))
		}
		return nil
	}
	return cmp.Or(check("share", q.share), check("queue-priority", q.priority), check("queue-slots", q.slots))
}

// queueList returns the names of queues for a message.
func queueList(queues []string) string {
	name := func(q string) string { return text.Line(cmp.Or(q, "one without a name")) }
	return text.List(text.Each(queues, name), 10)
}

// keptFlags are the flags of run that run.toml keeps among its options, for resume. Other settings
// of a run have keys of their own there.
var keptFlags = []string{
	"tries", "forgive-hosts", "retry-delay", "timeout", "retry-timeouts", "retry-on", "no-retry-on", "timeout-growth",
	"mem-growth",
	"max-postpone", "warn-signal", "on-lost", "speculate", "copies", "copy-at", "copy-on", "straggler-factor",
	"straggler-age", "keep-children", "half-life", "queue-policy", "run-share", "max-slots", "tokens", "give-up",
	"jobs", "standby-on", "delay", "backoff-cap", "host", "buffer", "halt", "on-interrupt", "on-done", "keep-open",
	"ssh-config", "accept-new", "trust-owner", "joblog", "pack-files",
}

// keepFlags returns the flags that were given, as run.toml keeps them.
func keepFlags(fs *pflag.FlagSet) map[string]any {
	kept := map[string]any{}
	for _, name := range keptFlags {
		if f := fs.Lookup(name); f != nil && f.Changed {
			kept[name] = f.Value.String()
		}
	}
	return kept
}

// otherOptions are the options of run.toml that are not flags of run.
var otherOptions = []string{rundir.OptionSource, rundir.OptionJobs, rundir.OptionReturns, metrics.Option,
	metrics.BestOption}

// checkOptions returns an error if run.toml has an option that this program does not know. A flag that
// is removed must stay in a list here, because older programs have stored it.
func checkOptions(run *rundir.Run) error {
	for _, name := range slices.Sorted(maps.Keys(run.Settings.Options)) {
		if !slices.Contains(keptFlags, name) && !slices.Contains(otherOptions, name) {
			return text.Errorf("%s has the option %q, which this "+
				"dcs-tui does not know", dirOf(run, rundir.SettingsFile),
				name).WithAdvice("use the newer dcs-tui that made the run")
		}
	}
	return nil
}

// restoreFlags sets the flags that run.toml has kept, except those that this command line gives. It
// ignores flags of other versions of the program.
func restoreFlags(fs *pflag.FlagSet, kept map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		f := fs.Lookup(name)
		value, isText := kept[name].(string)
		if f == nil || f.Changed || !isText { // older versions kept the number of jobs as jobs
			continue
		}
		if err := fs.Set(name, value); err != nil {
			return text.Errorf("run.toml has --%s %v: %w", name, kept[name], err)
		}
	}
	return nil
}

// keptHalt returns the --halt with which a run was created.
func keptHalt(dir *rundir.Run) halt.Rule {
	value, _ := dir.Settings.Options["halt"].(string)
	rule, _ := parseHalt(value) // resume reports an error
	return rule
}

// flagGroup is the annotation with the title of the group of a flag in the help.
const flagGroup = "group"

// endGroup puts the flags that have been added since its last call into a group.
func endGroup(fs *pflag.FlagSet, title string) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[flagGroup] == nil {
			_ = fs.SetAnnotation(f.Name, flagGroup, []string{title}) // the flag exists
		}
	})
}

// groupFlags returns flags by the titles of their groups, in the order of the first flags of the
// groups. Flags without a group come last.
func groupFlags(fs *pflag.FlagSet) (titles []string, groups map[string]*pflag.FlagSet) {
	groups = map[string]*pflag.FlagSet{}
	fs.VisitAll(func(f *pflag.Flag) {
		title := strings.Join(f.Annotations[flagGroup], "")
		if groups[title] == nil {
			groups[title] = pflag.NewFlagSet("", pflag.ContinueOnError)
			groups[title].SortFlags = fs.SortFlags
			if title != "" {
				titles = append(titles, title)
			}
		}
		groups[title].AddFlag(f)
	})
	if groups[""] != nil {
		titles = append(titles, "")
	}
	return slices.DeleteFunc(titles, func(title string) bool { return !groups[title].HasAvailableFlags() }), groups
}

// flagUsages returns the help of flags by group, wrapped to width columns (0: not wrapped).
func flagUsages(fs *pflag.FlagSet, width int) string {
	var b strings.Builder
	titles, groups := groupFlags(fs)
	for _, title := range titles {
		switch {
		case title != "":
			b.WriteString("\n " + title + ":\n")
		case len(titles) > 1:
			b.WriteString("\n")
		}
		b.WriteString(groups[title].FlagUsagesWrapped(width))
	}
	return b.String()
}
