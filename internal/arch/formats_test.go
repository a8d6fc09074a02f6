package arch

import (
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEachFormatHasATestOfItsVersions checks that each format in jobs/format.go is in the list
// jobs.Formats, and that a test reads a newer version of it, with jobstest.Newer.
func TestEachFormatHasATestOfItsVersions(t *testing.T) {
	b, err := os.ReadFile("../../jobs/format.go")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	_, list, _ := strings.Cut(text, "var Formats = ")
	var tests []string
	for path := range sourceFiles(t, token.NewFileSet(), parser.PackageClauseOnly, func(path string) bool {
		return strings.HasSuffix(path, ".go") && !isTest(path)
	}) {
		content, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, string(content))
	}
	declared := regexp.MustCompile(`(?m)^\t(Format\w+) += Format\{`).FindAllStringSubmatch(text, -1)
	if len(declared) < 10 {
		t.Fatalf("jobs/format.go declares only %d formats", len(declared))
	}
	for _, m := range declared {
		name := m[1]
		if !regexp.MustCompile(`&` + name + `\b`).MatchString(list) {
			t.Errorf("jobs.Formats lacks %s", name)
		}
		newer := regexp.MustCompile(`jobstest\.Newer\(&jobs\.` + name + `\b`)
		if !slices.ContainsFunc(tests, newer.MatchString) {
			t.Errorf("no test reads a newer version of jobs.%s: write it with jobstest.Newer", name)
		}
	}
}
