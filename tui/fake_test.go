package tui

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/jobs/live"
	"dcs-tui/observe/runview"
)

var update = flag.Bool("update", false, "write the golden screens anew")

// fakeSource returns the snapshots that a test sets and records the actions that it receives.
type fakeSource struct {
	mu            sync.Mutex
	snapshot      func(runview.Query) (*runview.Snapshot, error)
	respond       func(context.Context, runview.Query) (*runview.Snapshot, error) // if set, answers a snapshotter
	cost          runview.Cost
	matches       jobs.Ranges
	read          func(runview.Read) (*runview.Piece, error)
	answer        func(action.Request) (*runview.Answer, error)
	queries       []runview.Query // requests for snapshots
	numInProgress int             // requests in progress
	maxInProgress int             // maximum of now
	doneActions   []action.Request
}

func (f *fakeSource) Snapshot(ctx context.Context, ask runview.Query) (*runview.Snapshot, error) {
	f.mu.Lock()
	f.queries = append(f.queries, ask)
	f.numInProgress++
	f.maxInProgress = max(f.maxInProgress, f.numInProgress)
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.numInProgress--; f.mu.Unlock() }()
	if f.respond != nil {
		return f.respond(ctx, ask)
	}
	snap, err := f.snapshot(ask)
	if err == nil && snap.Version == ask.After {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return snap, err
}

func (f *fakeSource) Match(context.Context, string) (jobs.Ranges, error) { return f.matches, nil }
func (f *fakeSource) Cost(context.Context, jobs.Ranges) (runview.Cost, error) {
	return f.cost, nil
}
func (f *fakeSource) Read(_ context.Context, r runview.Read) (*runview.Piece, error) {
	if f.read == nil {
		return &runview.Piece{Over: true}, nil
	}
	return f.read(r)
}

func (f *fakeSource) Do(_ context.Context, a action.Request) (*runview.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doneActions = append(f.doneActions, a)
	if f.answer != nil {
		return f.answer(a)
	}
	return &runview.Answer{Done: a.Jobs.Count(), Text: string(a.Do), Changed: a.Jobs}, nil
}

// Reply records an answer to the dispatcher's question like an action.
func (f *fakeSource) Reply(ctx context.Context, id int64, text string) error {
	_, err := f.Do(ctx, action.Request{Do: "reply", Number: int(id), Why: text})
	return err
}

// actions returns the actions received so far.
func (f *fakeSource) actions() []action.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]action.Request(nil), f.doneActions...)
}

// noon is the time of all sample snapshots.
var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// newScreen returns a model of the given size that has received one snapshot of the source. Its
// clock stands still, and no goroutine runs beside it.
func newScreen(t *testing.T, src *fakeSource, w, h int) *model {
	t.Helper()
	return newScreenOf(t, Options{Source: src}, w, h)
}

// newScreenOf is newScreen with options.
func newScreenOf(t *testing.T, o Options, w, h int) *model {
	t.Helper()
	m := newModel(o, func() time.Time { return noon })
	m.Update(tea.WindowSizeMsg{Width: w, Height: h})
	refresh(t, m)
	return m
}

// newView is newScreenOf with a view on the whole width.
func newView(t *testing.T, o Options, v tab, w, h int) *model {
	t.Helper()
	m := newScreenOf(t, o, w, h)
	m.tab, m.focusedTab = v, v
	refresh(t, m)
	return m
}

// refresh fetches the snapshot that the screen requests now, as the snapshotter does.
func refresh(t *testing.T, m *model) {
	t.Helper()
	for range 3 { // the request depends on what is shown
		redraw(m)
		snap, err := m.src.(*fakeSource).snapshot(m.buildQuery())
		m.frame = ""
		m.handle(snapshotMsg{snap: snap, err: err})
		m.draw()
		cmd := m.readVisibleOutput()
		for _, x := range m.placed {
			if p, ok := x.pane.(*outputPane); ok && p.isReading && cmd != nil { // otherwise cmd is a timer
				_, cmd = m.Update(cmd()) // blocks until the read has finished
				runCommands(t, m, cmd)
			}
		}
	}
}

