package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dcs-tui/internal/progtest"
)

// smaller is examples/assignment.txt with fewer settings.
const smaller = `#DCS default tries=1 timeout=1s
'%s' [variant] [n] [m] [instance]
[variant] brute bnb heur
[n] 2 6 14 18
[m] 10 18
[instance] 1..4
@where n <= m
@hardness variant:heur<bnb<brute, n, m
`

type setting struct {
	State          string
	Params         map[string]string
	Started, Ended time.Time
}

func (s *setting) tuple() [3]int {
	n, _ := strconv.Atoi(s.Params["n"])
	m, _ := strconv.Atoi(s.Params["m"])
	return [3]int{slices.Index([]string{"heur", "bnb", "brute"}, s.Params["variant"]), n, m}
}

// atLeastAsHard reports whether every component of a is at least that of b.
func atLeastAsHard(a, b [3]int) bool { return a[0] >= b[0] && a[1] >= b[1] && a[2] >= b[2] }

// TestHarderSettingsAreSkipped repeats ExpoCloud's experiment with the real program. It checks that
// easy settings run first, that a timeout skips exactly the settings that are at least as hard, and
// that the summary reports how many were skipped (E2).
func TestHarderSettingsAreSkipped(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program and runs it for some seconds")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../..", ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	template := filepath.Join(dir, "small.txt")
	if err := os.WriteFile(template, fmt.Appendf(nil, smaller, filepath.Join(dir, "assignment")), 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), filepath.Join(dir, "dcs-tui"), "grid", "--no-tui", "--json", "--max-slots",
		"1", "--run-dir", filepath.Join(dir, "run"), template)
	run.Dir, run.Env = dir, append(os.Environ(), progtest.HomeEnv(dir)...)
	var out, said bytes.Buffer
	run.Stdout, run.Stderr = &out, &said
	var exit *exec.ExitError
	if err := run.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 { // some jobs did not succeed
		t.Fatalf("got error %v, want exit code 1\n%s", err, &said)
	}
	var all []*setting
	for line := range strings.Lines(out.String()) {
		s := new(setting)
		if err := json.Unmarshal([]byte(line), s); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, s)
	}
	count := map[string]int{}
	for _, s := range all {
		count[s.State]++
		why := slices.IndexFunc(all, func(o *setting) bool {
			return o.State == "timed_out" && atLeastAsHard(s.tuple(), o.tuple())
		})
		switch {
		case s.State == "skipped" && why < 0:
			t.Errorf("%v is skipped without cause", s.Params)
		case s.State == "succeeded" && why >= 0 && s.Started.After(all[why].Ended.Add(2*time.Second)):
			t.Errorf("%v runs though %v has timed out", s.Params, all[why].Params)
		}
	}
	// at least brute with 14 and 18 tasks is skipped
	if len(all) != 72 || count["timed_out"] == 0 || count["succeeded"] == 0 || count["skipped"] < 7 {
		t.Errorf("%d jobs: %v", len(all), count)
	}
	if want := fmt.Sprintf("%d jobs avoided", count["skipped"]); !strings.Contains(said.String(), want) {
		t.Errorf("no %q in\n%s", want, &said)
	}
	ran := slices.DeleteFunc(all, func(s *setting) bool { return s.Started.IsZero() })
	slices.SortFunc(ran, func(a, b *setting) int { return a.Started.Compare(b.Started) })
	if !slices.IsSortedFunc(ran, func(a, b *setting) int {
		x, y := a.tuple(), b.tuple()
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(x[2], y[2]))
	}) {
		for _, s := range ran {
			t.Log(s.Started, s.tuple(), s.State)
		}
		t.Error("not from the easiest to the hardest")
	}
}
