package cli

import (
	"fmt"
	"time"

	mango "github.com/muesli/mango-cobra"
	"github.com/muesli/roff"
	"github.com/spf13/cobra"
)

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

// manual is a roff document whose header fits on one line. It puts the first of several
// options on a line of its own, like the others.
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
