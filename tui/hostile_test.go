package tui

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// hugeText is the length of the longest hostile text in bytes. It is smaller under the race
// detector, which makes drawing ten times slower.
var hugeText = map[bool]int{false: 1 << 20, true: 1 << 14}[raceDetector]

// hostile are texts that would move the cursor, set the title, write the clipboard, join with
// adjacent characters, or break a line if the terminal received them.
var hostile = []string{
	"\x1b[2J\x1b[H\x1b[31mred", "\x1b]0;owned\x07", "\x1b]52;c;b3duZWQ=\x07", "\x1bP+q544e\x1b\\", "\x9b2J\u009b2J", "a\rb\nc\td\be\x7f\x00",
	"\u202egpj.exe\u2066\u200b\u2028\u2029\ufeff", "\xff\xfe\xc3(", strings.Repeat("\u0301", 50), "a" + strings.Repeat("\u0335", 50),
	"日本語のとても長い名前" + strings.Repeat("漢", 60), "👍🏽👨‍👩‍👧🇩🇪1️⃣❤️", "\u1100\u1161\u11a8\u3164\u115f", strings.Repeat("x", hugeText), "क्षि नमस्ते", "\x1b[", "\x1b",
	"﷽﷽", "\U000e0041\U000e0001", "%s%n%!d(MISSING)", "",
}

// ours reports whether an escape sequence is one of the styles this package draws with.
func ours(seq string) bool {
	return strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") && strings.Trim(seq[2:len(seq)-1], "0123456789;:") == ""
}

// onlyStyles checks that a frame contains nothing but text and styles.
func onlyStyles(t *testing.T, m *model, what string) {
	t.Helper()
	m.frame = ""
	m.draw()
	var state byte
	for s := m.frame; s != ""; {
		seq, w, n, next := ansi.DecodeSequenceWc(s, state, nil)
		if w == 0 && seq != "\n" && !ours(seq) && strings.ContainsFunc(seq, func(r rune) bool { return !unicode.IsMark(r) }) {
			t.Errorf("%s: %q reaches the terminal", what, seq)
			return
		}
		s, state = s[n:], next
	}
	for _, r := range m.frame {
		if r != '\x1b' && r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%s: %U reaches the terminal", what, r)
			return
		}
	}
}

// TestHostileTexts puts hostile texts from jobs, hosts, users, and dispatchers into every field, in
// every view and size. It checks that no control sequence reaches the terminal, and that every row
// has the right number of cells.
func TestHostileTexts(t *testing.T) {
	for i, evil := range hostile {
		for k, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
			if raceDetector && k != i%3 {
				continue // these texts are slow to draw: one size for each text is enough
			}
			ascii := (i+k)%2 == 1
			src := &fakeSource{snapshot: func(ask runview.Query) (*runview.Snapshot, error) { return poison(sampleSnapshot(ask), evil), nil }}
			src.read = func(runview.Read) (*runview.Piece, error) {
				return &runview.Piece{Data: []byte(evil + "\n" + evil), Size: int64(2*len(evil) + 1), Over: true}, nil
			}
			m := newScreen(t, src, size[0], size[1])
			if m.opt.ASCII = ascii; ascii {
				m.g = &asciiGlyphs
			}
			what := func(s string) string {
				return fmt.Sprintf("text %d, %dx%d, ascii %v, %s", i, size[0], size[1], ascii, s)
			}
			check := func(s string) {
				t.Helper()
				refresh(t, m)
				onlyStyles(t, m, what(s))
				checkSize(t, m, what(s))
			}
			for v := range tabs {
				m.open(v)
				check(tabNames[v])
			}
			m.open(tabJobs)
			m.complain(evil)
			check("a message")
			m.openDetail(50118)
			check("details")
			press(t, m, "pgdown")
			check("more details")
			m.openOutput(50118)
			check("output")
			m.focus().(*outputPane).wrap = true
			check("wrapped output")
			press(t, m, "esc", "?")
			check("help")
		}
	}
}

// poison puts a text into every field that comes from outside.
func poison(p *runview.Snapshot, evil string) *runview.Snapshot {
	for _, s := range []*string{&p.Over, &p.Run.Name, &p.Run.Dir, &p.Run.Lab, &p.Run.Owner, &p.Run.Machine, &p.Draining, &p.Problem} {
		*s = evil
	}
	for i := range p.Hosts {
		h := &p.Hosts[i]
		h.Name, h.Reason, h.Note = evil, evil, evil
		if i == 0 {
			h.State = evil
		}
	}
	row := func(r *runview.Row) {
		r.Title, r.Queue, r.Host, r.Said, r.Cause, r.Last = evil, evil, evil, evil, evil, evil
		r.Params = []jobs.Param{{Name: evil, Value: evil}}
	}
	if p.Jobs != nil {
		p.Jobs.Filter, p.Jobs.Wrong = evil, evil
		for i := range p.Jobs.Rows {
			row(&p.Jobs.Rows[i])
		}
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		g.Cause, g.Last, g.Hosts = evil, evil, []string{evil, evil}
		for k := range g.Jobs {
			row(&g.Jobs[k])
		}
	}
	if p.Events != nil {
		for i := range p.Events.Lines {
			p.Events.Lines[i].Host, p.Events.Lines[i].Text = evil, evil
		}
	}
	if d := p.Detail; d != nil {
		row(&d.Row)
		d.Command, d.Cwd, d.Setup, d.File, d.Why, d.Tags = evil+"\n"+evil, evil, evil, evil, evil, []string{evil}
		d.Env = []jobs.EnvVar{{Name: evil, Value: evil}}
		for i := range d.Attempts {
			a := &d.Attempts[i]
			a.Host, a.State, a.Result, a.Reason, a.Last, a.Out, a.Err = evil, evil, evil, evil, evil, evil, evil
		}
	}
	return p
}

