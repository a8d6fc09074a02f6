package cli

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// TestPagesFitTheTerminal checks that no page of the help loses a word, and that no row of a page
// but code and rows of one word is wider than the terminal.
func TestPagesFitTheTerminal(t *testing.T) {
	letter := regexp.MustCompile(`[\pL\pN]`) // words may be broken in tables
	markup := regexp.MustCompile("(?m)^ *```.*$|^!\\[.*$|\\]\\([^)]*\\)")
	a := newApp()
	a.pages = os.DirFS("../..")
	root := a.root()
	for _, p := range a.helpPages(root) {
		name := p.name
		if p.group == otherFiles[0].group {
			continue
		}
		text, err := fs.ReadFile(a.pages, p.file)
		must(t, err)
		page := hidden.ReplaceAllString(string(text), "")
		for _, width := range []int{50, 80, 100} {
			p := pagePrinter{paint: (&console{color: true}).Paint, width: width, help: a.nameOfFile(root)}
			shown := map[string]int{}
			for row := range strings.Lines(p.render(page)) {
				row = strings.TrimRight(ansi.Strip(row), "\n")
				if n := ansi.StringWidth(row); n > width && len(strings.Fields(row)) > 1 &&
					!strings.HasPrefix(row, "    ") &&
					!strings.Contains(row, "://") {
					t.Errorf("%s, %d columns: %q", name, width, row)
				}
				for _, w := range letter.FindAllString(row, -1) {
					shown[w]++
				}
			}
			for _, w := range letter.FindAllString(markup.ReplaceAllString(page, "]"), -1) {
				if shown[w]--; shown[w] < 0 {
					t.Errorf("%s, %d columns: %q is missing", name, width, w)
				}
			}
		}
	}
}

// TestPageIsRendered checks the parts of Markdown that the pages use.
func TestPageIsRendered(t *testing.T) {
	page := "# A page\n\nA [paragraph](glossary.md) with `code`, **two\n" +
		"words**, [a page](query.md#fields), [a command's page](results.md), [here](#x), and\n" +
		"[a site](https://example.org/).\n![a picture](screens/run.gif)\n\n- one item that is longer than a row\n" +
		"- two\n\n" +
		"1. first\n\n```sh\nls   # a comment\n```\n\n| | |\n|---|---|\n" +
		"| a | `x \\| y` is a much longer text of a cell |\n| bb | |\n"
	want := "A page\n\nA paragraph with `code`, two words, a\npage (help query), a command's page\n" +
		"(help results.md), here, and a site\n(https://example.org/).\n\n" +
		"- one item that is longer than a row\n- two\n\n1. first\n\n    ls   # a comment\n\n" +
		"a   `x | y` is a much longer text of a\n    cell\nbb\n"
	a := newApp()
	a.pages = os.DirFS("../..")
	p := pagePrinter{paint: (&console{}).Paint, width: 38, help: a.nameOfFile(a.root())}
	if got := p.render(page); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
