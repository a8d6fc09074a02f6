package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// allPhases returns a source whose list has a job in each phase, with all optional parts of rows.
func allPhases() *fakeSource {
	return &fakeSource{snapshot: func(ask runview.Query) (*runview.Snapshot, error) {
		snap := sampleSnapshot(ask)
		if snap.Jobs == nil {
			return snap, nil
		}
		snap.Jobs.Rows, snap.Jobs.First = nil, 0
		for i := range int(runview.Phases) + 2 {
			r := runview.Row{ID: jobs.ID(i + 1), Title: fmt.Sprintf("train --fold %d", i), Phase: runview.Phase(i),
				Tries: 3, Round: 1, Progress: -1, Place: -1,
				Params: []jobs.Param{{Name: "C", Value: fmt.Sprint(i)}, {Name: "kernel", Value: "rbf"}}}
			if ask.Table != nil { // a run whose jobs have parameters has a table of results
				r.Params = nil
			}
			ran := func(host string, d time.Duration) {
				r.Host, r.Attempt, r.Started = host, 1, noon.Add(-d)
			}
			switch r.Phase {
			case runview.Ending, runview.Running, runview.Suspended, runview.Away:
				ran("ws01", time.Duration(i+1)*37*time.Minute)
				r.Progress = float64(i) / 2.5
			case runview.Sent:
				r.Host, r.Attempt = "gpu-node-17", 1
			case runview.Retry:
				ran("ws05", time.Minute)
				r.Failures, r.Cause, r.Retry = 1, "exit 137", noon.Add(42*time.Second)
			case runview.Failed, runview.TimedOut:
				ran("ws03", time.Hour)
				r.Ended, r.Failures, r.Cause, r.CPU, r.MaxRSS = noon.Add(-59*time.Minute), 3,
					map[runview.Phase]string{runview.Failed: "SIGKILL", runview.TimedOut: "timeout"}[r.Phase],
					time.Minute, 3<<30
			case runview.Queued:
				r.Place, r.Priority = 0, -2
			case runview.Succeeded:
				ran("ws02", 5*24*time.Hour)
				r.Ended, r.CPU, r.MaxRSS = noon, 115*time.Hour, 900<<20
			case runview.Phases: // a straggler with a message of its own
				ran("ws04", 30*time.Hour)
				r.Phase, r.Straggler, r.Said = runview.Running, true, "epoch 38"
			case runview.Phases + 1: // a phase of a later version
				r.Phase = 77
			}
			snap.Jobs.Rows = append(snap.Jobs.Rows, r)
		}
		snap.Jobs.Matched = len(snap.Jobs.Rows)
		return snap, nil
	}}
}

// TestGoldenJobs compares the lists of jobs and of results at widths from 40 to 300 cells, each
// alone on the screen. They cover each phase: glyph, word, try, time of the next try, and cause of
// the last failure (rules 6, 8).
func TestGoldenJobs(t *testing.T) {
	for _, s := range [][2]int{{40, 10}, {60, 20}, {80, 24}, {120, 24}, {160, 24}, {300, 24}} {
		for v, name := range map[tab]string{tabJobs: "phases", tabResults: "results"} {
			if v == tabResults && s[0]%80 != 0 && s[0] != 40 {
				continue
			}
			m := newView(t, Options{Source: allPhases()}, v, s[0], s[1])
			press(t, m, "z")
			checkGolden(t, m, fmt.Sprintf("jobs-%dx%d-%s", s[0], s[1], name))
		}
	}
}

// TestCopiesAreCounted checks that the list and the details show how many copies of a job run
// elsewhere.
func TestCopiesAreCounted(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	r := &runview.Row{Phase: runview.Running, Host: "melon04", Copies: 2}
	got, _ := hostCell(m, r, 12)
	equal(t, got, "melon04 +2", "the host")
	checkContains(t, m.stateLine(r), "on melon04, 2 copies,", "the details")
}

