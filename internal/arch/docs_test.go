package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const (
	maxPageLines = 250
	maxLineRunes = 100
	maxREADME    = 150
	// maxGuideWords is the number of words that a reader reads in five minutes.
	maxGuideWords = 1250
)

// generatedPages are written by tests and tools, which determine the length of their lines.
var generatedPages = []string{"docs/commands/", "docs/internals/mutations.md", "docs/internals/papers.md", "bench/"}

// marker matches what only tests read: how they execute the code block below it.
var marker = regexp.MustCompile(`(?s)<!--.*?-->\n`)

// TestPagesAreWellFormed checks the pages for readers: every link leads to a file and a heading
// that exist, no page is too long, lines that could be wrapped are, and docs/README.md names every
// page of docs/.
func TestPagesAreWellFormed(t *testing.T) {
	pages := markdown(t)
	headings := map[string]map[string]bool{}
	for page, text := range pages {
		headings[page] = anchors(text)
	}
	index := pages["docs/README.md"]
	for page, text := range pages {
		if strings.HasPrefix(page, "docs/") && !strings.HasPrefix(page, "docs/commands/") && page != "docs/README.md" &&
			!strings.Contains(index, "("+strings.TrimPrefix(page, "docs/")+")") {
			t.Errorf("docs/README.md does not name %s", page)
		}
		limit := maxPageLines
		if page == "README.md" {
			limit = maxREADME
		}
		lines := strings.Split(marker.ReplaceAllStringFunc(text, func(m string) string {
			return strings.Repeat("\n", strings.Count(m, "\n"))
		}), "\n")
		if n := strings.Count(marker.ReplaceAllString(text, ""), "\n"); n > limit && !isGenerated(page) {
			t.Errorf("%s has %d lines, more than %d", page, n, limit)
		}
		if n := numWords(text); isGuide(page) && n > maxGuideWords {
			t.Errorf("%s has %d words, more than %d", page, n, maxGuideWords)
		}
		code := false
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if !code && !isGenerated(page) && isTooLong(line) {
				t.Errorf("%s:%d has more than %d characters", page, i+1, maxLineRunes)
			}
			if code {
				continue
			}
			for _, link := range links(line) {
				checkLink(t, page, i+1, link, headings)
			}
		}
	}
}

// numWords returns the number of words of a page, without markers and generated tables.
func numWords(text string) (n int) {
	for _, word := range strings.Fields(marker.ReplaceAllString(generated.ReplaceAllString(text, ""), "")) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// TestRangesAreQuotedInCommands checks that commands in the pages quote ranges of hosts: zsh and
// tcsh refuse a pattern that matches no file.
func TestRangesAreQuotedInCommands(t *testing.T) {
	bare := regexp.MustCompile(`dcs-tui [^'"\n]*\w\[\d`)
	for page, text := range markdown(t) {
		if m := bare.FindString(text); m != "" {
			t.Errorf("%s: the range is not in quotes: %s", page, m)
		}
	}
}

// TestDocsNameFiles checks that the files of this repository that the pages for developers name in
// code spans exist.
func TestDocsNameFiles(t *testing.T) {
	path := regexp.MustCompile("`([a-z0-9_]+(?:/[a-zA-Z0-9_.-]+)+)`")
	for _, page := range []string{
		"CONTRIBUTING.md",
		"ARCHITECTURE.md",
		"docs/internals/design.md",
		"docs/internals/reliability.md",
	} {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range path.FindAllStringSubmatch(string(text), -1) {
			first, _, _ := strings.Cut(m[1], "/")
			if info, err := os.Stat(filepath.Join("../..", first)); err != nil || !info.IsDir() ||
				strings.HasSuffix(m[1], "...") {
				continue // a file of a run or of a host
			}
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
	}
}

// markdown returns the text of each page of the repository by its path.
func markdown(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/commands/*.md", "docs/reference/*.md",
		"docs/internals/*.md", "bench/README.md", "examples/README.md"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pages[filepath.ToSlash(strings.TrimPrefix(file, "../../"))] = string(text)
		}
	}
	if len(pages) < 40 {
		t.Fatalf("found only %d pages", len(pages))
	}
	return pages
}

func isGenerated(page string) bool {
	return slices.ContainsFunc(generatedPages, func(prefix string) bool { return strings.HasPrefix(page, prefix) })
}

// isTooLong reports whether a line is longer than it must be: table rows, images, and lines of one
// word cannot be wrapped.
func isTooLong(line string) bool {
	return utf8.RuneCountInString(line) > maxLineRunes && !strings.HasPrefix(line, "|") &&
		!strings.HasPrefix(line, "![") && strings.Contains(strings.TrimSpace(line), " ")
}

var linkTarget = regexp.MustCompile(`\]\(([^()\s]+)\)`)

// links returns the targets of the links in a line.
func links(line string) []string {
	var found []string
	for _, m := range linkTarget.FindAllStringSubmatch(line, -1) {
		found = append(found, m[1])
	}
	return found
}

func checkLink(t *testing.T, page string, line int, link string, headings map[string]map[string]bool) {
	t.Helper()
	if strings.Contains(link, "://") {
		return
	}
	file, anchor, _ := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
	}
	if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
		t.Errorf("%s:%d: the link %s leads nowhere", page, line, link)
	} else if anchor != "" && !headings[target][anchor] {
		t.Errorf("%s:%d: %s has no heading #%s", page, line, target, anchor)
	}
}

// anchors returns the anchors that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(text) {
		marks := strings.TrimLeft(line, "#")
		if len(marks) == len(line) || !strings.HasPrefix(marks, " ") {
			continue
		}
		set[strings.Map(func(r rune) rune {
			switch {
			case r == ' ' || r == '-':
				return '-'
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(marks))] = true
	}
	return set
}
