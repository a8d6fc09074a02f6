package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	mango "github.com/muesli/mango-cobra"
	"github.com/muesli/roff"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"dcs-tui/internal/cli/console"
)

// reflow joins the lines of each paragraph of the help. fang and man break lines at their
// own width.
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

// maxHelp is the maximum width of fang's help.
const maxHelp = 120

// fitHelp wraps the descriptions of flags and subcommands, in the help of the command that
// args name, at the width of the terminal. fang does not wrap them. If the output is not a
// terminal, each stays one line, for grep.
func fitHelp(root *cobra.Command, args []string) {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width <= 0 || len(args) > 0 && strings.HasPrefix(args[0], "__") { // completion needs single lines
		return
	}
	if len(args) > 0 && args[0] == "help" {
		args = args[1:]
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find(args)
	if err != nil {
		return
	}
	fitCommand(cmd, min(width, maxHelp))
}

// fitCommand fits the help of a command into width columns.
func fitCommand(cmd *cobra.Command, width int) {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	const indent, between = 4, 2
	keys := 8
	for _, sub := range cmd.Commands() {
		keys = max(keys, len(sub.Use)+len("  [--flags]")-len("[flags] "))
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			keys = max(keys, len("--")+len(f.Name))
		}
	})
	room := max(width-indent-keys-between, 20)
	for _, sub := range cmd.Commands() {
		sub.Short = console.WrapTo(sub.Short, room, 0)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		preset := "(" + f.DefValue + ")"
		if slices.Contains([]string{"", "false", "0", "[]"}, f.DefValue) {
			preset = ""
		}
		f.Usage = strings.TrimSuffix(console.WrapTo(strings.TrimSpace(f.Usage+" "+preset), room, 0), preset) // fang adds it
		f.Usage = strings.TrimSuffix(f.Usage, " ")
	})
	const margins = 8 // of fang's block of examples
	var lines []string
	for l := range strings.SplitSeq(cmd.Example, "\n") {
		lines = append(lines, breakCommand(l, width-margins))
	}
	cmd.Example = strings.Join(lines, "\n")
}

// breakCommand breaks a shell command into rows at spaces outside of quotes. The shell
// reads the same command.
func breakCommand(line string, width int) string {
	if len(line) <= width || strings.HasPrefix(line, "#") {
		return line
	}
	var rows []string
	from, last, quote := 0, 0, byte(0)
	for i := 0; i <= len(line); i++ {
		if i == len(line) || line[i] == ' ' && quote == 0 {
			room := width - len(` \`)
			if len(rows) > 0 {
				room -= 2
			}
			if i-from > room && last > from {
				rows = append(rows, line[from:last]+` \`)
				from = last + 1
			}
			last = i
			continue
		}
		switch {
		case quote == line[i]:
			quote = 0
		case quote == 0 && (line[i] == '\'' || line[i] == '"'):
			quote = line[i]
		}
	}
	return strings.Join(append(rows, line[from:]), "\n")
}

// manCmd prints the manual page.
func manCmd() *cobra.Command {
	return &cobra.Command{
		Use:                   "man",
		Short:                 "Print the manual page",
		DisableFlagsInUseLine: true,
		Hidden:                true,
		Args:                  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			page, err := mango.NewManPage(1, cmd.Root())
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), page.Build(&manual{Document: roff.NewDocument()}))
			return err
		},
	}
}

// manual is a roff document whose header fits on one line, and that puts every option on
// a line of its own.
type manual struct {
	*roff.Document
	indented bool // nothing was written since the indentation
}

// Heading writes a short name of the manual. mango passes the whole description, which
// man would print in the middle of the header, over the names on both sides.
func (m *manual) Heading(section uint, title, _ string, ts time.Time) {
	m.Document.Heading(section, title, "User Commands", ts)
}

func (m *manual) Indent(n int) {
	m.indented = true
	m.Document.Indent(n)
}

func (m *manual) Text(text string) {
	m.indented = false
	m.Document.Text(text)
}

func (m *manual) TextBold(text string) {
	if m.indented {
		m.TaggedParagraph(-1)
	}
	m.indented = false
	m.Document.TextBold(text)
}
