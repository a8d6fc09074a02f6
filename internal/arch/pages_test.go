package arch

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// repositoryFile matches the name of a file or directory of the repository.
	repositoryFile = regexp.MustCompile(`\b(docs|bench|examples|internal)/|\bREADME\b|\b[\w-]+\.md\b|\.toml\.example\b`)
	// pageReference matches a command that shows a page of docs/.
	pageReference = regexp.MustCompile(`\bdcs-tui help\s+([a-z][\w-]*(?:\.\w+)?)`)
)

// TestMessagesNameNoFileOfTheRepository checks that the program refers to its documentation by
// commands that show it, such as dcs-tui help query, and that these pages exist: a user who has
// only the program has no file of the repository.
func TestMessagesNameNoFileOfTheRepository(t *testing.T) {
	fset, n := token.NewFileSet(), 0
	isOutside := func(path string) bool { return isTest(path) || slices.Contains(outsideProgram, path) }
	for _, file := range sourceFiles(t, fset, 0, isOutside) {
		ast.Inspect(file, func(node ast.Node) bool {
			lit, ok := node.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil || !strings.ContainsAny(text, " \n") {
				return true
			}
			if name := repositoryFile.FindString(pageReference.ReplaceAllString(text, "")); name != "" {
				t.Errorf("%s: a user has no file %q of the repository: write dcs-tui help PAGE",
					fset.Position(lit.Pos()), name)
			}
			for _, ref := range pageReference.FindAllStringSubmatch(text, -1) {
				if n++; !isPageOrCommand(ref[1]) {
					t.Errorf("%s: dcs-tui help has no page %q", fset.Position(lit.Pos()), ref[1])
				}
			}
			return true
		})
	}
	if n < 10 {
		t.Errorf("found only %d references to pages", n)
	}
}

// isPageOrCommand reports whether dcs-tui help shows something for a word.
func isPageOrCommand(word string) bool {
	word = strings.TrimSuffix(word, ".md")
	for _, file := range []string{word, "reference/" + word, "internals/" + word, "commands/" + word} {
		if _, err := os.Stat("../../docs/" + file + ".md"); err == nil {
			return true
		}
	}
	return slices.Contains([]string{"pages", "hosts.toml", "license", "notices"}, word)
}
