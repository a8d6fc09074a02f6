package cli

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dcs-tui/internal/text"
)

// maxPageWidth is the maximum width of a page, in columns.
const maxPageWidth = 100

// hidden matches the comments in pages, which tell tests how to execute the code blocks.
var hidden = regexp.MustCompile(`(?s)<!--.*?-->\n`)

// codeBlocks matches a code block, in which a comment looks like a heading.
var codeBlocks = regexp.MustCompile("(?ms)^```.*?^```$")

// helpPage is a page of the help: its name there, its file, its title, and the group in which it is
// listed.
type helpPage struct{ name, file, title, group string }

// otherFiles are the pages outside docs/.
var otherFiles = []helpPage{
	{"hosts.toml", "hosts.toml.example", "An inventory with all keys", "Other files"},
	{"license", "LICENSE", "The license of dcs-tui", "Other files"},
	{"notices", "THIRD_PARTY_NOTICES", "The licenses of the libraries in it", "Other files"},
}

// pageDirs are the directories of the pages. The name of a page is in only one of them.
var pageDirs = []struct{ dir, title string }{
	{"docs", "Guide"}, {"docs/reference", "Reference"}, {"docs/internals", "For developers"},
}

// helpPages returns the pages, each directory in the order of docs/README.md. The name of a page about
// the same thing as a command ends in .md.
func (a *app) helpPages(root *cobra.Command) (pages []helpPage) {
	index, _ := fs.ReadFile(a.pages, "docs/README.md")
	place := func(file string) int {
		return strings.Index(string(index), "("+strings.TrimPrefix(file, "docs/")+")")
	}
	for _, d := range pageDirs {
		files, _ := fs.Glob(a.pages, d.dir+"/*.md") // the pattern is valid
		slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
		for _, file := range files {
			name := strings.TrimSuffix(path.Base(file), ".md")
			if name == strings.ToUpper(name) { // README
				continue
			}
			if cmd, _, err := root.Find([]string{name}); err == nil && cmd != root {
				name += ".md"
			}
			page, _ := fs.ReadFile(a.pages, file) // it was found in the same files
			title, _, _ := strings.Cut(strings.TrimPrefix(string(page), "# "), "\n")
			pages = append(pages, helpPage{name, file, title, d.title})
		}
	}
	return append(pages, otherFiles...)
}

// findPage returns the file of a page of the help: query or query.md for docs/query.md. It returns
// "" if there is none.
func (a *app) findPage(root *cobra.Command, name string) string {
	for _, p := range a.helpPages(root) {
		if strings.TrimSuffix(p.name, ".md") == strings.TrimSuffix(name, ".md") {
			return p.file
		}
	}
	return ""
}

// commonWords are words that headings have for their grammar. Pages are not about them.
var commonWords = strings.Fields("a an and are as at be by can do does for from has have how if in is it its no not " +
	"of on or than that the them these they this to was what when where which who why will with you your")

// pagesAbout returns the commands that show the help of subcommands with this name, and the pages with
// the word in a heading, or with an option of that name in the first column of a table; if there are
// none, those of the pages with the word in code.
func (a *app) pagesAbout(root *cobra.Command, word string) (commands []string) {
	for _, parent := range root.Commands() {
		for _, c := range parent.Commands() {
			if c.Name() == word {
				commands = append(commands, "dcs-tui help "+parent.Name()+" "+word)
			}
		}
	}
	quoted := regexp.QuoteMeta(word)
	for _, pattern := range []string{
		"(?im)^(?:#+ (?:.*\\W)?|\\| [^|\n]*`(?:--)?)" + quoted + `(?:\W|$)`,
		"(?i)`(?:[^`\n]*[^`\n\\w])?" + quoted + "(?:[^\\w`\n][^`\n]*)?`",
	} {
		commands = append(commands, a.pagesWith(root, regexp.MustCompile(pattern))...)
		if len(commands) > 0 {
			break
		}
	}
	return commands
}

// pagesWith returns the commands that show the pages of the first group in which any has a pattern.
func (a *app) pagesWith(root *cobra.Command, pattern *regexp.Regexp) (commands []string) {
	group := ""
	for _, p := range a.helpPages(root) {
		if len(commands) > 0 && p.group != group || p.group == otherFiles[0].group {
			break
		}
		page, _ := fs.ReadFile(a.pages, p.file)
		if pattern.Match(codeBlocks.ReplaceAll(page, nil)) {
			commands, group = append(commands, "dcs-tui help "+p.name), p.group
		}
	}
	return commands
}

