package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The help of every command fits a terminal, broken between words and with no word lost
// or cut: a new user's first look.
func TestHelpFitsTheTerminal(t *testing.T) {
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, width := range []int{60, 80, 100, 120} {
		root := newApp().root()
		root.InitDefaultHelpCmd()
		root.InitDefaultCompletionCmd()
		var each func(cmd *cobra.Command)
		each = func(cmd *cobra.Command) {
			cmd.InitDefaultHelpFlag()
			before := map[*pflag.Flag]string{}
			cmd.Flags().VisitAll(func(f *pflag.Flag) { before[f] = f.Usage })
			shorts := map[*cobra.Command]string{}
			keys := 0
			for _, sub := range cmd.Commands() {
				shorts[sub] = sub.Short
				keys = max(keys, len(sub.Use))
			}
			fitCommand(cmd, width)
			for sub, short := range shorts {
				if words(sub.Short) != words(short) {
					t.Errorf("%s: %q became %q", sub.Name(), short, sub.Short)
				}
				fits(t, sub.CommandPath(), sub.Short, width-4-keys-2)
				sub.Short = short
			}
			for f, usage := range before {
				if words(f.Usage) != words(usage) {
					t.Errorf("%s --%s: %q became %q", cmd.CommandPath(), f.Name, usage, f.Usage)
				}
				fits(t, cmd.CommandPath()+" --"+f.Name, f.Usage, width-4-len("--"+f.Name)-2)
			}
			fits(t, cmd.CommandPath(), cmd.Example, max(width-8, 60))
			for _, sub := range cmd.Commands() {
				each(sub)
			}
		}
		each(root)
	}
}

func fits(t *testing.T, what, text string, width int) {
	t.Helper()
	for row := range strings.SplitSeq(text, "\n") {
		if len([]rune(row)) > width {
			t.Errorf("%s, %d columns: %q", what, width, row)
		}
	}
}

// A command that was broken is the same command to the shell.
func TestBrokenCommandsAreTheSame(t *testing.T) {
	for _, line := range []string{
		`printf '<%s>' 'a  b c' d "e  f" gggg 'it is "quoted"' "it's" | tr a-z b-za`,
		`printf '<%s>' aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa b`,
		`printf '<%s>' "a b c d e f g h i j k l m n o p q r s t u v w x y z"`,
	} {
		want, _ := exec.Command("sh", "-c", line).Output()
		for width := 12; width < 90; width++ {
			got, err := exec.Command("sh", "-c", breakCommand(line, width)).Output()
			if err != nil || string(got) != string(want) {
				t.Fatalf("%d: %v, %q, want %q, of\n%s", width, err, got, want, breakCommand(line, width))
			}
		}
	}
	if got := breakCommand("dcs-tui run --hosts hosts.toml jobs.txt", 24); got != "dcs-tui run --hosts \\\nhosts.toml jobs.txt" {
		t.Error(got)
	}
}
