package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"dcs-tui/internal/cli/console"
)

// maxHelp is how wide fang makes a help at most.
const maxHelp = 120

// fitHelp breaks what the help of the command that args name says beside its flags and
// sub-commands into rows of the terminal's width: fang leaves that to the terminal, which
// breaks words. Elsewhere each stays a line, for grep.
func fitHelp(root *cobra.Command, args []string) {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width <= 0 || len(args) > 0 && strings.HasPrefix(args[0], "__") { // completion takes lines
		return
	}
	if len(args) > 0 && args[0] == "help" {
		args = args[1:]
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find(args)
	if err != nil {
		return // nothing that has a help
	}
	fitCommand(cmd, min(width, maxHelp))
}

// fitCommand fits one help into so many columns.
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
		if preset := " (" + f.DefValue + ")"; f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			f.Usage = strings.TrimSuffix(console.WrapTo(f.Usage+preset, room, 0), strings.TrimLeft(preset, " ")) // fang adds it
			f.Usage = strings.TrimSuffix(f.Usage, " ")
			return
		}
		f.Usage = console.WrapTo(f.Usage, room, 0)
	})
	const margins = 8 // of fang's block
	lines := strings.Split(cmd.Example, "\n")
	for i, l := range lines {
		lines[i] = breakCommand(l, width-margins)
	}
	cmd.Example = strings.Join(lines, "\n")
}

// breakCommand continues a shell command in further rows that are indented by two, where
// a blank stands outside of quotes; the shell reads the same command.
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
