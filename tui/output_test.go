package tui

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// fakeFile is what an attempt has printed so far.
type fakeFile struct {
	data  []byte
	size  int64 // of a file whose content at is made up; 0: data
	at    func(offset int64) byte
	over  bool
	err   error
	reads []runview.Read
	given int64 // bytes
	most  int   // bytes in one piece, as a source may give less; 0: what was asked for
}

func (f *fakeFile) read(r runview.Read) (*runview.Piece, error) {
	f.reads = append(f.reads, r)
	if f.err != nil {
		return nil, f.err
	}
	n := int64(len(f.data))
	if f.at != nil {
		n = f.size
	}
	offset := r.Offset
	if offset < 0 {
		offset = max(0, n+offset)
	}
	limit := r.Limit
	if f.most > 0 {
		limit = min(limit, f.most)
	}
	end := min(n, offset+int64(limit))
	p := &runview.Piece{Offset: offset, Size: n, Over: f.over}
	switch {
	case offset >= n:
	case f.at != nil:
		for i := offset; i < end; i++ {
			p.Data = append(p.Data, f.at(i))
		}
	default:
		p.Data = append(p.Data, f.data[offset:end]...)
	}
	f.given += int64(len(p.Data))
	return p, nil
}

// outScreen is a screen with one opened output and a clock that a test moves.
type outScreen struct {
	*model
	t   *testing.T
	p   *outputPane
	f   *fakeFile
	now time.Time
}

func showOutput(t *testing.T, f *fakeFile, w, h int) *outScreen {
	t.Helper()
	src := sample()
	src.read = func(r runview.Read) (*runview.Piece, error) { return f.read(r) }
	s := &outScreen{t: t, f: f, now: noon}
	s.model = newScreen(t, src, w, h)
	s.model.now = func() time.Time { return s.now }
	s.openOutput(50118)
	s.p = s.extra.(*outputPane)
	refresh(t, s.model)
	s.wait(0)
	return s
}

// wait lets time pass and what is due happen.
func (s *outScreen) wait(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	_, cmd := s.model.Update(readDue{pane: s.p, at: s.p.timer})
	s.feed(cmd)
}

// feed carries out reads, and what comes of them; timers are left out.
func (s *outScreen) feed(cmd tea.Cmd) {
	for cmd != nil && s.p.busy {
		switch msg := cmd().(type) {
		case tea.BatchMsg:
			for _, c := range msg {
				s.feed(c)
			}
			return
		default:
			_, cmd = s.model.Update(msg)
		}
	}
}

// press presses keys in the output, whatever else they mean elsewhere.
func (s *outScreen) press(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		_, cmd := s.model.Update(keyMsg(k))
		s.feed(cmd)
	}
	s.wait(0)
}

// lines are what the pane shows, blanks at the ends cut off.
func (s *outScreen) lines() []string {
	var out []string
	for _, l := range s.p.draw(s.model, s.p.w, s.p.h, true) {
		out = append(out, strings.TrimRight(plainText(l), " "))
	}
	return out
}

func (s *outScreen) last() string {
	l := s.lines()
	if len(l) == 0 {
		return ""
	}
	return l[len(l)-1]
}

// numbered is a file of lines "line 1" to "line n".
func numbered(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.Bytes()
}

// the output is followed live, and standing still shows the same lines
// whatever is added.
func TestOutputFollows(t *testing.T) {
	f := &fakeFile{data: numbered(100)}
	s := showOutput(t, f, 80, 24)
	if s.last() != "line 100" || !strings.Contains(s.p.title(s.model), "50118 stdout · following") {
		t.Fatalf("%q under %q", s.last(), s.p.title(s.model))
	}
	f.data = numbered(120)
	s.wait(pollEvery)
	if s.last() != "line 120" {
		t.Errorf("after more was printed: %q", s.last())
	}
	s.press("f")
	before := s.lines()
	f.data = numbered(200)
	s.wait(pollEvery)
	if now := s.lines(); strings.Join(now, "|") != strings.Join(before, "|") || now[len(now)-1] != "line 120" {
		t.Errorf("standing still it shows %q", now)
	}
	s.press("G")
	s.wait(pollEvery)
	if s.last() != "line 200" {
		t.Errorf("after G: %q", s.last())
	}
}

