//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"dcs-tui/internal/polltest"
	"dcs-tui/internal/progtest"
)

// TestNextflowCommands checks the commands of examples/nextflow as Nextflow's executor for Slurm
// calls them: a task in a directory with a blank, its options, one that fails once, and one that is
// canceled. With DCS_LONG=1, and where it is installed, Nextflow itself runs a workflow.
func TestNextflowCommands(t *testing.T) {
	t.Parallel()
	l := newLocalLab(t, 2, "")
	run := l.start("run", "--no-tui", "--hosts", l.path("hosts.toml"), "--keep-open", "--run-dir", "cluster")
	l.until("the run is there", func() bool { return strings.Contains(run.stderr.String(), "is up") })
	env := append(os.Environ(), "DCS_NEXTFLOW="+l.path("cluster"),
		"PATH="+l.repoPath("examples/nextflow")+":"+filepath.Dir(program)+":"+os.Getenv("PATH"))
	env = append(env, progtest.HomeEnv(l.dir)...)
	in := func(dir string, words ...string) string {
		t.Helper()
		cmd := exec.Command("sh", append([]string{"-c", `cd "$0" && exec "$@"`, l.path(dir)}, words...)...)
		cmd.Env = env
		return l.startCommand(cmd).mustSucceed().stdout
	}
	task := func(dir, header, script string) {
		l.mkdir(dir)
		l.writeFile(dir+"/.command.run", "#!/bin/bash\n"+header+script+"\n")
	}
	task("it's work", "#SBATCH -J nf-ADD_(a'b 1)\n#SBATCH -o '/dev/null'\n#SBATCH --no-requeue \n"+
		"#SBATCH --signal B:USR2@30\n#SBATCH -c 2\n#SBATCH -t 01:02:03\n#SBATCH --mem 64M\n",
		"echo slots $OMP_NUM_THREADS; pwd")
	task("bad", "", "echo >>runs; exit 3")
	task("long", "", "sleep 600")
	for i, dir := range []string{"it's work", "bad", "long"} {
		want := fmt.Sprintf("Submitted batch job %d\n", i+1)
		if got := in(dir, "sbatch", ".command.run"); got != want {
			t.Fatalf("sbatch in %s prints %q, want %q", dir, got, want)
		}
	}
	states := func(want string) func() bool {
		return func() bool {
			return in(".", "squeue", "--noheader", "-o", "%i %t", "-t", "all", "-u", "ada") == want
		}
	}
	l.until("two tasks are over", states("1 CD\n2 F\n3 R\n"))
	in(".", "scancel", "3")
	l.until("the last task is canceled", states("1 CD\n2 F\n3 CA\n"))
	l.checkFiles(map[string]string{
		"it's work/.command.log": "slots 2\n" + l.path("it's work") + "\n", "bad/runs": "\n"})
	accepted := l.readFile(l.path("cluster/jobs.jsonl"))
	for _, want := range []string{`"name":"nf-ADD_(a_b_1)"`, `"slots":2`, `"tries":1`,
		`"timeout_ns":3723000000000`, `"mem":67108864`} {
		if !strings.Contains(accepted, want) {
			t.Errorf("jobs.jsonl is %s, want %s", accepted, want)
		}
	}
	if _, err := exec.LookPath("nextflow"); err != nil || !polltest.Scale(false, false, true) {
		t.Log("Nextflow itself is not tried: without DCS_LONG=1, or it is not there")
	} else {
		l.mkdir("flow")
		l.writeFile("flow/main.nf", `
process ADD {
  cpus 2
  errorStrategy 'retry'
  input: val x
  output: stdout
  script: "[ $x != 3 ] || [ ${task.attempt} = 2 ] || exit 7; echo sum \$(( $x + 1 ))"
}
workflow { ADD(Channel.of(1..5)) | view }
`)
		out := in("flow", "nextflow", "run", "main.nf", "-process.executor", "slurm")
		for _, want := range []string{"sum 2", "sum 3", "sum 4", "sum 5", "sum 6", "failed: 1, retries: 1"} {
			if !strings.Contains(out, want) {
				t.Errorf("Nextflow prints\n%swithout %s", out, want)
			}
		}
	}
	l.run("submit", "cluster", "--end")
	run.wait()
}
