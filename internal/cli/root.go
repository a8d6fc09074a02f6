// Package cli is the command line of dcs-tui: flags, wiring, printing, and exit codes. A file
// holds a command or a concern that several share.
//
// It makes no decision about jobs or hosts (dispatch/sched does), stores nothing (jobs/rundir and
// jobs/journal do), and owns no run (dispatch/run does). All text from jobs and hosts passes
// text.Clean before it reaches a terminal.
package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dcs-tui/dispatch/run"
	"dcs-tui/grid"
	"dcs-tui/internal/text"
	"dcs-tui/internal/zone"
)

// app is one invocation of the program.
type app struct {
	stdin            io.Reader
	stdout           *output
	stderr           *os.File
	con              *console
	signals          <-chan os.Signal // nil before catchSignals
	quitSignals      chan os.Signal   // see exitOnQuit
	stderrIsTerminal bool             // standard error is a terminal
	ssh              *sshSetup        // nil before loadSSH has found a host that needs it
	helperBases      string           // see helper.Options; tests set it
	args             []string         // of the command line
	separatorArgs    []string         // arguments of run from the first separator, such as :::
	starter          *run.Starter     // the screen that started this process; nil: none
	questions        *run.Questions   // asks attached screens for secrets; nil: use the terminal
	slowOnce         sync.Once        // see reportSlow
	otherRuns        *otherRuns       // see others
	watchesDir       bool             // openDir watches the directory of a run
	pages            fs.FS            // of pageDirs, and otherFiles
	exitCode         int              // exit code, unless main gets an error
}

// Main runs the program with the arguments after its name and returns its exit code. pages has the
// files that help shows, by their paths in the repository.
func Main(pages fs.FS, args []string) int {
	a := newApp()
	a.pages = pages
	return a.main(args)
}

func newApp() *app {
	a := &app{stdin: os.Stdin, stdout: &output{File: os.Stdout}, stderr: os.Stderr, con: newConsole(os.Stderr),
		stderrIsTerminal: isTerminal(os.Stderr), starter: run.FindStarter()}
	if a.starter != nil {
		a.questions = new(run.Questions)
	}
	return a
}

func (a *app) main(args []string) int {
	a.exitOnQuit()
	if err := zone.SetLocal(); err != nil {
		a.warn("%v", err)
	}
	if err := a.execute(args...); err != nil {
		a.printError(err)
		if a.starter != nil {
			a.starter.Failed(text.Line(firstLine(err.Error())))
		}
		return errorCode(err)
	}
	if a.stdout.err != nil {
		a.printError(a.stdout.err)
		return exitUsage
	}
	return a.exitCode
}

// execute runs a command line.
func (a *app) execute(args ...string) error {
	a.args = args
	if len(args) > 0 && args[0] == "run" {
		args, a.separatorArgs = grid.CutArguments(args) // values may begin with -
	}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(cobraOutput{a.stdout})
	setUpHelp(root, helpWidth())
	a.setUpHelpCommands(root)
	return root.Execute()
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "dcs-tui",
		Short: "Run thousands of shell commands on the cores of a lab's workstations",
		Long: `Run thousands of shell commands on the cores of a lab's workstations. Nothing needs to be installed on
the hosts: dcs-tui can use every machine that you can reach with ssh. It keeps all free cores busy, leaves
cores to other users, and continues after crashes of hosts, lost connections, and its own death.`,
		Example: `# on this machine's cores (all but one)
dcs-tui run jobs.txt

# on the hosts of an inventory; check them first
dcs-tui hosts check
dcs-tui run --hosts hosts.toml jobs.txt

# list the runs in this directory, and show the newest one
dcs-tui
dcs-tui attach

# continue a run that was stopped
dcs-tui resume

# list the pages about jobs files, hosts, queries, and more, and show one
dcs-tui help pages
dcs-tui help jobs`,
		Args:              cobra.ArbitraryArgs,
		RunE:              a.runWithoutCommand,
		PersistentPreRunE: a.runOnOtherMachine,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           fullVersion(),
	}
	group := func(title string, cmds ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, cmd := range cmds {
			cmd.GroupID = title
		}
		root.AddCommand(cmds...)
	}
	group(
		"Run jobs:",
		append(a.requestCmds(false),
			a.runCmd(), a.gridCmd(), a.resumeCmd(), a.submitCmd(), a.cancelCmd(), a.requeueCmd(), a.attachCmd())...,
	)
	group(
		"Inspect runs:",
		a.waitCmd(), a.statusCmd(), a.whyCmd(), a.logsCmd(), a.fetchCmd(), a.resultsCmd(), a.reportCmd(),
		a.eventsCmd(), a.runsCmd(),
	)
	group("Hosts:", a.hostsCmd())
	group("More:", manCmd(), versionCmd())
	root.SetHelpCommandGroupID("More:")
	root.SetCompletionCommandGroupID("More:")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			err = fmt.Errorf("--%s: %w", typedName(a.args, bad.GetFlag().Name, bad.GetValue()), bad.Unwrap())
		}
		p := text.Errorf("%s", firstLine(err.Error()))
		if advice := unknownFlagAdvice(cmd, err); advice != "" {
			return p.WithAdvice("%s", advice)
		}
		if advised, ok := errors.AsType[*text.Error](err); ok && advised.Advice != "" {
			return p.WithAdvice("%s", advised.Advice)
		}
		return p.WithAdvice("%s --help lists the options", cmd.CommandPath())
	})
	forEachCommand(root, setUpArguments)
	for _, cmd := range root.Commands() {
		cmd.SuggestFor = otherNames[cmd.Name()]
	}
	if len(a.args) > 0 && a.args[0] == cobra.ShellCompRequestCmd {
		forEachCommand(root, describePlainly)
	}
	return root
}

