package tui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// outputPane follows the output of a job, one of its two streams. It keeps only an excerpt of the
// file and has at most one read in progress (outputread.go).
type outputPane struct {
	noPane
	stays         bool // opened for one job; otherwise it follows the cursor of the list
	job           jobs.ID
	row           runview.Row // newest known row of the job
	chosenAttempt int         // its number; 0: the newest
	file          jobs.File
	streamChosen  bool // the user has chosen the stream
	noStdout      bool // the job failed and printed nothing on stdout, so its stderr is shown

	source    outputFile // file of the excerpt
	excerpt   excerpt
	shrunk    int64 // size before the job truncated the file; 0: it did not
	isRead    bool  // the excerpt has been read
	err       error
	numFails  int // number of consecutive failed reads
	numSilent int // number of consecutive reads without new output

	isReading  bool
	cancelRead context.CancelFunc
	readSerial int       // number of the newest read that counts
	nextReadAt time.Time // when the next read may begin
	timerAt    time.Time // when the timer for nextReadAt fires; zero: no timer is set

	w, h         int
	wrap         bool
	leftCells    int // number of cells of each line to the left of the screen
	follow       bool
	top          rowPart // first visible line, unless the pane follows the end
	pendingRows  int     // rows still to move when the next piece has arrived; below 0: up, above 0: down
	targetOffset int64   // offset to show next; -1: the end
	numPieces    int     // number of pieces read so far for one key
	rowsBefore   int     // number of rows to show before the target

	searchText  string // the text of the last search; "": none
	searchUp    bool
	matchOffset int64   // offset of the match; -1: none yet
	noMatch     string  // no further match "above" or "below"
	search      *search // in progress; nil: none
}

type outputFile struct {
	id   jobs.AttemptID
	file jobs.File
}

// rowPart is a row of the excerpt: its offset in the file and, if it is wrapped, the part of it.
type rowPart struct {
	offset int64
	part   int
}

func newOutputPane(id jobs.ID, fixed bool) *outputPane {
	return &outputPane{job: id, stays: fixed, file: jobs.FileOut, follow: true, targetOffset: -1}
}

func (m *model) openOutput(id jobs.ID) tea.Cmd {
	p := newOutputPane(id, true)
	if r, ok := m.currentJob(); ok && r.ID == id {
		p.row = r
	}
	m.showBelow(p)
	return nil
}

func (p *outputPane) title(m *model) string {
	switch {
	case p.job == 0:
		return "Output"
	case p.source.id.N == 0:
		return fmt.Sprintf("%d output", p.job)
	}
	name := streamName(p.file)
	s := fmt.Sprintf("%d %s", p.job, name)
	if n := p.row.Attempt; n > 1 || p.chosenAttempt > 0 {
		s = fmt.Sprintf("%d.%d %s %s attempt %d of %d", p.job, p.source.id.N, name, m.glyphs.dot, p.source.id.N,
			max(n, p.source.id.N))
	}
	s += text.If(p.leftCells > 0 && !p.wrap, " "+m.glyphs.dot+" from column "+text.Thousands(p.leftCells+1))
	s += " " + m.glyphs.dot + " " + p.positionText()
	s += text.If(p.shrunk > 0, " "+m.glyphs.dot+" shrunk from "+text.Size(p.shrunk)+": the job truncated it")
	if p.stays {
		s += m.otherJobSuffix(p.job)
	}
	return s
}

// positionText describes which part of the file is shown, in a word or two.
func (p *outputPane) positionText() string {
	switch {
	case p.search != nil:
		return p.search.progress(&p.excerpt)
	case p.err != nil:
		return "cannot be read now"
	case p.noMatch != "":
		return fmt.Sprintf("nothing %s has %q", p.noMatch, prefix(p.searchText, 20))
	case !p.isRead:
		return "reading"
	case !p.follow && p.excerpt.size > 0:
		return fmt.Sprintf("%d%% of %s", p.visibleEnd()*100/p.excerpt.size, text.Size(p.excerpt.size))
	case p.excerpt.complete:
		return "ended, " + text.Size(p.excerpt.size)
	}
	return "following"
}

