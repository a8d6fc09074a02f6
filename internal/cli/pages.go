package cli

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
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

// otherPages are the names in the help of files outside docs/.
var otherPages = map[string]string{
	"hosts.toml": "hosts.toml.example", "license": "LICENSE", "notices": "THIRD_PARTY_NOTICES",
}

// pageDirs are the directories of the pages. The name of a page is in only one of them.
var pageDirs = []struct{ dir, title string }{
	{"docs", "Guide"}, {"docs/reference", "Reference"}, {"docs/internals", "For developers"},
}

// findPage returns the file of a page of the help: query or query.md for docs/query.md. It returns
// "" if there is none.
func (a *app) findPage(name string) string {
	files := []string{otherPages[name]}
	for _, d := range pageDirs {
		files = append(files, d.dir+"/"+strings.TrimSuffix(name, ".md")+".md")
	}
	for _, file := range files {
		if _, err := fs.Stat(a.pages, file); err == nil && name != "README" {
			return file
		}
	}
	return ""
}

// pageNames returns the names of the pages in a directory, in the order of docs/README.md. The name
// of a page about the same thing as a command ends in .md.
func (a *app) pageNames(root *cobra.Command, dir string) []string {
	files, _ := fs.Glob(a.pages, dir+"/*.md") // the pattern is valid
	index, _ := fs.ReadFile(a.pages, "docs/README.md")
	place := func(file string) int {
		return strings.Index(string(index), "("+strings.TrimPrefix(file, "docs/")+")")
	}
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	var names []string
	for _, file := range files {
		if name := helpName(root, path.Base(file)); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// allPageNames returns the names of the pages in all directories.
func (a *app) allPageNames(root *cobra.Command) (names []string) {
	for _, d := range pageDirs {
		names = append(names, a.pageNames(root, d.dir)...)
	}
	return names
}

// helpName returns the name in the help of the page in a file, or "".
func helpName(root *cobra.Command, file string) string {
	for name, other := range otherPages {
		if file == other {
			return name
		}
	}
	name, isPage := strings.CutSuffix(file, ".md")
	if !isPage || name == "README" || name == strings.ToUpper(name) {
		return ""
	}
	if cmd, _, err := root.Find([]string{name}); err == nil && cmd != root {
		return file
	}
	return name
}

// listPages returns a list of the pages.
func (a *app) listPages(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Pages\n\n`dcs-tui help NAME` shows a page.\n")
	for _, d := range pageDirs {
		b.WriteString("\n## " + d.title + "\n\n| | |\n|---|---|\n")
		for _, name := range a.pageNames(root, d.dir) {
			page, _ := fs.ReadFile(a.pages, a.findPage(name)) // it was found in the same files
			title, _, _ := strings.Cut(strings.TrimPrefix(string(page), "# "), "\n")
			b.WriteString("| `" + name + "` | " + title + " |\n")
		}
	}
	b.WriteString("\n## Other files\n\n| | |\n|---|---|\n| `hosts.toml` | An inventory with all keys |\n" +
		"| `license` | The license of dcs-tui |\n| `notices` | The licenses of the libraries in it |\n")
	return b.String()
}

// showPage writes a page: as it is, or through the pager if standard output is a terminal.
func (a *app) showPage(root *cobra.Command, name string) error {
	file, page := "pages.md", a.listPages(root)
	if name != "pages" {
		file = a.findPage(name)
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
		p := &pagePrinter{paint: out.Paint, width: min(out.Width(), maxPageWidth),
			help: func(file string) string { return helpName(root, file) }}
		page = p.render(page)
	}
	return a.writeToPager(page)
}

// writeToPager shows a text in $PAGER or, without one, in less. If it cannot be started, the text is
// written to standard output.
func (a *app) writeToPager(page string) error {
	cmd := exec.Command("/bin/sh", "-c", cmp.Or(strings.TrimSpace(os.Getenv("PAGER")), "less"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(page), a.stdout, io.Discard
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
			names = append(names, slices.DeleteFunc(a.helpWords(root), func(name string) bool {
				return !strings.HasPrefix(name, word)
			})...)
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
		if found == root && (args[0] == "pages" || a.findPage(args[0]) != "") {
			return a.showPage(root, args[0])
		}
		unknown := unknownCommand(found, rest[0])
		if near := text.Nearest(rest[0], a.helpWords(root)); found == root && near != "" &&
			len(root.SuggestionsFor(rest[0])) == 0 {
			unknown.WithAdvice("did you mean %s?", near)
		}
		return unknown
	}
}

// helpWords returns the words for which help shows a page.
func (a *app) helpWords(root *cobra.Command) []string {
	return slices.Sorted(slices.Values(slices.Concat(a.allPageNames(root), slices.Collect(maps.Keys(otherPages)),
		[]string{"pages"})))
}
