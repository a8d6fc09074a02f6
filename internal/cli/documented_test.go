package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs/results"
	"dcs-tui/observe/runview"
)

// pageSection returns the part of a page of docs/ below a heading, up to the next of that level.
func pageSection(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	must(t, err)
	_, section, found := strings.Cut(string(text), "\n"+heading)
	if !found {
		t.Fatalf("docs/%s has no heading %q", page, heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	section, _, _ = strings.Cut(section, "\n"+level+" ")
	return section
}

var codeSpan = regexp.MustCompile("`([a-z_]+)`")

// TestJSONFieldsAreDocumented checks that docs/reference/formats.md explains each field of the JSON output
// of commands, and lists no other.
func TestJSONFieldsAreDocumented(t *testing.T) {
	b := (&results.Result{}).AppendJSON(nil)
	result := map[string]any{}
	must(t, json.Unmarshal(b, &result))
	always := slices.Collect(maps.Keys(result))
	for _, c := range []struct {
		heading string
		fields  []string
	}{
		{"## Results: `--json`", append(always, "id", "output", "output_error", "output_bytes")},
		{"## Status of a run: `status --json`", jsonFields(statusJSON{})},
		{"## Runs: `runs list --json`", jsonFields(runEntry{})},
		{"## Events: `events --json`", jsonFields(runview.EventJSON{})},
		{"### The last hour of a host", jsonFields(hostHistory{})},
		{"## Check of hosts: `hosts check --json`", jsonFields(checkJSON{})},
		{"## A job: `why --json`", append(jsonFields(whyJSON{}), jsonFields(logLine{})...)},
		{"## Copied outputs: `fetch --json`", append(jsonFields(fetchJSON{}), jsonFields(fetchHostJSON{})...)},
	} {
		t.Run(c.heading, func(t *testing.T) {
			section := pageSection(t, "reference/formats.md", c.heading)
			for _, name := range c.fields {
				if !strings.Contains(section, "`"+name+"`") {
					t.Errorf("%s: docs/reference/formats.md does not explain %s", c.heading, name)
				}
			}
			table, _, _ := strings.Cut(strings.SplitN(section, "|---|---|\n", 2)[1], "\n\n")
			for line := range strings.Lines(table) {
				for _, m := range codeSpan.FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
					if !slices.Contains(c.fields, m[1]) {
						t.Errorf("%s: docs/reference/formats.md lists %s, which is not a field", c.heading, m[1])
					}
				}
			}
		})
	}
}

// jsonFields returns the names of the fields of a struct in JSON.
func jsonFields(v any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// TestExitCodesAreDocumented checks that docs/trouble.md has a row for each exit code.
func TestExitCodesAreDocumented(t *testing.T) {
	var documented, codes []string
	for line := range strings.Lines(pageSection(t, "trouble.md", "## Exit codes")) {
		if m := regexp.MustCompile(`^\| (\d+) \| `).FindStringSubmatch(line); m != nil {
			documented = append(documented, m[1])
		}
	}
	for _, c := range exitCodes {
		codes = append(codes, fmt.Sprint(c.code))
	}
	if !slices.Equal(documented, codes) {
		t.Errorf("docs/trouble.md lists %v, the help %v", documented, codes)
	}
}