// TestEmptyListHasAText checks the text that replaces an empty list.
func TestEmptyListHasAText(t *testing.T) {
	page := &runview.Page{}
	src := &fakeSource{snapshot: func(ask runview.Query) (*runview.Snapshot, error) {
		snap := sampleSnapshot(runview.Query{})
		if ask.Jobs != nil {
			q := *page
			q.Filter, q.Sort, q.Reverse = ask.Jobs.Filter, ask.Jobs.Sort, ask.Jobs.Reverse
			snap.Jobs = &q
		}
		return snap, nil
	}}
	m := newScreen(t, src, 80, 24)
	shows(t, m, "no jobs")
	for _, k := range []string{"j", "G", "ctrl+u", "space", "c", "r", "e", "w", "+", "enter", "l", "s"} {
		t.Run(k, func(t *testing.T) {
			press(t, m, k)
			checkSize(t, m, k)
		})
	}
	checkActions(t, src)
	press(t, m, "c", "there is no job under the cursor yet")
	m.jobs.setFilter("nonsense")
	refresh(t, m)
	shows(t, m, "no job matches nonsense; esc clears the filter")
	page.Wrong = "a quote is open"
	refresh(t, m)
	shows(t, m, "a quote is open")
	press(t, m, "esc 4")
	page.Wrong = ""
	refresh(t, m)
	shows(t, m, "nothing has finished yet")
}

// TestResultsAskForWhatIsOver checks that the Results view requests finished jobs, and that the
// filter is added to that condition.
func TestResultsAskForWhatIsOver(t *testing.T) {
	src := sample()
	m := newScreen(t, src, 100, 24)
	press(t, m, "4")
	if w := m.buildQuery().Jobs; w == nil || w.Filter != "state=done" {
		t.Fatalf("asked for %+v", w)
	}
	typeLine(t, m, ":", "filter C=0.1")
	if w := m.buildQuery().Jobs; w.Filter != "state=done C=0.1" || m.jobs.filter != "" {
		t.Errorf("asked for %+v", w)
	}
	press(t, m, "j space")
	equal(t, m.jobs.sel.n, 1, "number of selected jobs")
	press(t, m, "esc esc 1")
	if w := m.buildQuery().Jobs; w.Filter != "" {
		t.Errorf("back in Jobs it asks for %+v", w)
	}
}

// reversed returns the text of a line, and marks with ^ under each cell that is drawn reversed.
func reversed(line string) (text, marks string) {
	on := false
	for line != "" {
		if rest, is := strings.CutPrefix(line, "\x1b["); is {
			codes, after, _ := strings.Cut(rest, "m")
			for code := range strings.SplitSeq(codes, ";") {
				switch code {
				case "", "0", "27":
					on = false
				case "7":
					on = true
				}
			}
			line = after
			continue
		}
		r := []rune(line[:min(4, len(line))])[0]
		mark := " "
		if on {
			mark = "^"
		}
		text, marks, line = text+string(r), marks+mark, line[len(string(r)):]
	}
	return text, marks
}

// TestTheCursorReversesNoBar checks that the row under the cursor is reversed except for bars
// made of blocks, which would show the opposite value. It checks this with colors, without colors,
// and in ASCII (rule 8).
func TestTheCursorReversesNoBar(t *testing.T) {
	for _, o := range []Options{{}, {Colors: "none"}, {ASCII: true}} {
		o.Source = sampleWith(func(snap *runview.Snapshot) {
			if snap.Jobs != nil {
				for i := range snap.Jobs.Rows {
					snap.Jobs.Rows[i].Phase, snap.Jobs.Rows[i].Progress = runview.Running, []float64{0, 0.5, 1}[i%3]
				}
			}
		})
		m := newScreenOf(t, o, 100, 24)
		for _, view := range []string{"1", "2"} {
			press(t, m, view)
			for range 3 {
				press(t, m, "j")
				found := false
				for line := range strings.SplitSeq(redraw(m), "\n") {
					text, marks := reversed(line)
					if !strings.HasPrefix(text, ">") {
						continue
					}
					found = true
					cells := []rune(text)
					for i, r := range cells {
						drawn := strings.ContainsRune(strings.Join(m.glyphs.bar, "")+m.glyphs.othersBar+
							strings.Join(m.glyphs.spark, ""), r) && r > '~'
						if o.ASCII { // letters and dots are bars only in their columns
							drawn = strings.ContainsRune("#", r)
						}
						if drawn && marks[i] == '^' || i == 0 && marks[i] != '^' || i == len(cells)-1 && view == "1" &&
							marks[i] != '^' {
							t.Fatalf("%+v, view %s, cell %d of\n%s\n%s", o, view, i, text, marks)
						}
					}
				}
				if !found {
					t.Fatalf("no cursor:\n%s", plainScreen(m))
				}
			}
		}
	}
}

