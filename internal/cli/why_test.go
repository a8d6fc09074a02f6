package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"dcs-tui/dispatch/socket"
	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// why runs the command and returns its output and its warnings.
func why(t *testing.T, f *whyFlags, args ...string) (out, warned string) {
	t.Helper()
	var said bytes.Buffer
	a := newApp()
	a.con = consoleTo(&said)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	a.stdout = w
	if err := a.runWhy(args, f); err != nil {
		t.Fatal(err)
	}
	w.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), said.String()
}

// standIn puts a replacement for ssh into PATH. The script's variable last is the command line for
// the other machine.
func standIn(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	text := "#!/bin/sh\necho \"$@\" >> " + dir + "/words\nfor last; do :; done\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestWhyOnAnotherMachine checks that the dispatcher on another machine answers through ssh, which
// runs the program there.
func TestWhyOnAnotherMachine(t *testing.T) {
	f := inBackground(t, gated)
	f.until(t, "a job runs", func(p *runview.Snapshot) bool { return p.Phases[runview.Running] > 0 })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs("dcs-tui")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	// For the other machine, the owner is a process of its own.
	owner := f.run.Path(rundir.OwnerFile)
	now, err := journal.ReadOwner(f.run)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere(t, f.run, func(o map[string]any) {
		if err := json.Unmarshal(b, &o); err != nil {
			t.Fatal(err)
		}
		o["program"] = program
	})
	there, err := os.ReadFile(owner)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, ".", "there", string(there))
	standIn(t, fmt.Sprintf("cat %s > %s; exec sh -c \"$last\"", filepath.Join(filepath.Dir(program), "there"), owner))
	elsewhere(t, f.run, func(o map[string]any) { o["host"] = "melon4" })
	out, warned := why(t, &whyFlags{}, f.run.Dir, "1")
	if !strings.Contains(out, "runs on") || warned != "" {
		t.Errorf("got %q, warned %q", out, warned)
	}
	elsewhere(t, f.run, func(o map[string]any) { o["host"] = "melon4" })
	out, warned = why(t, &whyFlags{json: true}, f.run.Dir, "1")
	if !strings.Contains(out, `"live":true`) || !strings.Contains(out, f.run.UID()) || warned != "" {
		t.Errorf("got %q, warned %q", out, warned)
	}
	writeFile(t, ".", "gate", "")
}

// TestWhyWithoutAnAnswer checks a dispatcher on another machine that cannot be asked: why shows the
// reason and the content of the run directory, and never claims that the run has no dispatcher. It
// passes nothing to ssh that is not a host name.
func TestWhyWithoutAnAnswer(t *testing.T) {
	const noAnswer = "Job 2 waits; the run's dispatcher on melon4 knows why"
	for _, c := range []struct {
		name, host, socket, ssh string
		local                   bool
		out, warned             string // warned "": no warning is allowed
	}{
		{name: "no socket", ssh: "exit 9", out: noAnswer},
		{name: "asked from there", socket: "/s", local: true, ssh: "exit 9", out: noAnswer},
		{name: "unreachable", socket: "/s", ssh: "echo one >&2; echo 'no route to host' >&2; exit 255", out: noAnswer, warned: "ssh melon4: no route to host"},
		{name: "silent failure", socket: "/s", ssh: "exit 255", out: noAnswer, warned: "ssh melon4: exit status 255"},
		{name: "odd answer", socket: "/s", ssh: "echo Welcome", out: noAnswer, warned: "cannot parse the answer"},
		{name: "another run", socket: "/s", ssh: `echo '{"v":1,"uid":"x","job":2,"why":"fine"}'`, out: noAnswer, warned: "is another run on melon4"},
		{name: "another version", socket: "/s", ssh: `echo '{"v":2,"uid":"x","job":2,"why":"fine"}'`, out: noAnswer, warned: "cannot parse the answer"},
		{name: "odd host", host: "-oProxyCommand=touch x", socket: "/s", ssh: "exit 9", out: "dispatcher on -oProxyCommand", warned: "is not the name of a host"},
		{name: "answer", socket: "/s", ssh: `echo "{\"v\":1,\"uid\":\"$UID_OF_RUN\",\"job\":2,\"why\":\"No slot.\",\"live\":true}"`, out: "No slot."},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := emptyRun(t)
			if err := run.AppendSpecs(jobstest.Specs(2)); err != nil {
				t.Fatal(err)
			}
			j, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := j.SetSocket(c.socket); err != nil {
				t.Fatal(err)
			}
			j.Close()
			elsewhere(t, run, func(o map[string]any) {
				if o["host"] = "melon4"; c.host != "" {
					o["host"] = c.host
				}
			})
			t.Setenv("UID_OF_RUN", run.UID())
			standIn(t, c.ssh)
			out, warned := why(t, &whyFlags{local: c.local}, run.Dir, "2")
			if !strings.Contains(out, c.out) {
				t.Errorf("got %q, want %q", out, c.out)
			}
			if !strings.Contains(warned, c.warned) || (warned == "") != (c.warned == "") {
				t.Errorf("warned %q, want %q", warned, c.warned)
			}
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
	run := emptyRun(t)
	if err := run.AppendSpecs(jobstest.Specs(2)); err != nil {
		t.Fatal(err)
	}
	j, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	h := new(countingHandler)
	server, err := socket.Listen(socket.Options{Base: t.TempDir(), Run: run.UID(), Handler: h})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := j.SetSocket(server.Address()); err != nil {
		t.Fatal(err)
	}
	if out, warned := why(t, &whyFlags{}, run.Dir, "2"); !strings.Contains(out, "No slot is free.") || warned != "" {
		t.Errorf("got %q, warned %q", out, warned)
	}
	if n := h.asked.Load(); n != 1 {
		t.Errorf("the dispatcher was asked %d times, want once", n)
	}
}