// press sends keys, whose names are separated by blanks, and runs the resulting commands. Then it
// checks that the screen shows the texts.
func press(t *testing.T, m *model, keys string, texts ...string) {
	t.Helper()
	for k := range strings.FieldsSeq(keys) {
		_, cmd := m.Update(keyMessage(k))
		runCommands(t, m, cmd)
		refresh(t, m)
	}
	shows(t, m, texts...)
}

// shows checks that the screen contains texts; hides, that it does not.
func shows(t *testing.T, m *model, texts ...string) { t.Helper(); checkScreen(t, m, true, texts) }
func hides(t *testing.T, m *model, texts ...string) { t.Helper(); checkScreen(t, m, false, texts) }

func checkScreen(t *testing.T, m *model, want bool, texts []string) {
	t.Helper()
	s := plainScreen(m)
	for _, text := range texts {
		if got := strings.Contains(s, text); got != want {
			t.Errorf("the screen contains %q: %v, want %v:\n%s", text, got, want, s)
		}
	}
}

// runCommands executes commands and passes their messages to the model. It skips ticks.
func runCommands(t *testing.T, m *model, cmd tea.Cmd) {
	t.Helper()
	switch msg := messageOf(cmd).(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			runCommands(t, m, c)
		}
	default:
		_, next := m.Update(msg)
		runCommands(t, m, next)
	}
}

// messageOf returns the message of a command, however long the command takes. It returns nil for a
// tick because the clock stands still.
func messageOf(cmd tea.Cmd) tea.Msg {
	if cmd == nil || strings.Contains(runtime.FuncForPC(reflect.ValueOf(cmd).Pointer()).Name(), "Tick.func") {
		return nil
	}
	return cmd()
}

// specialKeys are the keys whose names are not their characters.
var specialKeys = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
	"left":  tea.KeyLeft,
	"right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
	"backspace": tea.KeyBackspace, "space": tea.KeySpace,
}

// keyMessage returns the message of the key with a name, for example space or ctrl+d.
func keyMessage(name string) tea.KeyPressMsg {
	var k tea.Key
	for prefix, mod := range map[string]tea.KeyMod{"ctrl+": tea.ModCtrl, "shift+": tea.ModShift} {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			name, k.Mod = rest, mod
		}
	}
	k.Code = []rune(name)[0]
	if r, ok := specialKeys[name]; ok {
		k.Code = r
	}
	if k.Mod == 0 && unicode.IsPrint(k.Code) {
		k.Text = string(k.Code)
	}
	return tea.KeyPressMsg(k)
}

// typeText sends each character of a text as a key.
func typeText(t *testing.T, m *model, text string) {
	t.Helper()
	for _, r := range text {
		_, cmd := m.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
		runCommands(t, m, cmd)
	}
	refresh(t, m)
}

// plainScreen returns the screen without colors and trailing blanks.
func plainScreen(m *model) string {
	var b strings.Builder
	for l := range strings.SplitSeq(ansi.Strip(redraw(m)), "\n") {
		b.WriteString(strings.TrimRight(l, " ") + "\n")
	}
	return b.String()
}

// typeLine opens a line with a key, types a text, and confirms it.
func typeLine(t *testing.T, m *model, key, text string) {
	t.Helper()
	press(t, m, key)
	typeText(t, m, text)
	press(t, m, "enter")
}

// equal checks that got is want. An error message begins with the formatted text.
func equal[T comparable](t *testing.T, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", fmt.Sprintf(format, args...), got, want)
	}
}

// checkContains checks that a text contains another. An error message begins with the formatted
// text.
func checkContains(t *testing.T, text, part, format string, args ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s: %q does not contain %q", fmt.Sprintf(format, args...), text, part)
	}
}

// redraw draws the screen anew and returns it with its colors.
func redraw(m *model) string {
	m.frame = ""
	m.draw()
	return m.frame
}

