package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/results"
	"dcs-tui/jobs/rundir"
)

// newGridRun creates a finished run without running its jobs. Each job has parameters C and gamma,
// and an output with acc and, in a line of JSON, loss.
func newGridRun(tb testing.TB, base string, n int) *rundir.Run {
	tb.Helper()
	run, err := rundir.Create(base, "grid", rundir.Settings{Version: "test", Cwd: tb.TempDir(),
		Options: map[string]any{"results": []string{"acc", "loss=json:test.loss"}}})
	must(tb, err)
	j := takeOver(tb, run)
	specs := make([]*jobs.Spec, n)
	for i := range specs {
		specs[i] = &jobs.Spec{ID: jobs.ID(i + 1), Command: "./train", Options: jobs.NoOptions,
			Labels: jobs.NewLabels("", []jobs.Param{{Name: "C", Value: fmt.Sprint(i / 100)},
				{Name: "gamma", Value: fmt.Sprint(i % 100)}})}
	}
	must(tb, run.AppendSpecs(specs))
	must(tb, j.Append([]jobs.Record{{Kind: jobs.KindAccepted, At: 1, Job: 1, Count: n}}))
	for i := range specs {
		id := jobs.ID(i + 1)
		if i%1000 == 999 || i == 0 {
			must(tb, os.MkdirAll(run.Path("attempts", jobs.ShardDir(id)), 0o700))
		}
		at := jobs.Stamp(int64(i+1) * int64(time.Second))
		o := &jobs.Outcome{Started: at, Ended: at + jobs.Stamp(i%10+1)*jobs.Stamp(time.Second), CPU: time.Second,
			MaxRSSBytes: 20 << 20}
		must(tb, j.Append([]jobs.Record{
			{Kind: jobs.KindLaunching, At: at, Job: id, N: 1, Host: "melon1"},
			{Kind: jobs.KindRunning, At: at, Job: id, N: 1, Host: "melon1", Slot: 1, Started: at},
			{Kind: jobs.KindExited, At: at, Job: id, N: 1, Next: jobs.Succeeded, Seq: int64(id), Outcome: o},
		}))
		a := jobs.AttemptID{Job: id, N: 1}
		text := fmt.Sprintf("reading\nepoch 1: acc=0.1\nepoch 2: acc=0.%03d\n{\"test\": {\"loss\": %d}}\n", i%1000, i)
		for file, content := range map[jobs.File]string{jobs.FileOut: text, jobs.FileErr: "", jobs.FileStatus: "x"} {
			name := jobs.AttemptFile(run.Dir, a, file)
			must(tb, os.WriteFile(name, []byte(content), 0o600))
			// Outputs written just now are not cached.
			must(tb, os.Chtimes(name, o.Ended.Time(), o.Ended.Time()))
		}
	}
	must(tb, j.Append([]jobs.Record{{Kind: jobs.KindEnded, At: 2}}))
	must(tb, j.Sync())
	must(tb, j.Close())
	return run
}

// resultsOf runs `results` in this process and returns its output and exit code.
func resultsOf(tb testing.TB, args ...string) (stdout, stderr string, code int) {
	tb.Helper()
	out, err := os.Create(filepath.Join(tb.TempDir(), "out"))
	must(tb, err)
	defer out.Close()
	errs, err := os.Create(filepath.Join(tb.TempDir(), "err"))
	must(tb, err)
	defer errs.Close()
	a := &app{stdin: strings.NewReader(""), stdout: &output{File: out}, stderr: errs, con: newConsole(errs)}
	code = a.main(append([]string{"results"}, args...))
	b, _ := os.ReadFile(out.Name())
	e, _ := os.ReadFile(errs.Name())
	return string(b), string(e), code
}

// TestColorAppearsOnlyOnATerminal checks that color appears only on a terminal and without
// NO_COLOR, and only repeats what the shades show. No format sends raw text to the terminal (rule
// 10).
func TestColorAppearsOnlyOnATerminal(t *testing.T) {
	dir := t.TempDir()
	run := newGridRun(t, filepath.Join(dir, "dcs-runs"), 4)
	out := jobs.AttemptFile(run.Dir, jobs.AttemptID{Job: 2, N: 1}, jobs.FileOut)
	if err := os.WriteFile(out, []byte("acc=\"\x1b]52;c;x\x07\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		noColor     string
		args        []string
		want, never string
	}{
		{"1", []string{"results"}, `job .*host`, `\x1b\[`},
		{"", []string{"results"}, `\x1b\[1mjob .*host\x1b\[0m`, `\x1b\]`},
		{"", []string{"results", "--format", "csv"}, `4,0,3,0.003,3,succeeded`, `\x1b\]|\x07`},
		{"", []string{"results", "--format", "tsv"}, `4\s+0\s+3\s+0.003\s+3\s+succeeded`, `\x1b\]|\x07`},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Setenv("NO_COLOR", c.noColor)
			p := startOnTerminal(t, dir, c.args...)
			shown := p.UntilMatch(c.want) + p.End()
			if regexp.MustCompile(c.never).MatchString(shown) {
				t.Errorf("%v with NO_COLOR=%q shows %q", c.args, c.noColor, shown)
			}
			if !p.ProcessState.Success() {
				t.Errorf("%v: %v", c.args, p.ProcessState)
			}
		})
	}
}

