package tui

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs"
	"dcs-tui/jobs/live"
	"dcs-tui/jobs/runview"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// fakeSource returns the snapshots that a test sets and records the actions that it receives.
type fakeSource struct {
	mu       sync.Mutex
	snapshot func(runview.Query) (*runview.Snapshot, error)
	cost     runview.Cost
	matches  jobs.Ranges
	read     func(runview.Read) (*runview.Piece, error)
	answer   func(runview.Action) (*runview.Answer, error)
	asks     []runview.Query
	did      []runview.Action
}

func (f *fakeSource) Snapshot(ctx context.Context, ask runview.Query) (*runview.Snapshot, error) {
	f.mu.Lock()
	f.asks = append(f.asks, ask)
	f.mu.Unlock()
	pic, err := f.snapshot(ask)
	if err == nil && pic.Version == ask.After {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return pic, err
}

func (f *fakeSource) Match(context.Context, string) (jobs.Ranges, runview.Cost, error) {
	return f.matches, f.cost, nil
}
func (f *fakeSource) Cost(context.Context, jobs.Ranges) (runview.Cost, error) {
	return f.cost, nil
}
func (f *fakeSource) Read(_ context.Context, r runview.Read) (*runview.Piece, error) {
	if f.read == nil {
		return &runview.Piece{Over: true}, nil
	}
	return f.read(r)
}

func (f *fakeSource) Do(_ context.Context, a runview.Action) (*runview.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, a)
	if f.answer != nil {
		return f.answer(a)
	}
	return &runview.Answer{Done: a.Jobs.Count(), Text: string(a.Do), Changed: a.Jobs}, nil
}

// done returns the actions received so far.
func (f *fakeSource) done() []runview.Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]runview.Action(nil), f.did...)
}

// noon is the time of all sample snapshots.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// newScreen returns a model of the given size that has received one snapshot of the source. Its
// clock stands still, and no goroutine runs beside it.
func newScreen(t *testing.T, src *fakeSource, w, h int) *model {
	t.Helper()
	now := noon
	m := newModel(Options{Source: src}, func() time.Time { return now })
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	refresh(t, m)
	return m
}

// refresh fetches the snapshot that the screen requests now, as the looker does.
func refresh(t *testing.T, m *model) {
	t.Helper()
	for range 3 { // the request depends on what is shown
		m.frame = ""
		m.draw()
		pic, err := m.src.(*fakeSource).snapshot(m.ask())
		m.frame = ""
		m.handle(looked{pic: pic, err: err, at: m.now()})
		m.draw()
		cmd := m.reading()
		for _, x := range m.placed {
			if p, ok := x.pane.(*outputPane); ok && p.busy && cmd != nil { // otherwise cmd is a timer
				_, cmd = m.Update(cmd()) // blocks until the read has finished
				run(t, m, cmd)
			}
		}
	}
}

// press sends keys by name and runs the resulting commands. It does not wait for commands that
// block.
func press(t *testing.T, m *model, keys ...string) {
	t.Helper()
	for _, k := range keys {
		_, cmd := m.Update(keyMsg(k))
		run(t, m, cmd)
		refresh(t, m)
	}
}

// run executes commands and passes their messages to the model. It skips ticks.
func run(t *testing.T, m *model, cmd tea.Cmd) {
	t.Helper()
	switch msg := comesOf(cmd).(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			run(t, m, c)
		}
	default:
		_, next := m.Update(msg)
		run(t, m, next)
	}
}

// comesOf returns the message of a command, however long the command takes. It returns nil for a
// tick because the clock stands still.
func comesOf(cmd tea.Cmd) tea.Msg {
	if cmd == nil || strings.Contains(runtime.FuncForPC(reflect.ValueOf(cmd).Pointer()).Name(), "Tick.func") {
		return nil
	}
	return cmd()
}

