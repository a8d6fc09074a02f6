//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
)

// TestHostsBehindTheUsersOwnSSH checks that hosts reached by the user's own ssh, also with a
// gateway or over a shared connection, support every command: check, run, logs, resume after a
// kill, fetch, and cancel. The hosts share no directory with the dispatcher.
func TestHostsBehindTheUsersOwnSSH(t *testing.T) {
	polltest.Long(t)
	const n = 30
	l := newLab(t, 3,
		hosttest.Options{Shell: "/bin/bash", Noise: "Welcome!\n"},
		hosttest.Options{Shell: "/usr/bin/tcsh", Noise: "hello from tcsh\n"},
		hosttest.Options{Shell: "/bin/dash"})
	config, ports := l.servers[0].ConfigFile, []string{fmt.Sprint(l.servers[0].Port), fmt.Sprint(l.servers[1].Port),
		fmt.Sprint(l.servers[2].Port)}
	master := l.path("master")
	ssh := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ssh",
			append([]string{"-F", config, "-S", master, "-p", ports[2]}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("ssh %v: %v: %s", args, err, out)
		}
	}
	ssh("-M", "-N", "-f", "127.0.0.1")
	t.Cleanup(func() { ssh("-O", "exit", "127.0.0.1") })
	var b strings.Builder
	for i, options := range []string{"", "-J 127.0.0.1:" + ports[0], "-S " + master + " -o PubkeyAuthentication=no"} {
		fmt.Fprintf(&b, "[[host]]\nname = \"ws%d\"\nlink = \"ssh -F %s -p %s %s 127.0.0.1\"\nslots = 2\n"+
			"yield = false\nnice = 0\nwork_dir = %q\n\n",
			i+1, config, ports[i], options, l.workDir(i))
	}
	l.writeFile("own.toml", b.String())
	l.mkdir("ran")
	jobs := strings.Repeat("echo $DCS_ATTEMPT >> ran/$DCS_JOB_ID; echo \"out of $DCS_JOB_ID\"; "+
		"while [ ! -e gate ]; do sleep 0.05; done\n", n)
	l.writeFile("jobs.txt", jobs)
	l.writeFile("long.txt", strings.Repeat("echo here; exec sleep 1000\n", 6))
	l.runApart(`
$DCS hosts check --hosts own.toml > check.out
[ ! -e ` + l.workDir(0) + ` ] && [ ! -e ` + l.workDir(1) + ` ] && [ ! -e ` + l.workDir(2) + ` ]
$DCS run --no-tui --hosts own.toml --run-dir apart/run --tries 1 jobs.txt & pid=$!
until [ $(ls ran | wc -l) -ge 6 ]; do sleep 0.02; done
kill -9 $pid; wait $pid || true
: > gate
$DCS resume --no-tui --json apart/run > result.jsonl
for id in 1 2 3 4 5 6; do $DCS logs apart/run $id; done > logs.out
$DCS fetch apart/run
cat apart/run/attempts/000/*.out | sort -u > fetched.out
$DCS run --no-tui --hosts own.toml --run-dir apart/long long.txt & pid=$!
running() { $DCS status apart/long --json | grep -o '"running": *[0-9]*' | head -1 | grep -o '[0-9]*$'; }
until [ "$(running)" = 6 ]; do sleep 0.1; done
$DCS cancel apart/long --yes
wait $pid || [ $? = 130 ]`)
	if s := l.readFile(l.path("check.out")); !strings.Contains(s, "3 of 3 hosts usable") {
		t.Errorf("hosts check:\n%s", s)
	}
	l.checkAttemptsRanOnce(n)
	if used := l.hostsUsed(l.readFile(l.path("result.jsonl"))); len(used) != 3 {
		t.Errorf("hosts used: %v", used)
	}
	want := ""
	for id := 1; id <= 6; id++ {
		want += fmt.Sprintf("out of %d\n", id)
	}
	l.checkFiles(map[string]string{"logs.out": want})
	if got := strings.Count(l.readFile(l.path("fetched.out")), "\n"); got != n {
		t.Errorf("%d outputs were fetched, want %d", got, n)
	}
}

// sshUserEnv returns the environment of a user whose ssh reads this configuration file.
func (l *lab) sshUserEnv(config string) []string {
	l.t.Helper()
	ssh, err := exec.LookPath("ssh")
	must(l.t, err)
	l.mkdir("bin")
	l.writeFile("bin/ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, config))
	must(l.t, os.Chmod(l.path("bin/ssh"), 0o700))
	return append(os.Environ(), "PATH="+l.path("bin")+":"+os.Getenv("PATH"))
}

// TestRunOnAnotherMachine checks that HOST:RUN works with every command that takes a RUN, with
// every login shell there. Names and values arrive as typed.
func TestRunOnAnotherMachine(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 3, hosttest.Options{Shell: "/bin/bash"}, hosttest.Options{Shell: "/usr/bin/tcsh"},
		hosttest.Options{Shell: "/bin/dash"})
	run := l.path("it's a $(run) of 50%; ls!")
	l.mustRun("run", "--no-tui", "--run-dir", run, l.writeFile("jobs.txt", "echo one\necho 'two words'\n"))
	var config strings.Builder
	for i, s := range l.servers {
		fmt.Fprintf(&config, "Host ws%d\n  HostName 127.0.0.1\n  Port %d\n", i+1, s.Port)
	}
	config.WriteString("Match all\n  Include " + l.servers[0].ConfigFile + "\n")
	env := l.sshUserEnv(l.writeFile("config", config.String()))
	for i := range l.servers {
		there := func(args ...string) outcome {
			t.Helper()
			cmd := exec.Command(program, args...)
			cmd.Env = env
			return l.startCommand(cmd).wait()
		}
		ref := fmt.Sprintf("ws%d:%s", i+1, run)
		if e := there("logs", ref, "2"); e.code != 0 || !strings.HasSuffix(e.stdout, "two words\n") {
			t.Errorf("%s: exit %d, %q\n%s", ref, e.code, e.stdout, e.stderr)
		}
		if e := there("results", "--where", `name!="it's" and state=succeeded`, "--format", "jsonl",
			ref); e.code != 0 || strings.Count(e.stdout, "\n") != 2 {
			t.Errorf("%s: exit %d, %q\n%s", ref, e.code, e.stdout, e.stderr)
		}
		if e := there("status", fmt.Sprintf("ws%d:none", i+1)); e.code != 2 ||
			!strings.Contains(e.stderr, fmt.Sprintf("found no run none on ws%d, and dcs-tui is not in PATH there",
				i+1)) {
			t.Errorf("without a run: exit %d, %q", e.code, e.stderr)
		}
	}
}
