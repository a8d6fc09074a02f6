package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/hosts/link"
	"dcs-tui/internal/text"
	"dcs-tui/jobs/rundir"
)

// runHelp describes what RUN means to a command for which it is optional.
const runHelp = "RUN is a name in ./dcs-runs, a directory, or HOST:RUN on another machine; " +
	"by default it is the newest run."

// openRun finds the run that the arguments name, or the newest.
func (a *app) openRun(args []string) (*rundir.Run, error) {
	name := ""
	if len(args) > 0 {
		name = args[0]
		if name == "" { // probably an unset variable of a shell, so the newest run is not meant
			return nil, text.Errorf("the name of the run is empty").WithAdvice("dcs-tui runs list shows them")
		}
	}
	found := a.reportSlow(cmp.Or(name, rundir.Base))
	dir, err := rundir.Find(rundir.Base, name)
	found()
	if err != nil {
		return nil, err
	}
	return a.openDir(dir)
}

// openDir opens a run directory. While the command runs, it reports if the first directory that was
// opened does not answer.
func (a *app) openDir(dir string) (*rundir.Run, error) {
	opened := a.reportSlow(dir)
	run, err := rundir.Open(dir)
	opened()
	if err != nil {
		return nil, err
	}
	if a.watchesDir {
		return run, nil
	}
	a.watchesDir = true
	go func() { // until the process ends
		for ; ; time.Sleep(time.Second) {
			answered := a.reportSlow(dir)
			// an NFS client asks the server even if it has cached the file
			if f, err := run.OpenFile(os.O_RDONLY, rundir.SettingsFile); err == nil {
				f.Close()
			}
			answered()
		}
	}()
	return run, nil
}

// slowDelay is the delay before a command reports that it waits for a file system: if the file
// server is down, the command hangs.
const slowDelay = 3 * time.Second

// reportSlow reports that a directory does not answer, unless answered is called within slowDelay.
// It reports once per command, and not while a screen is shown, which reports it itself.
func (a *app) reportSlow(dir string) (answered func()) {
	over := new(atomic.Bool)
	var tell func()
	tell = func() {
		switch {
		case over.Load():
		case a.con.IsHolding():
			time.AfterFunc(slowDelay, tell)
		default:
			a.slowOnce.Do(func() {
				a.con.Line(fmt.Sprintf("the run directory %s has not answered for %.0f s; waiting", text.Line(dir),
					slowDelay.Seconds()))
			})
		}
	}
	t := time.AfterFunc(slowDelay, tell)
	return func() {
		over.Store(true)
		t.Stop()
	}
}

// Functions for completion need not leave out what does not begin with the typed word: shells do.

// completeRuns completes the first argument with the names of runs, newest first.
func completeRuns(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	runs, err := rundir.List(rundir.Base)
	if err != nil || strings.Contains(prefix, "/") {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	names := text.Each(runs, func(r rundir.Entry) string { return r.Name })
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeAnyRun is completeRuns for each argument, not only the first.
func completeAnyRun(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return completeRuns(cmd, nil, prefix)
}

// Every command that takes a RUN accepts HOST:RUN for a run on another machine. The command then
// runs there, through the user's ssh, with the program that dispatches the run.

// takesRun reports whether the first argument of a command is a RUN.
func takesRun(cmd *cobra.Command) bool {
	words := strings.Fields(strings.ReplaceAll(cmd.Use, "[flags]", ""))
	return len(words) > 1 && strings.HasPrefix(strings.Trim(words[1], "[]."), "RUN")
}

// splitHost splits HOST:RUN. A run on this machine may have a colon in its name.
func splitHost(arg string) (host, run string, ok bool) {
	host, run, ok = strings.Cut(arg, ":")
	if !ok || host == "" || strings.Contains(host, "/") {
		return "", "", false
	}
	for _, path := range []string{arg, filepath.Join(rundir.Base, arg)} {
		if _, err := os.Lstat(path); err == nil {
			return "", "", false
		}
	}
	return host, run, true
}

// localFileFlags are the flags that name files on this machine.
var localFileFlags = []string{"hosts", "ssh-config", "joblog", "file"}

// runOnOtherMachine runs a command on the machine of its RUN, in place of this process, and returns
// only if that fails. It does nothing if the run is on this machine.
func (a *app) runOnOtherMachine(cmd *cobra.Command, args []string) error {
	if !takesRun(cmd) || len(args) == 0 {
		return nil
	}
	host, run, ok := splitHost(args[0])
	if !ok {
		return nil
	}
	switch {
	case strings.HasPrefix(host, "-"):
		return text.Errorf("a host's name cannot begin with a dash: %s", text.Line(host))
	case run == "":
		return text.Errorf("no run is named on %s",
			text.Line(host)).
			WithAdvice("HOST:RUN is a run directory there, or a name in dcs-runs in your home directory there")
	}
	there := slices.Clone(a.args)
	for i, arg := range args {
		at := slices.Index(there, arg)
		switch h, r, ok := splitHost(arg); {
		case ok && h == host && at >= 0:
			there[at] = r
		case ok && strings.HasPrefix(cmd.Use, "prune"):
			return text.Errorf("the runs are on several machines: %s and %s", text.Line(host), text.Line(h))
		case i > 0 && strings.HasPrefix(cmd.Use, "submit") && arg != stdinFile && cmd.ArgsLenAtDash() < 0:
			return text.Errorf("the command runs on %s, and %s is a file of this machine", text.Line(host),
				text.Line(arg)).
				WithAdvice("dcs-tui submit %s - < %s sends it", text.ShellWord(text.Line(args[0])),
					text.ShellWord(text.Line(arg)))
		}
	}
	var local string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(localFileFlags, f.Name) {
			local = f.Name
		}
	})
	if out := cmd.Flags().Lookup("output"); cmd.Name() == "report" && out.Value.String() != stdoutFile {
		return text.Errorf("the command runs on %s, where the report would be written, too", text.Line(host)).
			WithAdvice("-o - > report.html copies it here")
	}
	if local != "" {
		return text.Errorf("the command runs on %s, where --%s would name another file", text.Line(host), local).
			WithAdvice("run it there: ssh -t %s", text.ShellWord(text.Line(host)))
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return link.NoSSHError("runs the command on another machine")
	}
	err = unix.Exec(ssh, sshArgs(host, run, there, a.isInteractive()), os.Environ())
	return text.Errorf("cannot start ssh: %w", err)
}

