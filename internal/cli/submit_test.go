package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/jobstest"
	"dcs-tui/jobs/journal"
	"dcs-tui/jobs/rundir"
)

// asUser runs the program as its user does.
func asUser(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = "dcs-tui" // testscript knows the program by it
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// A dispatcher that dies after it has stored the jobs of a request, all or some, and
// before it has recorded that it has them: the next one takes each of them once (X1,
// promise 1), and the run goes on from its own source as if there were none.
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

// Many jobs make several requests, in order and each numbered from 1.
func TestSubmitBlocks(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var specs []*jobs.Spec
	for i := range 20 {
		specs = append(specs, &jobs.Spec{ID: jobs.ID(i + 1), Command: fmt.Sprint(i, long), Options: jobs.NoOptions})
	}
	n := 0
	for _, b := range submitBlocks(specs) {
		q := rundir.Request{Do: rundir.DoSubmit, Specs: rundir.JobsText(b)}
		if len(q.Specs) > rundir.MaxSubmit {
			t.Errorf("%d bytes", len(q.Specs))
		}
		if got, err := q.NewJobs(); err != nil || len(got) != len(b) {
			t.Fatal(err)
		}
		for _, s := range b {
			if !strings.HasPrefix(s.Command, fmt.Sprint(n, "x")) {
				t.Errorf("job %d is out of order", n)
			}
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d jobs", n)
	}
}

// K3: queues are named after their files, so that they can be told apart.
func TestQueueNames(t *testing.T) {
	for _, c := range []struct{ files, want string }{
		{"a.txt b.txt", "a b"}, {"x/a.txt y/a.txt c", "x/a.txt y/a.txt c"}, {".jobs -", ".jobs "}, {"a.b.txt", "a.b"},
	} {
		if got := strings.Join(queueNames(strings.Split(c.files, " ")), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.files, got, c.want)
		}
	}
}

// K3: templates that declare the same figure have one column of it; of two that mean
// something else by its name the second is refused.
func TestColumnsOfTemplates(t *testing.T) {
	b := &batch{}
	for _, c := range []struct{ columns, want string }{
		{"acc time=json:t", ""}, {"acc", ""}, {"loss", ""}, {"time", "b.txt: @result time is another one than that of a file before it (time=json:t)"},
	} {
		err := b.addColumns("b.txt", strings.Fields(c.columns))
		if (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.columns, err)
		}
	}
	if got := strings.Join(b.columns, " "); got != "acc time=json:t loss" {
		t.Error(got)
	}
}

// A template is told from a list of commands by its lines of values; the shell's own
// brackets are none.
func TestIsTemplate(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct {
		text string
		want bool
	}{
		{"svm -C [1]\n[1] 0.1, 1\n", true}, {"run [C]\n  [C]\t1..5\n", true}, {"[ -f x ] && true\n", false}, {"[[ -f x ]] && true\n", false},
		{"echo a[1] b\n", false}, {"[prog]/bin/run\n", false}, {"", false}, {"# [C] 1 2\ntrue\n", false}, {strings.Repeat("x", 70_000) + "\n[C] 1\n", true},
		{strings.Repeat("x", 70_000) + " [C] 1\n", false},
	} {
		name := fmt.Sprintf("f%d.txt", i)
		writeFile(t, dir, name, c.text)
		if got := isTemplate(filepath.Join(dir, name)); got != c.want {
			t.Errorf("%.40q: %v", c.text, got)
		}
	}
	writeFile(t, dir, "x.jsonl", "[C] 1\n")
	if isTemplate(filepath.Join(dir, "x.jsonl")) || isTemplate(dir) || isTemplate(filepath.Join(dir, "none")) {
		t.Error("what is no text of jobs is a template")
	}
}

