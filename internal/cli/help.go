package cli

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"dcs-tui/internal/text"
)

// maxHelpWidth is the maximum width of the help, in columns.
const maxHelpWidth = 120

// helpWidth returns the width of the help. It is 0, which means that nothing is wrapped, if
// the output is not a terminal.
func helpWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return min(width, maxHelpWidth)
}

// setUpHelp makes the help of all commands fit into width columns.
func setUpHelp(root *cobra.Command, width int) {
	cobra.AddTemplateFunc("wrapFlags", func(fs *pflag.FlagSet) string { return flagUsages(fs, width) })
	cobra.AddTemplateFunc("wrapText", func(long string) string { return wrapParagraphs(long, width) })
	root.SetHelpTemplate(strings.Replace(root.HelpTemplate(), "trimTrailingWhitespaces", "wrapText", 1))
	root.SetUsageTemplate(strings.NewReplacer(".LocalFlags.FlagUsages", "wrapFlags .LocalFlags",
		".InheritedFlags.FlagUsages", "wrapFlags .InheritedFlags").Replace(root.UsageTemplate()) +
		"{{if not .HasParent}}\n" + wrapParagraphs(exitHelp(), width) + "\n{{end}}")
}

// setUpHelpCommands makes cobra's commands help and completion refuse words that name nothing.
func (a *app) setUpHelpCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			a.setUpHelpPages(root, cmd)
		case "completion":
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, needsCommand
		}
	}
}

// wrapParagraphs joins the lines of each paragraph and, unless width is 0, wraps them.
func wrapParagraphs(long string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(long), "\n\n")
	for i, p := range paragraphs {
		p = strings.ReplaceAll(p, "\n", " ")
		if width > 0 {
			p = wrapIndented(p, width, 0)
		}
		paragraphs[i] = p
	}
	return strings.Join(paragraphs, "\n\n")
}

// forEachCommand calls f for a command and everything below it.
func forEachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, c := range cmd.Commands() {
		forEachCommand(c, f)
	}
}

// unknownFlagAdvice returns what to use instead of a flag of GNU parallel, if the command runs jobs,
// or the flag of the command that was probably meant. It returns "" for other errors.
func unknownFlagAdvice(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	name := unknown.GetSpecifiedName()
	if cmd.Name() == "priority" && strings.Trim(name, "0123456789") == "" {
		return "put -- before a negative number: dcs-tui priority RUN -- -1 JOBS"
	}
	if advice := adviceOnParallel(name); advice != "" && cmd.Flags().Lookup("tries") != nil {
		return advice
	}
	if len(name) < 2 {
		return ""
	}
	var names, longer, others []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		names = append(names, f.Name)
		if strings.HasPrefix(f.Name, name) {
			longer = append(longer, "--"+f.Name)
		}
	})
	if near := text.Nearest(name, names); near != "" {
		return "did you mean --" + near + "?"
	}
	if longer != nil {
		return "did you mean " + strings.Join(longer, " or ") + "?"
	}
	forEachCommand(cmd.Root(), func(c *cobra.Command) {
		if f := c.Flags().Lookup(name); f != nil && !f.Hidden {
			others = append(others, c.CommandPath())
		}
	})
	if others != nil {
		return "it is a flag of " + text.List(others, 3)
	}
	return ""
}
