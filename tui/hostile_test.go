package tui

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"dcs-tui/jobs"
	"dcs-tui/jobs/action"
	"dcs-tui/observe/runview"
)

// hostileTexts returns texts that would move the cursor, set the title, write the clipboard, join
// with adjacent characters, or break a line if the terminal received them. The longest text has
// size bytes.
func hostileTexts(size int) []string {
	return []string{
		"\x1b[2J\x1b[H\x1b[31mred", "\x1b]0;owned\x07", "\x1b]52;c;b3duZWQ=\x07", "\x1bP+q544e\x1b\\", "\x9b2J\u009b2J",
		"a\rb\nc\td\be\x7f\x00",
		"\u202egpj.exe\u2066\u200b\u2028\u2029\ufeff", "\xff\xfe\xc3(", strings.Repeat("\u0301", 50), "a" +
			strings.Repeat("\u0335", 50),
		"日本語のとても長い名前" + strings.Repeat("漢", 60), "👍🏽👨‍👩‍👧🇩🇪1️⃣❤️", "\u1100\u1161\u11a8\u3164\u115f",
		strings.Repeat("x", size), "क्षि नमस्ते", "\x1b[", "\x1b",
		"﷽﷽", strings.Repeat("日本語 \x1b[2J", size/14), "\U000e0041\U000e0001", "%s%n%!d(MISSING)", "",
	}
}

// checkHarmless checks that a frame has the size of the screen and contains nothing but printable
// text and colors, where no character joins the one before it but accents (rule 10).
func checkHarmless(t *testing.T, m *model, what string) {
	t.Helper()
	checkSize(t, m, what)
	text := colors.ReplaceAllString(m.frame, "")
	if i := strings.IndexFunc(text, func(r rune) bool {
		return r != '\n' && (!unicode.IsPrint(r) || width(string(r)) == 0 && !unicode.IsMark(r))
	}); i >= 0 {
		t.Errorf("%s: %q reaches the terminal", what, text[i:min(len(text), i+20)])
	}
}

// TestHostileTextsDoNotBreakTheScreen puts hostile texts from jobs, hosts, users, and dispatchers
// into every field, in every view and size, and then into questions, answers, and input lines. None
// breaks the screen.
func TestHostileTextsDoNotBreakTheScreen(t *testing.T) {
	isSlow := raceDetector || testing.Short() // these texts are slow to draw
	longest := 1 << 20
	if isSlow {
		longest = 1 << 10
	}
	for i, evil := range hostileTexts(longest) {
		for k, size := range [][2]int{{40, 10}, {80, 24}, {160, 48}} {
			if isSlow && k != i%3 {
				continue
			}
			wrong := ""
			src := sampleWith(func(snap *runview.Snapshot) { putText(snap, evil, wrong) })
			src.read = func(runview.Read) (*runview.Piece, error) {
				return &runview.Piece{Data: []byte(evil + "\n" + evil), Size: int64(2*len(evil) + 1), Over: true}, nil
			}
			src.cost = runview.Cost{Running: 1}
			src.answer = func(action.Request) (*runview.Answer, error) { return nil, &runview.Refused{Why: evil} }
			m := newScreenOf(t, Options{Source: src, ASCII: (i+k)%2 == 1}, size[0], size[1])
			check := func(what string) {
				t.Helper()
				checkHarmless(t, m, fmt.Sprintf("text %d, %dx%d, ascii %v, %s", i, size[0], size[1], m.opt.ASCII, what))
			}
			for _, keys := range []string{"2", "3", "4", "5", "1", "enter", "pgdown", "l", "w", "esc ?"} {
				press(t, m, keys)
				check(keys)
			}
			press(t, m, "esc")
			m.showError(evil)
			check("a message")
			if k != i%3 { // the rest does not depend on the size
				continue
			}
			m.jobs.moveToJob(aRunning + 6)
			for _, keys := range []string{"w", "esc e", "esc space c y", "/", "esc :", "tab", "esc 4"} {
				press(t, m, keys)
				if m.modal != nil && len(evil) < maxTyped {
					m.Update(pasteMessage(evil))
				}
				check(keys)
			}
			wrong = evil
			press(t, m, "1")
			check("a wrong filter")
		}
	}
}