// TestColumnsFitTheWidth checks that columns appear by importance at widths from 40 to 300 cells
// and never exceed the width.
func TestColumnsFitTheWidth(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	has := func(cols []jobColumn, head string) bool {
		return slices.ContainsFunc(cols, func(c jobColumn) bool { return strings.HasPrefix(c.heading, head) })
	}
	for _, pane := range []interface{ columns(*model, int) []jobColumn }{m.jobs, m.results} {
		m.results.needs = m.jobs.needs
		before := 0
		for w := 38; w <= 300; w++ {
			cols := pane.columns(m, w)
			sum := -1
			for _, c := range cols {
				sum += c.w + 1
			}
			if sum > w || w > 60 && sum != w {
				t.Errorf("%T: at %d cells the columns take %d", pane, w, sum)
			}
			for _, head := range []string{"ID", "STATE", "TIME"} {
				if !has(cols, head) {
					t.Errorf("%T: at %d there is no %s", pane, w, head)
				}
			}
			if w >= 78 && pane == interface{ columns(*model, int) []jobColumn }(m.jobs) {
				for _, head := range []string{"HOST", "TRY", "PROGRESS", "NAME"} {
					if !has(cols, head) {
						t.Errorf("at %d there is no %s", w, head)
					}
				}
			}
			if len(cols) < before-1 {
				t.Errorf("%T: at %d columns are lost: %d, before %d", pane, w, len(cols), before)
			}
			before = len(cols)
		}
	}
	m.jobs.sort = runview.SortMemory
	if cols := m.jobs.columns(m, 60); !has(cols, "MEM") {
		t.Error("the column that orders the list is not shown")
	}
}

// TestEveryColumnCanBeReached checks that the user can move to every column of a table that is
// wider than the screen, that the first columns stay visible, and that the footer mentions the
// hidden columns.
func TestEveryColumnCanBeReached(t *testing.T) {
	const params, nMetrics = 40, 20
	var rows [][]jobs.Param
	for i := range 6 {
		var row []jobs.Param
		for k := range params {
			row = append(row, jobs.Param{Name: fmt.Sprintf("p%02d", k), Value: fmt.Sprint(i * (k % 2))})
		}
		rows = append(rows, row)
	}
	var names []string
	var text strings.Builder
	for k := range nMetrics {
		names = append(names, fmt.Sprintf("fig%02d", k))
		fmt.Fprintf(&text, "fig%02d=%d\n", k, k)
	}
	src := gridSource(t, rows, func(int) string { return text.String() }, names...)
	all := append([]string{"CAUSE", "TIME", "CPU", "MEM", "HOST", "TRY", "NAME"}, names...)
	for k := range params {
		all = append(all, fmt.Sprintf("p%02d", k))
	}
	for _, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			m := newView(t, Options{Source: src}, tabResults, size[0], size[1])
			m.summaryHidden = true
			heading := func() string {
				for line := range strings.SplitSeq(plainScreen(m), "\n") {
					if strings.Contains(line, " ID") || strings.Contains(line, " p01 ") {
						line, _, _ = strings.Cut(line, "┃│") // the hosts follow
						return line
					}
				}
				t.Fatalf("no heading:\n%s", plainScreen(m))
				return ""
			}
			through := func(turns *columnPages, stays string, columns []string) {
				t.Helper()
				first, seen := heading(), ""
				if strings.Contains(first, "p00") {
					t.Errorf("a parameter that has one value takes the room of one that has several: %s", first)
				}
				if foot := plainScreen(m); size[0] == 80 && !strings.Contains(foot, "→ columns") {
					t.Errorf("the footer does not say that there are more:\n%s", foot)
				}
				pages := 1
				for ; ; pages++ {
					if !strings.Contains(heading(), stays) {
						t.Fatalf("%v: %s does not stay: %s", size, stays, heading())
					}
					if seen += heading() + " "; turns.numMore == 0 {
						break
					}
					press(t, m, "right")
				}
				for _, c := range columns {
					equal(t, strings.Count(seen, c), 1, "%v: pages with %s", size, c)
				}
				for range pages - 1 {
					press(t, m, "left")
				}
				equal(t, heading(), first, "%v: back at the first columns", size)
			}
			through(&m.results.columnPages, "ID", all)
			if err := runLine(t, m, "result last=key:fig19"); err != nil || size[0] >= 80 &&
				!strings.Contains(heading(), " last") {
				t.Errorf("%v: a column that was just asked for is not on the first page: %v, %s", size, err, heading())
			}
			mustRunLine(t, m, "group p01")
			through(&m.results.groups.columnPages, "p01", []string{"jobs", "solved", "fig00_mean", "fig19_median",
				"fig07_sd"})
		})
	}
}