// checkGolden compares the screen with testdata/golden/NAME.txt.
func checkGolden(t *testing.T, m *model, name string) {
	t.Helper()
	checkSize(t, m, name)
	got := plainScreen(m)
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
	rows := strings.Split(redraw(m), "\n")
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
	snap := &runview.Snapshot{
		Version: 7, MadeAt: noon, At: noon, Tries: 3, SlotsBusy: 126, Slots: 136, Stragglers: 1,
		Run: runview.Run{Name: "sweep-20260314", UID: "01abc", Dir: "/nfs/data/proj/dcs-runs/sweep-20260314",
			Lab: "lab", Owner: "ada on desk (pid 4711)", Machine: "desk", Epoch: 1},
		RunProgress: runview.RunProgress{Total: 96_859, Rate: 41.0 / 60, ETA: 34*time.Hour + 10*time.Minute,
			Spread: 2 * time.Hour, Phases: [runview.Phases]int{runview.Running: 126, runview.Queued: 84_512,
				runview.Succeeded: 12_204, runview.Failed: 17, runview.Retry: 1}},
		Rates: []float64{.2, .3, .6, .8, .9, .7, .7, .8},
	}
	for i := range 12 {
		h := live.Host{Name: fmt.Sprintf("ws%02d", i+1), HostStatus: jobs.HostStatus{State: "up"}, Slots: 12,
			Usable: 11.5, Running: 11, Done: 1000 + i, Cores: 12,
			Load: [3]float64{11.2, 10.8,
				9.9}, Busy: 11.4, Ours: 10.9, MemBytes: 64 << 30, MemFree: 40 << 30, GPUsUsed: 1.5, DiskFree: 800 << 30,
			Delay: 700 * time.Microsecond, Heartbeat: time.Second}
		for k := range 60 {
			h.History = append(h.History, uint8(40+k))
		}
		switch i {
		case 4:
			h.State, h.Reason, h.Down, h.RetryIn, h.Running, h.Heartbeat = "lost", "no answer for 60 s", 92*time.Second,
				17*time.Second, 0, 92*time.Second
		case 11:
			h.State = jobs.HostDraining
		}
		snap.Hosts = append(snap.Hosts, h)
	}
	if w := ask.Jobs; w != nil {
		snap.Jobs = samplePage(w)
	}
	if ask.Host != "" {
		snap.Host = sampleHistory(ask.Host)
	}
	if ask.Groups {
		snap.Groups = []runview.Group{
			{Cause: "exit 137", Last: "Killed", Count: 14, Tries: 2, Hosts: []string{"ws03", "ws05"},
				Jobs: []runview.Row{sampleRow(50120)}, Which: jobs.Ranges{{First: 50120, Last: 50133}}},
			{Cause: "exit 1", Last: "ValueError: gamma must be positive", Count: 3, Hosts: []string{"ws01"},
				Jobs: []runview.Row{sampleRow(50140)}, Which: jobs.Ranges{{First: 50140, Last: 50142}}},
		}
	}
	if ask.Events != nil {
		snap.Events = &runview.Events{Total: 3, Lines: []runview.Event{
			{Seq: 1, At: noon.Add(-time.Minute), Host: "ws05", Text: "link lost, 8 jobs requeued (attempt 2/3)",
				Bad: true},
			{Seq: 2, At: noon.Add(-30 * time.Second), Job: 50120, Host: "ws03",
				Text: "50120.3 has ended on ws03: exit 137; job 50120 has failed", Bad: true},
			{Seq: 3, At: noon, Host: "ws12", Text: "is being drained"},
		}}
	}
	if ask.Focus != 0 {
		r := sampleRow(ask.Focus)
		snap.Detail = &runview.Detail{Row: r, Spec: &jobs.Spec{Command: "python train.py --C 0.1 --gamma 0.5",
			Line: int(r.ID), Options: &jobs.Options{Cwd: "/nfs/data/proj", File: "jobs.txt"}},
			Why: fmt.Sprintf("Job %d runs on ws02.", r.ID), Estimate: 2 * time.Hour,
			Attempts: []runview.Attempt{{ID: jobs.AttemptID{Job: r.ID, N: 1}, Host: "ws02", Slot: 3, Round: 1,
				State: "running", Started: r.Started}}}
	}
	return snap
}

