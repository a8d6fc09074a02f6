package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/rundir/disktest"
	"dcs-tui/observe/runview"
)

// TestSubmittedOnceAfterDeath checks a dispatcher that dies after it has stored all or some jobs of
// a request, and before it has recorded the request as done. The next dispatcher accepts each of
// the jobs once, and the run continues from its own source (X1, promise 1).
func TestSubmittedOnceAfterDeath(t *testing.T) {
	for _, c := range []struct {
		stored   int
		accepted bool
	}{{0, false}, {2, false}, {2, true}, {3, false}, {3, true}} {
		t.Run(fmt.Sprintf("%d stored, accepted %v", c.stored, c.accepted), func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			writeFile(t, dir, "jobs.txt", "echo first >>log\n")
			must(t, programCommand(t, dir, "run", "--name", "r", "jobs.txt").Run())
			run, err := rundir.Open(filepath.Join(dir, "dcs-runs", "r"))
			must(t, err)
			var specs []*jobs.Spec
			for i := range 3 {
				specs = append(specs, &jobs.Spec{ID: jobs.ID(i + 1), Command: fmt.Sprintf("echo more%d >>log", i),
					Options: &jobs.Options{Queue: "q"}})
			}
			name, err := run.FileRequest(&action.Request{Do: action.Submit, Specs: action.SpecsText(specs),
				At: time.Now()})
			must(t, err)
			dying := takeOver(t, run)
			var had []*jobs.Spec
			for i, s := range specs[:c.stored] {
				own := *s
				own.ID, own.Options = jobs.ID(i+2), &jobs.Options{Queue: "q", Request: name}
				had = append(had, &own)
			}
			must(t, run.AppendSpecs(had))
			if c.accepted {
				must(t, dying.Append([]jobs.Record{{Kind: jobs.KindAccepted, At: jobs.StampOf(time.Now()), Job: 2,
					Count: c.stored}}))
				must(t, dying.Sync())
			}
			dying.Close()
			for range 2 {
				said, _ := programCommand(t, dir, "resume", "r").CombinedOutput()
				checkContains(t, string(said), "4 succeeded")
			}
			same(t, "jobs that ran", strings.Join(slices.Sorted(strings.FieldsSeq(readFile(dir, "log"))), " "),
				"first more0 more1 more2")
			if names, _, _ := run.RequestNames(); len(names) > 0 {
				t.Errorf("%q are left", names)
			}
			table, _, err := journal.Replay(run)
			if err != nil || table.NumJobs() != 4 {
				t.Fatal(err)
			}
			for j := range table.Rows() {
				if j.Spec.ID == 1 {
					continue
				}
				if j.Spec.Request != name || j.Spec.Queue != "q" {
					t.Errorf("got options %+v, want the request's name and its queue", j.Spec.Options)
				}
			}
		})
	}
}

// TestWordsKeepTheirBoundaries checks that submit --wait runs several words as a program and its
// arguments, one word as a line of shell, and the path of a program as that program.
func TestWordsKeepTheirBoundaries(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "a b"), 0o755))
	program := filepath.Join(dir, "a b", "job.sh")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	writeFile(t, dir, "a b/data", "")
	run := &rundir.Run{Settings: &rundir.Settings{Cwd: "/"}}
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"bash", "-c", "sleep 1 && echo yo"}, "bash -c 'sleep 1 && echo yo'"},
		{[]string{"printf", "<%s>", "a b"}, "printf '<%s>' 'a b'"},
		{[]string{"echo", "a", ">", "b"}, "echo a '>' b"},
		{[]string{"sleep 1 && echo yo"}, "sleep 1 && echo yo"},
		{[]string{program}, "'" + program + "'"},
		{[]string{"a b/job.sh"}, "'a b/job.sh'"},
		{[]string{"a b/data"}, "a b/data"},
		{[]string{"a b/"}, "a b/"},
		{[]string{"a b/job.sh x"}, "a b/job.sh x"},
	} {
		t.Run(c.want, func(t *testing.T) {
			spec, err := (&submitFlags{options: []string{"cwd=" + dir}}).commandSpec(run, c.words)
			must(t, err)
			same(t, "command", spec.Command, c.want)
		})
	}
}

// TestNothingIsAddedTwice checks that jobs are not added twice if others added them, or left a
// request to add them, while a user answers the question of requeue --file (promise 2).
func TestNothingIsAddedTwice(t *testing.T) {
	run := disktest.NewRun(t)
	must(t, run.AppendSpecs(jobstest.Specs(3)))
	stillSettled := func() error {
		_, err := stillSettledTable(run, 3)
		return err
	}
	must(t, stillSettled())
	spec := &jobs.Spec{ID: 1, Command: "true", Options: jobs.NoOptions}
	name, err := run.FileRequest(&action.Request{Do: action.Submit, Specs: action.SpecsText([]*jobs.Spec{spec}),
		At: time.Now()})
	must(t, err)
	checkContains(t, fmt.Sprint(stillSettled()), "1 request of the run has not been carried out")
	spec.ID = 4 // the request is executed
	must(t, errors.Join(run.RemoveRequest(name), run.AppendSpecs([]*jobs.Spec{spec})))
	checkContains(t, fmt.Sprint(stillSettled()), "1 job was added to the run meanwhile")
}