func (p *outputPane) addToQuery(m *model, ask *runview.Query) { ask.Focus = p.job }

func (p *outputPane) hasJobs() bool { return true }

func (p *outputPane) currentJob(*model) (runview.Row, bool) {
	return p.row, p.job != 0 && p.row.ID == p.job
}

func (p *outputPane) keys() []binding {
	cuts := func(*model) bool { return !p.wrap }
	found := func(*model) bool { return p.searchText != "" }
	several := func(*model) bool { return p.row.Attempt > 1 || p.chosenAttempt > 0 }
	hasJob := func(*model) bool { return p.job != 0 }
	searches := func(*model) bool { return p.search != nil }
	move := func(m *model, by int) {
		p.numPieces = 0
		switch by {
		case -maxMove:
			p.jumpTo(0)
		case maxMove:
			p.jumpTo(-1)
		default:
			p.move(m, by)
		}
	}
	return append(withGroup("Output",
		key("follow", "follow", "follow the end, or stop following",
			func(m *model) tea.Cmd { p.toggleFollow(m); return nil }),
		key("find", "search", "search", p.askSearch),
		key("next-match", "", "the next match of the search", screenAction(func() { p.searchAgain(false) })).
			onlyIf(found).
			orSay("there is no search yet"),
		key("previous-match", "", "the previous match", screenAction(func() { p.searchAgain(true) })).onlyIf(found).
			orSay("there is no search yet"),
		key("wrap", "wrap", "wrap long lines, or cut them", screenAction(func() { p.wrap, p.top.part = !p.wrap, 0 })),
		key("right", "", "to the right, where lines are longer than the screen", p.scrollSideways(1)).onlyIf(cuts).
			orSay("nothing to scroll to: the lines are wrapped"),
		key("left", "", "back to the left", p.scrollSideways(-1)).onlyIf(cuts),
		key("stream", streamName(otherStream(p.file)), "the other stream: stdout, stderr",
			screenAction(func() { p.file, p.streamChosen = otherStream(p.file), true })),
		shellKey(),
		key("previous-attempt", "", "output of the attempt before", screenAction(func() { p.nextAttempt(-1) })).
			onlyIf(several).
			orSay("the job has no other attempt"),
		key("next-attempt", "", "output of the attempt after", screenAction(func() { p.nextAttempt(1) })).
			onlyIf(several).
			orSay("the job has no other attempt"),
		key("open", "", "details of the job", func(m *model) tea.Cmd { return m.openDetail(p.job) }).onlyIf(hasJob),
		key("back", "", "end the search", screenAction(p.endSearch)).onlyIf(searches),
	), moveKeys(func() int { return p.h - 1 }, move)...)
}

func streamName(f jobs.File) string {
	if f == jobs.FileErr {
		return "stderr"
	}
	return "stdout"
}

func otherStream(f jobs.File) jobs.File {
	if f == jobs.FileErr {
		return jobs.FileOut
	}
	return jobs.FileErr
}

// nextAttempt shows another attempt. After the newest one, it follows the newest attempt again.
func (p *outputPane) nextAttempt(by int) {
	n := max(1, cmp.Or(p.chosenAttempt, p.row.Attempt)+by)
	if n >= p.row.Attempt {
		n = 0
	}
	p.chosenAttempt = n
}

// zoom gives the pane with the focus the whole screen, or undoes that. The list of jobs and the
// pane that was opened from it are zoomed separately.
func (m *model) zoom() tea.Cmd {
	if !m.lowerFocused {
		m.viewZoomed = !m.viewZoomed
		return nil
	}
	if m.extra == nil { // the output that follows the cursor
		if r, ok := m.currentJob(); ok {
			m.openOutput(r.ID)
		}
	}
	m.extraZoomed = !m.extraZoomed && m.extra != nil
	return nil
}