// sampleHistory returns the last hour of a host with twelve slots, in which it was away for ten
// minutes.
func sampleHistory(name string) *runview.HostDetail {
	d := &runview.HostDetail{Name: name, Begin: noon.Add(-time.Hour), Until: noon}
	for i := range 120 {
		at := noon.Add(time.Duration(i-120) * 30 * time.Second)
		if i >= 60 && i < 80 {
			continue
		}
		d.Samples = append(d.Samples, live.Sample{At: at, Load: 6 + 5*math.Sin(float64(i)/20), Slots: 12,
			Own:    min(12, i/4),
			Others: float64(i%40) / 20, Mem: int64(16+i/5) << 30, MemAll: 64 << 30, GPUs: 1.5, GPUAll: 2,
			Rate: float64(i % 7)})
	}
	for slot := range 12 {
		at, took := noon.Add(-62*time.Minute), time.Duration(1+slot*slot)*20*time.Second
		for i := 0; at.Before(noon); i++ {
			r := runview.SlotRun{Slot: slot + 1, Phase: runview.Succeeded, Began: at, Ended: at.Add(took)}
			switch {
			case !r.Ended.Before(noon):
				r.Phase, r.Ended = runview.Running, noon
			case i == 3:
				r.Phase = runview.Failed
			case i == 5:
				r.Phase = runview.TimedOut
			case r.Began.Before(noon.Add(-30*time.Minute)) && r.Ended.After(noon.Add(-30*time.Minute)):
				r.Phase, r.Ended = runview.Retry, noon.Add(-29*time.Minute)
			}
			d.Runs = append(d.Runs, r)
			at = r.Ended.Add(time.Duration(slot) * time.Second)
			if r.Phase == runview.Retry {
				at = noon.Add(-20 * time.Minute)
			}
		}
	}
	slices.SortStableFunc(d.Runs, func(a, b runview.SlotRun) int { return a.Began.Compare(b.Began) })
	return d
}

// sampleTotal is the number of rows of the sample's list.
const sampleTotal = 96_859

// samplePage returns jobs 50117, 50118, … in this order, whatever order the request names.
func samplePage(w *runview.JobsWindow) *runview.Page {
	const first = 50117
	start := max(0, w.At-w.Above)
	if w.Cursor >= first {
		start = max(0, int(w.Cursor)-first-w.Above)
	}
	p := &runview.Page{Filter: w.Filter, Sort: w.Sort, Reverse: w.Reverse, Matched: sampleTotal, First: start,
		Cursor: w.Cursor}
	for i := start; i < min(sampleTotal, start+w.Rows); i++ {
		p.Rows = append(p.Rows, sampleRow(jobs.ID(first+i)))
	}
	return p
}

func sampleRow(id jobs.ID) runview.Row {
	r := runview.Row{ID: id, Title: fmt.Sprintf("sweep C=%g gamma=%g", 0.1*float64(1+id%7), 0.25*float64(id%5)),
		Tries: 3, Round: 1, Progress: -1, Place: -1,
		Params: []jobs.Param{{Name: "C", Value: fmt.Sprint(0.1 * float64(1+id%7))},
			{Name: "gamma", Value: fmt.Sprint(0.25 * float64(id%5))}}}
	switch {
	case id < 50119:
		r.Phase, r.Host, r.Slot, r.Attempt, r.Started, r.Progress = runview.Running, fmt.Sprintf("ws%02d", id-50116), 3,
			1, noon.Add(-72*time.Minute), 0.78
		r.Straggler = id == 50118
	case id == 50119:
		r.Phase, r.Host, r.Attempt, r.Failures, r.Retry, r.Cause = runview.Retry, "ws05", 1, 1,
			noon.Add(42*time.Second), "lost with ws05"
	case id < 50137:
		r.Phase, r.Host, r.Attempt, r.Failures, r.Cause, r.Last = runview.Failed, "ws03", 3, 3, "exit 137", "Killed"
		r.Started, r.Ended = noon.Add(-10*time.Minute), noon.Add(-10*time.Minute+7*time.Second)
	default:
		r.Phase, r.Place = runview.Queued, int(id)-50137
	}
	return r
}
