package tui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/metrics"
	"dcs-tui/jobs/rundir"
	"dcs-tui/observe/runview"
)

// TestGoldenResults compares the table, its groups, the best of both, and the heat map with golden
// files, with and without space for numbers. Without colors, no information is missing (rule 8).
func TestGoldenResults(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		for _, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
			if ascii && size[0] != 80 {
				continue
			}
			name := func(what string) string {
				if ascii {
					what += "-ascii"
				}
				return fmt.Sprintf("results-%s-%dx%d", what, size[0], size[1])
			}
			m := newView(t, Options{Source: sweepSource(t), ASCII: ascii}, tabResults, size[0], size[1])
			checkGolden(t, m, name("rows"))
			for _, line := range []string{"best acc:max", "sort acc desc"} {
				mustRunLine(t, m, line)
			}
			press(t, m, "j j")
			checkGolden(t, m, name("best"))
			press(t, m, "m j")
			checkGolden(t, m, name("groups"))
			mustRunLine(t, m, "pivot C gamma acc")
			press(t, m, "j right")
			checkGolden(t, m, name("heat"))
			mustRunLine(t, m, "pivot C job acc")
			checkGolden(t, m, name("shades"))
		}
	}
}

// TestEachKeySendsItsQuery checks which query each key and command sends to the source.
func TestEachKeySendsItsQuery(t *testing.T) {
	src := sweepSource(t)
	m := newView(t, Options{Source: src}, tabResults, 100, 30)
	asked := func() *runview.TableQuery { a := m.buildQuery(); return a.Table }
	if a := asked(); a == nil || a.Filter != "state=done" || a.Rows == 0 || a.By != "" || m.buildQuery().Jobs != nil {
		t.Errorf("query: got %+v, want the finished jobs in no order", a)
	}
	for _, c := range []struct {
		keys string // a command begins with :
		want func(*runview.TableQuery) bool
	}{
		{"s", func(a *runview.TableQuery) bool { return a.By == "C" && !a.Reverse }},
		{"S", func(a *runview.TableQuery) bool { return a.By == "C" && a.Reverse }},
		{":sort acc desc", func(a *runview.TableQuery) bool { return a.By == "acc" && a.Reverse }},
		{":best acc:max", func(a *runview.TableQuery) bool { return a.Best == "acc:max" }},
		{":result l=key:loss", func(a *runview.TableQuery) bool {
			return slices.Equal(a.Metrics, []string{"l=key:loss"})
		}},
		{":result l=re:loss=(.)", func(a *runview.TableQuery) bool {
			return slices.Equal(a.Metrics, []string{"l=re:loss=(.)"})
		}},
		{":result -l", func(a *runview.TableQuery) bool { return len(a.Metrics) == 0 }},
		{":filter C=1 acc>0.5", func(a *runview.TableQuery) bool { return a.Filter == "state=done C=1 acc>0.5" }},
		{"esc", func(a *runview.TableQuery) bool { return a.Filter == "state=done" }},
		{"m", func(a *runview.TableQuery) bool { return slices.Equal(a.Group, []string{"C", "gamma"}) && a.By == "" }},
		{"s", func(a *runview.TableQuery) bool { return a.By == "C" }},
		{":sort acc_mean desc", func(a *runview.TableQuery) bool {
			return a.By == "acc_mean" && a.Reverse && a.Best == "acc:max"
		}},
		{":group gamma min 3", func(a *runview.TableQuery) bool {
			return slices.Equal(a.Group, []string{"gamma"}) && a.MinSize == 3
		}},
		{"h", func(a *runview.TableQuery) bool { return a.Heat && a.Pivot == nil && a.Group == nil }},
		{"h", func(a *runview.TableQuery) bool { return !a.Heat && len(a.Group) == 1 }},
		{":group gamma C", func(a *runview.TableQuery) bool { return slices.Equal(a.Group, []string{"gamma", "C"}) }},
		{"h", func(a *runview.TableQuery) bool { return a.Heat && slices.Equal(a.Pivot, []string{"gamma", "C"}) }},
		{":pivot C,gamma acc:median", func(a *runview.TableQuery) bool {
			return a.Heat && slices.Equal(a.Pivot, []string{"C", "gamma", "acc:median"})
		}},
		// Where it is marked.
		{":best loss:min", func(a *runview.TableQuery) bool {
			return !a.Heat && len(a.Group) == 2 && a.Best == "loss:min"
		}},
		{"esc", func(a *runview.TableQuery) bool { return !a.Heat && a.Group == nil && a.By == "acc" }},
		{":group", func(a *runview.TableQuery) bool { return a.Group == nil }},
		{":best", func(a *runview.TableQuery) bool { return a.Best == "" }},
	} {
		t.Run(c.keys, func(t *testing.T) {
			if line, is := strings.CutPrefix(c.keys, ":"); is {
				mustRunLine(t, m, line)
			} else {
				press(t, m, c.keys)
			}
			if a := asked(); !c.want(a) {
				t.Errorf("%s asks for %+v", c.keys, a)
			}
		})
	}
	for line, want := range map[string]string{
		"group D": "there is no column", "best acc": "acc:max or acc:min", "sort nonsense": "there is no column",
		"pivot C": "rows, columns, and a metric",
		"result":  "which metric?", "result -x": "was not added", "group C min x": "not a number of jobs",
		"pivot C D acc": "there is no column",
	} {
		t.Run(line, func(t *testing.T) {
			if err := runLine(t, m, line); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", line, err)
			}
		})
	}
	checkActions(t, src)
}

