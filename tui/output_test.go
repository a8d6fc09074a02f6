package tui

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// fakeFile is the output of an attempt so far.
type fakeFile struct {
	data  []byte
	size  int64                   // size of a file without data
	at    func(offset int64) byte // content of a file without data
	over  bool
	err   error
	reads []runview.Read
	given int64 // number of bytes served
	most  int   // maximum number of bytes per read, as a source may return less; 0: as many as requested
}

func (f *fakeFile) read(r runview.Read) (*runview.Piece, error) {
	f.reads = append(f.reads, r)
	if f.err != nil {
		return nil, f.err
	}
	size, at := f.size, f.at
	if at == nil {
		size, at = int64(len(f.data)), func(offset int64) byte { return f.data[offset] }
	}
	offset := r.Offset
	if offset < 0 {
		offset = max(0, size+offset)
	}
	p := &runview.Piece{Offset: offset, Size: size, Over: f.over}
	for o := offset; o < min(size, offset+int64(min(r.Limit, cmp.Or(f.most, r.Limit)))); o++ {
		p.Data = append(p.Data, at(o))
	}
	f.given += int64(len(p.Data))
	return p, nil
}

// outputScreen is a screen with one open output and a clock that a test moves.
type outputScreen struct {
	*model
	t   *testing.T
	p   *outputPane
	f   *fakeFile
	now time.Time
}

func showOutput(t *testing.T, f *fakeFile, w, h int) *outputScreen {
	t.Helper()
	src := sample()
	src.read = func(r runview.Read) (*runview.Piece, error) { return f.read(r) }
	s := &outputScreen{t: t, f: f, now: noon}
	s.model = newScreen(t, src, w, h)
	s.model.now = func() time.Time { return s.now }
	s.openOutput(50118)
	s.p = s.extra.(*outputPane)
	refresh(t, s.model)
	s.advance(0)
	return s
}

// advance advances the clock and runs what is due.
func (s *outputScreen) advance(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	_, cmd := s.model.Update(readDue{pane: s.p, at: s.p.timerAt})
	runCommands(s.t, s.model, cmd)
}

// press presses keys and runs the reads that are due.
func (s *outputScreen) press(keys string) {
	s.t.Helper()
	press(s.t, s.model, keys)
	s.advance(0)
}

// lines returns the rows that the pane shows, without trailing blanks.
func (s *outputScreen) lines() []string {
	var out []string
	for _, l := range s.p.draw(s.model, s.p.w, s.p.h, true) {
		out = append(out, strings.TrimRight(plainText(l), " "))
	}
	return out
}

func (s *outputScreen) lastLine() string {
	l := s.lines()
	if len(l) == 0 {
		return ""
	}
	return l[len(l)-1]
}

// checkTitle checks that the title of the pane contains a text.
func (s *outputScreen) checkTitle(text string) {
	s.t.Helper()
	checkContains(s.t, s.p.title(s.model), text, "the title")
}

// numberedLines returns a file with the lines "line 1" to "line n".
func numberedLines(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.Bytes()
}

// TestOutputFollowsTheFile checks that the output follows the file live, and that a scrolled-back
// pane keeps its lines whatever is appended.
func TestOutputFollowsTheFile(t *testing.T) {
	f := &fakeFile{data: numberedLines(100)}
	s := showOutput(t, f, 80, 24)
	if s.lastLine() != "line 100" || !strings.Contains(s.p.title(s.model), "50118 stdout · following") {
		t.Fatalf("%q under %q", s.lastLine(), s.p.title(s.model))
	}
	f.data = numberedLines(120)
	s.advance(pollInterval)
	equal(t, s.lastLine(), "line 120", "after more was printed")
	s.press("F")
	before := s.lines()
	f.data = numberedLines(200)
	s.advance(pollInterval)
	if now := s.lines(); strings.Join(now, "|") != strings.Join(before, "|") || now[len(now)-1] != "line 120" {
		t.Errorf("standing still it shows %q", now)
	}
	s.press("G")
	s.advance(pollInterval)
	equal(t, s.lastLine(), "line 200", "after G")
}

