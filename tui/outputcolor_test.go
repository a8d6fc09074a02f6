package tui

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var colors = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// checkColored holds a row of output to what it may send to a terminal: text, colors that
// end with the row, and as many cells as without them.
func checkColored(t *testing.T, m *model, b []byte) {
	t.Helper()
	l := m.colored(b)
	text := colors.ReplaceAllString(l, "")
	if strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("%q lets control characters through: %q", b, l)
	}
	if strings.Contains(l, "\x1b") && !strings.HasSuffix(l, resetSGR) {
		t.Errorf("the colors of %q go on after it: %q", b, l)
	}
	all := width(m.line(b))
	if width(l) != all {
		t.Errorf("%q has %d cells with colors and %d without", b, width(l), all)
	}
	for n := range min(all, 20) {
		if got := width(shifted(l, n)); got != all-n {
			t.Errorf("%q has %d cells of %d after the first %d were dropped", b, got, all, n)
		}
	}
	for _, part := range wrapped(l, 7) {
		if width(part) > 7 || strings.Contains(part, "\x1b") && !strings.HasSuffix(part, resetSGR) || strings.ContainsFunc(colors.ReplaceAllString(part, ""), unicode.IsControl) {
			t.Errorf("a wrapped piece of %q is %q", b, part)
		}
	}
}

func FuzzColoredOutput(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[1;31mred\x1b[0m and\tmore", "\x1b[31", "\x1b[>4;2mkeys", "\x1b]52;c;aGk=\x07", "\x1b[2J\x1b[?1049h\x1b[38:2::1:2:3mrgb",
		"日本\x1b[32m語のログ", "e\u0301\x1b[7m\u0301x\x9b31m", "\x1b[m\x1b[0;1mx\x1b[m", "\x1b[\x1b[31mm", "\u200b\x1b[31m\u202eabc"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > rowSize {
			return
		}
		m := newModel(Options{}, nil)
		checkColored(t, m, b)
		m.opt.ASCII = true
		checkColored(t, m, b)
	})
}

// Output has its colors, and nothing else that is no text; a line does not color the next.
func TestOutputHasItsColors(t *testing.T) {
	s := showOutput(t, &fakeFile{data: []byte("\x1b[31mred goes on\nplain\x1b]52;c;aGk=\x07\x1b[2J\n\x1b[1;32mgreen\x1b[0m\n"), over: true}, 80, 24)
	s.frame = ""
	s.draw()
	var rows []string
	for row := range strings.SplitSeq(s.frame, "\n") {
		if strings.Contains(row, "red goes on") || strings.Contains(row, "plain") || strings.Contains(row, "green") {
			rows = append(rows, strings.TrimRight(row, " "))
		}
	}
	if want := []string{"\x1b[31mred goes on\x1b[m", "plain␛]52;c;aGk=␇", "\x1b[1;32mgreen\x1b[0m\x1b[m"}; strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("the rows are %q, not %q", rows, want)
	}
	s.press("/")
	typeText(t, s.model, "3")
	s.press("enter")
	s.frame = ""
	s.draw()
	if !strings.Contains(s.frame, "\x1b[31mred goes on\x1b[m") {
		t.Error("a search finds its text in the codes of colors")
	}
}

// Long lines are moved sideways by half a screen; half of a wide character is a blank.
func TestOutputSideways(t *testing.T) {
	line := strings.Repeat("0123456789", 12)
	s := showOutput(t, &fakeFile{data: []byte(line + "\n\x1b[33m" + "a" + strings.Repeat("語", 60) + "\nshort\n"), over: true}, 80, 24)
	shows(t, s.model, line[:79]+"…")
	s.press("right")
	shows(t, s.model, "\n"+line[40:120]+"\n", "from column 41", "\n "+strings.Repeat("語", 39))
	s.press("right", "right", "right") // not beyond the longest line
	shows(t, s.model, "from column 121")
	s.press("left", "left", "left", "left")
	shows(t, s.model, line[:79]+"…", "a語")
	hides(t, s.model, "from column")
	s.press("w", "right")
	hides(t, s.model, "from column")
}
