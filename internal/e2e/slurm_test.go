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
)

// slurmCluster is a Slurm cluster with two nodes, started by scripts/slurm-lab.
type slurmCluster struct {
	l   *lab
	dir string
}

func (l *lab) startSlurm() *slurmCluster {
	l.t.Helper()
	for _, program := range []string{"slurmctld", "slurmd", "munged", "sbatch"} {
		_, err := exec.LookPath(program)
		if _, sbin := os.Stat("/usr/sbin/" + program); err != nil && sbin != nil {
			hosttest.LeaveOut(l.t,
				"a real Slurm: %s is not there; as root on Debian scripts/slurm-lab install installs it", program)
		}
	}
	s := &slurmCluster{l, l.path("slurm")}
	l.t.Cleanup(func() {
		if l.t.Failed() {
			for _, log := range l.glob("slurm/slurm*.log") {
				b, _ := os.ReadFile(log)
				l.t.Logf("%s: …%s", log, b[max(0, len(b)-3000):])
			}
		}
		s.run("../../scripts/slurm-lab", "stop", s.dir)
	})
	s.run("../../scripts/slurm-lab", "start", s.dir)
	return s
}

// command returns a command that uses this Slurm.
func (s *slurmCluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+s.dir+"/slurm.conf")
	return cmd
}

func (s *slurmCluster) run(name string, args ...string) string {
	s.l.t.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		s.l.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}

// checkNoneLeft checks that no allocation is left.
func (s *slurmCluster) checkNoneLeft() {
	s.l.t.Helper()
	if left := s.run("squeue", "--noheader", "--states=PENDING,RUNNING", "--format=%j"); left != "" {
		s.l.t.Errorf("allocations are left: %s", left)
	}
}