// TestOutputIsNotAskedForTooOften checks that a file is polled at most twice a second, and never
// after the attempt has ended.
func TestOutputIsNotAskedForTooOften(t *testing.T) {
	f := &fakeFile{data: numberedLines(10)}
	s := showOutput(t, f, 80, 24)
	reads := len(f.reads)
	for range 100 {
		s.now = s.now.Add(10 * time.Millisecond)
		if cmd := s.model.readVisibleOutput(); cmd != nil && s.p.isReading {
			s.model.Update(cmd())
		}
	}
	if n := len(f.reads) - reads; n == 0 || n > 2 {
		t.Errorf("%d reads in a second", n)
	}
	f.over = true
	s.advance(pollInterval)
	reads = len(f.reads)
	for range 10 {
		s.advance(time.Second)
	}
	equal(t, len(f.reads)-reads, 0, "reads after the end")
	s.checkTitle("ended")
	s.openDetail(50118) // the output is hidden, so nothing is read
	f.over = false
	refresh(t, s.model)
	if cmd := s.readVisibleOutput(); cmd != nil {
		t.Error("it reads though it is not shown")
	}
}

// TestABigLogCostsLittle checks that a 1 GB log is cheap to show, from its end to its start.
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
	end := strings.TrimLeft(s.lastLine(), "0")
	for range 200 {
		s.press("pgup")
	}
	s.press("g")
	equal(t, s.lines()[0], strings.Repeat("0", 99), "the start")
	s.press("pgdown G")
	equal(t, strings.TrimLeft(s.lastLine(), "0"), end, "the end")
	if kept := cap(s.p.excerpt.data); kept > 2*keepSize {
		t.Errorf("%d bytes are kept", kept)
	}
	if f.given > 8<<20 {
		t.Errorf("%d bytes were read", f.given)
	}
}

// TestScrollingMissesNoLine checks that scrolling up and down shows every line exactly once, across
// the boundaries of pieces.
func TestScrollingMissesNoLine(t *testing.T) {
	const n = 20_000
	// More than is kept.
	f := &fakeFile{data: bytes.ReplaceAll(numberedLines(n), []byte("\n"), []byte(strings.Repeat(" .", 50)+"\n")),
		over: true}
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

// TestHostileOutputStaysInItsPane checks that whatever a job prints is shown as text within its
// pane.
func TestHostileOutputStaysInItsPane(t *testing.T) {
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
		t.Run(c.name, func(t *testing.T) {
			s := showOutput(t, &fakeFile{data: []byte(c.data)}, 80, 24)
			equal(t, s.lastLine(), c.want, "%s", c.name)
			checkSize(t, s.model, c.name)
			s.press("W")
			checkSize(t, s.model, c.name+", wrapped")
		})
	}
}

// TestLongLinesCanBeScrolled checks that the user can scroll through a line of 10 MB without a
// newline, wrapped or not, and through 10 MB of one progress bar.
func TestLongLinesCanBeScrolled(t *testing.T) {
	long := append(bytes.Repeat([]byte("0123456789"), 1<<20), '!')
	s := showOutput(t, &fakeFile{data: long}, 80, 24)
	s.press("W")
	if !strings.HasSuffix(s.lastLine(), "!") {
		t.Errorf("the end is %q", s.lastLine())
	}
	for range 100 {
		s.press("pgup")
	}
	checkSize(t, s.model, "far up")
	s.press("g pgdown")
	if l := s.lines()[0]; len(l) != 80 {
		t.Errorf("wrapped: %q", l)
	}
	bar := bytes.Repeat([]byte("\r 42% of it"), 1<<20)
	s = showOutput(t, &fakeFile{data: bar}, 80, 24)
	if l := s.lines(); len(l) != 1 || strings.TrimSpace(l[0]) != "42% of it" {
		t.Errorf("a bar of 10 MB shows %q", l)
	}
	s.press("pgup g pgdown k j G")
	checkSize(t, s.model, "a bar of 10 MB")
}

// TestWideCharactersDoNotBreakARow checks that wrapped or cut wide characters do not break a row.
func TestWideCharactersDoNotBreakARow(t *testing.T) {
	s := showOutput(t, &fakeFile{data: []byte(strings.Repeat("日本語のテスト", 30) + "\n")}, 81, 24)
	checkSize(t, s.model, "cut")
	s.press("W")
	checkSize(t, s.model, "wrapped")
	equal(t, strings.Join(s.lines(), ""), strings.Repeat("日本語のテスト", 30), "wrapping changed the text")
}

