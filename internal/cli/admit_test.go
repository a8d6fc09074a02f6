package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"dcs-tui/dispatch/run"
	"dcs-tui/hosts"
	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
	"dcs-tui/observe/runview"
)

// stoppedRun returns a run with one queued job that nobody dispatches.
func stoppedRun(t *testing.T) *rundir.Run {
	t.Helper()
	run := disktest.NewRun(t)
	must(t, run.AppendSpecs([]*jobs.Spec{{ID: 1, Command: "true", Options: jobs.NoOptions}}))
	j := takeOver(t, run)
	must(t, j.Append([]jobs.Record{{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: 1}}))
	must(t, j.Sync())
	must(t, j.Close())
	return run
}

// TestWaitCountsJobsThatWereNeverAccepted checks that wait does not take a run whose dispatcher died before its
// first record for one without jobs, which has succeeded.
func TestWaitCountsJobsThatWereNeverAccepted(t *testing.T) {
	dir := disktest.NewRun(t)
	must(t, dir.AppendSpecs([]*jobs.Spec{{ID: 1, Command: "true", Options: jobs.NoOptions}}))
	var said bytes.Buffer
	a := newApp()
	a.con = consoleTo(&said)
	must(t, a.execute("wait", dir.Dir))
	if a.exitCode != exitLeft || !strings.Contains(said.String(), "jobs are left: 0 of 1 ok, 1 queued") {
		t.Errorf("got the exit code %d and %q, want %d", a.exitCode, said.String(), exitLeft)
	}
}

// TestCommandsOnARunThatNobodyDispatches checks that every command that makes a request either
// leaves it for the next resume, or refuses it with a reason and writes nothing. A run whose jobs
// have all ended accepts only what gives it jobs. Names are checked as by a dispatcher.
func TestCommandsOnARunThatNobodyDispatches(t *testing.T) {
	const ended, waits = "all jobs of the run have ended", "waits for"
	for _, c := range []struct {
		command           string // without RUN
		stopped, finished string // must be in the error or the message
		stoppedIsLeft     bool
		finishedIsLeft    bool
	}{
		{"pause", waits, ended, true, false},
		{"continue", waits, ended, true, false},
		{"priority RUN 3 1", waits, ended, true, false},
		{"hosts drain RUN " + localName(), waits, ended, true, false},
		{"hosts stop --yes RUN " + localName(), waits, ended, true, false},
		{"hosts use RUN " + localName(), waits, ended, true, false},
		{"hosts slots RUN " + localName() + " 3", waits, ended, true, false},
		{"hosts add RUN other link=local", waits, ended, true, false},
		{"hosts remove RUN " + localName(), waits, ended, true, false},
		{"hosts reload", "the next resume reads", "the next resume reads", false, false},
		{"hosts drain RUN nowhere", "there is no host nowhere", ended, false, false},
		{"hosts use RUN nowhere", "there is no host nowhere", ended, false, false},
		{"hosts slots RUN nowhere 3", "there is no host nowhere", ended, false, false},
		{"hosts remove RUN nowhere", "there is no host nowhere", ended, false, false},
		{"hosts add RUN other slot=3", "unknown key", ended, false, false},
		{"hosts add RUN " + localName(), "in use already", ended, false, false},
		{"submit --end", waits, ended, true, false},
		{"submit RUN FILE", waits, waits, true, true},
		{"submit --end RUN FILE", waits, waits, true, true},
		{"requeue --yes RUN 1", "nothing to requeue", waits, false, true},
	} {
		t.Run(c.command, func(t *testing.T) {
			for _, isFinished := range []bool{false, true} {
				runDir, want, isLeft := stoppedRun(t), c.stopped, c.stoppedIsLeft
				if isFinished {
					runDir, want, isLeft = finishedRun(t), c.finished, c.finishedIsLeft
				}
				file := t.TempDir()
				writeFile(t, file, "jobs.txt", "true\n")
				command := c.command
				if !strings.Contains(command, "RUN") {
					command += " RUN"
				}
				var args []string
				for word := range strings.FieldsSeq(command) {
					args = append(args, strings.NewReplacer("RUN", runDir.Dir, "FILE", file+"/jobs.txt").Replace(word))
				}
				var said bytes.Buffer
				a := newApp()
				a.con = consoleTo(&said)
				err := a.execute(args...)
				if err != nil {
					said.WriteString(err.Error())
				}
				names, _, listErr := runDir.RequestNames()
				must(t, listErr)
				if !strings.Contains(said.String(), want) || (len(names) > 0) != isLeft || isLeft && err != nil {
					t.Errorf("finished %v: requests %v, %q; want %q", isFinished, names, said.String(), want)
				}
			}
		})
	}
}

