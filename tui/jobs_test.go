package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// goldenPane compares what a pane draws in w times h cells, without colours, with a
// golden file.
func goldenPane(t *testing.T, m *model, p pane, w, h int, name string) {
	t.Helper()
	var b strings.Builder
	for range 3 { // what it asks for depends on its size
		p.draw(m, w, h, true)
		var ask runview.Ask
		p.ask(m, &ask)
		pic, err := m.src.(*fakeSource).picture(ask)
		if err != nil {
			t.Fatal(err)
		}
		m.pic = pic
		p.(interface{ see(*model) }).see(m)
	}
	for _, l := range p.draw(m, w, h, true) {
		if n := width(l); n > w {
			t.Errorf("%s: a row has %d cells of %d: %q", name, n, w, ansi.Strip(l))
		}
		b.WriteString(strings.TrimRight(ansi.Strip(l), " ") + "\n")
	}
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s differs from its golden screen (-update writes it anew):\n%s", name, b.String())
	}
}

// allPhases is a source whose list has a job in each phase, with the things that rows
// can have.
func allPhases() *fakeSource {
	return &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
		p := samplePicture(ask)
		if p.Jobs == nil {
			return p, nil
		}
		p.Jobs.Rows, p.Jobs.First, p.Jobs.Cursor = nil, 0, -1
		for i := range int(runview.Phases) + 2 {
			r := runview.Row{ID: jobs.ID(i + 1), Title: fmt.Sprintf("train --fold %d", i), Phase: runview.Phase(i), Tries: 3, Round: 1, Progress: -1, Place: -1,
				Params: []jobs.Param{{Name: "C", Value: fmt.Sprint(i)}, {Name: "kernel", Value: "rbf"}}}
			ran := func(host string, d time.Duration) {
				r.Host, r.Attempt, r.Started = host, 1, noon.Add(-d)
			}
			switch r.Phase {
			case runview.Ending, runview.Running, runview.Away:
				ran("ws01", time.Duration(i+1)*37*time.Minute)
				r.Progress = float64(i) / 2.5
			case runview.Handed:
				r.Host, r.Attempt = "gpu-node-17", 1
			case runview.Retry:
				ran("ws05", time.Minute)
				r.Failures, r.Cause, r.Retry = 1, "exit 137", noon.Add(42*time.Second)
			case runview.Failed, runview.TimedOut:
				ran("ws03", time.Hour)
				r.Ended, r.Failures, r.Cause, r.CPU, r.MaxRSS = noon.Add(-59*time.Minute), 3, map[runview.Phase]string{runview.Failed: "SIGKILL", runview.TimedOut: "timeout"}[r.Phase], time.Minute, 3<<30
			case runview.Queued:
				r.Place, r.Priority = 0, -2
			case runview.Succeeded:
				ran("ws02", 5*24*time.Hour)
				r.Ended, r.CPU, r.MaxRSS = noon, 115*time.Hour, 900<<20
			case runview.Phases: // a straggler that says something of its own
				ran("ws04", 30*time.Hour)
				r.Phase, r.Straggler, r.Said = runview.Running, true, "epoch 38"
			case runview.Phases + 1: // of a version to come
				r.Phase = 77
			}
			p.Jobs.Rows = append(p.Jobs.Rows, r)
			if r.ID == ask.Jobs.Cursor {
				p.Jobs.Cursor = i
			}
		}
		p.Jobs.Matched = len(p.Jobs.Rows)
		return p, nil
	}}
}

// TUI.md: the list of jobs from 40 to 160 cells, and what is in it in each phase: glyph
// and word, which try, when the next one is, why the last one failed (rules 6, 8).
func TestGoldenJobs(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {60, 15}, {80, 24}, {120, 36}, {160, 48}, {300, 40}} {
		w, h := size[0], size[1]
		name := fmt.Sprintf("jobs-%dx%d", w, h)
		m, _ := screenOn(t, sample(), 50118, w, h)
		do(t, m, "j", "space", "space", "k", "k", "k")
		goldenPane(t, m, m.jobs, w, h, name)
		m = newScreen(t, allPhases(), w, h)
		goldenPane(t, m, m.jobs, w, h, name+"-phases")
		goldenPane(t, m, m.result, w, h, name+"-results")
	}
}

