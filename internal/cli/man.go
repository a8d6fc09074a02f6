package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCmd prints a manual page, or writes all of them.
func manCmd() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man [flags] [COMMAND...]",
		Short: "Print the manual page of a command, or of dcs-tui",
		Long: `Print the manual page of a command. Without COMMAND, print the page of dcs-tui itself, with its exit
codes, files, and environment. --dir writes the pages of all commands.`,
		Example: `dcs-tui man run | man -l -

# install the pages of all commands for yourself
dcs-tui man --dir ~/.local/share/man/man1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if dir == "" {
				found, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					return unknownCommand(found, strings.Join(rest, " "))
				}
				_, err = io.WriteString(cmd.OutOrStdout(), manPage(found))
				return err
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			var failed error
			forEachCommand(root, func(c *cobra.Command) {
				if !c.Hidden {
					err := os.WriteFile(filepath.Join(dir, manName(c)+".1"), []byte(manPage(c)), 0o666)
					failed = cmp.Or(failed, err)
				}
			})
			return failed
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write the pages of all commands into `DIRECTORY`")
	return cmd
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// roff is a manual page in the language of man(7).
type roff struct{ strings.Builder }

var (
	roffEscaper = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)
)

// text writes a paragraph, of which man breaks the lines.
func (r *roff) text(s string) { r.line(strings.Join(strings.Fields(s), " ")) }

// line writes a line of text.
func (r *roff) line(s string) {
	s = roffEscaper.Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	r.WriteString(s + "\n")
}

func (r *roff) section(title string) { r.WriteString(".SH " + title + "\n") }

// item writes an entry of a list. Its label is bold and may end with a placeholder.
func (r *roff) item(label, placeholder, text string) {
	r.WriteString(".TP\n\\fB" + roffEscaper.Replace(label) + "\\fR")
	if placeholder != "" {
		r.WriteString("\\fI" + roffEscaper.Replace(placeholder) + "\\fR")
	}
	r.WriteString("\n")
	r.text(text)
}

func manPage(cmd *cobra.Command) string {
	var r roff
	name := manName(cmd)
	date, _, _ := strings.Cut(buildSetting("vcs.time"), "T")
	fmt.Fprintf(&r, ".TH %s 1 %q %q \"User Commands\"\n", roffEscaper.Replace(strings.ToUpper(name)), date, "dcs-tui")
	r.section("NAME")
	r.text(name + " - " + cmd.Short)
	r.section("SYNOPSIS")
	path, arguments := cmd.CommandPath(), strings.TrimPrefix(cmd.UseLine(), cmd.CommandPath())
	if cmd.HasAvailableSubCommands() {
		arguments = " COMMAND [ARGUMENT...]"
	}
	r.WriteString(`\fB` + roffEscaper.Replace(path) + `\fR` + roffEscaper.Replace(arguments) + "\n")
	r.section("DESCRIPTION")
	r.text(cmp.Or(cmd.Long, cmd.Short))
	if cmd.HasAvailableSubCommands() {
		r.section("COMMANDS")
	}
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			r.item(manName(c)+"(1)", "", c.Short)
		}
	}
	r.options(cmd.LocalFlags())
	if cmd.Example != "" {
		r.section("EXAMPLES")
		r.WriteString(".nf\n")
		for line := range strings.Lines(cmd.Example) {
			r.line(strings.TrimRight(line, "\n"))
		}
		r.WriteString(".fi\n")
	}
	if cmd.HasParent() {
		r.section("SEE ALSO")
		r.text(manName(cmd.Parent()) + "(1)")
		return r.String()
	}
	r.section("EXIT STATUS")
	for _, c := range exitCodes {
		r.item(fmt.Sprint(c.code), "", c.text)
	}
	r.section("FILES")
	for _, f := range manFiles {
		r.item(f[0], "", f[1])
	}
	r.section("ENVIRONMENT")
	for _, v := range manEnvironment {
		r.item(v[0], "", v[1])
	}
	r.section("SEE ALSO")
	r.text("dcs-tui help pages lists pages about jobs files, hosts, queries, and more; dcs-tui help NAME shows one.")
	return r.String()
}

// options writes flags by group.
func (r *roff) options(fs *pflag.FlagSet) {
	titles, groups := groupFlags(fs)
	if len(titles) > 0 {
		r.section("OPTIONS")
	}
	for _, title := range titles {
		if title != "" {
			fmt.Fprintf(r, ".SS %s\n", title)
		} else if len(titles) > 1 {
			r.WriteString(".SS More\n")
		}
		groups[title].VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			label := "--" + f.Name
			if f.Shorthand != "" {
				label = "-" + f.Shorthand + ", " + label
			}
			placeholder, usage := pflag.UnquoteUsage(f)
			if placeholder != "" {
				label += "="
			}
			r.item(label, placeholder, usage)
		})
	}
}

// manFiles are the files of the manual's section FILES.
var manFiles = [][2]string{
	{"./hosts.toml, ~/.config/dcs-tui/hosts.toml, /etc/dcs-tui/hosts.toml",
		"the inventory; the first one that exists is used (dcs-tui help hosts.toml)"},
	{"./dcs-runs/NAME", "the directory of a run, with its journal, results, and outputs (dcs-tui help run-directory)"},
	{"~/.local/state/dcs-tui/runs", "the index of your runs, for dcs-tui runs list --all (dcs-tui help run-directory)"},
	{".dcsignore", "what --send does not copy, in the syntax of .gitignore (dcs-tui help environments)"},
	{"~/.ssh/config, ~/.ssh/known_hosts", "how hosts are reached, and their keys, as for ssh (dcs-tui help ssh)"},
	{"~/.dcs-tui", "on a host: the program, and what running jobs need; work_dir in the inventory names another place"},
	{"~/.dcs-busy, ~/.dcs-suspend", "on a host: files with which its owner keeps jobs away (dcs-tui help sharing)"},
}

// manEnvironment are the variables of the manual's section ENVIRONMENT.
var manEnvironment = [][2]string{
	{"XDG_CONFIG_HOME", "directory of dcs-tui/hosts.toml and dcs-tui/config.toml instead of ~/.config"},
	{"XDG_STATE_HOME", "directory of dcs-tui/runs instead of ~/.local/state"},
	{"SSH_AUTH_SOCK", "socket of the agent that has keys for ssh"},
	{"PAGER, LESS", "what shows pages of the help, and the output of a job, and its options"},
	{"NO_COLOR", "if set, no colors are used"},
	{"LC_ALL, LC_CTYPE, LANG", "unless the first that is set names UTF-8, only ASCII characters are used"},
	{"TERM", "if dumb, the screen is not opened, and no colors are used"},
	{"TZ", "time zone of the times that are shown"},
	{"SHELL", "the shell that runs a ProxyCommand of ssh"},
	{runShareEnv, "default of --run-share"},
	{"DCS_JOB_ID, DCS_ATTEMPT, DCS_RUN, DCS_HOST, DCS_SLOT, and more", "set for each job (dcs-tui help environments)"},
}