// TestNothingIsLostOverSlurm serves one queue by workstations and by allocations of a real Slurm. A
// node is killed, and an allocation times out. Nothing is lost, no try is used up, and no job runs
// twice at the same time or twice to its end (X3).
func TestNothingIsLostOverSlurm(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 2)
	s := l.startSlurm()
	l.mkdir("ran")
	l.mkdir("done")
	l.inventoryText = fmt.Sprintf(`[[provider]]
name = "hpc"
type = "slurm"
partition = "main"
time = "2m"
nodes = 2
max = 1
margin = "1s"
startup = "5s"
slots = 2
nice = 0
tags = ["hpc"]
lost_after = "15s"
work_dir = %q
`, l.path("slurm-work"))
	config := l.writeFile("both_config", l.readFile(s.dir+"/ssh_config")+l.readFile(l.servers[0].ConfigFile))

	// The first four jobs occupy both nodes of an allocation until the gate opens.
	// The others wait until both workstations have one.
	const n, held = 200, 4
	const served = `touch on-$DCS_HOST; until [ -e on-ws1 ] && [ -e on-ws2 ]; do sleep 0.05; done; `
	var b strings.Builder
	for i := range n {
		wait, tags := served+"sleep 0.2", ""
		if i < held {
			wait, tags = l.gateWait(), "#DCS tags=hpc\n"
		}
		fmt.Fprintf(&b, `%[1]scd %[2]s; exec 9>>lock-$DCS_JOB_ID; flock -n 9 || touch twice-$DCS_JOB_ID; `+
			`echo $DCS_HOST >>ran/$DCS_JOB_ID; %[3]s; echo $DCS_ATTEMPT >>done/$DCS_JOB_ID`+"\n", tags, l.dir, wait)
	}
	cmd := s.command(program, "run", "--no-tui", "--json", "--tries", "1", "--ssh-config", config, "--hosts",
		l.inventory(2), "--run-dir", l.path("run"), l.writeFile("jobs.txt", b.String()))
	p := l.startCommand(cmd)

	on := func(part string) (n int) { // returns the number of held jobs whose last attempt ran on such a host
		for id := 1; id <= held; id++ {
			text, _ := os.ReadFile(l.path(fmt.Sprintf("ran/%d", id)))
			lines := strings.Fields(string(text))
			if len(lines) > 0 && strings.HasSuffix(lines[len(lines)-1], part) {
				n++
			}
		}
		return n
	}
	told := func(part string) func() bool { return func() bool { return strings.Contains(p.stderr.String(), part) } }
	l.until("both nodes to be busy", func() bool { return on(".lab1") == 2 && on(".lab2") == 2 })
	s.run("../../scripts/slurm-lab", "kill", s.dir, "lab2")
	// Either comes first on a slow machine.
	lost, ends := told(".lab2 is lost"), told("is being terminated: its allocation ends")
	l.until("the node to be lost", func() bool { return lost() || ends() })
	s.run("../../scripts/slurm-lab", "revive", s.dir, "lab2")
	l.until("the allocation to end", ends)
	l.until("the held jobs to run in another allocation", func() bool { return on("-1.lab1")+on("-1.lab2") == 0 })
	l.writeFile("gate", "")
	e := p.mustSucceed()
	l.checkSucceeded("run", n)
	l.checkOver("run")
	if twice := l.glob("twice-*"); len(twice) > 0 {
		t.Errorf("%v: two attempts of a job ran at the same time", twice)
	}
	hosts := map[string]int{}
	for id := 1; id <= n; id++ {
		text, _ := os.ReadFile(l.path(fmt.Sprintf("done/%d", id)))
		if ends := strings.Fields(string(text)); len(ends) != 1 {
			t.Errorf("job %d came to its end as %v, want once", id, ends)
		}
		text, _ = os.ReadFile(l.path(fmt.Sprintf("ran/%d", id)))
		for _, host := range strings.Fields(string(text)) {
			hosts[host]++
		}
	}
	if hosts["ws1"] == 0 || hosts["ws2"] == 0 {
		t.Errorf("the workstations have not served the queue: %v", hosts)
	}
	s.checkNoneLeft()
	if !strings.Contains(e.stderr, "of provider hpc") {
		t.Errorf("the summary does not tell of the allocations:\n%s", e.stderr)
	}
	t.Logf("attempts by host: %v, in %s", hosts, filepath.Base(l.dir))
}

// TestSlurmOverSrun checks the link to a node by a step of the allocation (link = "srun"). With a
// Slurm that does not end the processes of a step in a control group, jobs outlive their
// dispatcher, and the next dispatcher adopts them. Each runs once.
func TestSlurmOverSrun(t *testing.T) {
	polltest.Long(t)
	t.Parallel()
	l := newLab(t, 0)
	s := l.startSlurm()
	inventory := l.writeFile("srun.toml", fmt.Sprintf(`[[provider]]
name = "hpc"
type = "slurm"
link = "srun"
partition = "main"
time = "10m"
nodes = 2
max = 1
startup = "5s"
idle = "1m"
slots = 2
nice = 0
work_dir = %q
`, l.path("slurm-work")))
	const n, held = 20, 4
	jobs := l.writeTaggedJobs(n, fmt.Sprintf("[ $DCS_JOB_ID -gt %d ] || %s", held, l.gateWait()))
	p := l.startCommand(s.command(program, "run", "--no-tui", "--tries", "1", "--hosts", inventory, "--run-dir",
		l.path("run"), jobs))
	l.until("the nodes to be busy", func() bool { return l.numFiles("ran/*") == held })
	p.kill()
	p = l.startCommand(s.command(program, "resume", "--no-tui", l.path("run")))
	l.until("the nodes to be back", func() bool { return strings.Count(p.stderr.String(), "is up") >= 1 })
	l.writeFile("gate", "")
	p.mustSucceed()
	l.checkSucceeded("run", n)
	l.checkOver("run")
	l.checkRanOnce(n, nil)
	s.checkNoneLeft()
}