// TestMootRequestDoesNotKeepARun checks that a request that can do nothing, because the dispatcher
// ended when it was made, does not keep a finished run from being removed, and that one which adds
// jobs does.
func TestMootRequestDoesNotKeepARun(t *testing.T) {
	runDir := finishedRun(t)
	for _, q := range []*action.Request{{Do: action.Pause}, {Do: action.UseHost, Host: "node9"},
		{Do: action.Cancel, All: true}} {
		q.At = time.Now()
		if _, err := runDir.FileRequest(q); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Removable(runDir, false); err != nil {
			t.Errorf("after %q the run stays: %v", q.Text(), err)
		}
	}
	if _, err := runDir.FileRequest(&action.Request{Do: action.Requeue, Jobs: jobs.One(1),
		At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Removable(runDir, false); err == nil || !strings.Contains(err.Error(), "requests wait") {
		t.Errorf("a run with a requeue that waits: got %v, want that it stays", err)
	}
}

// TestScreenOnARunThatNobodyDispatches checks that the screen leaves and refuses the same requests
// as the commands.
func TestScreenOnARunThatNobodyDispatches(t *testing.T) {
	for _, c := range []struct {
		a                 action.Request
		stopped, finished string // in the reason; "": it is left
	}{
		{action.Request{Do: action.Pause}, "", "have ended"},
		{action.Request{Do: action.Priority, Jobs: jobs.One(1), Priority: 1, Relative: true}, "", "have ended"},
		{action.Request{Do: action.DrainHost, Host: "nowhere"}, "no host nowhere", "have ended"},
		{action.Request{Do: action.Slots, Host: localName(), Number: 1, Relative: true}, "are not known",
			"have ended"},
		{action.Request{Do: action.DrainRun}, "nobody dispatches", "nobody dispatches"},
	} {
		t.Run(c.stopped, func(t *testing.T) {
			for _, isFinished := range []bool{false, true} {
				runDir, want := stoppedRun(t), c.stopped
				if isFinished {
					runDir, want = finishedRun(t), c.finished
				}
				_, err := (&runScreen{app: newApp(), run: runDir}).actUndispatched(t.Context(), c.a, nil)
				var refused *runview.Refused
				if (err == nil) != (want == "") || err != nil &&
					(!errors.As(err, &refused) || !strings.Contains(err.Error(), want)) {
					t.Errorf("%s, finished %v: got %v, want %q", c.a.Do, isFinished, err, want)
				}
				names, _, _ := runDir.RequestNames()
				same(t, "a request is left", len(names) > 0, want == "")
			}
		})
	}
}

// TestHeldLinesNameTheCommands checks that resume names the commands that end a pause and a drain of
// hosts, including those that wait to be carried out.
func TestHeldLinesNameTheCommands(t *testing.T) {
	runDir := stoppedRun(t)
	table := &jobs.Table{Paused: true, Hosts: map[string]jobs.HostSetting{"a": {Use: jobs.HostDrained}, "b": {Slots: 3},
		"c": {Use: jobs.HostStopped}}}
	got := strings.Join(heldLines(runDir, table, nil), "\n")
	checkContains(t, got, "paused, as a person asked; dcs-tui continue ", "a starts no jobs", "hosts use ",
		"c starts no jobs")
	same(t, "lines", strings.Count(got, "\n"), 2)
	waiting := []*action.Request{{Do: action.Continue}, {Do: action.UseHost, Host: "a"},
		{Do: action.StopHost, Host: "b"}, {Do: action.UseHost, Host: "c"}}
	got = strings.Join(heldLines(runDir, table, waiting), "\n")
	if !strings.HasPrefix(got, "b starts no jobs") || strings.Contains(got, "\n") {
		t.Errorf("heldLines: got %q, want only b", got)
	}
}

// localName returns the name of the only host of a run without an inventory file.
func localName() string { return hosts.Local().Hosts[0].Name }
