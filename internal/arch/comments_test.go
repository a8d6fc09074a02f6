package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

var (
	// camelWord matches a word that looks like a Go name of several words: TestMessages, fileMessages.
	camelWord = regexp.MustCompile(`\b[A-Za-z][a-z0-9]*[a-z][A-Z][A-Za-z0-9]*\b`)
	// capitalWord matches a capitalized word within a sentence.
	capitalWord = regexp.MustCompile(`[a-z,][ \n]+([A-Z][a-z]+)\b`)
	// qualifiedWord matches a name with its package: jobs.Fold.
	qualifiedWord = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.([A-Z][A-Za-z0-9]+)\b`)
	// nonProse matches what is not part of a sentence: texts, paths, addresses, and code.
	nonProse = regexp.MustCompile("\"[^\"\n]*\n?[^\"\n]*\"|`[^`\n]*`|'[^'\n]*'|[\\w.-]*[/:=$%<>@\\\\][^\\s,;)]*|(?m)^\t.*$")
)

// TestCommentsNameIdentifiersThatExist checks that a word in a comment that looks like an identifier
// is one: a name of several words, a name with a package of the module, or a capitalized word within
// a sentence. A rename changes the identifier and the first word of its comment, but not the
// sentences elsewhere.
func TestCommentsNameIdentifiersThatExist(t *testing.T) {
	known := map[string]bool{}               // identifiers, and words in texts
	declared := map[string]map[string]bool{} // identifiers by the name of their package
	fset := token.NewFileSet()
	var comments []*ast.CommentGroup
	for _, file := range sourceFiles(t, fset, parser.ParseComments, func(string) bool { return false }) {
		comments = append(comments, file.Comments...)
		names := declared[file.Name.Name]
		if names == nil {
			names = map[string]bool{}
			declared[file.Name.Name] = names
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				known[n.Name], names[n.Name] = true, true
			case *ast.BasicLit:
				for _, w := range wordsOfText.FindAllString(n.Value, -1) {
					known[w] = true // a name of a file, a key, or a word of another program
				}
			}
			return true
		})
	}
	for _, w := range properWords {
		known[w] = true
	}
	for _, c := range comments {
		text := nonProse.ReplaceAllString(c.Text(), ". ")
		for _, m := range qualifiedWord.FindAllStringSubmatch(text, -1) {
			if names := declared[m[1]]; names != nil && !names[m[2]] {
				t.Errorf("%s: the comment names %s, which does not exist", fset.Position(c.Pos()), m[0])
			}
		}
		text = qualifiedWord.ReplaceAllString(text, ". ") // also of other modules
		words := camelWord.FindAllString(text, -1)
		for _, m := range capitalWord.FindAllStringSubmatch(text, -1) {
			words = append(words, m[1])
		}
		for _, w := range words {
			if !known[w] && !known[strings.TrimSuffix(w, "s")] {
				t.Errorf("%s: the comment names %s, which is no identifier", fset.Position(c.Pos()), w)
			}
		}
	}
}

// wordsOfText matches the words in a literal that a comment may name.
var wordsOfText = regexp.MustCompile(`[A-Za-z][a-z0-9]*[A-Z][A-Za-z0-9]*|[A-Z][a-z]+`)

// properWords are names of people, programs, and standards.
var properWords = []string{
	"Beanstalks", "Bourne", "Bubble", "Bubbles", "Chromium", "ExpoCloud", "Feistel", "FreeBSD", "GitHub", "Hangul", "Levenshtein",
	"Lip", "Markdown", "Parzen", "Perl", "Python", "Tea", "Unicode", "arXiv", "macOS",
}
