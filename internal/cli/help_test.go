package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The help of every command fits the terminal, broken between words and with no word lost
// or cut: a new user's first look.
func TestHelpFitsTheTerminal(t *testing.T) {
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, width := range []int{0, 80, 100, 120} {
		root := newApp().root()
		setUpHelp(root, width)
		var each func(cmd *cobra.Command)
		each = func(cmd *cobra.Command) {
			var b bytes.Buffer
			cmd.SetOut(&b)
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
			help := words(b.String())
			want := []string{words(cmd.Long)}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if !f.Hidden {
					want = append(want, words(f.Usage))
				}
			})
			for _, text := range want {
				if !strings.Contains(help, text) {
					t.Errorf("%s, %d columns: %q is missing in\n%s", cmd.CommandPath(), width, text, b.String())
				}
			}
			examples := strings.Split(cmd.Example, "\n")
			for row := range strings.SplitSeq(b.String(), "\n") {
				if len([]rune(row)) > width && width > 0 && !slices.Contains(examples, row) {
					t.Errorf("%s, %d columns: %q", cmd.CommandPath(), width, row)
				}
			}
			for _, sub := range cmd.Commands() {
				each(sub)
			}
		}
		each(root)
	}
}

// Every flag of a command with many flags is in exactly one group of the help.
func TestFlagGroups(t *testing.T) {
	group := map[string]string{"help": "at the end"}
	for _, g := range flagGroups {
		for _, name := range strings.Fields(g.names) {
			if group[name] != "" {
				t.Errorf("--%s is in the groups %q and %q", name, group[name], g.title)
			}
			group[name] = g.title
		}
	}
	known := map[string]bool{}
	for _, cmd := range newApp().root().Commands() {
		n := 0
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			known[f.Name] = true
			if !f.Hidden {
				n++
			}
		})
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if n >= minGroupedFlags && !f.Hidden && group[f.Name] == "" {
				t.Errorf("%s --%s is in no group of flagGroups", cmd.Name(), f.Name)
			}
		})
	}
	for name := range group {
		if !known[name] && name != "help" {
			t.Errorf("--%s of flagGroups is a flag of no command", name)
		}
	}
}
