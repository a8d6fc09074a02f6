package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts/helper/remote"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
	"dcs-tui/internal/ttyguard"
	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/rundir"
)

// scriptSuite runs the tests. The programs that they start have a home directory of their own.
type scriptSuite struct{ *testing.M }

func (s scriptSuite) Run() int {
	home, err := os.MkdirTemp("", "dcs-tui-cli")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	for _, v := range progtest.HomeEnv(home) {
		name, value, _ := strings.Cut(v, "=")
		os.Setenv(name, value)
	}
	os.Setenv("TEST_BASES", filepath.Join(home, "base"))
	os.Setenv("SSH_AUTH_SOCK", "")
	syscall.Umask(0o022)        // the program refuses scripts that a group can write
	run.ProgramName = "dcs-tui" // testscript runs the program by this name
	return s.M.Run()
}

// TestMain also runs this binary as the program under test. As dcs-tui it runs main. On the host
// side it is started by the words of the host commands, under the name of its hash.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ttyguard.Word {
		os.Exit(ttyguard.Main())
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") && !strings.HasPrefix(os.Args[1], "__complete") {
		os.Exit(remote.Main(os.Args[1:]))
	}
	os.Setenv(runShareEnv, "off")  // tests run in parallel on the same machine
	flag.Set("test.parallel", "8") // they wait most of the time
	testscript.Main(scriptSuite{m}, map[string]func(){
		"dcs-tui": func() {
			a := newApp()
			a.helperBases = withProgram(os.Getenv("TEST_BASES"))
			a.pages = os.DirFS(filepath.Dir(os.Getenv("EXAMPLES")))
			os.Exit(a.main(os.Args[1:]))
		},
	})
}

// TestScripts runs the program as its user does. testdata/*.txtar contain the commands, the
// expected output, and the exit codes. Only this machine is used.
func TestScripts(t *testing.T) {
	deadline, _ := t.Deadline()
	testscript.Run(t, testscript.Params{
		Deadline:            deadline,
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			e.Setenv("EXAMPLES", examples)
			e.Values[backgroundKey{}] = map[string]*exec.Cmd{}
			e.Vars = append(e.Vars, progtest.HomeEnv(e.WorkDir)...)
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/.tmp/state") // scripts list their directory
			e.Setenv("TEST_BASES", e.WorkDir+"/base")
			e.Setenv("LANG", "C.UTF-8")
			e.Setenv(runShareEnv, "off")
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Defer(func() { checkNothingLeft(e) })
			return nil
		},
		Cmds: commands,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "mounts":
				return exec.Command("unshare", "-m", "true").Run() == nil, nil
			case "optuna":
				return exec.Command("/usr/bin/python3", "-c", "import optuna").Run() == nil, nil
			}
			return false, fmt.Errorf("there is no condition %q", cond)
		},
	})
}

// checkNothingLeft checks promise 4: no process of a script's runs outlives it. It reports and
// kills the processes that it finds.
func checkNothingLeft(e *testscript.Env) {
	left := progtest.KillLeftBehind(time.Minute,
		func(p progtest.Process) bool { return p.RefersTo(e.WorkDir+"/", e.WorkDir+"\x00") })
	for _, p := range left {
		e.T().Log("left behind: ", p)
	}
	if len(left) > 0 {
		e.T().FailNow()
	}
}

// commands are the commands of scripts.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"exits":   command("exits CODE PROGRAM ARG...", exits),
	"prints":  command("prints PATTERN PROGRAM ARG...", exitsWith("0", "stdout")),
	"says":    command("says PATTERN PROGRAM ARG...", exitsWith("0", "stderr")),
	"refuses": command("refuses PATTERN PROGRAM ARG...", exitsWith("2", "stderr")),
	"until":   command("until PATTERN FILE", until),
	"seen":    command("seen RUN", seen),
	"alone":   command("alone", alone),
	"start":   command("start NAME PROGRAM ARG...", start),
	"send":    command("send SIGNAL NAME", send),
	"ends":    command("ends CODE NAME", ends),
}

// command returns a command that refuses what does not agree with its usage.
func command(usage string, run func(*testscript.TestScript, []string)) func(*testscript.TestScript, bool, []string) {
	words := strings.Fields(strings.TrimSuffix(usage, " ARG..."))[1:]
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < len(words) || len(args) > len(words) && !strings.HasSuffix(usage, "...") {
			ts.Fatalf("usage: %s", usage)
		}
		run(ts, args)
	}
}