// endlessReader is a reader without an end. It counts the bytes that were read.
type endlessReader struct{ n int }

func (e *endlessReader) Read(p []byte) (int, error) {
	clear(p)
	e.n += len(p)
	return len(p), nil
}

// TestStandardInputIsBounded checks that standard input is not read to its end to find out whether
// it is a template. Input without an end is refused at its first line. The bytes that were read for
// the test are read again.
func TestStandardInputIsBounded(t *testing.T) {
	in := &endlessReader{}
	a := &app{con: consoleTo(io.Discard), stdin: in}
	if _, _, err := a.readStdinJobs(&gridFlags{}); err == nil ||
		!strings.Contains(err.Error(), "the line is longer than 4 MiB") || in.n > 32<<20 {
		t.Errorf("%v after %d bytes", err, in.n)
	}
	const n = 400_000 // longer than the part that is examined
	a.stdin = strings.NewReader(strings.Repeat("true\n", n))
	if specs, _, err := a.readStdinJobs(&gridFlags{}); err != nil || len(specs) != n {
		t.Errorf("%d jobs, %v", len(specs), err)
	}
}

// TestStreamedTemplateIsRefused checks that a streamed template is refused, and that the message
// names the way to run it.
func TestStreamedTemplateIsRefused(t *testing.T) {
	next := (&app{stdin: strings.NewReader("[ -e x ] && echo [x]\n[x] 1 2\n")}).stdinJobs("")
	s, err := next()
	must(t, err)
	same(t, "Command", s.Command, "[ -e x ] && echo [x]")
	_, err = next()
	checkContains(t, fmt.Sprint(err), "standard input:2: this is a template, which dcs-tui grid - reads")
}

// TestRequeueSparesSucceededJobs checks that requeue does not run a job again that has succeeded in
// the meantime, unless succeeded jobs are requested (promise 1).
func TestRequeueSparesSucceededJobs(t *testing.T) {
	table := &jobs.Table{Jobs: []jobs.Job{{State: jobs.Failed}, {State: jobs.Skipped}, {State: jobs.Succeeded}}}
	same(t, "spared", spareOption(table, []jobs.ID{1, 2}), action.SpareSucceeded)
	same(t, "spared", spareOption(table, []jobs.ID{1, 3}), "")
}

// TestContinueRemovesTheStopFile checks that Continue on a screen ends the drain that the file STOP
// requested. It also removes the file, which would otherwise indicate that the run drains.
func TestContinueRemovesTheStopFile(t *testing.T) {
	t.Parallel()
	screen := startRunningJob(t, gated)
	writeFile(t, screen.run.Dir, rundir.StopFile, "")
	screen.awaitSnapshot(t, "the run drains", func(p *runview.Snapshot) bool { return p.Draining != "" })
	_, err := screen.Do(t.Context(), action.Request{Do: action.Continue})
	must(t, err)
	if _, err := os.Stat(screen.run.Path(rundir.StopFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file STOP is still there: %v", err)
	}
	screen.awaitSnapshot(t, "it drains no longer", func(p *runview.Snapshot) bool {
		return p.Draining == "" && p.Status == runview.StatusRunning
	})
	screen.openGate(t)
}

// TestNumberOfJobsIsNotASlotFlag checks that the number of jobs in the file of a run, which older
// programs stored under the name of a flag, does not become the number of slots of its hosts.
func TestNumberOfJobsIsNotASlotFlag(t *testing.T) {
	var flags runFlags
	fs := pflag.NewFlagSet("resume", pflag.ContinueOnError)
	flags.addHostFlags(fs)
	flags.addSlotFlags(fs)
	kept := map[string]any{"jobs": int64(100), rundir.OptionJobs: int64(100), "max-slots": "7", "older": "x"}
	if err := restoreFlags(fs, kept); err != nil || flags.Slots != nil || flags.MaxSlots != 7 {
		t.Errorf("%v, slots %v, at most %d", err, flags.Slots, flags.MaxSlots)
	}
	if fs.Lookup(rundir.OptionJobs) != nil {
		t.Errorf("%s is a flag, too", rundir.OptionJobs)
	}
}

// TestSubmitWaitsForARunThatIsBeingMade checks that submit waits for a run whose creation has begun,
// and only a moment for one of which nothing is there.
func TestSubmitWaitsForARunThatIsBeingMade(t *testing.T) {
	t.Chdir(tempDir(t))
	must(t, os.MkdirAll(filepath.Join(rundir.Base, "begun"), 0o700))
	must(t, os.WriteFile(filepath.Join(rundir.Base, "begun", rundir.NonceFile), nil, 0o600))
	for name, limit := range map[string]time.Duration{"begun": startTimeout, "unknown": missingTimeout,
		"": missingTimeout} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := (&app{con: consoleTo(io.Discard)}).openStarting(name)
				if waited := time.Since(began); err == nil || waited < limit || waited > limit+missingTimeout {
					t.Errorf("failed after %v: %v", waited, err)
				}
			})
		})
	}
}