// A poll at most twice a second, and none after the attempt has ended.
func TestOutputIsNotAskedForTooOften(t *testing.T) {
	f := &fakeFile{data: numbered(10)}
	s := showOutput(t, f, 80, 24)
	reads := len(f.reads)
	for range 100 {
		s.now = s.now.Add(10 * time.Millisecond)
		if cmd := s.model.reading(); cmd != nil && s.p.busy {
			s.model.Update(cmd())
		}
	}
	if n := len(f.reads) - reads; n == 0 || n > 2 {
		t.Errorf("%d reads in a second", n)
	}
	f.over = true
	s.wait(pollEvery)
	reads = len(f.reads)
	for range 10 {
		s.wait(time.Second)
	}
	if n := len(f.reads) - reads; n != 0 {
		t.Errorf("%d reads after the end", n)
	}
	if title := s.p.title(s.model); !strings.Contains(title, "ended") {
		t.Errorf("the title says %q", title)
	}
	s.openDetail(50118) // not shown: nothing is read
	f.over = false
	refresh(t, s.model)
	if cmd := s.reading(); cmd != nil {
		t.Error("it reads though it is not shown")
	}
}

// a 1 GB log costs nothing, from its end to its start.
func TestABigLogCostsLittle(t *testing.T) {
	const line = 100
	f := &fakeFile{size: 1 << 30, at: func(o int64) byte {
		if o%line == line-1 {
			return '\n'
		}
		n := o / line
		for range line - 2 - o%line {
			n /= 10
		}
		return '0' + byte(n%10)
	}}
	s := showOutput(t, f, 120, 30)
	end := strings.TrimLeft(s.last(), "0")
	for range 200 {
		s.press("pgup")
	}
	s.press("g")
	if s.lines()[0] != strings.Repeat("0", 99) {
		t.Errorf("the start is %q", s.lines()[0])
	}
	s.press("pgdown", "G")
	if got := strings.TrimLeft(s.last(), "0"); got != end {
		t.Errorf("the end is %q, was %q", got, end)
	}
	if kept := cap(s.p.text.data); kept > 2*keepSize {
		t.Errorf("%d bytes are kept", kept)
	}
	if f.given > 8<<20 {
		t.Errorf("%d bytes were read", f.given)
	}
}

// Scrolling goes through all lines, none twice and none left out, up and down again,
// over the borders of pieces.
func TestScrollingMissesNoLine(t *testing.T) {
	const n = 20_000
	f := &fakeFile{data: bytes.ReplaceAll(numbered(n), []byte("\n"), []byte(strings.Repeat(" .", 50)+"\n")), over: true} // more than is kept
	s := showOutput(t, f, 80, 40)
	s.press("z")
	at := func() int {
		var first int
		fmt.Sscanf(s.lines()[0], "line %d", &first)
		return first
	}
	want := at()
	for want > n-12_000 {
		s.press("pgup")
		want -= s.p.h - 1
		if at() != want {
			t.Fatalf("page up shows line %d, not %d", at(), want)
		}
	}
	for want+s.p.h-1 < n {
		s.press("pgdown")
		want = min(want+s.p.h-1, n-s.p.h+1)
		if at() != want {
			t.Fatalf("page down shows line %d, not %d", at(), want)
		}
	}
	if !s.p.follow {
		t.Error("at the end it does not follow")
	}
}

