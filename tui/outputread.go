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

const (
	// pollEvery applies to an attempt that may still write. The interval is up to four times as
	// long if the attempt prints nothing.
	pollEvery = 500 * time.Millisecond
	// How long the cursor must rest before the output of its job is read.
	settle      = 200 * time.Millisecond
	readTimeout = 20 * time.Second
	maxRetry    = 10 * time.Second // between reads that fail
)

// pieceRead is the result of a read.
type pieceRead struct {
	pane   *outputPane
	serial int
	ask    runview.Read
	piece  *runview.Piece
	err    error
}

// readDue is the message that a read may begin.
type readDue struct {
	pane *outputPane
	at   time.Time
}

// reading returns the command that the visible output needs now: a read, or a timer for the next
// one. Panes that are not visible read nothing.
func (m *model) reading() tea.Cmd {
	for _, x := range m.placed {
		if p, ok := x.pane.(*outputPane); ok {
			return p.startRead(m)
		}
	}
	return nil
}

// startRead starts the next read if one is needed and none is in progress.
func (p *outputPane) startRead(m *model) tea.Cmd {
	p.chooseFile(m)
	if p.busy || p.shown.id.N == 0 {
		return nil
	}
	ask, ok := p.next()
	if !ok {
		return nil
	}
	if wait := p.due.Sub(m.now()); wait > 0 {
		if at := p.due; p.timer.IsZero() || at.Before(p.timer) {
			p.timer = at
			return tea.Tick(wait, func(time.Time) tea.Msg { return readDue{p, at} })
		}
		return nil
	}
	p.busy = true
	p.serial++
	src, serial := m.src, p.serial
	ctx, drop := context.WithTimeout(context.Background(), readTimeout)
	p.drop = drop
	return func() tea.Msg {
		defer drop()
		piece, err := src.Read(ctx, ask)
		return pieceRead{p, serial, ask, piece, err}
	}
}

// chooseFile determines which file to show, and starts again if it has changed.
func (p *outputPane) chooseFile(m *model) {
	if !p.fixed {
		r, _ := m.panes[m.tab].current(m)
		if r.ID != p.job {
			p.job, p.pick, p.file, p.chosen, p.noStdout = r.ID, 0, jobs.FileOut, false, false
		}
		p.row = r
	}
	if d := m.snap; d != nil && d.Detail != nil && d.Detail.Row.ID == p.job {
		p.row = d.Detail.Row
	}
	want := source{file: p.file}
	if want.id = (jobs.AttemptID{Job: p.job, N: p.row.Attempt}); p.pick > 0 {
		want.id.N = p.pick
	}
	if want == p.shown {
		return
	}
	if p.endSearch(); !p.fixed && want.id.Job != p.shown.id.Job {
		p.due = m.now().Add(settle)
	} else {
		p.due = time.Time{}
	}
	p.shown = want
	p.text, p.read, p.err, p.fails = excerpt{}, false, nil, 0
	p.serial++ // a read in progress belongs to another file
	if p.drop != nil {
		p.drop()
	}
	p.follow, p.target, p.owe, p.lead, p.left = true, -1, 0, 0, 0
	p.hit, p.missed, p.silent = -1, "", 0
	m.frame = ""
}

// next returns the next read. It returns false if none is needed.
func (p *outputPane) next() (runview.Read, bool) {
	ask := runview.Read{Attempt: p.shown.id, File: p.shown.file, Limit: pieceSize}
	e := &p.text
	switch {
	case p.search != nil:
		ask.Offset, ask.Limit = p.search.next()
	case !p.read && p.target < 0:
		ask.Offset = -pieceSize
	case !p.read:
		ask.Offset = max(0, p.target-pieceSize/2)
	case p.owe < 0 && e.from > 0:
		ask.Offset = max(0, e.from-pieceSize)
		ask.Limit = int(e.from - ask.Offset)
	case p.owe > 0 && e.end() < e.size:
		ask.Offset = e.end()
	case !p.follow || e.over && e.end() >= e.size:
		return ask, false
	case e.size-e.end() > pieceSize: // the job writes faster than anyone can read
		ask.Offset = -pieceSize
	default:
		ask.Offset = e.end()
	}
	return ask, true
}

