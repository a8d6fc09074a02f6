package tui

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs"
	"dcs-tui/jobs/runview"
)

// outputPane follows the output of a job, one of its two streams. It keeps only an excerpt of the
// file and has at most one read in progress (outputread.go).
type outputPane struct {
	noPane
	fixed    bool // opened for one job; otherwise it follows the cursor of the list
	job      jobs.ID
	row      runview.Row // newest known row of the job
	pick     int         // number of the chosen attempt; 0: the newest
	file     jobs.File
	chosen   bool // the user has chosen the stream
	noStdout bool // the job failed and printed nothing on stdout, so its stderr is shown

	shown  source // file of the excerpt
	text   excerpt
	read   bool // the excerpt has been read
	err    error
	fails  int // consecutive failed reads
	silent int // consecutive reads without new output

	busy   bool               // a read is in progress
	drop   context.CancelFunc // cancels the read in progress
	serial int                // number of the newest read that counts
	due    time.Time          // when the next read may begin
	timer  time.Time          // when the timer for due fires; zero: no timer is set

	w, h   int
	wrap   bool
	left   int // number of cells of each line to the left of the screen
	follow bool
	top    place // first visible line, unless the pane follows the end
	owe    int   // rows still to move when the next piece has arrived; below 0: up, above 0: down
	target int64 // offset to show next; -1: the end
	chain  int   // pieces read so far for one key
	lead   int   // number of rows to show before the target

	find   string  // the text of the last search; "": none
	up     bool    // search upward
	hit    int64   // offset of the match; -1: none yet
	missed string  // no further match "above" or "below"
	search *search // the search in progress
}

// source is a file of an attempt.
type source struct {
	id   jobs.AttemptID
	file jobs.File
}

// place is a row of the excerpt: its offset in the file and, if it is wrapped, the part of it.
type place struct {
	offset int64
	sub    int
}

func newOutput(id jobs.ID, fixed bool) *outputPane {
	return &outputPane{job: id, fixed: fixed, file: jobs.FileOut, follow: true, target: -1}
}

// openOutput shows the output of a job.
func (m *model) openOutput(id jobs.ID) tea.Cmd {
	p := newOutput(id, true)
	if r, ok := m.job(); ok && r.ID == id {
		p.row = r
	}
	m.full = m.full && m.onExtra
	m.extra, m.onExtra = p, true
	return nil
}

func (p *outputPane) title(m *model) string {
	switch {
	case p.job == 0:
		return "Output"
	case p.shown.id.N == 0:
		return fmt.Sprintf("%d output", p.job)
	}
	name := streamName(p.file)
	s := fmt.Sprintf("%d %s", p.job, name)
	if n := p.row.Attempt; n > 1 || p.pick > 0 {
		s = fmt.Sprintf("%d.%d %s %s attempt %d of %d", p.job, p.shown.id.N, name, m.g.dot, p.shown.id.N, max(n, p.shown.id.N))
	}
	if p.left > 0 && !p.wrap {
		s += " " + m.g.dot + " from column " + jobs.Thousands(p.left+1)
	}
	if s += " " + m.g.dot + " " + p.position(); p.fixed {
		s += m.otherJobSuffix(p.job)
	}
	return s
}

// position describes which part of the file is shown, in a word or two.
func (p *outputPane) position() string {
	switch {
	case p.search != nil:
		return p.search.progress(&p.text)
	case p.err != nil:
		return "cannot be read now"
	case p.missed != "":
		return fmt.Sprintf("nothing %s has %q", p.missed, prefix(p.find, 20))
	case !p.read:
		return "reading"
	case !p.follow && p.text.size > 0:
		return fmt.Sprintf("%d%% of %s", p.seenUpTo()*100/p.text.size, fileSize(p.text.size))
	case p.text.over:
		return "ended, " + fileSize(p.text.size)
	}
	return "following"
}

func (p *outputPane) ask(m *model, ask *runview.Query) { ask.Focus = p.job }

func (p *outputPane) hasJobs() bool { return true }

func (p *outputPane) current(*model) (runview.Row, bool) {
	return p.row, p.job != 0 && p.row.ID == p.job
}