// keyMsg returns the message of the key with a name.
func keyMsg(name string) tea.KeyPressMsg {
	special := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
		"backspace": tea.KeyBackspace, "space": tea.KeySpace,
	}
	k := tea.Key{}
	rest := name
	if r, ok := strings.CutPrefix(rest, "ctrl+"); ok {
		k.Mod |= tea.ModCtrl
		rest = r
	}
	if r, ok := strings.CutPrefix(rest, "shift+"); ok {
		k.Mod |= tea.ModShift
		rest = r
	}
	if r, ok := special[rest]; ok {
		k.Code = r
		if rest == "space" {
			k.Text = " "
		}
		return tea.KeyPressMsg(k)
	}
	k.Code = []rune(rest)[0]
	if k.Mod == 0 {
		k.Text = rest
	}
	return tea.KeyPressMsg(k)
}

// typeText sends each character of a text as a key.
func typeText(t *testing.T, m *model, text string) {
	t.Helper()
	for _, r := range text {
		if r == ' ' {
			press(t, m, "space")
		} else {
			press(t, m, string(r))
		}
	}
}

// plain returns the screen without colors and trailing blanks.
func plain(m *model) string {
	m.frame = ""
	m.draw()
	var b strings.Builder
	for l := range strings.SplitSeq(ansi.Strip(m.frame), "\n") {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	return b.String()
}

// golden compares the screen with testdata/golden/NAME.txt.
func golden(t *testing.T, m *model, name string) {
	t.Helper()
	checkSize(t, m, name)
	checkGolden(t, plain(m), name)
}

// checkGolden compares a text with testdata/golden/NAME.txt.
func checkGolden(t *testing.T, got, name string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from its golden screen (-update writes it anew):\n%s", name, got)
	}
}

// checkSize checks that the screen has exactly as many rows and cells as the terminal.
func checkSize(t *testing.T, m *model, name string) {
	t.Helper()
	m.frame = ""
	m.draw()
	rows := strings.Split(m.frame, "\n")
	if len(rows) != m.h {
		t.Errorf("%s has %d rows, the terminal %d", name, len(rows), m.h)
	}
	for i, l := range rows {
		if w := ansi.StringWidthWc(l); w != m.w {
			t.Errorf("%s: row %d has %d cells, the terminal %d: %q", name, i+1, w, m.w, ansi.Strip(l))
		}
	}
}

// sample returns a source with the snapshot of a run of a hundred thousand jobs on twelve hosts.
func sample() *fakeSource {
	return &fakeSource{snapshot: func(ask runview.Query) (*runview.Snapshot, error) { return sampleSnapshot(ask), nil }}
}

func sampleSnapshot(ask runview.Query) *runview.Snapshot {
	p := &runview.Snapshot{
		Version: 7, At: noon, Total: 96_859, Tries: 3, SlotsBusy: 126, Slots: 136, Usable: 131.5, Stragglers: 1,
		Run:  runview.Run{Name: "sweep-20260314", UID: "01abc", Dir: "/nfs/data/proj/dcs-runs/sweep-20260314", Lab: "lab", Owner: "ada on desk (pid 4711)", Machine: "desk", Epoch: 1},
		Rate: 41.0 / 60, Rates: []float64{.2, .3, .6, .8, .9, .7, .7, .8}, ETA: 34*time.Hour + 10*time.Minute, Spread: 2 * time.Hour,
	}
	p.Phases[runview.Running], p.Phases[runview.Queued], p.Phases[runview.Succeeded], p.Phases[runview.Failed], p.Phases[runview.Retry] = 126, 84_512, 12_204, 17, 1
	for i := range 12 {
		h := live.Host{Name: fmt.Sprintf("ws%02d", i+1), State: "up", Slots: 12, Usable: 11.5, Running: 11, Done: 1000 + i, Cores: 12,
			Load: [3]float64{11.2, 10.8, 9.9}, Busy: 11.4, Ours: 10.9, MemBytes: 64 << 30, MemFree: 40 << 30, DiskFree: 800 << 30,
			Delay: 700 * time.Microsecond, Beat: time.Second}
		for k := range 60 {
			h.History = append(h.History, uint8(40+k))
		}
		switch i {
		case 4:
			h.State, h.Reason, h.Down, h.RetryIn, h.Running, h.Beat = "lost", "no answer for 60 s", 92*time.Second, 17*time.Second, 0, 92*time.Second
		case 11:
			h.State, h.Reason = "draining", "draining"
		}
		p.Hosts = append(p.Hosts, h)
	}
	if w := ask.Jobs; w != nil {
		p.Jobs = samplePage(w)
	}
	if ask.Groups {
		p.Groups = []runview.Group{
			{Cause: "exit 137", Last: "Killed", Count: 14, Tries: 2, Hosts: []string{"ws03", "ws05"}, Jobs: []runview.Row{sampleRow(50120)}, Which: jobs.Ranges{{First: 50120, Last: 50133}}},
			{Cause: "exit 1", Last: "ValueError: gamma must be positive", Count: 3, Hosts: []string{"ws01"}, Jobs: []runview.Row{sampleRow(50140)}, Which: jobs.Ranges{{First: 50140, Last: 50142}}},
		}
	}
	if ask.Events != nil {
		p.Events = &runview.Events{Total: 3, Lines: []runview.Event{
			{Seq: 1, At: noon.Add(-time.Minute), Host: "ws05", Text: "link lost, 8 jobs requeued (attempt 2/3)", Bad: true},
			{Seq: 2, At: noon.Add(-30 * time.Second), Job: 50120, Host: "ws03", Text: "50120.3 has ended on ws03: exit 137; job 50120 has failed", Bad: true},
			{Seq: 3, At: noon, Host: "ws12", Text: "is being drained"},
		}}
	}
	if ask.Focus != 0 {
		r := sampleRow(ask.Focus)
		p.Detail = &runview.Detail{Row: r, Spec: &jobs.Spec{Command: "python train.py --C 0.1 --gamma 0.5", Line: int(r.ID), Options: &jobs.Options{Cwd: "/nfs/data/proj", File: "jobs.txt"}},
			Why: fmt.Sprintf("Job %d runs on ws02.", r.ID), Estimate: 2 * time.Hour,
			Attempts: []runview.Attempt{{ID: jobs.AttemptID{Job: r.ID, N: 1}, Host: "ws02", Slot: 3, Round: 1, State: "running", Started: r.Started,
				Out: fmt.Sprintf("/nfs/data/proj/dcs-runs/sweep-20260314/attempts/050/%d.1.out", r.ID)}}}
	}
	return p
}