// otherNames are the names that other programs have for our commands.
var otherNames = map[string][]string{"cancel": {"kill", "stop", "scancel"}, "requeue": {"retry", "rerun"},
	"runs": {"list", "ls"}, "status": {"ps", "queue", "squeue"}, "submit": {"add", "sbatch"}, "why": {"explain"}}

// unknownCommand returns an error that suggests similar commands.
func unknownCommand(cmd *cobra.Command, word string) *text.Error {
	p := text.Errorf("there is no command %q", text.Shorten(word)).
		WithAdvice("%s --help lists the commands; dcs-tui help pages lists the pages about the rest", cmd.CommandPath())
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		p.WithAdvice("did you mean %s?", strings.Join(near, " or "))
	}
	if _, err := os.Stat(word); err == nil {
		p.WithAdvice("to run a file of jobs: dcs-tui run %s", text.ShellWord(word))
	}
	return p
}

// needsCommand is the RunE of a command that only has subcommands.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// printError prints an error, which may have several lines, and its advice.
func (a *app) printError(err error) {
	var lines []string
	for l := range strings.Lines(err.Error()) {
		prefix := "  "
		if len(lines) == 0 {
			prefix = "dcs-tui: "
		}
		lines = append(lines, prefix+text.Line(l))
	}
	if p, ok := errors.AsType[*text.Error](err); ok && p.Advice != "" {
		lines = append(lines, "  "+text.Line(p.Advice))
	}
	a.con.Status("")
	a.con.Line(lines...)
}

func (a *app) warn(format string, args ...any) {
	a.con.Line(a.con.Paint(yellow, "warning: ") + text.Line(fmt.Sprintf(format, args...)))
}

func (a *app) warnAll(warnings []string) {
	for _, w := range warnings {
		a.warn("%s", w)
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// taggedVersion is the version of a release, which its build sets with -ldflags -X.
var taggedVersion string

// buildSetting returns what the build has recorded under a key, or "".
func buildSetting(key string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, kv := range info.Settings {
			if kv.Key == key {
				return kv.Value
			}
		}
	}
	return ""
}

// version describes the program for run.toml: its version, and the commit unless the version names
// it.
func version() string {
	v := taggedVersion
	if info, ok := debug.ReadBuildInfo(); ok {
		v = cmp.Or(v, info.Main.Version)
	}
	return versionOf(v, buildSetting("vcs.revision"), buildSetting("vcs.modified") == "true")
}

// versionOf describes a version of the program, which is "" or (devel) if the build knows none.
func versionOf(v, commit string, isChanged bool) string {
	if v == "" || v == "(devel)" {
		v = "(development build)"
	}
	commit = commit[:min(12, len(commit))]
	if commit == "" || strings.Contains(v, commit) {
		return v
	}
	commit += text.If(isChanged, ", changed")
	return v + ", commit " + commit
}

// fullVersion describes the program for a bug report.
func fullVersion() string {
	return fmt.Sprintf("%s, %s, %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionCmd is an alternative to --version.
func versionCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, commit, and Go version of dcs-tui",
		Long:    "Print the version and commit of dcs-tui, the version of Go that built it, and its system.",
		Example: "dcs-tui version",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "dcs-tui version", fullVersion())
			return err
		},
		DisableFlagsInUseLine: true,
	}
}

// The exit codes.
const (
	exitOK      = 0 // every job succeeded
	exitFailed  = 1 // some job did not succeed
	exitUsage   = 2 // usage or configuration: nothing was started
	exitNoHosts = 3 // nothing was possible for the time of --give-up
	// Stopped with jobs left, which resume continues; or the screen was left, and the run
	// continues.
	exitLeft     = 4
	exitCanceled = 130 // canceled
)

type exitMeaning struct {
	code int
	text string
}

// exitCodes describes the exit codes in the help and in the manual.
var exitCodes = []exitMeaning{
	{exitOK, "all jobs succeeded, or enough for --halt"},
	{exitFailed, "some did not"},
	{exitUsage, "error in usage or configuration"},
	{exitNoHosts, "nothing was possible for the time of --give-up"},
	{exitLeft, "stopped with jobs left (dcs-tui resume continues) or left the screen while the run continues"},
	{exitCanceled, "canceled"},
}

func exitHelp() string {
	texts := text.Each(exitCodes, func(c exitMeaning) string { return fmt.Sprintf("%d %s", c.code, c.text) })
	return "Exit codes: " + strings.Join(texts, ", ") + "."
}

func exitCode(s run.State) int {
	switch s {
	case run.Succeeded, run.Reached:
		return exitOK
	case run.Failed:
		return exitFailed
	case run.NoHosts:
		return exitNoHosts
	case run.Canceled:
		return exitCanceled
	}
	return exitLeft
}

// codeError is an error with an exit code of its own.
type codeError struct {
	error
	code int
}

func (e *codeError) Unwrap() error { return e.error }

// withCode makes the program exit with this code because of err.
func withCode(code int, err error) error { return &codeError{err, code} }

// errorCode returns the exit code of an error. Errors without a code were found before anything
// was started.
func errorCode(err error) int {
	if c, ok := errors.AsType[*codeError](err); ok {
		return c.code
	}
	return exitUsage
}
