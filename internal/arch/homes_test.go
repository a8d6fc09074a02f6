package arch

import (
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTestsHaveHomesOfTheirOwn checks that tests that run the program give it a home directory with
// progtest.HomeEnv, so that nothing that the program keeps there is in that of whoever tests. The state
// is elsewhere for all tests of progtest.Main, and missing for internal/faults, which uses root's home.
func TestTestsHaveHomesOfTheirOwn(t *testing.T) {
	runsProgram := regexp.MustCompile(`^(internal/(cli|e2e|screentest)|examples)/`)
	home := regexp.MustCompile(`"HOME="|"HOME=.|[sS]etenv\("HOME"`)
	found := 0
	for path := range sourceFiles(t, token.NewFileSet(), parser.PackageClauseOnly, func(string) bool { return false }) {
		b, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		switch text := string(b); {
		case !isTest(path) || !runsProgram.MatchString(path):
		case home.MatchString(text):
			t.Errorf("%s sets HOME: use progtest.HomeEnv", path)
		case strings.Contains(text, "progtest.HomeEnv("):
			found++
		}
	}
	if found < 5 {
		t.Errorf("only %d files use progtest.HomeEnv", found)
	}
}
