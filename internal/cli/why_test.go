package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"dcs-tui/dispatch/socket"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
)

// runWhyCommand runs the command and returns its output and its warnings.
func runWhyCommand(t *testing.T, flags *whyFlags, args ...string) (out, warned string) {
	t.Helper()
	var said bytes.Buffer
	a := newApp()
	a.con = consoleTo(&said)
	r, w, err := os.Pipe()
	must(t, err)
	a.stdout = &output{File: w}
	must(t, a.runWhy(args, flags))
	w.Close()
	b, err := io.ReadAll(r)
	must(t, err)
	return string(b), said.String()
}

// fakeSSH puts a replacement for ssh into PATH. The script's variable last is the command line for
// the other machine.
func fakeSSH(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\necho \"$@\" >> " + dir + "/words\nfor last; do :; done\n" + script + "\n"
	must(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(text), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestWhyAnswersFromAnotherMachine checks that the dispatcher on another machine answers through
// ssh, which runs the program there.
func TestWhyAnswersFromAnotherMachine(t *testing.T) {
	screen := startRunningJob(t, gated)
	self, err := os.Executable()
	must(t, err)
	dir := screen.run.Settings.Cwd
	program := filepath.Join(dir, "dcs-tui")
	must(t, os.Symlink(self, program))
	// For the other machine, the owner is a process of its own.
	owner := screen.run.Path(rundir.OwnerFile)
	now, err := journal.ReadOwner(screen.run)
	must(t, err)
	b, err := json.Marshal(now)
	must(t, err)
	disktest.Elsewhere(t, screen.run, func(o map[string]any) {
		must(t, json.Unmarshal(b, &o))
		o["program"] = program
	})
	there, err := os.ReadFile(owner)
	must(t, err)
	writeFile(t, dir, "there", string(there))
	fakeSSH(t, fmt.Sprintf("cat %s/there > %s; exec sh -c \"$last\"", dir, owner))
	disktest.Elsewhere(t, screen.run, func(o map[string]any) { o["host"] = "melon4" })
	out, warned := runWhyCommand(t, &whyFlags{}, screen.run.Dir, "1")
	checkContains(t, out, "runs on")
	same(t, "warnings", warned, "")
	disktest.Elsewhere(t, screen.run, func(o map[string]any) { o["host"] = "melon4" })
	out, warned = runWhyCommand(t, &whyFlags{json: true}, screen.run.Dir, "1")
	checkContains(t, out, `"live":true`, screen.run.UID())
	same(t, "warnings", warned, "")
	screen.openGate(t)
}

// TestWhyWithoutAnAnswer checks a dispatcher on another machine that cannot be asked: why shows the
// reason and the content of the run directory, and never claims that the run has no dispatcher. It
// passes nothing to ssh that is not a host name.
func TestWhyWithoutAnAnswer(t *testing.T) {
	const noAnswer = "Job 2 waits; the run's dispatcher on melon4 knows more"
	for _, c := range []struct {
		name, host, socket, ssh string
		local                   bool
		out, warned             string // warned "": no warning is allowed
	}{
		{name: "no socket", ssh: "exit 9", out: noAnswer},
		{name: "asked from there", socket: "/s", local: true, ssh: "exit 9", out: noAnswer},
		{name: "unreachable", socket: "/s", ssh: "echo one >&2; echo 'no route to host' >&2; exit 255", out: noAnswer,
			warned: "ssh melon4: no route to host"},
		{name: "silent failure", socket: "/s", ssh: "exit 255", out: noAnswer, warned: "ssh melon4: exit status 255"},
		{name: "odd answer", socket: "/s", ssh: "echo Welcome", out: noAnswer, warned: "cannot parse the answer"},
		{name: "another run", socket: "/s", ssh: `echo '{"v":1,"uid":"x","job":2,"why":"fine"}'`, out: noAnswer,
			warned: "is another run on melon4"},
		{name: "another version", socket: "/s", ssh: `echo '{"v":2,"uid":"x","job":2,"why":"fine"}'`, out: noAnswer,
			warned: "cannot parse the answer"},
		{name: "odd host", host: "-oProxyCommand=touch x", socket: "/s", ssh: "exit 9",
			out: "dispatcher on -oProxyCommand", warned: "is not the name of a host"},
		{
			name:   "answer",
			socket: "/s",
			ssh:    `echo "{\"v\":1,\"uid\":\"$UID_OF_RUN\",\"job\":2,\"why\":\"No slot.\",\"live\":true}"`,
			out:    "No slot.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := disktest.NewRun(t)
			must(t, run.AppendSpecs(jobstest.Specs(2)))
			j := takeOver(t, run)
			must(t, j.SetSocket(c.socket))
			j.Close()
			disktest.Elsewhere(t, run, func(o map[string]any) {
				if o["host"] = "melon4"; c.host != "" {
					o["host"] = c.host
				}
			})
			t.Setenv("UID_OF_RUN", run.UID())
			fakeSSH(t, c.ssh)
			out, warned := runWhyCommand(t, &whyFlags{local: c.local}, run.Dir, "2")
			checkContains(t, out, c.out)
			checkContains(t, warned, c.warned)
			same(t, "no warning", warned == "", c.warned == "")
		})
	}
}

// countingHandler answers why and counts the queries.
type countingHandler struct {
	socket.Handler
	asked atomic.Int32
}

func (h *countingHandler) Why(context.Context, jobs.ID) (string, error) {
	h.asked.Add(1)
	return "No slot is free.", nil
}

// TestWhyAsksOnce checks that the dispatcher on this machine is asked once.
func TestWhyAsksOnce(t *testing.T) {
	run := disktest.NewRun(t)
	must(t, run.AppendSpecs(jobstest.Specs(2)))
	j := takeOver(t, run)
	defer j.Close()
	h := new(countingHandler)
	server, err := socket.Listen(socket.Options{Base: t.TempDir(), Run: run.UID(), Handler: h})
	must(t, err)
	defer server.Close()
	must(t, j.SetSocket(server.Address()))
	out, warned := runWhyCommand(t, &whyFlags{}, run.Dir, "2")
	checkContains(t, out, "No slot is free.")
	same(t, "warnings", warned, "")
	same(t, "number of queries", h.asked.Load(), 1)
}