// TestMetricsAreCompleted checks that tab completes the metrics of the table in its filter.
func TestMetricsAreCompleted(t *testing.T) {
	m := newView(t, Options{Source: sweepSource(t)}, tabResults, 80, 24)
	if _, words := m.completeFilter("C=1 ac"); !slices.Equal(words, []string{"acc>", "acc<"}) {
		t.Errorf("tab completes ac with %q", words)
	}
}

// TestResultsJobsOfAGroup checks that enter opens the jobs of a group or of a cell of the heat map.
// Keys for jobs have no meaning where no job is visible (rule 9).
func TestResultsJobsOfAGroup(t *testing.T) {
	src := sweepSource(t)
	m := newView(t, Options{Source: src}, tabResults, 100, 30)
	press(t, m, "m j c r")
	checkActions(t, src)
	shows(t, m, "C", "acc_mean", "acc_sd")
	press(t, m, "enter")
	if a := m.buildQuery().Table; a.Filter != `state=done C="0.01" gamma="0.5"` || a.Group != nil {
		t.Errorf("query of a group's jobs: got %+v, want a filter by its parameters", a)
	}
	mustRunLine(t, m, "pivot C gamma acc")
	press(t, m, "esc esc")
	mustRunLine(t, m, "pivot C gamma acc")
	press(t, m, "G right right c")
	checkActions(t, src)
	press(t, m, "enter")
	if a := m.buildQuery().Table; a.Filter != `state=done C="10" gamma="1"` || a.Heat {
		t.Errorf("query of a cell's jobs: got %+v, want a filter by its parameters", a)
	}
	mustRunLine(t, m, "filter acc>0.5")
	press(t, m, "a")
	equal(t, m.jobs.sel.n, 0, "jobs selected by a metric, of which the list of jobs knows nothing")
	shows(t, m, "space selects a job")
	equal(t, quoteExact(`a "b" \c`), `"a \"b\" \\c"`, "the value of a filter")
}

// changeTables makes a source change its tables of results.
func changeTables(src *fakeSource, change func(*runview.Table)) {
	whole := src.snapshot
	src.snapshot = func(ask runview.Query) (*runview.Snapshot, error) {
		snap, err := whole(ask)
		if snap.Table != nil {
			table := *snap.Table
			table.Page.Filter = ask.Table.Filter
			change(&table)
			snap.Table = &table
		}
		return snap, err
	}
}

// TestFilterOfGroupsCountsMatches checks that the filter line of groups shows the number of
// matching groups and the errors of the filter (rule 5).
func TestFilterOfGroupsCountsMatches(t *testing.T) {
	src := sweepSource(t)
	wrong := ""
	changeTables(src, func(t *runview.Table) {
		if t.Groups != nil {
			t.Page = runview.Page{Filter: t.Page.Filter, Matched: 7, Wrong: wrong}
		}
	})
	m := newView(t, Options{Source: src}, tabResults, 80, 24)
	typing := func(text string) {
		typeText(t, m, text)
		passFilterDelay(t, m)
	}
	press(t, m, "m /")
	typing("acc_mean>0.5")
	shows(t, m, "/acc_mean>0.5", " groups")
	wrong = "there is no column \"acc_mean\""
	typing("1")
	shows(t, m, "/acc_mean>0.51", wrong)
	wrong = ""
	// The filter of groups does not apply to their jobs.
	press(t, m, "enter enter")
	if a := m.buildQuery().Table; a.Filter != `state=done C="0.01" gamma="0.5"` { // the first group has less
		t.Errorf("query of a group's jobs: got %+v, want a filter by its parameters alone", a)
	}
}