// TestOutputThatCannotBeRead checks that a read error is shown in words and retried after pauses,
// and that output that was read stays.
func TestOutputThatCannotBeRead(t *testing.T) {
	f := &fakeFile{err: errors.New("ws02 is not connected: its output cannot be read now\x1b[2J")}
	s := showOutput(t, f, 80, 24)
	if all := strings.Join(s.lines(), " "); !strings.Contains(all, "ws02 is not connected") ||
		strings.Contains(all, "\x1b") {
		t.Errorf("it says %q", all)
	}
	n := len(f.reads)
	for range 60 {
		s.advance(time.Second)
	}
	if tries := len(f.reads) - n; tries < 5 || tries > 30 {
		t.Errorf("%d tries in a minute", tries)
	}
	f.err, f.data = nil, numberedLines(3)
	s.advance(maxRetryDelay)
	equal(t, s.lastLine(), "line 3", "when it can be read again")
	f.err = errors.New("the link was lost")
	s.advance(pollInterval)
	if s.lastLine() != "line 3" || !strings.Contains(s.p.title(s.model), "cannot be read now") {
		t.Errorf("%q under %q", s.lastLine(), s.p.title(s.model))
	}
}

// TestPaneFollowsATruncatedOutput checks that the pane follows a job that truncates its own output,
// and says so, also if what is shown still exists.
func TestPaneFollowsATruncatedOutput(t *testing.T) {
	f := &fakeFile{data: numberedLines(1000)}
	s := showOutput(t, f, 80, 24)
	f.data = []byte("anew\n")
	s.advance(pollInterval)
	s.advance(pollInterval)
	equal(t, s.lastLine(), "anew", "the last line")
	if title := s.p.title(s.model); !strings.Contains(title, "shrunk from 8.68 KiB: the job truncated it") {
		t.Errorf("title %q", title)
	}

	f.data = numberedLines(100_000) // it grows, and is truncated below the excerpt
	s = showOutput(t, f, 80, 24)
	s.p.jumpTo(0)
	s.advance(pollInterval)
	f.data = f.data[:len(f.data)/2]
	s.press("end")
	s.advance(pollInterval)
	s.advance(pollInterval)
	if title := s.p.title(s.model); !strings.Contains(title, "shrunk from ") {
		t.Errorf("title %q", title)
	}
	s.p.file = jobs.FileErr
	s.advance(pollInterval)
	if title := s.p.title(s.model); strings.Contains(title, "shrunk") {
		t.Errorf("title of the other stream: %q", title)
	}
}