// Issue 5.5: jobs are matched by command, parameters and occurrence.
func TestDiffJobs(t *testing.T) {
	spec := func(command, file string, o jobs.Options, params ...jobs.Param) *jobs.Spec {
		o.File = file
		return &jobs.Spec{Command: command, Params: params, Options: &o}
	}
	p := func(v string) jobs.Param { return jobs.Param{Name: "C", Value: v} }
	t1 := &jobs.Table{}
	have := func(s *jobs.Spec, st jobs.JobState) {
		t1.Jobs = append(t1.Jobs, jobs.Job{Spec: s, State: st})
	}
	have(spec("a", "f", jobs.Options{}), jobs.Succeeded)
	have(spec("a", "f", jobs.Options{}), jobs.Failed)
	have(spec("b", "f", jobs.Options{}, p("1")), jobs.Succeeded)
	have(spec("b", "f", jobs.Options{}, p("2")), jobs.TimedOut)
	have(spec("c", "f", jobs.Options{Tries: 1}), jobs.Queued)
	have(spec("gone", "f", jobs.Options{}), jobs.Queued)
	have(spec("other", "g", jobs.Options{}), jobs.Queued)
	m := diffJobs(t1, []*jobs.Spec{
		spec("a", "dir/f", jobs.Options{}), spec("a", "dir/f", jobs.Options{Timeout: time.Hour}), spec("a", "dir/f", jobs.Options{}),
		spec("b", "dir/f", jobs.Options{}, p("2")), spec("b", "dir/f", jobs.Options{}, p("3")), spec("c", "dir/f", jobs.Options{Tries: 2, Setup: "x"}),
	})
	if m.succeeded != 1 || len(m.fresh) != 2 || m.open != 1 || !slices.Equal(m.again, []jobs.ID{4}) || !slices.Equal(m.rounds, []jobs.ID{2, 4}) || m.kept["setup"] != 1 {
		t.Errorf("%+v", m)
	}
	if !slices.Equal(m.gone, []jobs.ID{3, 6}) || !slices.Equal(m.queued, []jobs.ID{6}) {
		t.Errorf("gone %v, of those queued %v", m.gone, m.queued)
	}
	var asks []string
	for _, q := range m.requests() {
		asks = append(asks, q.Do+" "+q.Jobs.String()+" spares "+q.Spare)
	}
	want := []string{"cancel 6 spares started", "edit 2 spares succeeded", "edit 5 spares succeeded", "requeue 4 spares succeeded"}
	if !slices.Equal(asks, want) { // whatever has become of them since (promise 1)
		t.Errorf("asked for: %q", asks)
	}
	t1.Jobs[4].Priority = 7 // by a person, on the screen
	for p, want := range map[int]int{0: 0, 7: 0, 3: 1} {
		m := diffJobs(t1, []*jobs.Spec{spec("c", "f", jobs.Options{Tries: 1, Priority: p})})
		if len(m.ranked) != want || want > 0 && !slices.Equal(m.ranked[p], []jobs.ID{5}) {
			t.Errorf("priority %d in the file: %v", p, m.ranked)
		}
	}
	if m := diffJobs(t1, []*jobs.Spec{spec("a", "renamed", jobs.Options{})}); len(m.gone) > 0 || !slices.Equal(m.others["f"], []jobs.ID{2, 3, 4, 5, 6}) || !slices.Equal(m.others["g"], []jobs.ID{7}) {
		t.Errorf("of a run of two files the jobs %v of another one are gone, %v are said to stay", m.gone, m.others)
	}
	t1.Jobs = t1.Jobs[:6]
	if m := diffJobs(t1, []*jobs.Spec{spec("a", "renamed", jobs.Options{})}); !slices.Equal(m.gone, []jobs.ID{2, 3, 4, 5, 6}) {
		t.Errorf("of the one file of the run, renamed, the jobs %v are gone", m.gone)
	}
	if len(m.changes) != 2 || m.changes[0].String() != "timeout 1h0m0s" || !slices.Equal(m.changes[0].ids, []jobs.ID{2}) || m.changes[1].String() != "tries 2" {
		t.Errorf("changes %+v", m.changes)
	}
}

// While somebody thinks about what requeue --file asks him, others may have added jobs, or
// left a request to add them: they would be added once more (promise 2, issue 5.5).
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
	spec.ID = 4 // it is carried out
	if err := errors.Join(run.RemoveRequest(name), run.AppendSpecs([]*jobs.Spec{spec})); err != nil {
		t.Fatal(err)
	}
	if err := stillSettled(run, table); err == nil || !strings.Contains(err.Error(), "1 job was added to the run meanwhile") {
		t.Errorf("the run has a job more: %v", err)
	}
}

// FuzzPerQueue: no value of --share makes it panic, and what it takes it says again.
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