// TestProgressIsShownWhileOutputsAreRead checks that the screen shows the progress while outputs
// are read, and keeps the previous table until the new one is ready.
func TestProgressIsShownWhileOutputsAreRead(t *testing.T) {
	src := sweepSource(t)
	pending := true
	changeTables(src, func(t *runview.Table) {
		t.Read, t.Jobs = 12_000, 100_000
		if pending {
			*t = runview.Table{Page: runview.Page{Filter: t.Page.Filter}}
		}
	})
	m := newView(t, Options{Source: src}, tabResults, 100, 30)
	for _, key := range []string{"m", "h", "esc", "right", "s"} {
		t.Run(key, func(t *testing.T) { // the first table is not ready yet
			press(t, m, key)
			checkSize(t, m, "a table that is being made, "+key)
		})
	}
	pending = false
	m = newView(t, Options{Source: src}, tabResults, 100, 30)
	shows(t, m, "read 12,000 of 100,000", "0.091")
	pending = true
	press(t, m, "s", "read 12,000 of 100,000", "0.091")
}

// TestHostileResultsDoNotBreakTheScreen checks that hostile names, values, and metrics cannot break
// the screen (rule 10).
func TestHostileResultsDoNotBreakTheScreen(t *testing.T) {
	evil := "\x1b]52;c;cHduZWQ=\x07\x1b[2J\r\nd\u202eesrever\xff 世界世界世界\x9b31m"
	var params [][]jobs.Param
	for i := range 12 {
		params = append(params, []jobs.Param{{Name: evil, Value: evil + fmt.Sprint(i/3)},
			{Name: "世界", Value: strings.Repeat("世", 40+i%3)}})
	}
	src := gridSource(t, params, func(i int) string { return "x=" + strings.Repeat("世界\x1b[31m", 30+i) + "\n" },
		`x=re:x=(.*)`)
	for _, ascii := range []bool{false, true} {
		for _, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
			m := newView(t, Options{Source: src, ASCII: ascii}, tabResults, size[0], size[1])
			look := func(what string) {
				checkHarmless(t, m, what)
				if s := plainScreen(m); strings.ContainsAny(s, "\x1b\x07\r\u202e\u009b") || ascii &&
					strings.ContainsFunc(s, func(r rune) bool { return r > '~' }) {
					t.Errorf("%s: %q", what, s)
				}
			}
			look("rows")
			press(t, m, "m")
			look("groups")
			press(t, m, "enter")
			look("its jobs")
			press(t, m, "esc esc h j right")
			look("heat")
			press(t, m, "enter")
			look("the jobs of a cell")
		}
	}
}

// BenchmarkResults measures a frame of the largest table: 300 groups and a heat map of 64 x 64.
func BenchmarkResults(b *testing.B) {
	t := &runview.Table{Ready: true, Groups: &runview.TableGroups{Best: 7},
		Heat: &runview.Heat{Down: "C", Across: "gamma", Min: "0", Max: "1"}}
	for i := range runview.MaxTableGroups {
		row := []string{fmt.Sprint(i)}
		for k := range 26 {
			row = append(row, fmt.Sprintf("0.%06d", i*k))
		}
		t.Groups.Rows = append(t.Groups.Rows, row)
	}
	for i := range 27 {
		t.Groups.Columns = append(t.Groups.Columns, runview.TableColumn{Name: fmt.Sprintf("f%d_mean", i)})
	}
	for i := range runview.MaxHeat {
		t.Heat.Rows, t.Heat.Columns = append(t.Heat.Rows, fmt.Sprint(i)), append(t.Heat.Columns, fmt.Sprint(i))
		t.Heat.Cells, t.Heat.Levels = append(t.Heat.Cells, make([]string, runview.MaxHeat)), append(t.Heat.Levels,
			make([]int8, runview.MaxHeat))
		for k := range runview.MaxHeat {
			t.Heat.Cells[i][k] = fmt.Sprintf("0.%06d", i*k)
		}
	}
	m := newModel(Options{}, func() time.Time { return noon })
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 48})
	m.openView(tabResults)
	p := m.results
	p.groups.by = []string{"f0_mean"}
	m.snap = sampleSnapshot(runview.Query{})
	m.snap.Table = t
	for name, heat := range map[string]bool{"groups": false, "heat": true} {
		b.Run(name, func(b *testing.B) {
			p.groups.isShown, p.heat.isShown = true, heat
			p.onSnapshot(m)
			for b.Loop() {
				m.Update(keyMessage("j"))
				m.View()
			}
		})
	}
}

