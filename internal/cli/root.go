package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"charm.land/fang/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"dcs-tui/dispatch/run"
	"dcs-tui/internal/cli/console"
	"dcs-tui/internal/cli/exit"
)

// app is one invocation of the program.
type app struct {
	stdin      io.Reader
	stdout     *os.File
	stderr     *os.File
	con        *console.Console
	signals    <-chan os.Signal // nil until listen
	early      chan os.Signal   // see leaveOnQuit
	onTerminal bool             // standard error is a terminal
	ssh        *sshSetup        // nil until a host in use needs it
	bases      string           // see client.Options; tests set it
	args       []string         // of the command line
	starter    *starter         // the screen that waits for us to dispatch; nil: there is none
	questions  *run.Questions   // asks attached screens for secrets; nil: the terminal is asked
	code       int              // what the program exits with when no error says otherwise
}

// Main runs the program with the arguments after its name and returns its exit
// code.
func Main(args []string) int { return newApp().main(args) }

func newApp() *app {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, con: console.New(os.Stderr),
		onTerminal: term.IsTerminal(int(os.Stderr.Fd())), starter: theStarter()}
	if a.starter != nil {
		a.questions = new(run.Questions)
	}
	return a
}

func (a *app) main(args []string) int {
	a.args = args
	a.leaveOnQuit()
	root := a.root()
	root.SetArgs(args)
	reflow(root)
	fitHelp(root, args)
	failed := a.keepErrors(root)
	err := fang.Execute(context.Background(), root, fang.WithVersion(version()), fang.WithoutManpage(),
		fang.WithErrorHandler(func(_ io.Writer, _ fang.Styles, err error) { a.complain(err) }))
	if err != nil {
		return exit.CodeOf(err)
	}
	if *failed != nil {
		a.complain(*failed)
		return exit.CodeOf(*failed)
	}
	return a.code
}

// reflow makes one line of each paragraph of the help: whoever shows it, on a
// terminal or in a man page, fills lines of its own width.
func reflow(cmd *cobra.Command) {
	paragraphs := strings.Split(cmd.Long, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.ReplaceAll(p, "\n", " ")
	}
	cmd.Long = strings.Join(paragraphs, "\n\n")
	for _, sub := range cmd.Commands() {
		reflow(sub)
	}
}

// keepErrors takes the errors of all commands past fang, which would ask the
// terminal for its colours before it passes one on: a question that is answered
// late ends up in the user's next command line.
func (a *app) keepErrors(root *cobra.Command) *error {
	var failed error
	var wrap func(*cobra.Command)
	wrap = func(cmd *cobra.Command) {
		if run := cmd.RunE; run != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if failed = a.elsewhere(cmd, args); failed == nil {
					failed = run(cmd, args)
				}
				return nil
			}
		}
		for _, sub := range cmd.Commands() {
			wrap(sub)
		}
	}
	wrap(root)
	return &failed
}

// The groups of commands in the help.
const (
	groupRun  = "run"
	groupLook = "look"
	groupHost = "hosts"
	groupMore = "more"
)

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "dcs-tui",
		Short: "Run thousands of shell commands on the cores of a lab's workstations",
		Long: `Run thousands of shell commands on the cores of a lab's workstations.

One program, nothing to install on the hosts: what you can reach with ssh, it can
use. It keeps every free core busy, stays out of colleagues' way, and carries on
after crashed hosts, dropped links and its own death.

` + exit.Help,
		Example: `# on this machine's cores (all but one)
dcs-tui run jobs.txt

# on the hosts of an inventory, after a look at them
dcs-tui hosts check
dcs-tui run --hosts hosts.toml jobs.txt

# come back to a run that goes on in the background
dcs-tui attach

# carry on what was stopped
dcs-tui resume`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "run jobs"},
		&cobra.Group{ID: groupLook, Title: "look at runs"},
		&cobra.Group{ID: groupHost, Title: "hosts"},
		&cobra.Group{ID: groupMore, Title: "more"},
	)
	root.SetHelpCommandGroupID(groupMore)
	root.SetCompletionCommandGroupID(groupMore)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var bad *pflag.InvalidValueError
		if errors.As(err, &bad) {
			err = fmt.Errorf("--%s: %w", bad.GetFlag().Name, bad.Unwrap())
		}
		return exit.Usagef("%s", firstLine(err.Error())).WithAdvice("%s --help lists the options", cmd.CommandPath())
	})
	root.AddCommand(a.runCmd(), a.gridCmd(), a.resumeCmd(), a.submitCmd(), a.cancelCmd(), a.requeueCmd(),
		a.attachCmd(), a.statusCmd(), a.whyCmd(), a.logsCmd(), a.fetchCmd(), a.resultsCmd(), a.eventsCmd(), a.runsCmd(), a.hostsCmd(), manCmd())
	completeFlags(root)
	return root
}

// unknownCommand says what was probably meant.
func unknownCommand(cmd *cobra.Command, word string) error {
	p := exit.Usagef("there is no command %q", console.Shorten(word)).WithAdvice("%s --help lists the commands", cmd.CommandPath())
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		p.WithAdvice("did you mean %s?", strings.Join(near, " or "))
	}
	if _, err := os.Stat(word); err == nil {
		p.WithAdvice("to run a file of jobs: dcs-tui run %s", console.ShellWord(word))
	}
	return p
}

// needsCommand is the RunE of a command that only holds others.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknownCommand(cmd, args[0])
}

// complain writes an error: one line (one for each fault of a file) and a line of
// advice.
func (a *app) complain(err error) {
	var lines []string
	for l := range strings.Lines(err.Error()) {
		prefix := "  "
		if len(lines) == 0 {
			prefix = "dcs-tui: "
		}
		lines = append(lines, prefix+console.CleanLine(l))
	}
	var p *exit.Problem
	if errors.As(err, &p) && p.Advice != "" {
		lines = append(lines, "  "+console.CleanLine(p.Advice))
	}
	a.con.Status("")
	a.con.Line(lines...)
}

// message writes a message that may begin with "warning: ".
func (a *app) message(text string) {
	if warning, ok := strings.CutPrefix(text, "warning: "); ok {
		a.warn("%s", warning)
		return
	}
	a.con.Line(console.CleanLine(text))
}

// warn writes a line that does not stop anything.
func (a *app) warn(format string, args ...any) {
	a.con.Line(a.con.Paint(console.Yellow, "warning: ") + console.CleanLine(fmt.Sprintf(format, args...)))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