// backgroundKey is the key of the map of a script's started programs, by name.
type backgroundKey struct{}

// start NAME PROGRAM ARG... starts a program whose output goes to NAME.out and NAME.err. If the
// script does not wait for its end, it is killed.
func start(ts *testscript.TestScript, args []string) {
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{runShareEnv, "GORACE", "HOME", "LANG", "PATH", "TEST_BASES", "TMPDIR", "WORK",
		"XDG_STATE_HOME"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := os.Create(ts.MkAbs(args[0] + ".out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs(args[0] + ".err"))
	ts.Check(err)
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = out, errs
	ts.Check(cmd.Start())
	ts.Value(backgroundKey{}).(map[string]*exec.Cmd)[args[0]] = cmd
	ts.Defer(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
}

// send SIGNAL NAME sends a signal, such as INT, to a started program.
func send(ts *testscript.TestScript, args []string) {
	// 0 is none, and would check only whether the program runs
	sig := syscall.Signal(jobs.SignalNumber("SIG" + args[0]))
	if sig == 0 {
		ts.Fatalf("there is no signal %s", args[0])
	}
	ts.Check(ts.Value(backgroundKey{}).(map[string]*exec.Cmd)[args[1]].Process.Signal(sig))
}

// ends CODE NAME waits for a started program, which must exit with that code. A killed program has
// the code -1.
func ends(ts *testscript.TestScript, args []string) {
	cmd := ts.Value(backgroundKey{}).(map[string]*exec.Cmd)[args[1]]
	late := time.AfterFunc(polltest.Patience, func() { cmd.Process.Kill() })
	cmd.Wait()
	late.Stop()
	if code := strconv.Itoa(cmd.ProcessState.ExitCode()); code != args[0] {
		text, _ := os.ReadFile(ts.MkAbs(args[1] + ".err"))
		ts.Fatalf("%s exits %s, not %s:\n%s", args[1], code, args[0], text)
	}
}

// alone waits until no process of the script's programs is left: the helper on a host ends a moment
// after the program that it served, and may use the host's files until then.
func alone(ts *testscript.TestScript, _ []string) {
	dir := ts.MkAbs(".")
	var left []progtest.Process
	if !polltest.Within(polltest.Patience, func() bool {
		left = progtest.FindProcesses(func(p progtest.Process) bool { return p.RefersTo(dir+"/", dir+"\x00") })
		return len(left) == 0
	}) {
		ts.Fatalf("there are still processes: %v", left)
	}
}

// exits CODE PROGRAM ARG... runs a program that must exit with that code.
func exits(ts *testscript.TestScript, args []string) {
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("start the program: %v", err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s exits %d, not %s", args[1], code, args[0])
	}
}

// exitsWith returns the command NAME PATTERN PROGRAM ARG..., which runs a program that must exit
// with that code and print a text that matches.
func exitsWith(code, stream string) func(*testscript.TestScript, []string) {
	return func(ts *testscript.TestScript, args []string) {
		exits(ts, append([]string{code}, args[1:]...))
		if text := ts.ReadFile(stream); !regexp.MustCompile("(?m)" + args[0]).MatchString(text) {
			ts.Fatalf("no match for `%s` in %s:\n%s", args[0], stream, text)
		}
	}
}

// until PATTERN FILE waits until the file matches. The file need not exist yet.
func until(ts *testscript.TestScript, args []string) {
	pattern := regexp.MustCompile("(?m)" + args[0])
	var text []byte
	if !polltest.Within(polltest.Patience, func() bool {
		var err error
		text, err = os.ReadFile(ts.MkAbs(args[1]))
		return err == nil && pattern.Match(text)
	}) {
		ts.Fatalf("%s has no match for %s within %v:\n%s", args[1], args[0], polltest.Patience, text)
	}
}

// seen RUN waits until observers of a dispatched run have read its whole journal.
func seen(ts *testscript.TestScript, args []string) {
	run, err := rundir.Open(ts.MkAbs("dcs-runs/" + args[0]))
	ts.Check(err)
	if !polltest.Within(polltest.Patience, func() bool {
		s, err := live.Read(run)
		ts.Check(err)
		if s == nil {
			return false
		}
		info, err := os.Stat(run.Path(rundir.JournalDir, fmt.Sprintf("%06d.jsonl", s.Durable.Epoch)))
		return err == nil && info.Size() == s.Durable.Bytes
	}) {
		ts.Fatalf("live.json lags behind the journal for %v", polltest.Patience)
	}
}