// putText puts a text into every field that comes from outside. The filter of the jobs has an error
// if wrong is not empty.
func putText(snap *runview.Snapshot, evil, wrong string) {
	for _, s := range []*string{&snap.Over, &snap.End, &snap.Run.Name, &snap.Run.Dir, &snap.Run.Lab, &snap.Run.Owner,
		&snap.Run.Machine, &snap.Draining, &snap.Problem} {
		*s = evil
	}
	for i := range snap.Hosts {
		h := &snap.Hosts[i]
		h.Name, h.Hold, h.Reason, h.Note = evil, jobs.HostHold(evil), evil, evil
		if i == 0 {
			h.State = jobs.HostState(evil)
		}
	}
	row := func(r *runview.Row) {
		r.Title, r.Queue, r.Host, r.Said, r.Cause, r.Last = evil, evil, evil, evil, evil, evil
		r.Params = []jobs.Param{{Name: evil, Value: evil}, {Name: "C", Value: evil}}
	}
	if snap.Jobs != nil {
		snap.Jobs.Wrong = wrong
		for i := range snap.Jobs.Rows {
			r := &snap.Jobs.Rows[i]
			r.Progress, r.Phase = -1, runview.Phase(i)%(runview.Phases+1)
			row(r)
		}
	}
	for i := range snap.Groups {
		group := &snap.Groups[i]
		group.Cause, group.Last, group.Hosts = evil, evil, []string{evil, evil}
		for k := range group.Jobs {
			row(&group.Jobs[k])
		}
	}
	if snap.Events != nil {
		for i := range snap.Events.Lines {
			snap.Events.Lines[i].Host, snap.Events.Lines[i].Text = evil, evil
		}
	}
	if detail := snap.Detail; detail != nil {
		row(&detail.Row)
		detail.Row.Phase = runview.Failed
		detail.Command, detail.Cwd, detail.Setup, detail.File, detail.Why, detail.Tags = evil+"\n"+
			evil, evil, evil, evil, evil, []string{evil}
		detail.Env = []jobs.EnvVar{{Name: evil, Value: evil}}
		for i := range detail.Attempts {
			a := &detail.Attempts[i]
			a.Host, a.State, a.Result, a.Reason, a.Last, a.Far = evil, evil, evil, evil, evil, evil
		}
	}
}

// TestCharactersDoNotJoin checks that all methods by which terminals and libraries count cells
// agree on each frame, so that columns stay aligned.
func TestCharactersDoNotJoin(t *testing.T) {
	m := newModel(Options{}, nil)
	for _, s := range hostileTexts(1 << 10) {
		if strings.Contains(s, "क्षि") { // joined by some fonts only
			continue
		}
		c := m.clean(s)
		equal(t, ansi.StringWidth(c), ansi.StringWidthWc(c), "cells of %q by clusters", c)
	}
	equal(t, m.clean("flag 🇩🇪 heart ❤️"), "flag DE heart ❤", "flags and variations")
	equal(t, m.clean("👩🏽‍🚀 lands 🏳️‍🌈 ❤️‍🔥 1️⃣ ok"), "👩🚀 lands 🏳🌈 ❤🔥 1\u20e3 ok", "joined emoji")
}

// TestTextStyleIsTheLipGlossStyle checks that a textStyle, once computed, draws the same as its Lip
// Gloss style (rule 8), and that empty text stays empty.
func TestTextStyleIsTheLipGlossStyle(t *testing.T) {
	for name, s := range map[string]lipgloss.Style{
		"none": lipgloss.NewStyle(), "bold": lipgloss.NewStyle().Bold(true),
		"colour":  lipgloss.NewStyle().Foreground(lipgloss.Red),
		"several": lipgloss.NewStyle().Bold(true).Reverse(true).Foreground(lipgloss.Magenta),
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range []string{"x", "ws01 ● up", " a  b "} {
				equal(t, newTextStyle(s).Render(text), s.Render(text), "%s of %q", name, text)
			}
		})
	}
	equal(t, styleBad.Render(""), "", "an empty text")
	equal(t, styleBad.with(styleCursor).Render("x"), "\x1b[31m\x1b[7mx\x1b[m", "both")
}
