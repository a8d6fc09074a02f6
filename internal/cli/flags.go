package cli

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"dcs-tui/hosts"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// runFlags holds the flags of run, grid and resume.
type runFlags struct {
	options // kept in run.toml

	// The rest applies to this invocation only.
	noTUI         bool
	screen        screenOptions
	json          bool
	output        bool
	order         bool // of output
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
	standbys      []*hosts.Host // of StandbyOn; findStandbys sets it
	seed          uint64
	queues        queueFlags
}

// screenFlags adds the flags that control what this invocation shows.
func (f *runFlags) screenFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.noTUI, "no-tui", false, "lines instead of the screen, and this process dispatches")
	fs.BoolVar(&f.json, "json", false, "one JSON object a finished job on stdout, in completion order")
	fs.BoolVar(&f.output, "output", false, "print each job's stdout, whole, when it ends; with --json as a field of its result")
	fs.StringVar(&f.joblog, "joblog", "", "write GNU parallel's job log to FILE")
	f.screen.flags(fs)
	fs.Uint64Var(&f.seed, "seed", 0, "seed of the jitter")
	fs.MarkHidden("seed")
}

// newRunFlags adds the flags of the commands that make a run, except hostFlags.
func (f *runFlags) newRunFlags(fs *pflag.FlagSet, file string) {
	fs.SetNormalizeFunc(parallelName)
	f.jobFlags(fs)
	f.policyFlags(fs)
	f.endFlags(fs)
	f.screenFlags(fs)
	fs.BoolVarP(&f.order, "keep-order", "k", false, "print output in the order of the jobs; implies --output")
	fs.BoolVar(&f.tag, "tag", false, "begin each line of output with the job's values, or its name, and a tab; implies --output")
	fs.BoolVar(&f.shuf, "shuf", false, "run the jobs in random order")
	fs.StringVar(&f.name, "name", "", "NAME of the run (made from the "+file+"'s name and the time)")
	fs.StringVar(&f.runDir, "run-dir", "", "keep the run in DIRECTORY instead of dcs-runs/NAME")
}

// checkNewRun checks the flags before anything is read.
func (f *runFlags) checkNewRun() error {
	if err := f.check(); err != nil {
		return err
	}
	if f.hosts != "" && f.HostList != "" {
		return text.Errorf("--hosts and --host both name hosts: choose one")
	}
	if f.json && (f.order || f.tag) {
		return text.Errorf("--keep-order and --tag are for the output of jobs as it is; with --json, --output makes it a field of each result")
	}
	f.output = f.output || f.order || f.tag
	if f.name != "" {
		if err := rundir.CheckName(f.name); err != nil {
			return text.Errorf("--name: %w", err)
		}
	}
	return nil
}

// hostFlags adds the flags that select hosts and how they are used.
func (f *runFlags) hostFlags(fs *pflag.FlagSet) {
	hostsFlag(fs, &f.hosts)
	fs.StringVar(&f.HostList, "host", "", "run on HOST,... instead of an inventory; each is [SLOTS/][USER@]HOST[:PORT], or : for this machine")
	sshFlags(fs, &f.SSHConfig, &f.AcceptNew)
	fs.StringVar(&f.StandbyOn, "standby-on", "", "keep a standby dispatcher on one of HOST,... that sees the run directory: it takes the run over if this one dies")
	fs.Var(countFlag(&f.MaxSlots), "max-slots", "at most N busy slots at once, over all hosts (no limit)")
	fs.Var(&f.Tokens, "tokens", "NAME=N,...: jobs hold at most N tokens of a kind, such as licenses, over all hosts; else as [tokens] of the inventory says")
	fs.VarP(checkedFlag(&f.Slots, "n|-n", parseSlots), "jobs", "j", "slots of each host, instead of those in the inventory: N, or -N for its cores less N")
	fs.Var(delaySecondsFlag(&f.Delay), "delay", "at least this TIME between two starts, over all hosts")
	fs.Var(durationFlag(&f.BackoffCap), "backoff-cap", "longest delay between two attempts to connect to a host (1m)")
	fs.Var(durationFlag(&f.GiveUp), "give-up", "end when no host could be used for this TIME (10m)")
	fs.Var(durationFlag(&f.Buffer), "buffer", "keep hosts supplied for this TIME without this machine, such as 30m for a laptop that will sleep")
}

// hostsFlag adds the flag that names the inventory.
func hostsFlag(fs *pflag.FlagSet, file *string) {
	fs.StringVar(file, "hosts", "", "inventory FILE (else ./hosts.toml, else ~/.config/dcs-tui/hosts.toml, else this machine)")
}

