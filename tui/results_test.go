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
	"dcs-tui/jobs/runview"
)

// TestGoldenResults compares the table, its groups, the best of both, and the heat map with golden
// files, with and without space for numbers. Without colors, no information is missing (rule 8).
func TestGoldenResults(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		for _, size := range [][2]int{{40, 10}, {60, 15}, {80, 24}, {160, 48}} {
			if ascii && size[0] != 80 {
				continue
			}
			name := func(what string) string {
				if ascii {
					what += "-ascii"
				}
				return fmt.Sprintf("results-%s-%dx%d", what, size[0], size[1])
			}
			m := newResults(t, sweep(t), size[0], size[1], ascii)
			golden(t, m, name("rows"))
			for _, line := range []string{"best acc:max", "sort acc desc"} {
				if err := typed(t, m, line); err != nil {
					t.Error(err)
				}
			}
			do(t, m, "j", "j")
			golden(t, m, name("best"))
			do(t, m, "m", "j")
			golden(t, m, name("groups"))
			if err := typed(t, m, "pivot C gamma acc"); err != nil {
				t.Error(err)
			}
			do(t, m, "j", "right")
			golden(t, m, name("heat"))
			if err := typed(t, m, "pivot C job acc"); err != nil {
				t.Error(err)
			}
			golden(t, m, name("shades"))
		}
	}
}