// whatever a job prints stays in its pane, as text.
func TestHostileOutput(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"progress bar", "start\nepoch  1%\repoch 50%\repoch 99%\r", "epoch 99%"},
		{"wiped progress bar", "10%\r90%\r      \r", "90%"},
		{"erased progress bar", "10%\r90%\r\x1b[K", "90%"},
		{"windows line ends", "one\r\ntwo\r\n", "two"},
		{"tabs", "a\tb\n", "a       b"},
		{"colours", "\x1b[31mred\x1b[0m\x1b[2J\x1b[5;5H\n", "red"},
		{"title", "\x1b]0;owned\x07\n", "␛]0;owned␇"},
		{"clipboard", "\x1b]52;c;aGk=\x07\n", "␛]52;c;aGk=␇"},
		{"unfinished sequence", "x\x1b[12;", "x␛[12;"},
		{"C1", "\u009b31mx\n", "�31mx"},
		{"raw C1", "\x9b31mx\n", "�31mx"},
		{"invalid UTF-8", "a\xff\xfeb\n", "a��b"},
		{"right to left", "\u202eevil\n", "�evil"},
		{"nul and bell", "\x00\x07\n", "␀␇"},
		{"no line end", "last words", "last words"},
		{"empty line", "x\n\n", ""},
	} {
		s := showOutput(t, &fakeFile{data: []byte(c.data)}, 80, 24)
		if got := s.last(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		checkSize(t, s.model, c.name)
		s.press("w")
		checkSize(t, s.model, c.name+", wrapped")
	}
}

// A line of 10 MB without an end, wrapped or not, can be gone through; so can 10 MB of
// one progress bar.
func TestLongLines(t *testing.T) {
	long := append(bytes.Repeat([]byte("0123456789"), 1<<20), '!')
	s := showOutput(t, &fakeFile{data: long}, 80, 24)
	s.press("w")
	if !strings.HasSuffix(s.last(), "!") {
		t.Errorf("the end is %q", s.last())
	}
	for range 100 {
		s.press("pgup")
	}
	checkSize(t, s.model, "far up")
	s.press("g", "pgdown")
	if l := s.lines()[0]; len(l) != 80 {
		t.Errorf("wrapped: %q", l)
	}
	bar := bytes.Repeat([]byte("\r 42% of it"), 1<<20)
	s = showOutput(t, &fakeFile{data: bar}, 80, 24)
	if l := s.lines(); len(l) != 1 || strings.TrimSpace(l[0]) != "42% of it" {
		t.Errorf("a bar of 10 MB shows %q", l)
	}
	s.press("pgup", "g", "pgdown", "k", "j", "G")
	checkSize(t, s.model, "a bar of 10 MB")
}

// Wide characters that are wrapped or cut leave every row whole.
func TestWideOutput(t *testing.T) {
	s := showOutput(t, &fakeFile{data: []byte(strings.Repeat("日本語のテスト", 30) + "\n")}, 81, 24)
	checkSize(t, s.model, "cut")
	s.press("w")
	checkSize(t, s.model, "wrapped")
	if got := strings.Join(s.lines(), ""); got != strings.Repeat("日本語のテスト", 30) {
		t.Errorf("wrapping changed the text: %q", got)
	}
}

// What cannot be read is said in words, tried again with pauses, and what was read
// stays.
func TestOutputThatCannotBeRead(t *testing.T) {
	f := &fakeFile{err: errors.New("ws02 is not connected: its output cannot be read now\x1b[2J")}
	s := showOutput(t, f, 80, 24)
	if all := strings.Join(s.lines(), " "); !strings.Contains(all, "ws02 is not connected") || strings.Contains(all, "\x1b") {
		t.Errorf("it says %q", all)
	}
	n := len(f.reads)
	for range 60 {
		s.wait(time.Second)
	}
	if tries := len(f.reads) - n; tries < 5 || tries > 30 {
		t.Errorf("%d tries in a minute", tries)
	}
	f.err, f.data = nil, numbered(3)
	s.wait(maxRetry)
	if s.last() != "line 3" {
		t.Errorf("when it can be read again: %q", s.last())
	}
	f.err = errors.New("the link was lost")
	s.wait(pollEvery)
	if s.last() != "line 3" || !strings.Contains(s.p.title(s.model), "cannot be read now") {
		t.Errorf("%q under %q", s.last(), s.p.title(s.model))
	}
}