// sshFlags adds the flags of every command that connects to hosts.
func sshFlags(fs *pflag.FlagSet, config *string, acceptNew *bool) {
	fs.StringVar(config, "ssh-config", "", "read FILE instead of ~/.ssh/config")
	fs.BoolVar(acceptNew, "accept-new", false, "remember the key of a host that is not known yet (a changed key always stops)")
}

// endFlags adds the flags that control when and how the run ends.
func (f *runFlags) endFlags(fs *pflag.FlagSet) {
	fs.Var(checkedFlag(&f.Halt, "n|n%|when,what=n", parseHalt), "halt", "start no more jobs after N or N% have failed; now,fail=1 also ends running ones, soon,success=1 and soon,done=N count others")
	fs.Var(newChoice(&f.OnInterrupt, "drain", "cancel"), "on-interrupt", "what Ctrl-C does: drain (finish what runs) or cancel")
	fs.BoolVar(&f.KeepOpen, "keep-open", false, "wait for more jobs until dcs-tui submit --end says that none will come")
	fs.StringVar(&f.OnDone, "on-done", "", "shell COMMAND to run when the run ends; sees DCS_RUN, DCS_RUN_DIR, DCS_STATE and counts such as DCS_FAILED")
}

// jobFlags adds the flags for the environment of jobs, which is fixed when the run is made.
func (f *runFlags) jobFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.env, "env", nil, "set NAME=VALUE for the jobs; NAME alone passes the current value and stores only its hash")
	fs.StringVar(&f.Setup, "setup", "", "LINE of shell before each job, in the same shell, such as: module load cuda")
	fs.StringArrayVar(&f.send, "send", nil, "copy PATH[:DEST] to each host, again when it changes, and give it to every job, which then runs in a directory of its own")
	fs.StringArrayVar(&f.returns, "return", nil, "copy the files here that match PATTERN, such as out/*.csv, before a job counts as succeeded")
	fs.BoolVar(&f.keepFiles, "keep-files", false, "leave the files of jobs on the hosts")
	fs.StringVar(&f.Cwd, "cwd", "", "DIRECTORY that the jobs run in (this one)")
	fs.StringVar(&f.Shell, "shell", "", "SHELL that runs the jobs (/bin/sh)")
}

// policyFlags adds the flags that hold for jobs without options of their own.
func (f *runFlags) policyFlags(fs *pflag.FlagSet) {
	f.Tries = 3
	fs.Var(triesFlag(&f.Tries), "tries", "at most N attempts of a job in all")
	fs.Var(delayFlag(&f.RetryDelay), "retry-delay", "wait this TIME before a retry on the same host; 0 turns it off (default: from the run time, at most 1m)")
	fs.Var(durationFlag(&f.Timeout), "timeout", "end a job after this TIME, such as 90s, 30m, 2h")
	fs.BoolVar(&f.RetryTimeouts, "retry-timeouts", false, "try a job again that ran into its timeout")
	fs.Var(checkedFlag(&f.RetryOn, "query", parseFailures), "retry-on", "try a job again only after failures that match the QUERY, such as 'exit=137 or cause=timeout'")
	fs.Var(checkedFlag(&f.NoRetryOn, "query", parseFailures), "no-retry-on", "do not try a job again after failures that match the QUERY, such as 'exit<3'")
	fs.Var(growthFlag(&f.TimeoutGrowth), "timeout-growth", "multiply a job's timeout by FACTOR after each failure")
	fs.Var(growthFlag(&f.MemGrowth), "mem-growth", "multiply a job's mem= by FACTOR after each failure, up to what the largest host has")
	fs.Var(warnFlag(&f.Warn), "warn-signal", "send SIGNAL@TIME, such as USR1@60s, to a job's processes that handle it so long before its timeout, the end of its allocation, or the stop of its host")
	fs.IntVar(&f.MaxPostpone, "max-postpone", 100, "a job that exits with 75 is run again later, at most N times, without using up a try; 0: 75 is a failure")
	fs.Var(newChoice(&f.OnLost, "requeue", "wait"), "on-lost", "jobs of a host given up as lost: requeue, or wait for the host")
	fs.BoolVar(&f.Speculate, "speculate", false, "run jobs on a second host too when slots are free: the first success counts")
	f.Copies = 2
	fs.Var(triesFlag(&f.Copies), "copies", "with --speculate: at most N attempts of a job at a time, within its tries")
	fs.Var(durationFlag(&f.HalfLife), "half-life", "half-life of fair-share usage: slot time that a queue has used counts half after this TIME (1h)")
	fs.Var(runShareFlag(&f.RunShare), "run-share", "weight N of this run among your runs on hosts that they share (1), or off: share no slots with other runs and users")
	fs.BoolVar(&f.KeepChildren, "keep-children", false, "leave processes alive that jobs left behind")
}

