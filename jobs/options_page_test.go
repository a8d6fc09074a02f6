package jobs

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestOptionsAreDocumented checks that the table of docs/jobs.md lists the options of jobs.
func TestOptionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/jobs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Options\n")
	if !found {
		t.Fatal("docs/jobs.md has no options")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, word := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				documented = append(documented, word)
			}
		}
	}
	slices.Sort(documented)
	if want := slices.Sorted(slices.Values(optionKeys)); !slices.Equal(documented, want) {
		t.Errorf("docs/jobs.md lists %q, the options are %q", documented, want)
	}
}