// sampleTotal is the number of rows of the sample's list.
const sampleTotal = 96_859

// samplePage returns jobs 50117, 50118, … in this order, whatever order the request names.
func samplePage(w *runview.JobsWindow) *runview.Page {
	const first = 50117
	cursor := -1
	start := max(0, w.At-w.Above)
	if w.Cursor >= first {
		cursor = int(w.Cursor) - first
		start = max(0, cursor-w.Above)
	}
	p := &runview.Page{Filter: w.Filter, Sort: w.Sort, Reverse: w.Reverse, Matched: sampleTotal, First: start, Cursor: cursor}
	for i := start; i < min(sampleTotal, start+w.Rows); i++ {
		p.Rows = append(p.Rows, sampleRow(jobs.ID(first+i)))
	}
	return p
}

func sampleRow(id jobs.ID) runview.Row {
	r := runview.Row{ID: id, Title: fmt.Sprintf("sweep C=%g gamma=%g", 0.1*float64(1+id%7), 0.25*float64(id%5)), Tries: 3, Round: 1, Progress: -1, Place: -1,
		Params: []jobs.Param{{Name: "C", Value: fmt.Sprint(0.1 * float64(1+id%7))}, {Name: "gamma", Value: fmt.Sprint(0.25 * float64(id%5))}}}
	switch {
	case id < 50119:
		r.Phase, r.Host, r.Slot, r.Attempt, r.Started, r.Progress = runview.Running, fmt.Sprintf("ws%02d", id-50116), 3, 1, noon.Add(-72*time.Minute), 0.78
		r.Straggler = id == 50118
	case id == 50119:
		r.Phase, r.Host, r.Attempt, r.Failures, r.Retry, r.Cause = runview.Retry, "ws05", 1, 1, noon.Add(42*time.Second), "lost with ws05"
	case id < 50137:
		r.Phase, r.Host, r.Attempt, r.Failures, r.Cause, r.Last = runview.Failed, "ws03", 3, 3, "exit 137", "Killed"
		r.Started, r.Ended = noon.Add(-10*time.Minute), noon.Add(-10*time.Minute+7*time.Second)
	default:
		r.Phase, r.Place = runview.Queued, int(id)-50137
	}
	return r
}