// options are the settings of a run. run.toml keeps those that were given.
type options struct {
	Setup, Cwd, Shell string
	Tries             int
	RetryDelay        *time.Duration // nil: derived from the run time
	Timeout           time.Duration
	RetryTimeouts     bool
	OnLost            string
	RetryOn           string // queries over the outcomes of attempts; "": see retry
	NoRetryOn         string
	Warn              warning
	TimeoutGrowth     float64
	MemGrowth         float64
	MaxPostpone       int
	Speculate         bool
	Copies            int
	KeepChildren      bool
	MaxSlots          int
	Tokens            tokenCounts // of the command line
	Slots             string      // of each host; "": those of the inventory
	Delay             time.Duration
	BackoffCap        time.Duration
	GiveUp, Buffer    time.Duration
	HalfLife          time.Duration
	RunShare          int // 0: not given; notShared: off
	Halt              string
	OnInterrupt       string
	OnDone            string
	KeepOpen          bool
	SSHConfig         string
	AcceptNew         bool
	HostList          string // hosts on the command line; "": those of the inventory
	StandbyOn         string // hosts for a standby dispatcher
}

// setSlots gives hosts the slots of --jobs, if it was given.
func (o *options) setSlots(list []*hosts.Host) {
	if o.Slots == "" {
		return
	}
	rule, _ := parseSlots(o.Slots) // was checked when the flag was read
	for _, h := range list {
		h.Slots = rule
	}
}

// check refuses texts that no shell can take.
func (o *options) check() error {
	if o.MaxPostpone < 0 {
		return text.Errorf("--max-postpone %d is negative; 0 makes exit code 75 a failure as any other", o.MaxPostpone)
	}
	for flag, value := range map[string]string{"--setup": o.Setup, "--cwd": o.Cwd, "--shell": o.Shell} {
		if strings.ContainsRune(value, 0) {
			return text.Errorf("%s contains a NUL byte", flag)
		}
	}
	return nil
}

// queueFlags are the settings of queues on the command line. They go into the options
// of the jobs, as if they stood in the files, and are kept with them.
type queueFlags struct {
	share, priority, slots perQueue
}

func (q *queueFlags) flags(fs *pflag.FlagSet) {
	q.share, q.priority = perQueue{low: 1, high: jobs.MaxShare}, perQueue{low: math.MinInt32, high: math.MaxInt32}
	q.slots = perQueue{low: 1, high: jobs.MaxSlots}
	fs.Var(&q.share, "share", "QUEUE=N: the queue gets slot time in proportion to N (1); a file of several is a queue of its name")
	fs.Var(&q.priority, "queue-priority", "QUEUE=N: queues with a smaller N go first, whatever the shares are (0)")
	fs.Var(&q.slots, "queue-slots", "QUEUE=N: the jobs of the queue occupy at most N slots, over all hosts (no limit)")
}

func (q *queueFlags) empty() bool { return len(q.share.of)+len(q.priority.of)+len(q.slots.of) == 0 }

// apply sets the options of jobs in these queues.
func (q *queueFlags) apply(specs []*jobs.Spec) {
	if q.empty() {
		return
	}
	jobs.ChangeOptions(specs, func(o *jobs.Options) {
		if n, ok := q.share.of[o.Queue]; ok {
			o.Share = n
		}
		if n, ok := q.priority.of[o.Queue]; ok {
			o.QueuePriority = &n
		}
		if n, ok := q.slots.of[o.Queue]; ok {
			o.QueueSlots = n
		}
	})
}

// applying returns next with apply called for every job.
func (q *queueFlags) applying(next func() (jobs.Line, error)) func() (jobs.Line, error) {
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
	check := func(flag string, names []string) error {
		for _, name := range names {
			if slices.Contains(queues, name) {
				continue
			}
			p := text.Errorf("--%s %s: no job is in a queue of that name", flag, text.Shorten(name))
			if near := jobs.Nearest(name, queues); near != "" {
				return p.WithAdvice("did you mean %s?", text.ShellWord(near))
			}
			return p.WithAdvice("the queues are: %s", queueList(queues))
		}
		return nil
	}
	return cmp.Or(check("share", q.share.names), check("queue-priority", q.priority.names), check("queue-slots", q.slots.names))
}