// TestCharactersDoNotJoin checks that all methods by which terminals and libraries count cells
// agree on each frame, so that columns stay aligned.
func TestCharactersDoNotJoin(t *testing.T) {
	m := newModel(Options{}, nil)
	for _, s := range hostile {
		if strings.Contains(s, "क्षि") { // joined by some fonts only
			continue
		}
		c := m.clean(s)
		if a, b := ansi.StringWidth(c), ansi.StringWidthWc(c); a != b {
			t.Errorf("%q is %d cells wide by clusters, %d by characters", c, a, b)
		}
	}
	if got := m.clean("flag 🇩🇪 heart ❤️"); got != "flag DE heart ❤" {
		t.Errorf("%q", got)
	}
}

func pasteMsg(s string) tea.Msg { return tea.PasteMsg{Content: s} }

// harmless checks a frame against rule 10.
func harmless(t *testing.T, m *model, what string) {
	t.Helper()
	checkSize(t, m, what)
	onlyStyles(t, m, what)
}

// TestHostileQuestionsAndLines checks that hostile jobs, parameters, reasons, and refusals cannot
// break questions, boxes, and input lines (rule 10).
func TestHostileQuestionsAndLines(t *testing.T) {
	for i, text := range append(hostile, strings.Repeat("日本語 \x1b[2J", hugeText)) {
		src := change(func(p *runview.Snapshot) {
			if p.Jobs != nil {
				for k := range p.Jobs.Rows {
					r := &p.Jobs.Rows[k]
					r.Title, r.Cause, r.Last, r.Queue, r.Said, r.Host = text, text, text, text, text, text
					r.Progress, r.Phase = -1, runview.Phase(k)%(runview.Phases+1)
					r.Params = []jobs.Param{{Name: text, Value: text}, {Name: "C", Value: text}}
				}
			}
			if p.Detail != nil {
				p.Detail.Why, p.Detail.Command, p.Detail.Row.Phase = text, text, runview.Failed
			}
		})
		src.cost = runview.Cost{Running: 1}
		src.answer = func(runview.Action) (*runview.Answer, error) { return nil, &runview.Refused{Why: text} }
		size := [][2]int{{40, 10}, {80, 24}}[i%2]
		m, _ := screenOn(t, src, aRunning+6, size[0], size[1])
		for _, keys := range []string{"w", "esc e", "esc space c y", "/", "esc :", "tab", "esc 4"} {
			do(t, m, strings.Fields(keys)...)
			if m.modal != nil && len(text) < maxTyped {
				m.Update(pasteMsg(text))
			}
			harmless(t, m, keys)
		}
	}
}

// TestJoinedEmoji checks that the parts of a joined emoji are shown beside each other. All
// terminals agree on the width of the parts, so every row has the width of the screen.
func TestJoinedEmoji(t *testing.T) {
	src := change(func(p *runview.Snapshot) {
		if p.Jobs != nil {
			for i := range p.Jobs.Rows {
				p.Jobs.Rows[i].Title = "👩🏽‍🚀 lands 🏳️‍🌈 ❤️‍🔥 1️⃣ ok"
			}
		}
	})
	for _, s := range sizes {
		m := newScreen(t, src, s[0], s[1])
		checkSize(t, m, "emoji")
		if text := plain(m); strings.ContainsAny(text, "\u200d\ufe0f�") {
			t.Errorf("at %v:\n%s", s, text)
		}
	}
	m := newScreen(t, src, 160, 48)
	shows(t, m, "👩🚀 lands 🏳🌈 ❤🔥 1\u20e3 ok")
}

// TestInkIsTheStyle checks that an ink, once computed, draws the same as its Lip Gloss style (rule
// 8), and that empty text stays empty.
func TestInkIsTheStyle(t *testing.T) {
	for name, s := range map[string]lipgloss.Style{
		"none": lipgloss.NewStyle(), "bold": lipgloss.NewStyle().Bold(true), "colour": lipgloss.NewStyle().Foreground(lipgloss.Red),
		"several": lipgloss.NewStyle().Bold(true).Reverse(true).Foreground(lipgloss.Magenta),
	} {
		for _, text := range []string{"x", "ws01 ● up", " a  b "} {
			if got, want := inkOf(s).Render(text), s.Render(text); got != want {
				t.Errorf("%s of %q: %q, Lip Gloss gives %q", name, text, got, want)
			}
		}
	}
	if got := styleBad.Render(""); got != "" {
		t.Errorf("nothing: %q", got)
	}
	if got, want := styleBad.with(styleHere).Render("x"), "\x1b[31m\x1b[7mx\x1b[m"; got != want {
		t.Errorf("both: %q, want %q", got, want)
	}
}
