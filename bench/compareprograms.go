package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type program struct {
	name    string
	row     string // its name and version in the table
	where   string // where its jobs run
	version func(*contest, *program) (string, error)

	jobs    int                               // number of jobs of the throughput; 0: it runs no shell commands
	command func(*contest, jobList) *exec.Cmd // nil: its pool runs the commands
	pool    string                            // in pools.py
	calls   bool                              // its pool calls functions
	remote  bool                              // on the hosts of the lab
}

// jobList is what a program is to run.
type jobList struct {
	file  string // with a shell command in each line
	state string // directory for what a second start needs; "": there is none
	again bool   // this is the second start
}

const (
	onHosts = "4 hosts × 4 over ssh"
	onHere  = "16 of this machine"
)

var programs = []program{
	{name: "dcs-tui", where: onHosts, version: (*contest).ownVersion, jobs: 2000, command: (*contest).dcsRun,
		pool: "dcs-tui", calls: true, remote: true},
	{name: "GNU parallel", where: onHosts, version: gnuVersion("parallel", "GNU parallel"), jobs: 100,
		command: (*contest).parallel, remote: true},
	{name: "xargs -P", where: onHere, version: gnuVersion("xargs", "xargs (GNU findutils)"), jobs: 2000,
		command: (*contest).xargs},
	{name: "HyperQueue", where: onHere, version: (*contest).poolVersion, jobs: 1000, pool: "hyperqueue"},
	{name: "dask.distributed", where: onHosts, version: (*contest).poolVersion, jobs: 500, pool: "dask", calls: true,
		remote: true},
	{name: "Parsl", where: onHosts, version: (*contest).poolVersion, jobs: 500, pool: "parsl", calls: true,
		remote: true},
	{name: "concurrent.futures", where: onHere, version: (*contest).poolVersion, pool: "concurrent.futures",
		calls: true},
	{name: "loky", where: onHere, version: (*contest).poolVersion, pool: "loky", calls: true},
	{name: "joblib", where: onHere, version: (*contest).poolVersion, pool: "joblib", calls: true},
}

func (c *contest) ownVersion(*program) (string, error) {
	_, err := os.Stat(c.bin)
	return "", err // the commit stands above the table
}

// gnuVersion returns the version of a program of GNU, which it prints after this name.
func gnuVersion(command, name string) func(*contest, *program) (string, error) {
	return func(*contest, *program) (string, error) {
		out, err := exec.Command(command, "--version").Output()
		line, _, _ := strings.Cut(string(out), "\n")
		version, isGNU := strings.CutPrefix(line, name+" ")
		if err == nil && !isGNU {
			err = fmt.Errorf("%s is another program than %s", command, name)
		}
		return version, err
	}
}

func (c *contest) dcsRun(list jobList) *exec.Cmd {
	if list.again {
		return c.lab.command("resume", "--no-tui", list.state)
	}
	if list.state == "" {
		return c.dcs(len(c.sshd), contestSlots, c.runDir(), list.file)
	}
	cmd := c.dcs(len(c.sshd), contestSlots, list.state, list.file)
	cmd.Args = append(cmd.Args, "--hosts", c.impatient())
	return cmd
}

// impatient writes a hosts.toml in which a host counts as lost after the shortest time that the
// program advises.
func (c *contest) impatient() string {
	text, err := os.ReadFile(c.inventory(len(c.sshd), contestSlots))
	if err != nil {
		panic(err) // a benchmark without its files would measure nothing
	}
	return c.file("impatient.toml", strings.ReplaceAll(string(text), "[[host]]\n", "[[host]]\nlost_after = \"15s\"\n"))
}

// parallel prepares GNU parallel. With a state, it notes the jobs that have run, and tries jobs
// whose host has failed on another one.
func (c *contest) parallel(list jobList) *exec.Cmd {
	logins := ""
	for i := range c.sshd {
		logins += fmt.Sprintf("%d/ssh -F %s %s\n", contestSlots, c.sshConfig, hostName(i))
	}
	if list.state != "" {
		os.MkdirAll(list.state, 0o700)
	}
	args := []string{"--sshloginfile", c.file("logins", logins), "-a", list.file}
	if list.state != "" {
		args = append(args, "--joblog", filepath.Join(list.state, "joblog"), "--retries", "3")
	}
	if list.again {
		args = append(args, "--resume-failed")
	}
	return exec.Command("parallel", args...)
}

func (c *contest) xargs(list jobList) *exec.Cmd {
	return xargs(len(c.sshd)*contestSlots, list.file, "/bin/sh")
}