// What stands where there are no rows.
func TestEmptyLists(t *testing.T) {
	page := &runview.Page{Cursor: -1}
	src := &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
		p := samplePicture(runview.Ask{})
		if ask.Jobs != nil {
			q := *page
			q.Filter, q.Sort, q.Reverse = ask.Jobs.Filter, ask.Jobs.Sort, ask.Jobs.Reverse
			p.Jobs = &q
		}
		return p, nil
	}}
	m := newScreen(t, src, 80, 24)
	shows(t, m, "no jobs")
	for _, k := range []string{"j", "G", "ctrl+u", "space", "c", "r", "e", "w", "+", "enter", "l", "s"} {
		do(t, m, k)
		checkSize(t, m, k)
	}
	same(t, src)
	shows(t, m, "there is no job under the cursor yet")
	m.jobs.setFilter("nonsense")
	refresh(t, m)
	shows(t, m, "no job matches nonsense; esc clears the filter")
	page.Wrong = "a quote is open"
	refresh(t, m)
	shows(t, m, "a quote is open")
	do(t, m, "esc", "4")
	page.Wrong = ""
	refresh(t, m)
	shows(t, m, "nothing has finished yet")
}

// The Results view asks for what is over, and the filter is added to that.
func TestResultsAskForWhatIsOver(t *testing.T) {
	src := sample()
	m := newScreen(t, src, 100, 24)
	do(t, m, "4")
	if w := m.ask().Jobs; w == nil || w.Filter != "state=done" {
		t.Fatalf("asked for %+v", w)
	}
	enter(t, m, "filter C=0.1")
	if w := m.ask().Jobs; w.Filter != "state=done C=0.1" || m.jobs.filter != "" {
		t.Errorf("asked for %+v", w)
	}
	do(t, m, "j", "space")
	if m.jobs.sel.n != 1 {
		t.Errorf("selected %v", m.jobs.sel.which)
	}
	do(t, m, "esc", "esc", "1")
	if w := m.ask().Jobs; w.Filter != "" {
		t.Errorf("back in Jobs it asks for %+v", w)
	}
}

// Rule 3: with 1,000,000 jobs a key press is a frame in less than 16 ms.
func BenchmarkKeyToFrame(b *testing.B) {
	c := newCrowd(1_000_000)
	for _, size := range [][2]int{{80, 24}, {160, 48}, {300, 100}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			src := &fakeSource{picture: func(ask runview.Ask) (*runview.Picture, error) {
				p := samplePicture(runview.Ask{})
				p.Total = len(c.order)
				if ask.Jobs != nil {
					p.Jobs = c.page(ask.Jobs)
					for i := range p.Jobs.Rows {
						r := &p.Jobs.Rows[i]
						id := r.ID
						*r = sampleRow(50110 + id%40)
						r.ID = id
					}
				}
				return p, nil
			}}
			m := newModel(Options{Source: src}, func() time.Time { return noon })
			m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			var which jobs.Ranges
			for i := jobs.ID(1); i < 1_000_000; i += 2 {
				which.Add(i)
			}
			m.jobs.sel.set(which)
			look := func() {
				pic, err := src.picture(m.ask())
				m.Update(looked{pic: pic, err: err, at: m.now()})
			}
			for range 3 {
				m.View()
				look()
			}
			before := *m.jobs.window()
			var spent time.Duration
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				m.Update(keyMsg("j"))
				m.View()
				spent += time.Since(start)
				if *m.jobs.window() != before { // an answer comes beside the keys
					look()
					before = *m.jobs.window()
				}
			}
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N)/1000, "ms/key")
		})
	}
}