// queueList names queues for people.
func queueList(queues []string) string {
	names := slices.Clone(queues)
	for i, q := range names {
		names[i] = text.Line(cmp.Or(q, "one without a name"))
	}
	return someNames(names, 10)
}

// someNames joins names. It shortens a list of more than limit+1 names.
func someNames(names []string, limit int) string {
	if more := len(names) - limit; more > 1 {
		names = append(slices.Clone(names[:limit]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// keptFlags are the flags of run that resume uses again unless they are given again. The other
// settings of a run have places of their own in run.toml.
var keptFlags = []string{
	"tries", "retry-delay", "timeout", "retry-timeouts", "retry-on", "no-retry-on", "timeout-growth", "mem-growth",
	"max-postpone", "warn-signal", "on-lost", "speculate", "copies", "keep-children", "half-life", "run-share", "max-slots", "tokens", "give-up",
	"jobs", "standby-on", "delay", "backoff-cap", "host", "buffer", "halt", "on-interrupt", "on-done", "keep-open", "ssh-config", "accept-new", "joblog",
}

// pathFlags name files; they are kept as absolute paths, because resume may be
// called from another directory.
var pathFlags = []string{"ssh-config", "joblog"}

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

// restoreFlags sets the flags that run.toml has kept, except those that this command line
// gives. It ignores flags of another version.
func restoreFlags(fs *pflag.FlagSet, kept map[string]any) error {
	names := make([]string, 0, len(kept))
	for name := range kept {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		f := fs.Lookup(name)
		value, isText := kept[name].(string)
		if f == nil || f.Changed || !isText { // a number of jobs was kept as jobs once
			continue
		}
		if err := fs.Set(name, value); err != nil {
			return text.Errorf("run.toml has --%s %v: %w", name, kept[name], err)
		}
	}
	return nil
}

// absoluteFlags makes the paths among the given flags absolute.
func absoluteFlags(fs *pflag.FlagSet) error {
	for _, name := range pathFlags {
		f := fs.Lookup(name)
		if f == nil || !f.Changed || f.Value.String() == "" {
			continue
		}
		path, err := filepath.Abs(f.Value.String())
		if err != nil {
			return text.Errorf("--%s: %w", name, err)
		}
		fs.Set(name, path)
	}
	return nil
}

// minGroupedFlags is the number of flags from which the help of a command arranges them in
// groups.
const minGroupedFlags = 20

// flagGroups arranges the flags of the commands that dispatch a run. A flag in no group is
// shown at the end.
var flagGroups = []struct{ title, names string }{
	{"Choose combinations", "count search ask trials minimize maximize limit"},
	{"Hosts", "hosts host ssh-config accept-new standby-on backoff-cap give-up"},
	{"How much runs at once", "jobs max-slots tokens queue-slots share queue-priority half-life run-share delay buffer"},
	{"Jobs and their files", "env setup cwd shell send return keep-files timeout warn-signal keep-children shuf"},
	{"When something fails", "tries retry-delay retry-timeouts retry-on no-retry-on timeout-growth mem-growth max-postpone on-lost speculate copies halt"},
	{"The run", "name run-dir dry-run keep-open on-interrupt on-done force standby background"},
	{"Output and screen", "no-tui json output keep-order tag joblog ascii mouse"},
}

// flagUsages returns the lines of help for flags, wrapped to width columns (0: not
// wrapped), in groups if there are many.
func flagUsages(fs *pflag.FlagSet, width int) string {
	n := 0
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			n++
		}
	})
	if n < minGroupedFlags {
		return fs.FlagUsagesWrapped(width)
	}
	var b strings.Builder
	rest := map[string]bool{}
	fs.VisitAll(func(f *pflag.Flag) { rest[f.Name] = true })
	group := func(title string, has func(name string) bool) {
		part := pflag.NewFlagSet("", pflag.ContinueOnError)
		part.SortFlags = fs.SortFlags
		fs.VisitAll(func(f *pflag.Flag) {
			if rest[f.Name] && has(f.Name) {
				part.AddFlag(f)
			}
		})
		part.VisitAll(func(f *pflag.Flag) { delete(rest, f.Name) })
		if part.HasAvailableFlags() {
			b.WriteString(title + part.FlagUsagesWrapped(width))
		}
	}
	for _, g := range flagGroups {
		names := strings.Fields(g.names)
		group("\n "+g.title+":\n", func(name string) bool { return slices.Contains(names, name) })
	}
	group("\n", func(string) bool { return true })
	return b.String()
}