// TestEachStreamAndAttemptCanBeShown checks that both streams, and each attempt of a retried job,
// can be shown.
func TestEachStreamAndAttemptCanBeShown(t *testing.T) {
	src := sample()
	src.read = func(r runview.Read) (*runview.Piece, error) {
		text := fmt.Sprintf("%s of %s\n", r.File, r.Attempt)
		return &runview.Piece{Data: []byte(text), Size: int64(len(text)), Over: true}, nil
	}
	m := newScreen(t, src, 80, 24)
	m.openOutput(50120) // three tries
	p := m.extra.(*outputPane)
	refresh(t, m)
	see := func(want, keys string) {
		t.Helper()
		press(t, m, keys)
		_, cmd := m.Update(clockTick{})
		runCommands(t, m, cmd)
		equal(t, strings.TrimRight(plainText(strings.Join(p.draw(m, 60, 5, true), "\n")), " "), want, "%q", keys)
	}
	see("out of 50120.3", "")
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

// TestTheOutputUnderTheListFollowsTheCursor checks that the output under the list follows the
// cursor, and that it reads only after the cursor has rested.
func TestTheOutputUnderTheListFollowsTheCursor(t *testing.T) {
	f := &fakeFile{data: numberedLines(5)}
	src := sample()
	src.read = f.read
	m := newScreen(t, src, 160, 48)
	under := m.cursorOutput.(*outputPane)
	now := noon
	m.now = func() time.Time { return now }
	wake := func(d time.Duration) {
		now = now.Add(d)
		_, cmd := m.Update(readDue{pane: under, at: under.timerAt})
		runCommands(t, m, cmd)
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
	press(t, m, "g j")
	wake(outputDelay)
	wake(outputDelay)
	r, ok := m.jobs.currentJob(m)
	if !ok || len(f.reads) == 0 || f.reads[len(f.reads)-1].Attempt.Job != r.ID {
		t.Errorf("the cursor is on %d, reads are %v", r.ID, f.reads)
	}
	checkContains(t, under.title(m), "following", "the title")
}

// TestAReadOfSomethingElseIsGivenUp checks that a hanging read does not block the output of another
// job.
func TestAReadOfSomethingElseIsGivenUp(t *testing.T) {
	s := showOutput(t, &fakeFile{data: numberedLines(3)}, 80, 24)
	s.advance(pollInterval)
	s.now = s.now.Add(pollInterval)
	s.model.readVisibleOutput() // in progress: its answer has not arrived
	serial := s.p.readSerial
	if !s.p.isReading {
		t.Fatal("no read is under way")
	}
	s.p.file = jobs.FileErr
	s.model.readVisibleOutput()
	if s.p.readSerial == serial {
		t.Error("an answer to the old read would be taken for the new file")
	}
	s.model.Update(pieceRead{pane: s.p, serial: serial, piece: &runview.Piece{Data: []byte("of stdout"), Size: 9}})
	if strings.Contains(strings.Join(s.lines(), ""), "of stdout") {
		t.Error("it was")
	}
}

var colors = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// checkColored checks that a row of output sends only text and colors to a terminal, resets its
// colors at the end of the row, and has as many cells as without colors.
func checkColored(t *testing.T, m *model, b []byte) {
	t.Helper()
	l := m.coloredRow(b)
	text := colors.ReplaceAllString(l, "")
	if strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("%q lets control characters through: %q", b, l)
	}
	if strings.Contains(l, "\x1b") && !strings.HasSuffix(l, resetSGR) {
		t.Errorf("the colors of %q go on after it: %q", b, l)
	}
	all := width(m.cleanRow(b))
	equal(t, width(l), all, "cells of %q with colors", b)
	for n := range min(all, 20) {
		equal(t, width(dropCells(l, n)), all-n, "cells of %q without the first %d", b, n)
	}
	for _, part := range hardWrap(l, 7) {
		if width(part) > 7 || strings.Contains(part, "\x1b") && !strings.HasSuffix(part, resetSGR) ||
			strings.ContainsFunc(colors.ReplaceAllString(part, ""), unicode.IsControl) {
			t.Errorf("a wrapped piece of %q is %q", b, part)
		}
	}
}

// FuzzColoredOutput checks any output with checkColored.
func FuzzColoredOutput(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[1;31mred\x1b[0m and\tmore", "\x1b[31", "\x1b[>4;2mkeys",
		"\x1b]52;c;aGk=\x07", "\x1b[2J\x1b[?1049h\x1b[38:2::1:2:3mrgb",
		"日本\x1b[32m語のログ", "e\u0301\x1b[7m\u0301x\x9b31m", "\x1b[m\x1b[0;1mx\x1b[m", "\x1b[\x1b[31mm",
		"\u200b\x1b[31m\u202eabc"} {
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

// TestOutputHasItsColors checks that output keeps its colors and no other escape sequence, and that
// a line does not color the next one.
func TestOutputHasItsColors(t *testing.T) {
	s := showOutput(t, &fakeFile{
		data: []byte("\x1b[31mred goes on\nplain\x1b]52;c;aGk=\x07\x1b[2J\n\x1b[1;32mgreen\x1b[0m\n"),
		over: true,
	}, 80, 24)
	var rows []string
	for row := range strings.SplitSeq(redraw(s.model), "\n") {
		if strings.Contains(row, "red goes on") || strings.Contains(row, "plain") || strings.Contains(row, "green") {
			rows = append(rows, strings.TrimRight(row, " "))
		}
	}
	if want := []string{"\x1b[31mred goes on\x1b[m", "plain␛]52;c;aGk=␇",
		"\x1b[1;32mgreen\x1b[0m\x1b[m"}; strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("the rows are %q, not %q", rows, want)
	}
	s.search("3")
	checkContains(t, redraw(s.model), "\x1b[31mred goes on\x1b[m",
		"a search must not find its text in the codes of colors")
}

// TestLongLinesScrollSideways checks that long lines scroll sideways by half a screen, and that
// half of a wide character becomes a blank.
func TestLongLinesScrollSideways(t *testing.T) {
	line := strings.Repeat("0123456789", 12)
	s := showOutput(t, &fakeFile{data: []byte(line + "\n\x1b[33m" + "a" + strings.Repeat("語", 60) + "\nshort\n"),
		over: true}, 80, 24)
	shows(t, s.model, line[:79]+"…")
	s.press("right")
	shows(t, s.model, "\n"+line[40:120]+"\n", "from column 41", "\n "+strings.Repeat("語", 39))
	s.press("right right right") // stops at the longest line
	shows(t, s.model, "from column 121")
	s.press("left left left left")
	shows(t, s.model, line[:79]+"…", "a語")
	hides(t, s.model, "from column")
	s.press("W right")
	hides(t, s.model, "from column")
}