func (p *outputPane) keys() []binding {
	cuts := func(*model) bool { return !p.wrap }
	found := func(*model) bool { return p.find != "" }
	several := func(*model) bool { return p.row.Attempt > 1 || p.pick > 0 }
	hasJob := func(*model) bool { return p.job != 0 }
	searches := func(*model) bool { return p.search != nil }
	move := func(m *model, by int) {
		switch p.chain = 0; by {
		case -far:
			p.jumpTo(0)
		case far:
			p.jumpTo(-1)
		default:
			p.move(m, by)
		}
	}
	return append(grouped("Output",
		key("f", "follow", "follow the end, or stand still", func(m *model) tea.Cmd { p.toggle(m); return nil }),
		key("/", "search", "search", p.askSearch),
		key("n", "", "the next place that was searched for", quietly(func() { p.again(false) })).onlyIf(found),
		key("N", "", "the place before", quietly(func() { p.again(true) })).onlyIf(found),
		key("w", "wrap", "wrap long lines, or cut them", quietly(func() { p.wrap, p.top.sub = !p.wrap, 0 })),
		key("right", "", "to the right, where lines are longer than the screen", p.sideways(1)).onlyIf(cuts),
		key("left", "", "back to the left", p.sideways(-1)).onlyIf(cuts),
		key("o", streamName(other(p.file)), "the other stream: stdout, stderr", quietly(func() { p.file, p.chosen = other(p.file), true })),
		shellKey(),
		key("[", "", "output of the attempt before", quietly(func() { p.nextAttempt(-1) })).onlyIf(several),
		key("]", "", "output of the attempt after", quietly(func() { p.nextAttempt(1) })).onlyIf(several),
		key("enter", "", "details of the job", func(m *model) tea.Cmd { return m.openDetail(p.job) }).onlyIf(hasJob),
		key("esc", "", "end the search", quietly(p.endSearch)).onlyIf(searches),
	), moving(func() int { return p.h - 1 }, move)...)
}

// streamName returns the name of a stream for people.
func streamName(f jobs.File) string {
	if f == jobs.FileErr {
		return "stderr"
	}
	return "stdout"
}

func other(f jobs.File) jobs.File {
	if f == jobs.FileErr {
		return jobs.FileOut
	}
	return jobs.FileErr
}

// nextAttempt shows another attempt. After the newest one, it follows the newest attempt again.
func (p *outputPane) nextAttempt(by int) {
	n := p.pick
	if n == 0 {
		n = p.row.Attempt
	}
	if n = max(1, n+by); n >= p.row.Attempt {
		n = 0
	}
	p.pick = n
}

// zoom gives the pane with the focus the whole screen, or undoes that. The list of jobs and the
// pane that was opened from it are zoomed separately.
func (m *model) zoom() tea.Cmd {
	if !m.onExtra {
		m.alone = !m.alone
		return nil
	}
	if m.extra == nil { // the output that follows the cursor
		if r, ok := m.job(); ok {
			m.openOutput(r.ID)
		}
	}
	m.full = !m.full && m.extra != nil
	return nil
}

// jumpTo shows the start of the file or, with -1, its end. It ends a search, because its result
// would move away again.
func (p *outputPane) jumpTo(offset int64) {
	p.endSearch()
	p.show(offset)
}

// toggle starts or stops following the end of the file.
func (p *outputPane) toggle(m *model) {
	if p.follow {
		p.stopFollowing(m)
		return
	}
	p.show(-1)
}

// fileSize formats the size of a file. Small sizes have a unit.
func fileSize(n int64) string {
	if n < 1024 {
		return plural(int(n), "byte")
	}
	return formatSize(n)
}

// draw draws the rows from top, or the last ones.
func (p *outputPane) draw(m *model, w, h int, focused bool) []string {
	p.w, p.h = w, h
	if words := p.placeholder(m); words != "" {
		return limit(wrapped(words, w), h)
	}
	top := p.top
	if p.follow {
		top = p.bottom(m)
	}
	return p.from(m, top, h)
}

// placeholder returns the text that replaces the output if there is none.
func (p *outputPane) placeholder(m *model) string {
	name := streamName(p.file)
	e := &p.text
	switch {
	case p.job == 0:
		return styleFaint.Render("no job")
	case p.shown.id.N == 0:
		s := "It has not started yet."
		if m.snap != nil && m.snap.Detail != nil && m.snap.Detail.Row.ID == p.job && m.snap.Detail.Why != "" {
			s = m.clean(m.snap.Detail.Why)
		}
		return s
	case p.err != nil && len(e.rows) == 0:
		return "The output cannot be read now: " + m.clean(p.err.Error())
	case !p.read && len(e.rows) == 0:
		return styleFaint.Render("reading " + m.g.cut)
	case len(e.rows) == 0 && e.over && p.noStdout && p.file == jobs.FileErr:
		return styleFaint.Render("It printed nothing, neither on stdout nor on stderr.")
	case len(e.rows) == 0 && e.over:
		return styleFaint.Render("It printed nothing on " + name + ".")
	case len(e.rows) == 0:
		return styleFaint.Render("It has printed nothing on " + name + " so far.")
	}
	return ""
}

// parts returns the lines of the screen that a row takes.
func (p *outputPane) parts(m *model, i int) []string {
	b := p.text.bytesOf(i)
	if most := 8*(p.left+p.w) + 64; !p.wrap && len(b) > most && bytes.IndexByte(b[:most], 0x1b) < 0 {
		b = b[:most]
	}
	l := m.colored(b)
	if p.find != "" && strings.Contains(l, "\x1b") { // matches are more visible without colors
		if plain := m.line(b); p.mark(plain) != plain {
			l = plain
		}
	}
	if p.wrap {
		return wrapped(l, p.w)
	}
	return []string{m.fit(shifted(l, p.left), p.w)}
}