// TestWideNumberIsRounded checks that a number that does not fit is rounded. If it were cut, it
// would lose its exponent or its magnitude. The numbers of groups and heat maps always fit.
func TestWideNumberIsRounded(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	for _, c := range []struct {
		text string
		w    int
		want string
	}{
		{"0.913", 14, "0.913"},
		{"0.9133333333333333", 14, "0.913333333333"},
		{"0.123456789012345678e-10", 14, "1.23456789e-11"},
		{"-12345678901234567890", 14, "-1.2345679e+19"},
		{"99999999999999999999999999999999999999", 14, "1e+38"},
		{"-0.000012345678", 10, "-1.235e-05"},
		{"nan", 3, "nan"},
		{"日本語日本語日本語", 14, "日本語日本語…"},
		{"a long text of no number", 14, "a long text o…"},
	} {
		t.Run(c.text, func(t *testing.T) {
			if got := strings.TrimSpace(m.metricText(c.text, c.w)); got != c.want || width(got) > c.w {
				t.Errorf("%s in %d cells is %q, not %q", c.text, c.w, got, c.want)
			}
		})
	}
}

// TestTheCursorOfAHeatMapSticks checks that the cursor of a heat map stays on its values while new
// values arrive (rule 4).
func TestTheCursorOfAHeatMapSticks(t *testing.T) {
	m := newView(t, Options{Source: sweepSource(t)}, tabResults, 80, 24)
	mustRunLine(t, m, "pivot C gamma acc")
	press(t, m, "j right", "C=0.1 gamma=0.5: 0.2955")
	x := *m.results.table.Heat
	x.Rows, x.Columns = append([]string{"0.001"}, x.Rows...), append([]string{"0"}, x.Columns...)
	empty := make([]string, len(x.Columns))
	x.Cells, x.Levels = [][]string{empty}, [][]int8{make([]int8, len(x.Columns))}
	for _, row := range m.results.table.Heat.Cells {
		x.Cells, x.Levels = append(x.Cells, append([]string{""}, row...)), append(x.Levels,
			make([]int8, len(x.Columns)))
	}
	p := *m.snap
	p.Table = &runview.Table{Ready: true, Heat: &x, Columns: m.results.table.Columns}
	m.handle(snapshotMsg{snap: &p})
	m.frame = ""
	shows(t, m, "C=0.1 gamma=0.5: 0.2955")
}

// TestSuspendedTimeIsNoRunTime checks that the list and the details show how long a job that was suspended
// has run.
func TestSuspendedTimeIsNoRunTime(t *testing.T) {
	m := newScreen(t, sample(), 80, 24)
	began, ended, idle := noon.Add(-30*time.Minute), noon, 18*time.Minute
	got, _ := elapsedCell(m, &runview.Row{Phase: runview.Succeeded, Started: began, Ended: ended, Suspended: idle}, 12)
	equal(t, got, formatElapsed(12*time.Minute), "the list")
	checkContains(t, m.attemptTimes(&runview.Attempt{Started: began, Ended: ended, Suspended: idle}),
		formatElapsed(12*time.Minute)+", and suspended for "+formatElapsed(idle), "the details")
}