// gridSource returns a source with the sample run and the table of a real run over a grid. params
// are the parameters of each job, and print returns its output. The last job has failed.
func gridSource(t *testing.T, params [][]jobs.Param, print func(i int) string, columns ...string) *fakeSource {
	t.Helper()
	dir := t.TempDir()
	o := runview.Options{}
	for _, text := range columns {
		c, err := metrics.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Metrics = append(o.Metrics, c)
	}
	o.Outputs = func(c []*metrics.Metric) *metrics.Reader {
		return metrics.NewReader(&rundir.Run{Dir: dir, Disk: rundir.OS, Settings: &rundir.Settings{Cwd: dir}}, c)
	}
	table := &jobs.Table{Cancels: map[jobs.ID]jobs.Cancel{}}
	for i, p := range params {
		s := &jobs.Spec{ID: jobs.ID(i + 1), Command: "train", Labels: jobs.NewLabels("", p), Options: jobs.NoOptions}
		at := jobs.AttemptID{Job: s.ID, N: 1}
		out := &jobs.Outcome{Started: 1e18, Ended: 1e18 + jobs.Stamp(i+1)*jobs.Stamp(time.Second), CPU: time.Second,
			MaxRSSBytes: 9 << 20}
		j := jobs.Job{Spec: s, Round: 1, Seq: int64(i + 1), State: jobs.Succeeded, Counted: 1,
			Attempts: []*jobs.Attempt{{ID: at, Host: fmt.Sprintf("ws%02d", 1+i%3), Round: 1, State: jobs.AttemptExited,
				Started: out.Started, Outcome: out}}}
		if i == len(params)-1 {
			j.State, j.Failures, out.Exit = jobs.Failed, 3, 137
		}
		table.Specs, table.Jobs = append(table.Specs, s), append(table.Jobs, j)
		table.Counts[j.State]++
		path := jobs.AttemptFile(dir, at, jobs.FileOut)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(print(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := runview.FromTable(&rundir.Run{Dir: dir, Disk: rundir.OS, Settings: &rundir.Settings{Cwd: dir}}, table, o)
	t.Cleanup(b.Close)
	return &fakeSource{snapshot: func(ask runview.Query) (*runview.Snapshot, error) {
		snap := sampleSnapshot(ask)
		if ask.Table == nil {
			return snap, nil
		}
		for a := (runview.Query{Table: ask.Table}); ; {
			q, err := b.Snapshot(context.Background(), a)
			if err != nil {
				return nil, err
			}
			if q.Table.Plain || q.Table.Ready && q.Table.Read == q.Table.Jobs {
				snap.Table = q.Table
				return snap, nil
			}
			a.After, a.Wait = q.Version, time.Second
		}
	}}
}

// sweepSource returns a source with four values of C, three of gamma, and two seeds.
func sweepSource(t *testing.T) *fakeSource {
	var params [][]jobs.Param
	for i := range 24 {
		params = append(params, []jobs.Param{{Name: "C", Value: []string{"0.01", "0.1", "1", "10"}[i/6]},
			{Name: "gamma", Value: []string{"0.25", "0.5", "1"}[i/2%3]}, {Name: "seed", Value: fmt.Sprint(1 + i%2)}})
	}
	return gridSource(t, params, func(i int) string {
		return fmt.Sprintf("acc=0.%03d\nloss=%d\n", (i*377+91)%1000, i%5)
	}, "acc", "loss")
}

// runLine executes a command.
func runLine(t *testing.T, m *model, line string) error {
	t.Helper()
	cmd, err := m.runCommand(line)
	runCommands(t, m, cmd)
	refresh(t, m)
	return err
}

// mustRunLine executes a command that must have no error.
func mustRunLine(t *testing.T, m *model, line string) {
	t.Helper()
	if err := runLine(t, m, line); err != nil {
		t.Errorf("%s: %v", line, err)
	}
}

// TestCommandsNeedAJobThatIsSeen checks that a command without an argument refers to no job while
// groups or a heat map are shown.
func TestCommandsNeedAJobThatIsSeen(t *testing.T) {
	for _, key := range []string{"m", "h"} {
		t.Run(key, func(t *testing.T) {
			src := sweepSource(t)
			m := newView(t, Options{Source: src}, tabResults, 120, 30)
			press(t, m, key)
			if r, ok := m.currentJob(); ok {
				t.Errorf("%s: commands are about job %d", key, r.ID)
			}
			typeLine(t, m, ":", "cancel")
			checkActions(t, src)
		})
	}
}
