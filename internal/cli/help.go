package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	mango "github.com/muesli/mango-cobra"
	"github.com/muesli/roff"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"dcs-tui/internal/cli/console"
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
		".InheritedFlags.FlagUsages", "wrapFlags .InheritedFlags").Replace(root.UsageTemplate()))
}

// wrapParagraphs joins the lines of each paragraph and, unless width is 0, wraps them.
func wrapParagraphs(long string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(long), "\n\n")
	for i, p := range paragraphs {
		if p = strings.ReplaceAll(p, "\n", " "); width > 0 {
			p = console.WrapTo(p, width, 0)
		}
		paragraphs[i] = p
	}
	return strings.Join(paragraphs, "\n\n")
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
			for _, c := range append(cmd.Root().Commands(), cmd.Root()) {
				c.Long = wrapParagraphs(c.Long, 0) // man breaks lines itself
			}
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
