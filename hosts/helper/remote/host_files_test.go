package remote

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fileConstant matches the names of constants that hold the name of a file or directory, or its
// beginning.
var fileConstant = regexp.MustCompile(`^(dir|file)[A-Z]|(Prefix|File|Dir)$`)

// notListed are such constants of files in run directories, within a mirror, and of the system.
var notListed = []string{"remote.standbyPrefix", "mirror.File", "mirror.lockFile", "files.ignoreFile",
	"files.tempPrefix", "remote.devDir", "remote.vmstatFile"}

// TestHostFilesAreDocumented checks that docs/reference/host-files.md lists each file that the
// program keeps on a host, and no other.
func TestHostFilesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/host-files.md")
	if err != nil {
		t.Fatal(err)
	}
	// The first is in the script that copies the program, the second in package rundir.
	page, names := string(text), []string{"bin/dcs-tui-", "attempts"}
	for _, dir := range []string{".", "..", "../../mirror", "../../files", "../.."} {
		for name, value := range fileConstants(t, dir) {
			if slices.Contains(notListed, name) {
				continue
			}
			names = append(names, value)
			if !strings.Contains(page, "`"+value) {
				t.Errorf("the page does not list %s, %q", name, value)
			}
		}
	}
	if len(names) < 25 {
		t.Fatalf("found only the names %q", names)
	}
	for _, word := range documentedFiles(page) {
		if !isFileName(word, names) {
			t.Errorf("the page lists %s, which no constant names", word)
		}
	}
}

// documentedFiles returns the names in the first columns of the tables of a page.
func documentedFiles(page string) (names []string) {
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, word := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				names = append(names, word)
			}
		}
	}
	return names
}

// checkHostFiles checks that the page lists what is in a directory of a host, except temporary files.
func checkHostFiles(t testing.TB, dir string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference/host-files.md")
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for _, name := range documentedFiles(string(text)) {
		name = regexp.QuoteMeta(strings.TrimSuffix(name, "/"))
		patterns = append(patterns, regexp.MustCompile("<[a-z]+>").ReplaceAllString(name, ".+"))
	}
	documented := regexp.MustCompile("^(" + strings.Join(patterns, "|") + ")$")
	entries, _ := os.ReadDir(dir) // it may be removed already
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !documented.MatchString(e.Name()) {
			t.Errorf("docs/reference/host-files.md does not list %s", filepath.Join(dir, e.Name()))
		}
	}
}

// isFileName reports whether a name on the page, such as files.<host>/, is one of the names or begins
// with one that ends where a placeholder begins.
func isFileName(word string, names []string) bool {
	fixed, _, _ := strings.Cut(strings.TrimSuffix(word, "/"), "<")
	for _, name := range names {
		if fixed == name || fixed == name+"/" {
			return true
		}
	}
	return false
}

// fileConstants returns the values of the constants of a package that fileConstant matches, by
// package and name.
func fileConstants(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, ident := range spec.Names {
				if !fileConstant.MatchString(ident.Name) || i >= len(spec.Values) {
					continue
				}
				if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					value, _ := strconv.Unquote(lit.Value) // a literal that was parsed
					found[file.Name.Name+"."+ident.Name] = value
				}
			}
			return true
		})
	}
	return found
}
