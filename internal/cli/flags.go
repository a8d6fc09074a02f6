package cli

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs"
	"dcs-tui/jobs/rundir"
)

// runFlags are the options of run and resume.
type runFlags struct {
	options // kept in run.toml

	// Of this invocation only.
	noTUI  bool
	screen screenOptions
	json   bool
	output bool
	joblog string
	dryRun bool
	name   string
	runDir string
	hosts  string
	env    []string
	force  bool
	seed   uint64
	queues queueFlags
}

// screenFlags say what this invocation shows, for run and resume alike.
func (f *runFlags) screenFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.noTUI, "no-tui", false, "lines instead of the screen, and this process dispatches")
	fs.BoolVar(&f.json, "json", false, "one JSON object a finished job on stdout, in completion order")
	fs.BoolVar(&f.output, "output", false, "print each job's stdout, whole, when it ends")
	fs.StringVar(&f.joblog, "joblog", "", "write GNU parallel's job log to FILE")
	f.screen.flags(fs)
	fs.Uint64Var(&f.seed, "seed", 0, "seed of the jitter")
	fs.MarkHidden("seed")
}

// newRunFlags are those of the commands that make a run of a file, beside hostFlags.
func (f *runFlags) newRunFlags(fs *pflag.FlagSet, file string) {
	f.jobFlags(fs)
	f.policyFlags(fs)
	f.endFlags(fs)
	f.screenFlags(fs)
	fs.StringVar(&f.name, "name", "", "NAME of the run (made from the "+file+"'s name and the time)")
	fs.StringVar(&f.runDir, "run-dir", "", "keep the run in DIRECTORY instead of dcs-runs/NAME")
}

// checkNewRun finds what is wrong with them before anything is read.
func (f *runFlags) checkNewRun() error {
	if err := f.check(); err != nil {
		return err
	}
	if f.json && f.output {
		return exit.Usagef("--json and --output both write to standard output: choose one")
	}
	if f.name != "" {
		if err := rundir.CheckName(f.name); err != nil {
			return exit.Usagef("--name: %w", err)
		}
	}
	return nil
}

// hostFlags say which hosts are used and how.
func (f *runFlags) hostFlags(fs *pflag.FlagSet) {
	hostsFlag(fs, &f.hosts)
	sshFlags(fs, &f.SSHConfig, &f.AcceptNew)
	fs.Var((*countValue)(&f.MaxSlots), "max-slots", "at most N busy slots at once, over all hosts (no limit)")
	fs.Var((*spanValue)(&f.GiveUp), "give-up", "end when no host could be used for this TIME (10m)")
	fs.Var((*spanValue)(&f.Buffer), "buffer", "keep hosts supplied for this TIME without this machine, such as 30m for a laptop that will sleep")
}

// hostsFlag names the inventory.
func hostsFlag(fs *pflag.FlagSet, file *string) {
	fs.StringVar(file, "hosts", "", "inventory FILE (else ./hosts.toml, else ~/.config/dcs-tui/hosts.toml, else this machine)")
}

// sshFlags are those of every command that connects.
func sshFlags(fs *pflag.FlagSet, config *string, acceptNew *bool) {
	fs.StringVar(config, "ssh-config", "", "read FILE instead of ~/.ssh/config")
	fs.BoolVar(acceptNew, "accept-new", false, "remember the key of a host that is not known yet (a changed key always stops)")
}

// endFlags say when and how the run ends.
func (f *runFlags) endFlags(fs *pflag.FlagSet) {
	fs.Var((*haltValue)(&f.Halt), "halt", "start no more jobs after N or N% have failed (with --buffer hosts may start what they were handed)")
	fs.Var((*choiceValue)(&f.OnInterrupt).of("drain", "cancel"), "on-interrupt", "what Ctrl-C does: drain (finish what runs) or cancel")
	fs.StringVar(&f.OnDone, "on-done", "", "shell COMMAND to run when the run ends; sees DCS_RUN, DCS_RUN_DIR, DCS_STATE and counts such as DCS_FAILED")
}

// jobFlags are what the jobs find, fixed when the run is made.
func (f *runFlags) jobFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.env, "env", nil, "set NAME=VALUE for the jobs; NAME alone hands the present value on and stores only its hash")
	fs.StringVar(&f.Setup, "setup", "", "LINE of shell before each job, in the same shell, such as: module load cuda")
	fs.StringVar(&f.Cwd, "cwd", "", "DIRECTORY that the jobs run in (this one)")
	fs.StringVar(&f.Shell, "shell", "", "SHELL that runs the jobs (/bin/sh)")
}

// policyFlags are what happens to jobs that say nothing themselves.
func (f *runFlags) policyFlags(fs *pflag.FlagSet) {
	f.Tries = 3
	fs.Var(countUpTo{(*countValue)(&f.Tries), jobs.MaxTries}, "tries", "at most N attempts of a job in all")
	fs.Var(delayValue{&f.RetryDelay}, "retry-delay", "wait this TIME before a retry on the same host; 0 turns it off (default: from the run time, at most 1m)")
	fs.Var((*spanValue)(&f.Timeout), "timeout", "end a job after this TIME, such as 90s, 30m, 2h")
	fs.BoolVar(&f.RetryTimeouts, "retry-timeouts", false, "try a job again that ran into its timeout")
	fs.Var((*choiceValue)(&f.OnLost).of("requeue", "wait"), "on-lost", "jobs of a host given up as lost: requeue, or wait for the host")
	fs.Var((*spanValue)(&f.HalfLife), "half-life", "slot time that a queue has used counts half after this TIME (1h)")
	fs.BoolVar(&f.KeepChildren, "keep-children", false, "leave processes alive that jobs left behind")
}

// options are what the run was asked to do; run.toml keeps those that were given.
type options struct {
	Setup, Cwd, Shell string
	Tries             int
	RetryDelay        *time.Duration // nil: derived from the run time
	Timeout           time.Duration
	RetryTimeouts     bool
	OnLost            string
	KeepChildren      bool
	MaxSlots          int
	GiveUp, Buffer    time.Duration
	HalfLife          time.Duration
	Halt              string
	OnInterrupt       string
	OnDone            string
	SSHConfig         string
	AcceptNew         bool
}

// check finds what no single flag can know.
func (o *options) check() error {
	for flag, text := range map[string]string{"--setup": o.Setup, "--cwd": o.Cwd, "--shell": o.Shell} {
		if strings.ContainsRune(text, 0) {
			return exit.Usagef("%s contains a NUL byte", flag)
		}
	}
	return nil
}