// isInteractive reports whether standard input and output are a terminal.
func (a *app) isInteractive() bool { return isTerminal(a.stdin) && isTerminal(a.stdout) }

// findProgram is a script for the host $0. With the arguments after $1 it runs the program that
// dispatches the run $1, according to the owner file of the run, or else the program in PATH. It is
// one line, because csh allows no newline between quotes.
const findProgram = `p=; for d in "$1" "dcs-runs/$1"; do if [ -O "$d/owner" ]; then ` +
	`p=$(sed -n 's/.*"program":"\([^"\\]*\)".*/\1/p' "$d/owner"); break; fi; done; ` +
	`[ -x "$p" ] || p=$(command -v dcs-tui) || { echo "dcs-tui: found no run $1 on $0, ` +
	`and dcs-tui is not in PATH there" >&2; exit 2; }; ` +
	`shift; exec "$p" "$@"`

// sshArgs returns the command line that runs the program on a host with these arguments. The login
// shell there parses the last word.
func sshArgs(host, run string, args []string, terminal bool) []string {
	words := text.Each(slices.Concat([]string{findProgram, host, run}, args), hosts.ShellQuote)
	argv := []string{"ssh"}
	if terminal {
		argv = append(argv, "-t")
	}
	return append(argv, host, "exec /bin/sh -c "+strings.Join(words, " "))
}

// setUpArguments has the flags of a command listed in the order of their definition. It adds
// completions to RUN, and to flags with a fixed set of values or that several commands have.
func setUpArguments(cmd *cobra.Command) {
	if cmd.ValidArgsFunction == nil && takesRun(cmd) {
		cmd.ValidArgsFunction = completeRuns
	}
	cmd.Flags().SortFlags = false
	dirs := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	toml := cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt)
	shared := map[string]cobra.CompletionFunc{"hosts": toml, "cwd": dirs, "run-dir": dirs, "env": completeEnv,
		"where": completeWhere}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if kind := f.Value.Type(); choices.MatchString(kind) {
			words := cobra.FixedCompletions(strings.Split(kind, "|"), cobra.ShellCompDirectiveNoFileComp)
			cmd.RegisterFlagCompletionFunc(f.Name, words)
		} else if complete := shared[f.Name]; complete != nil {
			cmd.RegisterFlagCompletionFunc(f.Name, complete)
		}
		checkValuesOf(f)
	})
}

// describePlainly removes the backquotes from the descriptions of flags. They mark the placeholder for
// --help, and shells would show them.
func describePlainly(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") })
}

// completeEnv completes the names of environment variables.
func completeEnv(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if run.IsEnvName(name) && !strings.HasPrefix(name, "DCS_") {
			names = append(names, name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeHosts completes the names of the inventory's hosts.
func completeHosts(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	flag, _ := cmd.Flags().GetString("hosts")
	return completeHostNames(func(a *app) (*hosts.Inventory, error) { return a.loadInventory(flag) })
}

// completeRunHosts completes the names of the hosts in the inventory of the run that the first
// argument names.
func completeRunHosts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return completeHostNames(func(a *app) (*hosts.Inventory, error) {
		run, err := a.openRun(args[:min(1, len(args))])
		if err != nil {
			return nil, err
		}
		return a.storedInventory(run)
	})
}

// completeHostNames returns the names of the hosts in an inventory.
func completeHostNames(inventory func(*app) (*hosts.Inventory, error)) ([]string, cobra.ShellCompDirective) {
	// A warning would appear in the line that is being typed.
	inv, err := inventory(&app{con: consoleTo(io.Discard)})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := text.Each(inv.Hosts, func(h *hosts.Host) string { return h.Name })
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeRunThen completes RUN, and the arguments after it with what complete offers.
func completeRunThen(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return completeRuns(cmd, args, prefix)
		}
		return complete(cmd, args, prefix)
	}
}

// completeMany completes every argument with what complete offers, except names that are given
// already.
func completeMany(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		names, how := complete(cmd, args, prefix)
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), how
	}
}

// refTo returns the argument that names the run in a command: its name if it is in ./dcs-runs,
// otherwise its directory.
func refTo(run *rundir.Run) string {
	ref := text.Path(run.Dir)
	if base, err := filepath.Abs(rundir.Base); err == nil && filepath.Dir(run.Dir) == base {
		ref = filepath.Base(run.Dir)
	}
	return text.ShellWord(text.Line(ref))
}

// dirOf returns the path of the run directory, or of a file in it, for messages.
func dirOf(run *rundir.Run, names ...string) string {
	return text.Line(text.Path(run.Path(names...)))
}

// runJSON has the first fields of all JSON objects about a run.
type runJSON struct {
	V   int    `json:"v"`
	Run string `json:"run"`
	UID string `json:"uid"`
}

func runJSONOf(run *rundir.Run) runJSON { return runJSON{1, run.Name(), run.UID()} }