// jumpTo shows the start of the file or, with -1, its end. It ends a search, because its result
// would move away again.
func (p *outputPane) jumpTo(offset int64) {
	p.endSearch()
	p.showOffset(offset)
}

// toggleFollow starts or stops following the end of the file.
func (p *outputPane) toggleFollow(m *model) {
	if p.follow {
		p.stopFollowing(m)
		return
	}
	p.showOffset(-1)
}

// draw draws the rows from top, or the last ones.
func (p *outputPane) draw(m *model, w, h int, focused bool) []string {
	p.w, p.h = w, h
	if words := p.placeholder(m); words != "" {
		return firstLines(hardWrap(words, w), h)
	}
	top := p.top
	if p.follow {
		top = p.topAtEnd(m)
	}
	return p.linesFrom(m, top, h)
}

// placeholder returns the text that replaces the output if there is none.
func (p *outputPane) placeholder(m *model) string {
	name := streamName(p.file)
	e := &p.excerpt
	switch {
	case p.job == 0:
		return styleFaint.Render("no job")
	case p.source.id.N == 0:
		s := "It has not started yet."
		if m.snap != nil && m.snap.Detail != nil && m.snap.Detail.Row.ID == p.job && m.snap.Detail.Why != "" {
			s = m.clean(m.snap.Detail.Why)
		}
		return s
	case p.err != nil && len(e.rows) == 0:
		return "The output cannot be read now: " + m.clean(p.err.Error())
	case !p.isRead && len(e.rows) == 0:
		return styleFaint.Render("reading " + m.glyphs.ellipsis)
	case len(e.rows) == 0 && e.complete && p.noStdout && p.file == jobs.FileErr:
		return styleFaint.Render("It printed nothing, neither on stdout nor on stderr.")
	case len(e.rows) == 0 && e.complete:
		return styleFaint.Render("It printed nothing on " + name + ".")
	case len(e.rows) == 0:
		return styleFaint.Render("It has printed nothing on " + name + " so far.")
	}
	return ""
}

// screenLines returns the lines of the screen that a row takes.
func (p *outputPane) screenLines(m *model, i int) []string {
	b := p.excerpt.visibleBytes(i)
	if most := 8*(p.leftCells+p.w) + 64; !p.wrap && len(b) > most && bytes.IndexByte(b[:most], 0x1b) < 0 {
		b = b[:most]
	}
	l := m.coloredRow(b)
	if p.searchText != "" && strings.Contains(l, "\x1b") { // matches are more visible without colors
		if plain := m.cleanRow(b); p.markMatches(plain) != plain {
			l = plain
		}
	}
	if p.wrap {
		return hardWrap(l, p.w)
	}
	return []string{m.fit(dropCells(l, p.leftCells), p.w)}
}

// scrollSideways scrolls long lines by half the width, at most to the end of the longest visible
// line.
func (p *outputPane) scrollSideways(way int) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		first, most := p.excerpt.rowAt(p.top.offset), 0
		if p.follow {
			first = max(0, len(p.excerpt.rows)-p.h)
		}
		for i := first; i < min(len(p.excerpt.rows), first+p.h); i++ {
			most = max(most, width(m.cleanRow(p.excerpt.visibleBytes(i))))
		}
		if to := p.leftCells + way*max(1, p.w/2); way < 0 || to < most {
			p.leftCells = max(0, to)
		}
		return nil
	}
}

// linesFrom returns the h lines that begin with a rowPart.
func (p *outputPane) linesFrom(m *model, at rowPart, h int) []string {
	var out []string
	sub := at.part
	for i := p.excerpt.rowAt(at.offset); i < len(p.excerpt.rows) && len(out) < h; i++ {
		parts := p.screenLines(m, i)
		out = append(out, text.Each(parts[min(sub, len(parts)-1):], p.markMatches)...)
		sub = 0
	}
	return firstLines(out, h)
}