// TestResultsQuery checks which query each key and command sends to the source.
func TestResultsQuery(t *testing.T) {
	src := sweep(t)
	m := newResults(t, src, 100, 30, false)
	asked := func() *runview.TableQuery { a := m.ask(); return a.Table }
	if a := asked(); a == nil || a.Filter != "state=done" || a.Rows == 0 || a.By != "" || m.ask().Jobs != nil {
		t.Errorf("%+v", a)
	}
	for _, c := range []struct {
		keys string // a command begins with :
		want func(*runview.TableQuery) bool
	}{
		{"s", func(a *runview.TableQuery) bool { return a.By == "C" && !a.Reverse }},
		{"S", func(a *runview.TableQuery) bool { return a.By == "C" && a.Reverse }},
		{":sort acc desc", func(a *runview.TableQuery) bool { return a.By == "acc" && a.Reverse }},
		{":best acc:max", func(a *runview.TableQuery) bool { return a.Best == "acc:max" }},
		{":result l=key:loss", func(a *runview.TableQuery) bool { return slices.Equal(a.Figures, []string{"l=key:loss"}) }},
		{":result l=re:loss=(.)", func(a *runview.TableQuery) bool { return slices.Equal(a.Figures, []string{"l=re:loss=(.)"}) }},
		{":result -l", func(a *runview.TableQuery) bool { return len(a.Figures) == 0 }},
		{":filter C=1 acc>0.5", func(a *runview.TableQuery) bool { return a.Filter == "state=done C=1 acc>0.5" }},
		{"esc", func(a *runview.TableQuery) bool { return a.Filter == "state=done" }},
		{"m", func(a *runview.TableQuery) bool { return slices.Equal(a.Group, []string{"C", "gamma"}) && a.By == "" }},
		{"s", func(a *runview.TableQuery) bool { return a.By == "C" }},
		{":sort acc_mean desc", func(a *runview.TableQuery) bool { return a.By == "acc_mean" && a.Reverse && a.Best == "acc:max" }},
		{":group gamma min 3", func(a *runview.TableQuery) bool { return slices.Equal(a.Group, []string{"gamma"}) && a.MinSize == 3 }},
		{"h", func(a *runview.TableQuery) bool { return a.Heat && a.Pivot == nil && a.Group == nil }},
		{"h", func(a *runview.TableQuery) bool { return !a.Heat && len(a.Group) == 1 }},
		{":group gamma C", func(a *runview.TableQuery) bool { return slices.Equal(a.Group, []string{"gamma", "C"}) }},
		{"h", func(a *runview.TableQuery) bool { return a.Heat && slices.Equal(a.Pivot, []string{"gamma", "C"}) }},
		{":pivot C,gamma acc:median", func(a *runview.TableQuery) bool {
			return a.Heat && slices.Equal(a.Pivot, []string{"C", "gamma", "acc:median"})
		}},
		// Where it is marked.
		{":best loss:min", func(a *runview.TableQuery) bool { return !a.Heat && len(a.Group) == 2 && a.Best == "loss:min" }},
		{"esc", func(a *runview.TableQuery) bool { return !a.Heat && a.Group == nil && a.By == "acc" }},
		{":group", func(a *runview.TableQuery) bool { return a.Group == nil }},
		{":best", func(a *runview.TableQuery) bool { return a.Best == "" }},
	} {
		if line, is := strings.CutPrefix(c.keys, ":"); is {
			if err := typed(t, m, line); err != nil {
				t.Errorf("%s: %v", c.keys, err)
			}
		} else {
			do(t, m, c.keys)
		}
		if a := asked(); !c.want(a) {
			t.Errorf("%s asks for %+v", c.keys, a)
		}
	}
	for line, want := range map[string]string{
		"group D": "there is no column", "best acc": "acc:max or acc:min", "sort nonsense": "there is no column", "pivot C": "rows, columns, and a metric",
		"result": "which metric?", "result -x": "was not added", "group C min x": "no number of jobs", "pivot C D acc": "there is no column",
	} {
		if err := typed(t, m, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	same(t, src)
}

// TestResultsHelp checks that the help lists everything that the table offers, that the footer
// lists the keys that change what is shown, and that tab completes metrics in its filter.
func TestResultsHelp(t *testing.T) {
	m := newResults(t, sweep(t), 80, 24, false)
	var help strings.Builder
	for _, r := range m.helpRows() {
		help.WriteString(r.name + "  " + r.text + "\n")
	}
	for _, want := range []string{"m  groups", "h  a heat map", "→  4 more columns", "s  sort", "S  the other", "/  filter", "↵  details", "space  select", "a  select all",
		"result NAME", "group [COLUMNS", "best [COLUMN:max]", "pivot [ROWS", "sort ", "acc>0.9"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("the help does not have %q:\n%s", want, help.String())
		}
	}
	foot := func(words ...string) {
		t.Helper()
		if line := plainText(m.hintsRow()); !containsAll(line, words) {
			t.Errorf("the footer is %q and lacks one of %q", line, words)
		}
	}
	foot("m means", "h heat map", "→ columns", "/ filter", "? help")
	do(t, m, "m")
	foot("↵ its jobs", "m jobs", "h heat map", "→ columns", "/ filter")
	do(t, m, "h")
	foot("↵ its jobs", "h back", "m groups", "/ filter")
	do(t, m, "m", "m")
	if _, words := m.filterWords("C=1 ac"); !slices.Equal(words, []string{"acc>", "acc<"}) {
		t.Errorf("tab completes ac with %q", words)
	}
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// TestResultsJobsOfAGroup checks that enter opens the jobs of a group or of a cell of the heat map.
// Keys for jobs have no meaning where no job is visible (rule 9).
func TestResultsJobsOfAGroup(t *testing.T) {
	src := sweep(t)
	m := newResults(t, src, 100, 30, false)
	do(t, m, "m", "j", "c", "r")
	same(t, src)
	shows(t, m, "C", "acc_mean", "acc_sd")
	do(t, m, "enter")
	if a := m.ask().Table; a.Filter != `state=done C="0.01" gamma="0.5"` || a.Group != nil {
		t.Errorf("%+v", a)
	}
	if err := typed(t, m, "pivot C gamma acc"); err != nil {
		t.Error(err)
	}
	do(t, m, "esc", "esc")
	if err := typed(t, m, "pivot C gamma acc"); err != nil {
		t.Error(err)
	}
	do(t, m, "G", "right", "right", "c")
	same(t, src)
	do(t, m, "enter")
	if a := m.ask().Table; a.Filter != `state=done C="10" gamma="1"` || a.Heat {
		t.Errorf("%+v", a)
	}
	if err := typed(t, m, "filter acc>0.5"); err != nil {
		t.Error(err)
	}
	do(t, m, "a")
	if m.jobs.sel.n != 0 {
		t.Error("jobs were selected by a figure, of which the list of jobs knows nothing")
	}
	shows(t, m, "space selects a job")
}

// TestFilterOfGroups checks that the filter line of groups shows the number of matching groups and
// the errors of the filter (rule 5).
func TestFilterOfGroups(t *testing.T) {
	src := sweep(t)
	whole := src.snapshot
	wrong := ""
	src.snapshot = func(ask runview.Query) (*runview.Snapshot, error) {
		p, err := whole(ask)
		if p.Table != nil && p.Table.Groups != nil {
			copied := *p.Table
			copied.Page = runview.Page{Filter: ask.Table.Filter, Matched: 7, Wrong: wrong}
			p.Table = &copied
		}
		return p, err
	}
	m := newResults(t, src, 80, 24, false)
	typing := func(text string) {
		typeText(t, m, text)
		l := m.modal.(*input)
		m.Update(filterDue{&m.result.list, l.text.String(), l})
		refresh(t, m)
	}
	do(t, m, "m", "/")
	typing("acc_mean>0.5")
	shows(t, m, "/acc_mean>0.5", " groups")
	wrong = "there is no column \"acc_mean\""
	typing("1")
	shows(t, m, "/acc_mean>0.51", wrong)
	wrong = ""
	// The filter of groups does not apply to their jobs.
	do(t, m, "enter", "enter")
	if a := m.ask().Table; a.Filter != `state=done C="0.01" gamma="0.5"` { // the first group has less
		t.Errorf("%+v", a)
	}
}

// TestExactValues checks that a filter made from values matches only those values and replaces the
// previous filter.
func TestExactValues(t *testing.T) {
	if got := exactly(`a "b" \c`); got != `"a \"b\" \\c"` {
		t.Error(got)
	}
}

// TestResultsBeingRead checks that the screen shows the progress while outputs are read, and keeps
// the previous table until the new one is ready.
func TestResultsBeingRead(t *testing.T) {
	src := sweep(t)
	whole := src.snapshot
	pending := false
	src.snapshot = func(ask runview.Query) (*runview.Snapshot, error) {
		p, err := whole(ask)
		if p.Table != nil {
			copied := *p.Table
			copied.Read, copied.Jobs = 12_000, 100_000
			if pending {
				copied = runview.Table{Page: runview.Page{Filter: ask.Table.Filter}}
			}
			p.Table = &copied
		}
		return p, err
	}
	pending = true
	m := newResults(t, src, 100, 30, false)
	for _, key := range []string{"m", "h", "esc", "right", "s"} { // the first table is not ready yet
		do(t, m, key)
		checkSize(t, m, "a table that is being made, "+key)
	}
	pending = false
	m = newResults(t, src, 100, 30, false)
	shows(t, m, "read 12,000 of 100,000", "0.091")
	pending = true
	do(t, m, "s")
	shows(t, m, "read 12,000 of 100,000", "0.091")
}

// TestHostileResults checks that hostile names, values, and metrics cannot break the screen (rule
// 10).
func TestHostileResults(t *testing.T) {
	evil := "\x1b]52;c;cHduZWQ=\x07\x1b[2J\r\nd\u202eesrever\xff 世界世界世界\x9b31m"
	var params [][]jobs.Param
	for i := range 12 {
		params = append(params, []jobs.Param{{Name: evil, Value: evil + fmt.Sprint(i/3)}, {Name: "世界", Value: strings.Repeat("世", 40+i%3)}})
	}
	src := gridSource(t, params, func(i int) string { return "x=" + strings.Repeat("世界\x1b[31m", 30+i) + "\n" }, `x=re:x=(.*)`)
	for _, ascii := range []bool{false, true} {
		for _, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
			m := newResults(t, src, size[0], size[1], ascii)
			look := func(what string) {
				harmless(t, m, what)
				if s := plain(m); strings.ContainsAny(s, "\x1b\x07\r\u202e\u009b") || ascii && strings.ContainsFunc(s, func(r rune) bool { return r > '~' }) {
					t.Errorf("%s: %q", what, s)
				}
			}
			look("rows")
			do(t, m, "m")
			look("groups")
			do(t, m, "enter")
			look("its jobs")
			do(t, m, "esc", "esc", "h", "j", "right")
			look("heat")
			do(t, m, "enter")
			look("the jobs of a cell")
		}
	}
}

// BenchmarkResults measures a frame of the largest table: 300 groups and a heat map of 64 x 64.
func BenchmarkResults(b *testing.B) {
	t := &runview.Table{Ready: true, Groups: &runview.TableGroups{Best: 7}, Heat: &runview.Heat{Down: "C", Across: "gamma", Min: "0", Max: "1"}}
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
		t.Heat.Cells, t.Heat.Levels = append(t.Heat.Cells, make([]string, runview.MaxHeat)), append(t.Heat.Levels, make([]int8, runview.MaxHeat))
		for k := range runview.MaxHeat {
			t.Heat.Cells[i][k] = fmt.Sprintf("0.%06d", i*k)
		}
	}
	m := newModel(Options{}, func() time.Time { return noon })
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 48})
	m.open(tabResults)
	p := m.result
	p.groups.by = []string{"f0_mean"}
	m.pic = sampleSnapshot(runview.Query{})
	m.pic.Table = t
	for _, heat := range []bool{false, true} {
		b.Run(map[bool]string{false: "groups", true: "heat"}[heat], func(b *testing.B) {
			p.groups.on, p.heat.on = true, heat
			p.see(m)
			for b.Loop() {
				m.Update(keyMsg("j"))
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
		o.Figures = append(o.Figures, c)
	}
	o.Outputs = func(c []*metrics.Metric) *metrics.Reader {
		return metrics.NewReader(&rundir.Run{Dir: dir, Disk: rundir.OS, Asked: &rundir.Asked{Cwd: dir}}, c)
	}
	table := &jobs.Table{Cancels: map[jobs.ID]jobs.Cancel{}}
	for i, p := range params {
		s := &jobs.Spec{ID: jobs.ID(i + 1), Command: "train", Params: p, Options: jobs.NoOptions}
		at := jobs.AttemptID{Job: s.ID, N: 1}
		out := &jobs.Outcome{Started: 1e18, Ended: 1e18 + jobs.Stamp(i+1)*jobs.Stamp(time.Second), CPU: time.Second, MaxRSSBytes: 9 << 20}
		j := jobs.Job{Spec: s, Round: 1, Seq: int64(i + 1), State: jobs.Succeeded,
			Attempts: []*jobs.Attempt{{ID: at, Host: fmt.Sprintf("ws%02d", 1+i%3), Round: 1, State: jobs.AttemptExited, Started: out.Started, Outcome: out}}}
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
	b := runview.FromTable(&rundir.Run{Dir: dir, Disk: rundir.OS, Asked: &rundir.Asked{Cwd: dir}}, table, o)
	t.Cleanup(b.Close)
	return &fakeSource{snapshot: func(ask runview.Query) (*runview.Snapshot, error) {
		p := sampleSnapshot(ask)
		if ask.Table == nil {
			return p, nil
		}
		for a := (runview.Query{Table: ask.Table}); ; {
			q, err := b.Snapshot(context.Background(), a)
			if err != nil {
				return nil, err
			}
			if q.Table.Plain || q.Table.Ready && q.Table.Read == q.Table.Jobs {
				p.Table = q.Table
				return p, nil
			}
			a.After, a.Wait = q.Version, time.Second
		}
	}}
}

// sweep returns a source with four values of C, three of gamma, and two seeds.
func sweep(t *testing.T) *fakeSource {
	var params [][]jobs.Param
	for i := range 24 {
		params = append(params, []jobs.Param{{Name: "C", Value: []string{"0.01", "0.1", "1", "10"}[i/6]},
			{Name: "gamma", Value: []string{"0.25", "0.5", "1"}[i/2%3]}, {Name: "seed", Value: fmt.Sprint(1 + i%2)}})
	}
	return gridSource(t, params, func(i int) string { return fmt.Sprintf("acc=0.%03d\nloss=%d\n", (i*377+91)%1000, i%5) }, "acc", "loss")
}

// newResults returns a screen with the results view.
func newResults(t *testing.T, src *fakeSource, w, h int, ascii bool) *model {
	t.Helper()
	m := newModel(Options{Source: src, ASCII: ascii}, func() time.Time { return noon })
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	m.open(tabResults)
	refresh(t, m)
	return m
}

// typed executes a command.
func typed(t *testing.T, m *model, line string) error {
	t.Helper()
	cmd, err := m.command(line)
	finish(t, m, cmd)
	refresh(t, m)
	return err
}

// TestCommandsNeedAJobThatIsSeen checks that a command without an argument refers to no job while
// groups or a heat map are shown.
func TestCommandsNeedAJobThatIsSeen(t *testing.T) {
	for _, key := range []string{"m", "h"} {
		src := sweep(t)
		m := newResults(t, src, 120, 30, false)
		do(t, m, key)
		if r, ok := m.job(); ok {
			t.Errorf("%s: commands are about job %d", key, r.ID)
		}
		enter(t, m, "cancel")
		same(t, src)
	}
}
