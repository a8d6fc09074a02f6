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
)

// addProvider adds the example's provider to the lab. Its instances are sshds that a script starts.
// If through is not "", its commands are run by through.
func (l *lab) addProvider(through string) (inventory string) {
	l.t.Helper()
	script := l.repoPath("examples/instances/instance.sh")
	base := l.path("instances")
	l.t.Setenv("DCS_INSTANCES", base)
	if out, err := exec.Command(script, "setup").CombinedOutput(); err != nil {
		l.t.Fatalf("setup: %v: %s", err, out)
	}
	l.t.Cleanup(func() {
		for _, name := range l.instances() {
			l.t.Errorf("the instance %s is left", name)
			exec.Command(script, "terminate", name).Run()
		}
	})
	return l.writeFile("cloud.toml", fmt.Sprintf(`[[provider]]
name = "loopback"
create = "%[3]s %[1]s create {name} {idle}"
list = "%[3]s %[1]s list {run}"
terminate = "%[3]s %[1]s terminate {name}"
max = 3
startup = "2s"
idle = "60s"
slots = 2
yield = false
nice = 0
work_dir = "%[2]s/{name}/work"
identity = "%[2]s/identity"
`, script, base, through))
}

// instances returns the names of the instances that exist.
func (l *lab) instances() (names []string) {
	dirs, _ := filepath.Glob(l.path("instances/dcs-*/pid"))
	for _, d := range dirs {
		names = append(names, filepath.Base(filepath.Dir(d)))
	}
	return names
}

// TestInstancesSurviveTheirDispatcher runs jobs on instances only and kills the dispatcher in the
// middle. It checks that the next dispatcher takes over the instances, that nothing runs twice, and
// that no instance is left at the end (E5, P3, P4).
func TestInstancesSurviveTheirDispatcher(t *testing.T) {
	polltest.Long(t)
	l := newLab(t, 1) // skips the test where there is no sshd; only instances are used
	inventory := l.addProvider("")
	const n = 60
	jobs := l.writeTaggedJobs(n, "[ $DCS_JOB_ID -le 4 ] && "+l.gateWait()+"; sleep 0.1")
	config := l.path("instances/ssh_config")
	first := l.start("run", "--no-tui", "--json", "--ssh-config", config, "--hosts", inventory, "--run-dir",
		l.path("run"), jobs)
	polltest.Until(t, "jobs to run on instances", func() bool { return l.numFiles("ran/*") >= 4 })
	shown := first.kill().stdout
	if len(l.instances()) == 0 {
		t.Fatal("no instance has survived its dispatcher")
	}
	if e := l.run("hosts", "instances", "--hosts", inventory, l.path("run")); e.code != 0 ||
		!strings.Contains(e.stdout, "dangling: the dispatcher of") {
		t.Errorf("hosts instances: exit %d, %s%s; want one that is dangling", e.code, e.stdout, e.stderr)
	}
	l.writeFile("gate", "")
	again := l.mustRun("resume", "--no-tui", "--json", "--ssh-config", config, l.path("run"))
	l.checkRun("run", n, shown, again.stdout)
	if left := l.instances(); len(left) > 0 {
		t.Errorf("%v are left at the end", left)
	}
	for _, r := range l.completeResults(again.stdout) {
		if !strings.HasPrefix(r.Host, "dcs-") {
			t.Errorf("job %d ran on %q, want an instance", r.Job, r.Host)
		}
	}
	if !strings.Contains(again.stderr, "of provider loopback") {
		t.Errorf("the summary does not tell of the instances:\n%s", again.stderr)
	}
}

// TestInstancesLeftOver checks that an instance without a dispatcher and without a running job ends
// itself, and that leftover instances can be ended without a run.
func TestInstancesLeftOver(t *testing.T) {
	polltest.Long(t)
	l := newLab(t, 1) // skips the test where there is no sshd; only instances are used
	inventory := l.addProvider("")
	p := l.start("run", "--no-tui", "--ssh-config", l.path("instances/ssh_config"), "--hosts", inventory, "--run-dir",
		l.path("run"),
		l.writeFile("jobs.txt", "touch "+l.path("began")+"; sleep 1000\n"))
	polltest.Until(t, "the job to begin", func() bool { return l.numFiles("began") == 1 })
	p.kill()
	if e := l.run("hosts", "instances", "--terminate", "--hosts", inventory, l.path("run")); e.code == 0 ||
		len(l.instances()) == 0 {
		t.Errorf("hosts instances --terminate without --yes: exit %d, %s%s", e.code, e.stdout, e.stderr)
	}
	e := l.run("hosts", "instances", "--terminate", "--yes", "--hosts", inventory, l.path("run"))
	if e.code != 0 || !strings.Contains(e.stdout, "terminated") {
		t.Errorf("hosts instances --terminate: exit %d, %s%s", e.code, e.stdout, e.stderr)
	}
	if out, err := exec.Command(l.repoPath("examples/instances/instance.sh"), "create",
		"dcs-aaaaaaaa-1", "1").CombinedOutput(); err != nil {
		t.Fatalf("create: %v: %s", err, out)
	}
	polltest.Until(t, "the unused instance to end itself", func() bool { return len(l.instances()) == 0 })
}

// TestInstancesThatKeepTheirOutputs checks that instances that share no directory with the
// dispatcher are terminated, which deletes their files, only after their outputs were fetched (P4).
func TestInstancesThatKeepTheirOutputs(t *testing.T) {
	polltest.Long(t)
	const n = 8
	l := newLab(t, 1) // skips the test where there is no sshd; only instances are used
	inventory := l.addProvider(fmt.Sprintf("nsenter --mount=/proc/%d/ns/mnt", os.Getpid()))
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "echo result %d; echo to err %d >&2\n", i+1, i+1)
	}
	l.writeFile("jobs.txt", b.String())
	l.runApart(`
$DCS run --no-tui --ssh-config instances/ssh_config --hosts ` + inventory + ` --run-dir apart/run jobs.txt
cp -r apart/run/attempts brought
for i in $(seq ` + fmt.Sprint(n) + `); do $DCS logs apart/run $i; done > logs`)
	if left := l.instances(); len(left) > 0 {
		t.Errorf("%v are left at the end", left)
	}
	want := ""
	for i := range n {
		want += fmt.Sprintf("result %d\n", i+1)
	}
	l.checkFiles(map[string]string{"logs": want})
	if got := l.numEnded("brought/*/*.status"); got != n {
		t.Errorf("%d status files were brought, want %d", got, n)
	}
}