// nameOfFile returns a function that returns the name in the help of the page in a file, or "".
func (a *app) nameOfFile(root *cobra.Command) func(file string) string {
	names := map[string]string{}
	for _, p := range a.helpPages(root) {
		names[path.Base(p.file)] = p.name
	}
	return func(file string) string { return names[file] }
}

func (a *app) listPages(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Pages\n\n`dcs-tui help NAME` shows a page.\n")
	group := ""
	for _, p := range a.helpPages(root) {
		if p.group != group {
			group = p.group
			b.WriteString("\n## " + group + "\n\n| | |\n|---|---|\n")
		}
		b.WriteString("| `" + p.name + "` | " + p.title + " |\n")
	}
	return b.String()
}

// showPage writes a page: as it is, or through the pager if standard output is a terminal.
func (a *app) showPage(root *cobra.Command, name string) error {
	file, page := "pages.md", a.listPages(root)
	if name != "pages" {
		file = a.findPage(root, name)
		b, err := fs.ReadFile(a.pages, file)
		if err != nil {
			return err
		}
		page = hidden.ReplaceAllString(string(b), "")
	}
	out := newConsole(a.stdout)
	if !out.IsTerminal() {
		_, err := io.WriteString(a.stdout, page)
		return err
	}
	if strings.HasSuffix(file, ".md") {
		p := &pagePrinter{paint: out.Paint, width: min(out.Width(), maxPageWidth), help: a.nameOfFile(root)}
		page = p.render(page)
	}
	return a.writeToPager(page)
}

// writeToPager shows a text in $PAGER or, without one, in less. If it cannot be started, the text is
// written to standard output.
func (a *app) writeToPager(page string) error {
	cmd := exec.Command("/bin/sh", "-c", cmp.Or(strings.TrimSpace(os.Getenv("PAGER")), "less"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(page), a.stdout.File, io.Discard
	if os.Getenv("LESS") == "" {
		cmd.Env = append(os.Environ(), "LESS=FRX")
	}
	err := cmd.Run()
	const notExecutable, notFound = 126, 127 // the shell's exit codes
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() != notExecutable && exit.ExitCode() != notFound {
		return nil // the user left it
	}
	if err != nil {
		_, err = io.WriteString(a.stdout, page)
	}
	return err
}

// setUpHelpPages makes the command help show pages, too, and complete their names.
func (a *app) setUpHelpPages(root, help *cobra.Command) {
	help.Use = "help [COMMAND|PAGE]"
	help.Short = "Show the help of a command, or a page"
	help.Long = `Show the help of a command, or a page about a subject. If standard output is a terminal, a page fits
its width and is shown in $PAGER (less). Otherwise it is printed as Markdown. A page with the name of a
command needs the suffix .md.`
	help.Example = `dcs-tui help run
dcs-tui help pages
dcs-tui help query`
	showHelp, complete := help.Run, help.ValidArgsFunction
	help.ValidArgsFunction = func(cmd *cobra.Command, args []string,
		word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, directive := complete(cmd, args, word)
		if len(args) == 0 {
			names = append(names, a.helpWords(root)...)
		}
		return names, directive
	}
	help.Run = nil
	help.RunE = func(cmd *cobra.Command, args []string) error {
		found, rest, err := root.Find(args)
		if len(rest) == 0 || err == nil && !found.HasSubCommands() {
			showHelp(cmd, args)
			return nil
		}
		if found == root && (args[0] == "pages" || a.findPage(root, args[0]) != "") {
			return a.showPage(root, args[0])
		}
		unknown := unknownCommand(found, rest[0])
		if found != root {
			return unknown
		}
		near := text.Nearest(rest[0], a.helpWords(root))
		if slices.Contains(commonWords, strings.ToLower(rest[0])) {
			unknown.WithAdvice("the word is too common to find a page; dcs-tui help pages lists all of them")
		} else if pages := a.pagesAbout(root, rest[0]); len(pages) > 0 {
			unknown.WithAdvice("pages about it: %s", strings.Join(pages, ", "))
		} else if near != "" && len(root.SuggestionsFor(rest[0])) == 0 {
			unknown.WithAdvice("did you mean %s?", near)
		}
		return unknown
	}
}

// helpWords returns the words for which help shows a page.
func (a *app) helpWords(root *cobra.Command) []string {
	words := append(text.Each(a.helpPages(root), func(p helpPage) string { return p.name }), "pages")
	slices.Sort(words)
	return words
}