// TestCSVHoldsExactlyWhatJobsWrote checks that CSV written to a file contains exactly what the jobs
// wrote (X9).
func TestCSVHoldsExactlyWhatJobsWrote(t *testing.T) {
	run := newGridRun(t, t.TempDir(), 3)
	out := jobs.AttemptFile(run.Dir, jobs.AttemptID{Job: 2, N: 1}, jobs.FileOut)
	must(t, os.WriteFile(out, []byte("acc='=\"a\",\x1b'\n"), 0o600))
	got, errs, code := resultsOf(t, run.Dir, "--format", "csv", "--sort", "job", "--columns", "job,acc,loss,time")
	wantErrs := "note: 1 solved job has no loss (job 2)\n" +
		"note: 1 text begins like a formula, which a spreadsheet may execute: import the file as text " +
		"(job 2: \"=\\\"a\\\",␛\")\n"
	if want := "job,acc,loss,elapsed_seconds\n1,0.000,0,1\n2,\"=\"\"a\"\",\x1b\",,2\n3,0.002,2,3\n"; code != 0 ||
		got != want || errs != wantErrs {
		t.Errorf("got exit code %d, output %q, messages %q", code, got, errs)
	}
}

// TestNamesTellJobsApart checks that results show names unless the parameters tell all jobs apart, as
// in a run of a template alone.
func TestNamesTellJobsApart(t *testing.T) {
	spec := func(name string, params ...jobs.Param) *jobs.Spec {
		return &jobs.Spec{Command: "./train", Labels: jobs.NewLabels("", params), Name: name, Options: jobs.NoOptions}
	}
	c := jobs.Param{Name: "C", Value: "1"}
	for name, x := range map[string]struct {
		specs []*jobs.Spec
		want  bool
	}{
		"a template":                     {[]*jobs.Spec{spec("C=1", c), spec("", c)}, false},
		"several commands":               {[]*jobs.Spec{spec("train C=1", c), spec("test C=1", c)}, true},
		"a template and other jobs":      {[]*jobs.Spec{spec("C=1", c), spec("")}, true},
		"other jobs and then a template": {[]*jobs.Spec{spec("x"), spec("C=1", c)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, named := paramNames(&jobs.Table{Specs: x.specs})
			same(t, "areNamed", named, x.want)
		})
	}
}

// TestOnlyMetricsThatAreAskedFor checks that results looks for the metrics that the table shows or
// that a flag names, and for no others.
func TestOnlyMetricsThatAreAskedFor(t *testing.T) {
	var columns []*metrics.Metric
	for _, name := range []string{"acc", "loss", "f1"} {
		m, err := metrics.Parse(name)
		must(t, err)
		columns = append(columns, m)
	}
	table := results.NewTable(results.TableInput{Names: []string{"acc", "loss", "f1"}})
	pivot := results.PivotInput{Down: "host", Across: "queue", Metric: "loss"}
	for _, c := range []struct {
		flags resultsFlags
		best  string
		want  string // all: also without their names
	}{
		{resultsFlags{}, "", "all"},
		{resultsFlags{where: queries(t, "acc>1")}, "", "all"},
		{resultsFlags{group: []string{"host"}}, "", "all"},
		{resultsFlags{columns: []string{"job", "host"}}, "", ""},
		{resultsFlags{columns: []string{"job", "f1"}, where: queries(t, "job>1 or acc>1")}, "", "acc f1"},
		{resultsFlags{columns: []string{"job"}, order: []results.Order{{Column: "loss"}}}, "acc:max", "acc loss"},
		{resultsFlags{columns: []string{"job"}, best: &results.Order{Column: "f1"}}, "", "f1"},
		{resultsFlags{columns: []string{"time"}, group: []string{"host", "acc"}}, "", "acc"},
		{resultsFlags{pivotOf: &pivot}, "", "loss"},
		{resultsFlags{pivotOf: &results.PivotInput{Down: "host", Across: "queue"}}, "", "all"},
	} {
		t.Run(c.want, func(t *testing.T) {
			names := c.flags.names(c.best)
			var got []string
			named, others := namedMetrics(table, columns, names)
			for _, m := range named {
				got = append(got, m.Name)
			}
			if names == nil {
				got = []string{"all"}
			}
			if strings.Join(got, " ") != c.want || len(named)+len(others) != len(columns) {
				t.Errorf("%+v: got %q, want %s", c.flags, got, c.want)
			}
		})
	}
}

// TestGroupCompletesParameters checks that --group completes the parameters of the run, also after a
// comma.
func TestGroupCompletesParameters(t *testing.T) {
	run := newGridRun(t, t.TempDir(), 3)
	for prefix, want := range map[string]string{"": "C gamma", "host,": "host,C host,gamma"} {
		got, _ := completeParams(nil, []string{run.Dir}, prefix)
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %s", prefix, got, want)
		}
	}
}
