package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
	"dcs-tui/jobs/runview"
)

// asUser runs the program as its user does.
func asUser(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "dcs-tui" // testscript runs the program by this name
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// TestSubmittedOnceAfterDeath checks a dispatcher that dies after it has stored all or some jobs of
// a request, and before it has recorded the request as done. The next dispatcher accepts each of
// the jobs once, and the run continues from its own source (X1, promise 1).
func TestSubmittedOnceAfterDeath(t *testing.T) {
	for _, accepted := range []bool{false, true} {
		for stored := range 4 {
			t.Run(fmt.Sprintf("%d stored, accepted %v", stored, accepted), func(t *testing.T) {
				dir := t.TempDir()
				t.Chdir(dir)
				t.Setenv("HOME", dir)
				t.Setenv("TEST_BASES", filepath.Join(dir, "base"))
				writeFile(t, dir, "jobs.txt", "echo first >>log\n")
				asUser(t, "run", "--no-tui", "--name", "r", "jobs.txt")
				run, err := rundir.Open(filepath.Join(dir, "dcs-runs", "r"))
				if err != nil {
					t.Fatal(err)
				}
				var specs []*jobs.Spec
				for i := range 3 {
					specs = append(specs, &jobs.Spec{ID: jobs.ID(i + 1), Command: fmt.Sprintf("echo more%d >>log", i), Options: &jobs.Options{Queue: "q"}})
				}
				name, err := run.FileRequest(&rundir.Request{Do: rundir.DoSubmit, Specs: rundir.JobsText(specs), At: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
				dying, _, _, err := journal.Take(t.Context(), run, journal.TakeOptions{Notify: func(string) {}})
				if err != nil {
					t.Fatal(err)
				}
				var had []*jobs.Spec
				for i, s := range specs[:stored] {
					own := *s
					own.ID, own.Options = jobs.ID(i+2), &jobs.Options{Queue: "q", Request: name}
					had = append(had, &own)
				}
				if err := run.AppendSpecs(had); err != nil {
					t.Fatal(err)
				}
				if accepted && stored > 0 {
					r := jobs.Record{Kind: jobs.KindAccepted, At: jobs.StampOf(time.Now()), Job: 2, Count: stored}
					if err := dying.Append([]jobs.Record{r}); err != nil {
						t.Fatal(err)
					}
					if err := dying.Sync(); err != nil {
						t.Fatal(err)
					}
				}
				dying.Close()
				for range 2 {
					said := asUser(t, "resume", "--no-tui", "r")
					if !strings.Contains(said, "4 succeeded") {
						t.Fatalf("not four jobs:\n%s", said)
					}
				}
				b, _ := os.ReadFile(filepath.Join(dir, "log"))
				lines := strings.Fields(string(b))
				slices.Sort(lines)
				if want := "first more0 more1 more2"; strings.Join(lines, " ") != want {
					t.Errorf("ran %q, want %q", lines, want)
				}
				if names, _, _ := run.RequestNames(); len(names) > 0 {
					t.Errorf("%q are left", names)
				}
				table, _, err := journal.Replay(run)
				if err != nil || len(table.Jobs) != 4 {
					t.Fatal(err)
				}
				for i := range 3 {
					if s := table.Jobs[i+1].Spec; s.Request != name || s.Queue != "q" {
						t.Errorf("%+v", s.Options)
					}
				}
			})
		}
	}
}

// TestNothingComparedTwice checks that jobs are not added twice if others added them, or left a
// request to add them, while a user answers the question of requeue --file (promise 2).
func TestNothingComparedTwice(t *testing.T) {
	run := emptyRun(t)
	if err := run.AppendSpecs(jobstest.Specs(3)); err != nil {
		t.Fatal(err)
	}
	table, err := settledTable(run)
	if err != nil || stillSettled(run, table) != nil {
		t.Fatal(err, stillSettled(run, table))
	}
	spec := &jobs.Spec{ID: 1, Command: "true", Options: jobs.NoOptions}
	name, err := run.FileRequest(&rundir.Request{Do: rundir.DoSubmit, Specs: rundir.JobsText([]*jobs.Spec{spec}), At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if err := stillSettled(run, table); err == nil || !strings.Contains(err.Error(), "1 request of the run has not been carried out") {
		t.Errorf("a request waits: %v", err)
	}
	spec.ID = 4 // the request is executed
	if err := errors.Join(run.RemoveRequest(name), run.AppendSpecs([]*jobs.Spec{spec})); err != nil {
		t.Fatal(err)
	}
	if err := stillSettled(run, table); err == nil || !strings.Contains(err.Error(), "1 job was added to the run meanwhile") {
		t.Errorf("the run has a job more: %v", err)
	}
}

// FuzzPerQueue checks that no value of --share causes a panic, and that accepted values format to
// the same text.
func FuzzPerQueue(f *testing.F) {
	for _, s := range []string{"a=1", "a=b=2", "=3", "a", "a=0", "a=-1", "a=99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := perQueue{low: 1, high: jobs.MaxShare}
		if v.Set(s) != nil {
			return
		}
		again := perQueue{low: 1, high: jobs.MaxShare}
		if err := again.Set(v.String()); err != nil || again.String() != v.String() || v.of[v.names[0]] < 1 {
			t.Fatalf("%q became %q, %v", s, v.String(), err)
		}
	})
}

// endless is a reader without an end. It counts the bytes that were read.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	clear(p)
	e.n += len(p)
	return len(p), nil
}

// TestStandardInputIsBounded checks that standard input is not read to its end to find out whether
// it is a template. Input without an end is refused at its first line. The bytes that were read for
// the test are read again.
func TestStandardInputIsBounded(t *testing.T) {
	in := &endless{}
	a := &app{con: consoleTo(io.Discard), stdin: in}
	if _, _, err := a.readStdin(&gridFlags{}); err == nil || !strings.Contains(err.Error(), "the line is longer than 4 MiB") || in.n > 32<<20 {
		t.Errorf("%v after %d bytes", err, in.n)
	}
	const n = 400_000 // longer than the part that is examined
	a.stdin = strings.NewReader(strings.Repeat("true\n", n))
	if specs, _, err := a.readStdin(&gridFlags{}); err != nil || len(specs) != n {
		t.Errorf("%d jobs, %v", len(specs), err)
	}
}

// TestStreamedTemplate checks that a streamed template is refused, and that the message names the
// way to run it.
func TestStreamedTemplate(t *testing.T) {
	next := readingJobs(strings.NewReader("[ -e x ] && echo [x]\n[x] 1 2\n"))
	if s, err := next(); err != nil || s.Command != "[ -e x ] && echo [x]" {
		t.Fatal(s, err)
	}
	if _, err := next(); err == nil || !strings.Contains(err.Error(), "standard input:2: this is a template, which dcs-tui grid - reads") {
		t.Error(err)
	}
}

// TestRequeueSpares checks that requeue does not run a job again that has succeeded in the
// meantime, unless succeeded jobs are requested (promise 1).
func TestRequeueSpares(t *testing.T) {
	table := &jobs.Table{Jobs: []jobs.Job{{State: jobs.Failed}, {State: jobs.Skipped}, {State: jobs.Succeeded}}}
	if got := spared(table, []jobs.ID{1, 2}); got != rundir.SpareSucceeded {
		t.Errorf("spared %q", got)
	}
	if got := spared(table, []jobs.ID{1, 3}); got != "" {
		t.Errorf("jobs that have succeeded are asked for, and %q is spared", got)
	}
}

// TestContinueRemovesTheStopFile checks that Continue on a screen ends the drain that the file STOP
// requested. It also removes the file, which would otherwise indicate that the run drains.
func TestContinueRemovesTheStopFile(t *testing.T) {
	f := inBackground(t, gated)
	f.until(t, "a job runs", func(p *runview.Snapshot) bool { return p.Phases[runview.Running] > 0 })
	writeFile(t, f.run.Dir, rundir.StopFile, "")
	f.until(t, "the run drains", func(p *runview.Snapshot) bool { return p.Draining != "" })
	if _, err := f.Do(t.Context(), runview.Action{Do: runview.Continue}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(f.run.Path(rundir.StopFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file STOP is still there: %v", err)
	}
	f.until(t, "it drains no longer", func(p *runview.Snapshot) bool { return p.Draining == "" && p.Status == runview.StatusRunning })
	writeFile(t, ".", "gate", "")
}

// TestRestoreFlags checks that the number of jobs in the file of a run, which older programs stored
// under the name of a flag, does not become the number of slots of its hosts.
func TestRestoreFlags(t *testing.T) {
	var f runFlags
	fs := pflag.NewFlagSet("resume", pflag.ContinueOnError)
	f.hostFlags(fs)
	f.slotFlags(fs)
	kept := map[string]any{"jobs": int64(100), rundir.OptionJobs: int64(100), "max-slots": "7", "older": "x"}
	if err := restoreFlags(fs, kept); err != nil || f.Slots != "" || f.MaxSlots != 7 {
		t.Errorf("%v, slots %q, at most %d", err, f.Slots, f.MaxSlots)
	}
	if fs.Lookup(rundir.OptionJobs) != nil {
		t.Errorf("%s is a flag, too", rundir.OptionJobs)
	}
}
