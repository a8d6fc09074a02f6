package screentest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "dcs-tui/internal/cli" // the program under test: when it changes, cached results of these tests do not count
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// program is the path of the real program, which is built once.
var program string

func TestMain(m *testing.M) {
	if _, err := exec.LookPath("tmux"); err != nil {
		fmt.Fprintln(os.Stderr, "NO TMUX HERE: THE SCREEN IS NOT TESTED (apt-get install tmux)")
		os.Exit(m.Run())
	}
	os.Exit(progtest.Main(m, &program))
}

// terminal is a shell in a tmux server of its own, in a directory of its own.
type terminal struct {
	t      *testing.T
	dir    string
	socket string
	w, h   int
}

// openTerminal starts a shell with job control in a terminal of the given size. env are additional
// variables, NAME=value.
func openTerminal(t *testing.T, w, h int, env ...string) *terminal {
	t.Helper()
	if program == "" {
		t.Skip("NO TMUX HERE: THE SCREEN IS NOT TESTED")
	}
	x := &terminal{t: t, dir: t.TempDir(), w: w, h: h}
	x.socket = filepath.Join(t.TempDir(), "tmux") // short enough for a unix socket
	x.writeFile("hosts.toml", "[[host]]\nname = \"here\"\nlink = \"local\"\nslots = 2\nyield = false\nnice = 0\n")
	conf := x.writeFile("tmux.conf",
		"set -g remain-on-exit on\nset -g allow-rename on\nset -g automatic-rename off\nset -g set-titles on\n"+
			"set -g set-clipboard on\nset -g status off\nset -g escape-time 5\n")
	args := []string{"-S", x.socket, "-f", conf, "-u", "new-session", "-d", "-x", fmt.Sprint(w), "-y", fmt.Sprint(h),
		"-c", x.dir, "env"}
	args = append(append(args, env...), progtest.HomeEnv(x.dir)...)
	args = append(args, "PS1=prompt>", "HISTFILE=", "PATH="+filepath.Dir(program)+
		":"+os.Getenv("PATH"), "bash", "--norc", "--noprofile", "-i")
	cmd := exec.Command("tmux", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	t.Cleanup(x.close)
	x.awaitPattern("prompt>")
	return x
}

// close ends the running programs, all processes that the run's jobs started, and the terminal. It
// waits for them, because what they still write would prevent the removal of the directory.
func (x *terminal) close() {
	if x.t.Failed() {
		x.t.Logf("the terminal at the end:\n%s", x.capture())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*polltest.Patience)
	defer cancel()
	if runs, _ := filepath.Glob(filepath.Join(x.dir, "dcs-runs", "*")); len(runs) > 0 {
		cmd := exec.CommandContext(ctx, program, "cancel", "--all", "--yes", runs[0])
		cmd.Dir, cmd.Env = x.dir, append(os.Environ(), progtest.HomeEnv(x.dir)...)
		cmd.Run()
		x.awaitNoDispatcher(runs[0])
	}
	exec.CommandContext(ctx, "tmux", "-S", x.socket, "kill-server").Run()
	var left []progtest.Process
	if !polltest.Within(polltest.Patience, func() bool {
		left = progtest.FindProcesses(func(p progtest.Process) bool { return p.RefersTo(x.dir+"/", x.dir+"\x00") })
		return len(left) == 0
	}) {
		x.t.Errorf("these processes do not end: %v", left)
	}
}

// awaitNoDispatcher waits until no run has a dispatcher.
func (x *terminal) awaitNoDispatcher(run string) {
	if !polltest.Within(polltest.Patience, func() bool {
		owner, err := os.ReadFile(filepath.Join(run, "owner"))
		return err != nil || strings.Contains(string(owner), `"left":true`)
	}) {
		x.t.Error("the dispatcher of " + run + " does not end")
	}
}

func (x *terminal) writeFile(name, text string) string {
	x.t.Helper()
	path := filepath.Join(x.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
	return path
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), polltest.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// sendKeys sends keys by their tmux names.
func (x *terminal) sendKeys(keys ...string) {
	x.t.Helper()
	x.tmux(append([]string{"send-keys", "--"}, keys...)...)
}

// typeText sends a text.
func (x *terminal) typeText(text string) {
	x.t.Helper()
	x.tmux("send-keys", "-l", "--", text)
}

// capture returns the text on the terminal.
func (x *terminal) capture() string {
	out, _ := exec.Command("tmux", "-S", x.socket, "capture-pane", "-p").Output()
	return string(out)
}

// awaitScreen polls the terminal until a condition holds, and returns its text.
func (x *terminal) awaitScreen(what string, holds func(shown string) bool) string {
	x.t.Helper()
	var shown string
	polltest.Until(x.t, "the terminal shows "+what, func() bool {
		shown = x.capture()
		return holds(shown)
	}, func() string { return shown })
	return shown
}

// awaitPattern waits until a regular expression matches.
func (x *terminal) awaitPattern(pattern string) string {
	x.t.Helper()
	want := regexp.MustCompile(pattern)
	return x.awaitScreen(pattern, want.MatchString)
}

// awaitGone waits until a regular expression no longer matches.
func (x *terminal) awaitGone(pattern string) string {
	x.t.Helper()
	not := regexp.MustCompile(pattern)
	return x.awaitScreen("no "+pattern, func(s string) bool { return !not.MatchString(s) })
}

// press sends one key and waits until the pattern matches.
func (x *terminal) press(key, pattern string) string {
	x.t.Helper()
	x.sendKeys(key)
	return x.awaitPattern(pattern)
}

// pressUntilGone sends one key and waits until the pattern no longer matches.
func (x *terminal) pressUntilGone(key, pattern string) {
	x.t.Helper()
	x.sendKeys(key)
	x.awaitGone(pattern)
}

// enterLine types a line, confirms it, and waits until the pattern matches.
func (x *terminal) enterLine(line, pattern string) string {
	x.t.Helper()
	x.typeText(line)
	return x.press("Enter", pattern)
}

// startProgram starts the program with a jobs file and waits for its screen.
func (x *terminal) startProgram(jobs string, flags ...string) {
	x.t.Helper()
	x.writeFile("jobs.txt", jobs)
	x.enterLine("dcs-tui run --hosts hosts.toml --name r "+strings.Join(append(flags, "jobs.txt"), " "), `\[1 Jobs`)
}
