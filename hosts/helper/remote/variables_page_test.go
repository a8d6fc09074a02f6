//go:build linux

package remote

import (
	"os"
	"slices"
	"strings"
	"testing"

	"dcs-tui/hosts"
	"dcs-tui/jobs"
)

// TestVariablesOfJobsAreDocumented checks that docs/environments.md lists the variables of a job, and
// no other.
func TestVariablesOfJobsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/environments.md")
	must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## What a job sees\n")
	var documented, set []string
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, word := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				documented = append(documented, strings.ReplaceAll(word, "<name>", "x"))
			}
		}
	}
	job := &hosts.LaunchJob{GPUs: []int{0}, Params: []jobs.Param{{Name: "x", Value: "1"}}}
	for _, kv := range jobEnv(baseEnv(nil, &slotConfig{}, 1), job, 0, []int{0}, "mark", "progress") {
		name, _, _ := strings.Cut(kv, "=")
		set = append(set, name)
	}
	slices.Sort(documented)
	slices.Sort(set)
	if !slices.Equal(documented, set) {
		t.Errorf("docs/environments.md lists %q, a job has %q", documented, set)
	}
}
