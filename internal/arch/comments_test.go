package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// camelWord matches a word that looks like a Go name of several words: TestMessages, fileMessages.
	camelWord = regexp.MustCompile(`\b[A-Za-z][a-z0-9]*[a-z][A-Z][A-Za-z0-9]*\b`)
	// capitalWord matches a capitalized word within a sentence.
	capitalWord = regexp.MustCompile(`[a-z,][ \n]([A-Z][a-z]+)\b`)
	// qualifiedWord matches a name with its package: jobs.Fold.
	qualifiedWord = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.([A-Z][A-Za-z0-9]+)\b`)
	// nonProse matches what is not part of a sentence: texts, paths, addresses, and code.
	nonProse = regexp.MustCompile("\"[^\"\n]*\n?[^\"\n]*\"|`[^`\n]*`|'[^'\n" +
		"]*'|[\\w.-]*[/:=$%<>@\\\\][^\\s,;)]*|(?m)^\t.*$")
)

// wordSet is a set of words.
type wordSet map[string]bool

// in returns the set of a key, which is empty at first.
func in(sets map[string]wordSet, key string) wordSet {
	if sets[key] == nil {
		sets[key] = wordSet{}
	}
	return sets[key]
}

// TestCommentsNameIdentifiersThatExist checks that a word in a comment that looks like an identifier
// is one of its package: a name of several words, or a capitalized word within a sentence. A name of
// another package of the module stands with that package, and exists there. A rename changes the
// identifier and the first word of its comment, but not the sentences elsewhere.
func TestCommentsNameIdentifiersThatExist(t *testing.T) {
	known := map[string]wordSet{}    // identifiers, and words in texts, by directory
	declared := map[string]wordSet{} // identifiers by the name of their package
	fset := token.NewFileSet()
	files := sourceFiles(t, fset, parser.ParseComments, func(string) bool { return false })
	for name, file := range files {
		words, names := in(known, path.Dir(name)), in(declared, file.Name.Name)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				words[n.Name], names[n.Name] = true, true
			case *ast.BasicLit:
				for _, w := range wordsOfText.FindAllString(n.Value, -1) {
					words[w] = true // a name of a file, a key, or a word of another program
				}
			}
			return true
		})
	}
	for name, file := range files {
		for _, c := range file.Comments {
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
			of := known[path.Dir(name)]
			for _, w := range words {
				if !of[w] && !of[strings.TrimSuffix(w, "s")] && !slices.Contains(properWords, w) {
					t.Errorf("%s: the comment names %s, which is no identifier of its package",
						fset.Position(c.Pos()), w)
				}
			}
		}
	}
}

// wordsOfText matches the words in a literal that a comment may name.
var wordsOfText = regexp.MustCompile(`[A-Za-z][a-z0-9]*[A-Z][A-Za-z0-9]*|[A-Z][a-z]+`)

// properWords are names of people, programs, and standards.
var properWords = []string{
	"AddressFamily", "Beanstalks", "Bourne", "Bubble", "Bubbles", "Chromium", "Ctrl", "ExpoCloud", "Feistel",
	"FreeBSD", "GitHub", "Go", "Hangul", "KiB", "Levenshtein", "Linux", "Lip", "Markdown", "MaxStartups", "MiB", "NaN",
	"OpenSSH", "Parzen", "Perl", "Python", "Tea", "TiB", "Unicode", "Unix", "arXiv", "macOS",
}