// sideways scrolls long lines by half the width, at most to the end of the longest visible line.
func (p *outputPane) sideways(way int) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		first, most := p.text.find(p.top.offset), 0
		if p.follow {
			first = max(0, len(p.text.rows)-p.h)
		}
		for i := first; i < min(len(p.text.rows), first+p.h); i++ {
			most = max(most, width(m.line(p.text.bytesOf(i))))
		}
		if to := p.left + way*max(1, p.w/2); way < 0 || to < most {
			p.left = max(0, to)
		}
		return nil
	}
}

// from returns the h lines that begin at a place.
func (p *outputPane) from(m *model, at place, h int) []string {
	var out []string
	sub := at.sub
	for i := p.text.find(at.offset); i < len(p.text.rows) && len(out) < h; i++ {
		parts := p.parts(m, i)
		for _, l := range parts[min(sub, len(parts)-1):] {
			out = append(out, p.mark(l))
		}
		sub = 0
	}
	return limit(out, h)
}

// mark highlights the matches of the search.
func (p *outputPane) mark(l string) string {
	if p.find == "" || strings.Contains(l, "\x1b") {
		return l
	}
	var out strings.Builder
	fold := matcher(p.find, strings.Index)
	for {
		i, n := fold(l)
		if i < 0 || n == 0 {
			out.WriteString(l)
			return out.String()
		}
		out.WriteString(l[:i] + styleHere.Render(l[i:i+n]))
		l = l[i+n:]
	}
}

// move scrolls by lines of the screen. At the end, it follows the output again.
func (p *outputPane) move(m *model, by int) {
	if !p.read || len(p.text.rows) == 0 {
		return
	}
	if p.follow {
		if by >= 0 {
			return
		}
		p.stopFollowing(m)
	}
	e := &p.text
	i := e.find(p.top.offset)
	sub := min(p.top.sub, len(p.parts(m, i))-1)
	for ; by < 0; by++ {
		switch {
		case sub > 0:
			sub--
		case i > 1 || i == 1 && e.from == 0: // the first row may be a part of a line
			i--
			sub = len(p.parts(m, i)) - 1
		default:
			if e.from > 0 {
				p.owe = by // after the previous piece has arrived
			}
			by = -1
		}
	}
	if by > 0 {
		// room is the number of lines before the end becomes visible.
		room := len(p.from(m, place{e.at(i), sub}, p.h+by+1)) - p.h
		if room <= by {
			if p.end() {
				p.follow = true
			} else {
				p.owe = by - max(0, room)
			}
		}
		for by = min(by, room); by > 0; by-- {
			if sub+1 < len(p.parts(m, i)) {
				sub++
			} else {
				i, sub = i+1, 0
			}
		}
	}
	p.top, p.missed = place{e.at(i), sub}, ""
	p.readSoon()
}

// stopFollowing stops following and keeps the visible lines.
func (p *outputPane) stopFollowing(m *model) { p.follow, p.top = false, p.bottom(m) }

// bottom returns the first visible line if the last one is the end of the excerpt.
func (p *outputPane) bottom(m *model) (top place) {
	left := p.h
	for i := len(p.text.rows) - 1; i >= 0 && left > 0; i-- {
		n := len(p.parts(m, i))
		top = place{offset: p.text.at(i), sub: max(0, n-left)}
		left -= n
	}
	return top
}

// end reports whether the excerpt reaches the known end of the file.
func (p *outputPane) end() bool { return p.text.end() >= p.text.size }

// seenUpTo returns the offset after the visible lines.
func (p *outputPane) seenUpTo() int64 {
	e := &p.text
	i := e.find(p.top.offset) + p.h
	if i >= len(e.rows) {
		return e.end()
	}
	return e.at(i)
}

// show moves to an offset in the file. -1 is the end, which it then follows.
func (p *outputPane) show(offset int64) {
	e := &p.text
	p.owe = 0
	switch {
	case offset < 0:
		p.follow = true
		if !p.end() {
			p.readFrom(-1)
		}
	case p.read && offset >= e.from && offset <= e.end():
		p.follow, p.top = false, place{offset: offset}
	default:
		p.follow = false
		p.readFrom(offset)
	}
	p.missed = ""
	p.readSoon()
}

// readFrom starts reading another excerpt. The old one stays on the screen until then.
func (p *outputPane) readFrom(offset int64) {
	p.read, p.target = false, offset
	p.serial++ // a read in progress belongs to the old one
}

func limit(lines []string, n int) []string { return lines[:min(len(lines), max(0, n))] }
