package cli

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"dcs-tui/hosts/helper/remote"
)

// The program under test is the test binary itself: as dcs-tui it is main, and on
// the host side it is started again by its words, under the name of its hash.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") && !strings.HasPrefix(os.Args[1], "__complete") {
		os.Exit(remote.Main(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){
		"dcs-tui": func() {
			a := newApp()
			a.bases = os.Getenv("TEST_BASES")
			os.Exit(a.main(os.Args[1:]))
		},
	})
}

// TestScripts runs the program as its user does: testdata/*.txtar say what is
// typed, what must be printed and how it exits. Only this machine is used.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TEST_BASES", e.WorkDir+"/base")
			e.Setenv("LANG", "C.UTF-8")
			return nil
		},
		Cmds: commands,
	})
}

var commands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	"exits": exits,
	"until": until,
}

// exits CODE PROGRAM ARG... runs a program that must exit with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s exits %d, not %s", args[1], code, args[0])
	}
}

// until PATTERN FILE waits until the file, which need not exist yet, has a match.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: until PATTERN FILE")
	}
	pattern := regexp.MustCompile(args[0])
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(ts.MkAbs(args[1])); err == nil && pattern.Match(b) {
			return
		}
	}
	b, _ := os.ReadFile(ts.MkAbs(args[1]))
	ts.Fatalf("%s has no match for %s within a minute:\n%s", args[1], args[0], b)
}