func (p *outputPane) markMatches(l string) string {
	if p.searchText == "" || strings.Contains(l, "\x1b") {
		return l
	}
	var out strings.Builder
	fold := matcher(p.searchText, strings.Index)
	for {
		i, n := fold(l)
		if i < 0 || n == 0 {
			out.WriteString(l)
			return out.String()
		}
		out.WriteString(l[:i] + styleCursor.Render(l[i:i+n]))
		l = l[i+n:]
	}
}

// move scrolls by lines of the screen. At the end, it follows the output again.
func (p *outputPane) move(m *model, by int) {
	if !p.isRead || len(p.excerpt.rows) == 0 {
		return
	}
	if p.follow {
		if by >= 0 {
			return
		}
		p.stopFollowing(m)
	}
	e := &p.excerpt
	i := e.rowAt(p.top.offset)
	sub := min(p.top.part, len(p.screenLines(m, i))-1)
	for ; by < 0; by++ {
		switch {
		case sub > 0:
			sub--
		case i > 1 || i == 1 && e.from == 0: // the first row may be a part of a line
			i--
			sub = len(p.screenLines(m, i)) - 1
		default:
			if e.from > 0 {
				p.pendingRows = by // after the previous piece has arrived
			}
			by = -1
		}
	}
	if by > 0 {
		// room is the number of lines before the end becomes visible.
		room := len(p.linesFrom(m, rowPart{e.offsetOf(i), sub}, p.h+by+1)) - p.h
		if room <= by {
			if p.reachesEnd() {
				p.follow = true
			} else {
				p.pendingRows = by - max(0, room)
			}
		}
		for by = min(by, room); by > 0; by-- {
			if sub+1 < len(p.screenLines(m, i)) {
				sub++
			} else {
				i, sub = i+1, 0
			}
		}
	}
	p.top, p.noMatch = rowPart{e.offsetOf(i), sub}, ""
	p.readSoon()
}

// stopFollowing stops following and keeps the visible lines.
func (p *outputPane) stopFollowing(m *model) { p.follow, p.top = false, p.topAtEnd(m) }

// topAtEnd returns the first visible line if the last one is the end of the excerpt.
func (p *outputPane) topAtEnd(m *model) (top rowPart) {
	left := p.h
	for i := len(p.excerpt.rows) - 1; i >= 0 && left > 0; i-- {
		n := len(p.screenLines(m, i))
		top = rowPart{offset: p.excerpt.offsetOf(i), part: max(0, n-left)}
		left -= n
	}
	return top
}

// reachesEnd reports whether the excerpt reaches the known end of the file.
func (p *outputPane) reachesEnd() bool { return p.excerpt.endOffset() >= p.excerpt.size }

// visibleEnd returns the offset after the visible lines.
func (p *outputPane) visibleEnd() int64 {
	e := &p.excerpt
	i := e.rowAt(p.top.offset) + p.h
	if i >= len(e.rows) {
		return e.endOffset()
	}
	return e.offsetOf(i)
}

// showOffset moves to an offset in the file. -1 is the end, which it then follows.
func (p *outputPane) showOffset(offset int64) {
	e := &p.excerpt
	p.pendingRows = 0
	switch {
	case offset < 0:
		p.follow = true
		if !p.reachesEnd() {
			p.readFrom(-1)
		}
	case p.isRead && offset >= e.from && offset <= e.endOffset():
		p.follow, p.top = false, rowPart{offset: offset}
	default:
		p.follow = false
		p.readFrom(offset)
	}
	p.noMatch = ""
	p.readSoon()
}

// readFrom starts reading another excerpt. The old one stays on the screen until then.
func (p *outputPane) readFrom(offset int64) {
	p.isRead, p.targetOffset = false, offset
	p.readSerial++ // a read in progress belongs to the old one
}

func firstLines(lines []string, n int) []string { return lines[:min(len(lines), max(0, n))] }