func (d readDue) apply(*model) tea.Cmd {
	if d.at.Equal(d.pane.timer) {
		d.pane.timer = time.Time{}
	}
	return nil
}

// news reports whether the piece changes the pane. It does not if the followed job has printed
// nothing more.
func (r pieceRead) news() bool {
	p := r.pane
	if r.serial != p.serial {
		return false
	}
	e := &p.text
	silent := r.err == nil && len(r.piece.Data) == 0 && r.piece.Size == e.size && r.piece.Over == e.over
	return !silent || !p.read || p.err != nil || p.search != nil || p.owe != 0
}

// apply handles a piece. As after every message, the next read is determined afterwards.
func (r pieceRead) apply(m *model) tea.Cmd {
	p := r.pane
	p.busy, p.drop = false, nil
	if r.serial != p.serial {
		return nil
	}
	if r.err != nil {
		p.err = r.err
		p.fails = min(p.fails+1, 10)
		p.due = m.now().Add(min(maxRetry, pollEvery<<p.fails))
		return nil
	}
	p.err, p.fails, p.due = nil, 0, time.Time{}
	if p.search != nil {
		return p.searched(m, r.ask, r.piece)
	}
	p.addPiece(m, r.ask, r.piece)
	return nil
}

// addPiece adds a piece to the excerpt, and completes the moves that waited for it.
func (p *outputPane) addPiece(m *model, ask runview.Read, piece *runview.Piece) {
	e := &p.text
	// The job has truncated its output, so the excerpt is out of date.
	if p.read && piece.Size < e.end() {
		p.text, p.read = excerpt{size: piece.Size}, false
		p.follow, p.target, p.owe = true, -1, 0
		p.due = m.now().Add(pollEvery)
		return
	}
	fresh := len(piece.Data) > 0
	pending := p.owe < 0 && ask.Offset < e.from || p.owe > 0 && ask.Offset == e.end()
	e.size, e.over = piece.Size, piece.Over
	if e.over && e.size == 0 && p.file == jobs.FileOut && !p.chosen && p.row.Cause != "" {
		p.file, p.noStdout = jobs.FileErr, true // stderr explains the failure
		return
	}
	if first := !p.read; first || fresh {
		p.read = true
		e.add(piece.Offset, piece.Data)
		if first && p.target >= 0 {
			p.top = place{offset: e.at(e.find(p.target))}
			p.target = -1
			lead := p.lead
			p.lead = 0
			p.move(m, -lead)
		}
	}
	if p.silent++; fresh {
		p.silent = 0
	}
	if p.follow && !(e.over && p.end()) && (p.end() || len(piece.Data) == ask.Limit || !fresh) {
		p.due = m.now().Add(pollEvery * time.Duration(1+min(3, p.silent/8)))
	}
	if pending {
		by := p.owe
		p.owe = 0
		if p.chain++; fresh && p.chain < maxChain {
			p.move(m, by)
		}
	}
}

// maxChain bounds the number of pieces read for one key, because none of them may contain a line
// end.
const maxChain = 16

// at returns the offset in the file at which a row begins.
func (e *excerpt) at(i int) int64 {
	if i < 0 || i >= len(e.rows) {
		return e.from
	}
	return e.from + int64(e.rows[i].at)
}

// searchPiece is the size of one read of a search. Only one such piece is in memory.
const searchPiece = 256 << 10

// search reads piece after piece, up or down, until the text is found or the file ends.
type search struct {
	find  string
	up    bool
	at    int64 // everything before it has been searched or, upward, everything after it
	limit int   // of the next read; smaller if the source returns less
	begun int64 // where the search began
}

func (h *search) next() (offset int64, limit int) {
	if h.up {
		offset = max(0, h.at-int64(h.limit))
		return offset, int(h.at - offset)
	}
	return h.at, h.limit
}

// progress describes the progress of the search, for the title.
func (h *search) progress(e *excerpt) string {
	whole, done := e.size-h.begun, h.at-h.begun
	if h.up {
		whole, done = h.begun, h.begun-h.at
	}
	s := "searching"
	if whole > 0 {
		s += fmt.Sprintf(" %d%% of %s", min(100, max(0, done)*100/whole), formatSize(whole))
	}
	return s + ", esc ends it"
}

