package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"dcs-tui/hosts"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
	"dcs-tui/jobs/rundir"
)

// A run on another machine is HOST:RUN to every command that takes a RUN. The command
// then runs there, through the user's own ssh, with the program that dispatches the run.

// takesRun reports whether the first argument of a command is a RUN.
func takesRun(cmd *cobra.Command) bool {
	words := strings.Fields(strings.ReplaceAll(cmd.Use, "[flags]", ""))
	return len(words) > 1 && strings.HasPrefix(strings.Trim(words[1], "[]."), "RUN")
}

// cutHost cuts HOST:RUN. A run of this machine may have a colon in its name.
func cutHost(arg string) (host, run string, ok bool) {
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

// localFileFlags are the options that name files of this machine.
var localFileFlags = []string{"hosts", "ssh-config", "joblog", "file"}

// elsewhere runs a command whose RUN is on another machine there, in place of this
// process, and returns only an error. It does nothing for a run of this machine.
func (a *app) elsewhere(cmd *cobra.Command, args []string) error {
	if !takesRun(cmd) || len(args) == 0 {
		return nil
	}
	host, run, ok := cutHost(args[0])
	if !ok {
		return nil
	}
	switch {
	case strings.HasPrefix(host, "-"):
		return exit.Usagef("a host's name cannot begin with a dash: %s", console.CleanLine(host))
	case run == "":
		return exit.Usagef("no run is named on %s", console.CleanLine(host)).WithAdvice("HOST:RUN is a run directory there, or a name in dcs-runs in your home directory there")
	}
	there := slices.Clone(a.args)
	for i, arg := range args {
		at := slices.Index(there, arg)
		switch h, r, ok := cutHost(arg); {
		case ok && h == host && at >= 0:
			there[at] = r
		case ok && strings.HasPrefix(cmd.Use, "prune"):
			return exit.Usagef("the runs are on several machines: %s and %s", console.CleanLine(host), console.CleanLine(h))
		case i > 0 && strings.HasPrefix(cmd.Use, "submit") && arg != stdinFile && cmd.ArgsLenAtDash() < 0:
			return exit.Usagef("the command runs on %s, and %s is a file of this machine", console.CleanLine(host), console.CleanLine(arg)).
				WithAdvice("dcs-tui submit %s - < %s sends it", console.ShellWord(console.CleanLine(args[0])), console.ShellWord(console.CleanLine(arg)))
		}
	}
	var local string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(localFileFlags, f.Name) {
			local = f.Name
		}
	})
	if out := cmd.Flags().Lookup("output"); cmd.Name() == "report" && out.Value.String() != stdoutFile {
		return exit.Usagef("the command runs on %s, where the report would be written, too", console.CleanLine(host)).
			WithAdvice("-o - > report.html brings it here")
	}
	if local != "" {
		return exit.Usagef("the command runs on %s, where --%s would name another file than here", console.CleanLine(host), local).
			WithAdvice("type it there: ssh -t %s", console.ShellWord(console.CleanLine(host)))
	}
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return exit.Usagef("a run on another machine is reached with ssh, which is not installed here: %w", err)
	}
	err = unix.Exec(ssh, sshArgs(host, run, there, a.atTerminal()), os.Environ())
	return exit.Usagef("cannot start ssh: %w", err)
}

// atTerminal reports whether a person types and reads at a terminal.
func (a *app) atTerminal() bool {
	stdin, ok := a.stdin.(*os.File)
	return ok && term.IsTerminal(int(stdin.Fd())) && term.IsTerminal(int(a.stdout.Fd()))
}

// findProgram is a script for host $0. It starts the program that dispatches the run $1, as
// the run's owner file names it, or else the one in PATH, with the arguments that follow.
// It is one line, because csh takes no newline between quotes.
const findProgram = `p=; for d in "$1" "dcs-runs/$1"; do if [ -O "$d/owner" ]; then ` +
	`p=$(sed -n 's/.*"program":"\([^"\\]*\)".*/\1/p' "$d/owner"); break; fi; done; ` +
	`[ -x "$p" ] || p=$(command -v dcs-tui) || { echo "dcs-tui: found no run $1 on $0, and dcs-tui is not in PATH there" >&2; exit 2; }; ` +
	`shift; exec "$p" "$@"`

// sshArgs returns the command line that runs the program on a host with these arguments.
// The login shell there reads the last word.
func sshArgs(host, run string, args []string, terminal bool) []string {
	words := []string{"exec", "/bin/sh", "-c", hosts.ShellQuote(findProgram), hosts.ShellQuote(host), hosts.ShellQuote(run)}
	for _, arg := range args {
		words = append(words, hosts.ShellQuote(arg))
	}
	argv := []string{"ssh"}
	if terminal {
		argv = append(argv, "-t")
	}
	return append(argv, host, strings.Join(words, " "))
}