// A job that cuts its own output off is followed on from there.
func TestOutputThatShrinks(t *testing.T) {
	f := &fakeFile{data: numbered(1000)}
	s := showOutput(t, f, 80, 24)
	f.data = []byte("anew\n")
	s.wait(pollEvery)
	s.wait(pollEvery)
	if s.last() != "anew" {
		t.Errorf("it shows %q", s.last())
	}
}

// Both streams, and each attempt of a job that ran several times.
func TestStreamsAndAttempts(t *testing.T) {
	src := sample()
	src.read = func(r runview.Read) (*runview.Piece, error) {
		text := fmt.Sprintf("%s of %s\n", r.File, r.Attempt)
		return &runview.Piece{Data: []byte(text), Size: int64(len(text)), Over: true}, nil
	}
	m := newScreen(t, src, 80, 24)
	m.openOutput(50120) // three tries
	p := m.extra.(*outputPane)
	refresh(t, m)
	see := func(want string, keys ...string) {
		t.Helper()
		press(t, m, keys...)
		_, cmd := m.Update(second{})
		run(t, m, cmd)
		if got := strings.TrimRight(plainText(strings.Join(p.draw(m, 60, 5, true), "\n")), " "); got != want {
			t.Errorf("%q: it shows %q, want %q (%s)", keys, got, want, p.title(m))
		}
	}
	see("out of 50120.3")
	see("err of 50120.3", "o")
	see("err of 50120.2", "[")
	see("err of 50120.1", "[")
	see("err of 50120.1", "[")
	see("err of 50120.2", "]")
	see("out of 50120.2", "o")
	if title := p.title(m); !strings.Contains(title, "50120.2 stdout") || !strings.Contains(title, "2 of 3") {
		t.Errorf("title %q", title)
	}
	see("out of 50120.3", "]")
}

// The output under the list follows the cursor, and reads only where it rests.
func TestTheOutputUnderTheListFollowsTheCursor(t *testing.T) {
	f := &fakeFile{data: numbered(5)}
	src := sample()
	src.read = f.read
	m := newScreen(t, src, 160, 48)
	under := m.under.(*outputPane)
	now := noon
	m.now = func() time.Time { return now }
	wake := func(d time.Duration) {
		now = now.Add(d)
		_, cmd := m.Update(readDue{pane: under, at: under.timer})
		run(t, m, cmd)
		refresh(t, m)
	}
	press(t, m, "g")
	wake(0)
	for range 10 {
		press(t, m, "j")
		wake(10 * time.Millisecond)
	}
	if n := len(f.reads); n > 1 {
		t.Errorf("%d reads while the cursor moved", n)
	}
	press(t, m, "g", "j")
	wake(settle)
	wake(settle)
	r, ok := m.jobs.current(m)
	if !ok || len(f.reads) == 0 || f.reads[len(f.reads)-1].Attempt.Job != r.ID {
		t.Errorf("the cursor is on %d, reads are %v", r.ID, f.reads)
	}
	if title := under.title(m); !strings.Contains(title, "following") {
		t.Errorf("title %q", title)
	}
}

// A read that never ends does not keep another job's output from being asked for.
func TestAReadOfSomethingElseIsGivenUp(t *testing.T) {
	s := showOutput(t, &fakeFile{data: numbered(3)}, 80, 24)
	s.wait(pollEvery)
	s.now = s.now.Add(pollEvery)
	s.model.reading() // under way, its answer has not come
	serial := s.p.serial
	if !s.p.busy {
		t.Fatal("no read is under way")
	}
	s.p.file = jobs.FileErr
	s.model.reading()
	if s.p.serial == serial {
		t.Error("an answer to the old read would be taken for the new file")
	}
	s.model.Update(pieceRead{pane: s.p, serial: serial, piece: &runview.Piece{Data: []byte("of stdout"), Size: 9}})
	if strings.Contains(strings.Join(s.lines(), ""), "of stdout") {
		t.Error("it was")
	}
}

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