// askSearch asks for the text to search. The search goes upward from the end of a file, and
// downward from elsewhere; n continues in that direction.
func (p *outputPane) askSearch(m *model) tea.Cmd {
	m.modal = &input{prompt: "/", past: &m.searched, done: func(m *model, text string) (tea.Cmd, error) {
		if text == "" {
			return nil, nil
		}
		p.find, p.up, p.hit = text, p.follow, -1
		from := p.top.offset
		if p.up {
			from = max(p.text.size, p.text.end())
		}
		p.begin(p.up, from)
		return nil, nil
	}}
	return nil
}

// again continues the search, or searches in the opposite direction.
func (p *outputPane) again(back bool) {
	up := p.up != back
	from := p.hit + 1
	switch {
	case p.hit < 0 && up:
		from = max(p.text.size, p.text.end())
	case p.hit < 0:
		from = p.top.offset
	case up:
		from = p.hit + int64(len(p.find)) - 1
	}
	p.begin(up, from)
}

func (p *outputPane) begin(up bool, from int64) {
	if up && from <= 0 {
		p.missed = "above"
		return
	}
	p.serial++ // a read in progress is for something else
	p.search = &search{find: p.find, up: up, at: from, begun: from, limit: searchPiece}
	p.missed = ""
	p.readSoon()
}

// endSearch cancels the search.
func (p *outputPane) endSearch() {
	if p.search != nil {
		p.search = nil
		p.serial++
	}
}

// searched searches a piece.
func (p *outputPane) searched(m *model, ask runview.Read, piece *runview.Piece) tea.Cmd {
	h := p.search
	p.text.size, p.text.over = max(p.text.size, piece.Size), piece.Over
	data, overlap := piece.Data, int64(len(h.find)-1)
	end := piece.Offset + int64(len(data))
	switch {
	case len(data) == 0: // the end, or the file has shrunk
		return p.endWithoutMatch(m)
	// The source returned less than requested.
	case h.up && end < h.at && int64(len(data)) < int64(ask.Limit):
		h.limit = len(data)
		return nil
	}
	index := strings.Index
	if h.up {
		index = strings.LastIndex
	}
	if i, _ := matcher(h.find, index)(string(data)); i >= 0 {
		p.hit = piece.Offset + int64(i)
		line := p.hit - int64(i-(bytes.LastIndexByte(data[:i], '\n')+1))
		p.endSearch()
		p.reveal(m, line)
		return nil
	}
	switch {
	case h.up && piece.Offset == 0, !h.up && end >= piece.Size:
		return p.endWithoutMatch(m)
	case h.up:
		h.at = piece.Offset + overlap
		if h.at >= end { // shorter than the search text
			return p.endWithoutMatch(m)
		}
	default:
		h.at = max(end-overlap, piece.Offset+1)
	}
	return nil
}

// endWithoutMatch ends a search without a match and shows a message.
func (p *outputPane) endWithoutMatch(m *model) tea.Cmd {
	p.missed = "below"
	if p.search.up {
		p.missed = "above"
	}
	p.endSearch()
	p.due = m.now().Add(pollEvery)
	return nil
}

// reveal shows the row at an offset, with some rows before it.
func (p *outputPane) reveal(m *model, offset int64) {
	p.show(offset)
	if p.read {
		p.top.offset = p.text.at(p.text.find(offset))
		p.move(m, -p.h/3)
		return
	}
	p.lead = p.h / 3
}

// matcher returns a function that finds a text with index (strings.Index or strings.LastIndex), and
// the length of the match. It ignores case unless the text has a capital letter.
func matcher(find string, index func(s, sub string) int) func(string) (int, int) {
	if asciiLower(find) != find {
		return func(s string) (int, int) { return index(s, find), len(find) }
	}
	return func(s string) (int, int) { return index(asciiLower(s), find), len(find) }
}

// asciiLower converts A to Z to lowercase. Every byte keeps its position.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// readSoon makes the next read start immediately, unless the last one has failed.
func (p *outputPane) readSoon() {
	if p.err == nil {
		p.due = time.Time{}
	}
}
