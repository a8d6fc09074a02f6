//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/hosts/hosttest"
	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// startExample starts a run over the lab's hosts that is kept open, in a copy of an example.
func (l *lab) startExample(example string) *process {
	l.t.Helper()
	must(l.t, os.CopyFS(l.dir, os.DirFS(filepath.Join("../../examples", example))))
	args := append([]string{"run", "--no-tui", "--keep-open", "--run-dir", "cluster"}, l.clientFlags(2)...)
	p := l.start(args...)
	l.until("the run is there", func() bool { return strings.Contains(p.stderr.String(), "is up") })
	return p
}

// runTool runs a command, which must succeed. It finds the program under test in its PATH.
func (l *lab) runTool(name string, args ...string) {
	l.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "MAKEFLAGS=")
	cmd.Env = append(cmd.Env, progtest.HomeEnv(l.dir)...)
	l.startCommand(cmd).mustSucceed()
}

// checkPi checks the results of the examples, and that the hosts of the run computed them in n
// jobs.
func (l *lab) checkPi(run *process, n int) {
	l.t.Helper()
	var pi float64
	if _, err := fmt.Sscan(l.readFile(l.path("pi.txt")), &pi); err != nil || pi < 3 || pi > 3.3 {
		l.t.Errorf("pi is %v, %v", pi, err)
	}
	l.run("submit", "cluster", "--end")
	if p := run.wait(); p.code != 0 || !strings.Contains(p.stderr, fmt.Sprintf("%d jobs in ", n)) {
		l.t.Errorf("exit %d\n%s", p.code, p.stderr)
	}
}

// TestMakeUsesARun checks that GNU make uses a run as its cluster, and that a failed recipe stops
// make.
func TestMakeUsesARun(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		hosttest.LeaveOut(t, "GNU make: it is not there")
	}
	l := newLab(t, 2)
	run := l.startExample("make")
	l.runTool("make", "-j", "4")
	l.checkPi(run, 9)
}

// TestSnakemakeUsesARun checks that Debian's Snakemake 7 uses a run as its cluster, also in a
// directory whose name contains a space.
func TestSnakemakeUsesARun(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	if _, err := exec.LookPath("snakemake"); err != nil {
		hosttest.LeaveOut(t,
			"Snakemake: it is not there; apt-get install --no-install-recommends snakemake installs it")
	}
	l := newLab(t, 2)
	l.dir = filepath.Join(l.dir, "a directory")
	must(t, os.Mkdir(l.dir, 0o755))
	run := l.startExample("snakemake")
	l.runTool("snakemake", "--jobs", "2", "--jobscript", "jobscript.sh", "--cluster-sync",
		"dcs-tui submit cluster --wait --option slots={threads} --option name={rule} --")
	l.checkPi(run, 5)
	if got := run.stderr.String(); strings.Count(got, "  darts\n") != 4 {
		t.Errorf("the jobs are not named after their rules:\n%s", got)
	}
}
