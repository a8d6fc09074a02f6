package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"dcs-tui/dispatch/run"
	"dcs-tui/dispatch/sched"
	"dcs-tui/dispatch/sched/halt"
	"dcs-tui/hosts"
	"dcs-tui/internal/progtest"
	"dcs-tui/internal/text"
	"dcs-tui/jobs"
)

// TestSlotsOfParallel checks that --jobs accepts what GNU parallel's -j means on every host, and
// refuses the rest with what to use instead.
func TestSlotsOfParallel(t *testing.T) {
	for s, want := range map[string]hosts.SlotRule{"100%": {}, "+0": {}, "8": {Fixed: 8}, "-1": {Less: 1}} {
		if got, err := parseSlots(s); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-", "0", "00", "x", "1.5", "--1", "50%", "150%", "0%", "+1", "+50%", "+", "file"} {
		_, err := parseSlots(s)
		if err == nil || !strings.Contains(err.Error(), "0, N%, +N, and files are not supported") {
			t.Errorf("%q: %v; want an error that names what is not supported", s, err)
		}
	}
	if _, err := parseSlots("99999999"); err == nil {
		t.Error("99999999: no error")
	}
}

// TestSlotsAreThoseOfParallel checks that what --jobs accepts means as many slots on this machine as in
// GNU parallel.
func TestSlotsAreThoseOfParallel(t *testing.T) {
	parallel := findParallel(t)
	for _, s := range []string{"1", "7", "07", "100%", "+0", "-0", "-1"} {
		if s == "-1" && runtime.NumCPU() == 1 {
			continue // version 20221122 refuses to run nothing, although its manual promises one slot
		}
		cmd := exec.Command(parallel, "--will-cite", "--progress", "-j", s, "true", ":::", "1")
		out, err := cmd.CombinedOutput()
		limits := regexp.MustCompile(`(?m)^1:local / (\d+) / (\d+)$`).FindSubmatch(out)
		if err != nil || limits == nil {
			t.Fatalf("%q: %v: %s", cmd.Args, err, out)
		}
		cores, _ := strconv.Atoi(string(limits[1]))
		rule, err := parseSlots(s)
		if got := strconv.Itoa(rule.Count(cores)); err != nil || got != string(limits[2]) {
			t.Errorf("-j %s: %s slots, %v; want %s", s, got, err, limits[2])
		}
	}
}

// findParallel returns the path of GNU parallel.
func findParallel(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("parallel")
	if err != nil || testing.Short() {
		t.Skip("needs GNU parallel, and takes long")
	}
	if version, _ := exec.Command(path, "--version").Output(); !strings.HasPrefix(string(version), "GNU parallel") {
		t.Skip(path + " is not GNU parallel")
	}
	t.Setenv("PARALLEL", "")
	for _, v := range progtest.HomeEnv(t.TempDir()) {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	return path
}

// TestHaltIsThatOfParallel checks for many results of four jobs, one of which runs at a time, that a run
// with --halt starts as many of them as GNU parallel, and succeeds when it does.
func TestHaltIsThatOfParallel(t *testing.T) {
	parallel := findParallel(t)
	refused, tested := 0, 0
	for _, rule := range []string{"0", "1", "2", "-1", "-2", "3", "10%", "30%", "100%", "never", "soon,fail=1",
		"soon,fail=2", "now,fail=2", "now,fail=30%", "soon,fail=100%", "now,success=1", "soon,success=2",
		"soon,success=5", "soon,success=50%", "now,success=100%", "now,done=1", "soon,done=50%", "now,done=100%",
		"soon,fail=0", "later,fail=1", "soon,fail", "now,fail=-1"} {
		parsed, err := parseHalt(rule)
		if err != nil {
			refused++
			continue
		}
		for _, exits := range []string{"0 0 0 0", "7 0 0 0", "0 0 0 7", "7 7 0 0", "7 7 7 7", "0 7 0 7"} {
			words := append([]string{"--will-cite", "-j1", "--halt", rule, "echo {}; exit {}", ":::"},
				strings.Fields(exits)...)
			out, err := exec.Command(parallel, words...).Output()
			exit, isExit := errors.AsType[*exec.ExitError](err)
			if isExit && exit.ExitCode() == 255 { // a usage error
				break
			}
			tested++
			want := fmt.Sprintf("%d started, success: %v", strings.Count(string(out), "\n"), err == nil)
			if got := haltOf(parsed, strings.Fields(exits)); got != want {
				t.Errorf("--halt %s, jobs that exit with %s: %s; GNU parallel: %s", rule, exits, got, want)
			}
		}
	}
	same(t, "refused rules", refused, 5)
	same(t, "runs", tested, 21*6)
}

// haltOf returns how many jobs with these exit codes start under a rule, one after the other, and
// whether the run succeeds.
func haltOf(rule halt.Rule, exits []string) string {
	n, started := halt.Counter{Rule: rule}, 0
	counts := [jobs.Skipped + 1]int{jobs.Queued: len(exits)}
	for _, exit := range exits {
		state := jobs.Succeeded
		if exit != "0" {
			state = jobs.Failed
		}
		started++
		counts[jobs.Queued]--
		counts[state]++
		n.Count(state)
		if n.Reached(len(exits)) != "" {
			break
		}
	}
	how := sched.Drained
	switch {
	case counts[jobs.Queued] == 0:
		how = sched.AllDone
	case rule.IsGoalReached(counts):
		how = sched.Reached
	}
	code := exitCode(run.StateOf(how, counts, false, false, rule))
	return fmt.Sprintf("%d started, success: %v", started, code == exitOK)
}

// TestExportedFunctionsAreNamed checks the error for --env NAME if NAME is a function that bash has
// exported. It names the function as not passed, and does not advise the user to export it.
func TestExportedFunctionsAreNamed(t *testing.T) {
	lookup := func(name string) (string, bool) { return "() {  echo; }", name == "BASH_FUNC_doit%%" }
	_, _, err := run.ParseEnv([]string{"doit"}, lookup)
	var advised *text.Error
	if !errors.As(err, &advised) || !strings.Contains(err.Error(), "exported function") ||
		strings.Contains(advised.Advice, "export it") {
		t.Errorf("--env doit: %v", err)
	}
}
