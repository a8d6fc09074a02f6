package cli

import (
	"errors"
	"os"
	"slices"
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

// parallelNames are GNU parallel's names of flags that exist here under another name.
var parallelNames = map[string]pflag.NormalizedName{
	"retries": "tries", "dryrun": "dry-run", "workdir": "cwd", "wd": "cwd", "keeporder": "keep-order",
	"max-procs":    "jobs",
	"sshloginfile": "hosts", "slf": "hosts",
}

// parallelName is a pflag normalize function that accepts GNU parallel's names.
func parallelName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if own, ok := parallelNames[name]; ok {
		return own
	}
	return pflag.NormalizedName(name)
}

// parallelAdvice describes what replaces flags of GNU parallel that do not exist here. A key has the
// names of flags with the same replacement, also those of one letter.
var parallelAdvice = map[string]string{
	"resume-failed retry-failed": "dcs-tui requeue RUN --failed && dcs-tui resume RUN runs failed jobs again",
	"results":                    "the output of each job is kept in the run directory: dcs-tui logs RUN JOB",
	"eta":                        "the screen shows when the run will end; so does dcs-tui status",
	"bar progress":               "the screen shows the progress; so does dcs-tui status",
	"load":                       `max_load = 4 in hosts.toml keeps jobs off a busy host`,
	"noswap memsuspend":          `min_mem_free = "4G" in hosts.toml keeps jobs off a host without memory`,
	"memfree": `min_mem_free = "4G" in hosts.toml keeps jobs off a host without memory; ` +
		`#DCS mem=4G says what a job needs`,
	"nice":                                 "nice = 10 in hosts.toml; it is the default",
	"a arg-file":                           ":::: FILE takes the values from a file",
	"link xapply":                          ":::+ links values to those before it",
	"u ungroup line-buffer lb":             "dcs-tui logs --follow RUN JOB shows the output of a running job",
	"group":                                "--output prints the output of each job, whole, when it ends",
	"q quote":                              "values are always quoted for the shell",
	"plus":                                 "{..}, {+/}, and the other parts of paths are always replaced",
	"C colsep":                             "a template has several parameters: dcs-tui grid --help",
	"header":                               "a template has parameters with names: dcs-tui grid --help",
	"pipe":                                 "jobs read no standard input; :::: - takes values from it",
	"X xargs m n N max-args L l max-lines": "one job takes one value of each source",
	"semaphore":                            "dcs-tui submit RUN adds jobs to a run that is dispatched",
	"termseq":                              "cancel sends SIGTERM, and SIGKILL after the grace period of the host",
	"tmux":                                 "the screen shows the output of each job",
	"shebang":                              "dcs-tui run FILE runs the lines of a file",
	"will-cite":                            "dcs-tui asks for no citation",
	"P":                                    "-j has this meaning: slots of each host",
	"S sshlogin":                           "--host USER@HOST,... names the hosts",
	"I replace U i rpl":                    "the placeholders are fixed: dcs-tui help jobs lists them",
	"0 null":                               "a value is a line of text: end the lines of the file with newlines",
	"tagstring":                            "--tag begins each line of output with the values of its job",
	"resume":                               "dcs-tui resume RUN continues a run",
	"transferfile tf trc transfer basefile bf": "--send PATH copies files to each host",
	"cleanup":     "files that were copied to hosts are removed at the end, unless --keep-files is given",
	"t verbose v": "each job is shown with its command when it ends",
	"trim":        "write the values without spaces around them",
	"filter":      "a template selects combinations with @where: dcs-tui grid --help",
}

// typedName returns the name by which the command line gives a value to a flag: the flag's own, or
// GNU parallel's.
func typedName(args []string, flag, value string) string {
	for i, arg := range args {
		word, isLong := strings.CutPrefix(arg, "--")
		name, given, hasValue := strings.Cut(word, "=")
		if !hasValue && i+1 < len(args) {
			given = args[i+1]
		}
		if isLong && given == value && string(parallelName(nil, name)) == flag {
			return name
		}
	}
	return flag
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
	for names, advice := range parallelAdvice {
		if cmd.Flags().Lookup("tries") != nil && slices.Contains(strings.Fields(names), name) {
			return advice
		}
	}
	if len(name) < 2 {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := text.Nearest(name, names); near != "" {
		return "did you mean --" + near + "?"
	}
	return ""
}
