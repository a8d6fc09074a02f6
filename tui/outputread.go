package tui

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

const (
	// pollInterval applies to an attempt that may still write. The interval is up to four times as
	// long if the attempt prints nothing.
	pollInterval = 500 * time.Millisecond
	// How long the cursor must rest before the output of its job is read.
	outputDelay   = 200 * time.Millisecond
	readTimeout   = 20 * time.Second
	maxRetryDelay = 10 * time.Second // between reads that fail
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

// readVisibleOutput returns the command that the visible output needs now: a read, or a timer for
// the next one. Panes that are not visible read nothing.
func (m *model) readVisibleOutput() tea.Cmd {
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
	if p.isReading || p.source.id.N == 0 {
		return nil
	}
	ask, ok := p.nextRead()
	if !ok {
		return nil
	}
	if wait := p.nextReadAt.Sub(m.now()); wait > 0 {
		if at := p.nextReadAt; p.timerAt.IsZero() || at.Before(p.timerAt) {
			p.timerAt = at
			return tea.Tick(wait, func(time.Time) tea.Msg { return readDue{p, at} })
		}
		return nil
	}
	p.isReading = true
	p.readSerial++
	src, serial := m.src, p.readSerial
	ctx, drop := context.WithTimeout(context.Background(), readTimeout)
	p.cancelRead = drop
	return func() tea.Msg {
		defer drop()
		piece, err := src.Read(ctx, ask)
		return pieceRead{p, serial, ask, piece, err}
	}
}

// chooseFile determines which file to show, and starts again if it has changed.
func (p *outputPane) chooseFile(m *model) {
	if !p.stays {
		r, _ := m.panes[m.tab].currentJob(m)
		if r.ID != p.job {
			p.job, p.chosenAttempt, p.file, p.streamChosen, p.noStdout = r.ID, 0, jobs.FileOut, false, false
		}
		p.row = r
	}
	if d := m.snap; d != nil && d.Detail != nil && d.Detail.Row.ID == p.job {
		p.row = d.Detail.Row
	}
	want := outputFile{file: p.file}
	want.id = (jobs.AttemptID{Job: p.job, N: p.row.Attempt})
	if p.chosenAttempt > 0 {
		want.id.N = p.chosenAttempt
	}
	if want == p.source {
		return
	}
	p.endSearch()
	if !p.stays && want.id.Job != p.source.id.Job {
		p.nextReadAt = m.now().Add(outputDelay)
	} else {
		p.nextReadAt = time.Time{}
	}
	p.source = want
	p.excerpt, p.shrunk, p.isRead, p.err, p.numFails = excerpt{}, 0, false, nil, 0
	p.readSerial++ // a read in progress belongs to another file
	if p.cancelRead != nil {
		p.cancelRead()
	}
	p.follow, p.targetOffset, p.pendingRows, p.rowsBefore, p.leftCells = true, -1, 0, 0, 0
	p.matchOffset, p.noMatch, p.numSilent = -1, "", 0
	m.frame = ""
}

// nextRead returns the next read. It returns false if none is needed.
func (p *outputPane) nextRead() (runview.Read, bool) {
	ask := runview.Read{Attempt: p.source.id, File: p.source.file, Limit: pieceSize}
	e := &p.excerpt
	switch {
	case p.search != nil:
		ask.Offset, ask.Limit = p.search.next()
	case !p.isRead && p.targetOffset < 0:
		ask.Offset = -pieceSize
	case !p.isRead:
		ask.Offset = max(0, p.targetOffset-pieceSize/2)
	case p.pendingRows < 0 && e.from > 0:
		ask.Offset = max(0, e.from-pieceSize)
		ask.Limit = int(e.from - ask.Offset)
	case p.pendingRows > 0 && e.endOffset() < e.size:
		ask.Offset = e.endOffset()
	case !p.follow || e.complete && e.endOffset() >= e.size:
		return ask, false
	case e.size-e.endOffset() > pieceSize: // the job writes faster than anyone can read
		ask.Offset = -pieceSize
	default:
		ask.Offset = e.endOffset()
	}
	return ask, true
}

func (d readDue) apply(*model) tea.Cmd {
	if d.at.Equal(d.pane.timerAt) {
		d.pane.timerAt = time.Time{}
	}
	return nil
}

// changesPane reports whether the piece changes the pane. It does not if the followed job has
// printed nothing more.
func (r pieceRead) changesPane() bool {
	p := r.pane
	if r.serial != p.readSerial {
		return false
	}
	e := &p.excerpt
	silent := r.err == nil && len(r.piece.Data) == 0 && r.piece.Size == e.size && r.piece.Over == e.complete
	return !silent || !p.isRead || p.err != nil || p.search != nil || p.pendingRows != 0
}

// apply handles a piece. As after every message, the next read is determined afterwards.
func (r pieceRead) apply(m *model) tea.Cmd {
	p := r.pane
	p.isReading, p.cancelRead = false, nil
	if r.serial != p.readSerial {
		return nil
	}
	if r.err != nil {
		p.err = r.err
		p.numFails = min(p.numFails+1, 10)
		p.nextReadAt = m.now().Add(min(maxRetryDelay, pollInterval<<p.numFails))
		return nil
	}
	p.err, p.numFails, p.nextReadAt = nil, 0, time.Time{}
	if p.search != nil {
		return p.handleSearchPiece(m, r.ask, r.piece)
	}
	p.addPiece(m, r.ask, r.piece)
	return nil
}

// addPiece adds a piece to the excerpt, and completes the moves that waited for it.
func (p *outputPane) addPiece(m *model, ask runview.Read, piece *runview.Piece) {
	e := &p.excerpt
	before := max(e.size, e.endOffset())
	if piece.Size < before {
		p.shrunk = before
	}
	// The job has truncated its output, so the excerpt is out of date.
	if p.isRead && piece.Size < before {
		p.excerpt, p.isRead = excerpt{size: piece.Size}, false
		p.follow, p.targetOffset, p.pendingRows = true, -1, 0
		p.nextReadAt = m.now().Add(pollInterval)
		return
	}
	fresh := len(piece.Data) > 0
	pending := p.pendingRows < 0 && ask.Offset < e.from || p.pendingRows > 0 && ask.Offset == e.endOffset()
	e.size, e.complete = piece.Size, piece.Over
	if e.complete && e.size == 0 && p.file == jobs.FileOut && !p.streamChosen && p.row.Cause != "" {
		p.file, p.noStdout = jobs.FileErr, true // stderr explains the failure
		return
	}
	if first := !p.isRead; first || fresh {
		p.isRead = true
		e.add(piece.Offset, piece.Data)
		if first && p.targetOffset >= 0 {
			p.top = rowPart{offset: e.offsetOf(e.rowAt(p.targetOffset))}
			p.targetOffset = -1
			lead := p.rowsBefore
			p.rowsBefore = 0
			p.move(m, -lead)
		}
	}
	p.numSilent++
	if fresh {
		p.numSilent = 0
	}
	if p.follow && !(e.complete && p.reachesEnd()) && (p.reachesEnd() || len(piece.Data) == ask.Limit || !fresh) {
		p.nextReadAt = m.now().Add(pollInterval * time.Duration(1+min(3, p.numSilent/8)))
	}
	if pending {
		by := p.pendingRows
		p.pendingRows = 0
		p.numPieces++
		if fresh && p.numPieces < maxChain {
			p.move(m, by)
		}
	}
}

// maxChain bounds the number of pieces read for one key, because none of them may contain a line
// end.
const maxChain = 16

// offsetOf returns the offset in the file at which a row begins.
func (e *excerpt) offsetOf(i int) int64 {
	if i < 0 || i >= len(e.rows) {
		return e.from
	}
	return e.from + int64(e.rows[i].start)
}

// searchPieceSize is the size of one read of a search. Only one such piece is in memory.
const searchPieceSize = 256 << 10

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
		s += fmt.Sprintf(" %d%% of %s", min(100, max(0, done)*100/whole), text.Size(whole))
	}
	return s + ", esc ends it"
}

// askSearch asks for the text to search. The search goes upward from the end of a file, and
// downward from elsewhere; n continues in that direction.
func (p *outputPane) askSearch(m *model) tea.Cmd {
	m.modal = &inputLine{prompt: "/", history: &m.searches, onConfirm: func(m *model, text string) (tea.Cmd, error) {
		if text == "" {
			return nil, nil
		}
		p.searchText, p.searchUp, p.matchOffset = text, p.follow, -1
		from := p.top.offset
		if p.searchUp {
			from = max(p.excerpt.size, p.excerpt.endOffset())
		}
		p.startSearch(p.searchUp, from)
		return nil, nil
	}}
	return nil
}

// searchAgain continues the search, or searches in the opposite direction.
func (p *outputPane) searchAgain(back bool) {
	up := p.searchUp != back
	from := p.matchOffset + 1
	switch {
	case p.matchOffset < 0 && up:
		from = max(p.excerpt.size, p.excerpt.endOffset())
	case p.matchOffset < 0:
		from = p.top.offset
	case up:
		from = p.matchOffset + int64(len(p.searchText)) - 1
	}
	p.startSearch(up, from)
}

func (p *outputPane) startSearch(up bool, from int64) {
	if up && from <= 0 {
		p.noMatch = "above"
		return
	}
	p.readSerial++ // a read in progress is for something else
	p.search = &search{find: p.searchText, up: up, at: from, begun: from, limit: searchPieceSize}
	p.noMatch = ""
	p.readSoon()
}

func (p *outputPane) endSearch() {
	if p.search != nil {
		p.search = nil
		p.readSerial++
	}
}

// handleSearchPiece searches a piece, and decides where to go on.
func (p *outputPane) handleSearchPiece(m *model, ask runview.Read, piece *runview.Piece) tea.Cmd {
	h := p.search
	p.excerpt.size, p.excerpt.complete = max(p.excerpt.size, piece.Size), piece.Over
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
		p.matchOffset = piece.Offset + int64(i)
		line := p.matchOffset - int64(i-(bytes.LastIndexByte(data[:i], '\n')+1))
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
	p.noMatch = "below"
	if p.search.up {
		p.noMatch = "above"
	}
	p.endSearch()
	p.nextReadAt = m.now().Add(pollInterval)
	return nil
}

// reveal shows the row at an offset, with some rows before it.
func (p *outputPane) reveal(m *model, offset int64) {
	p.showOffset(offset)
	if p.isRead {
		p.top.offset = p.excerpt.offsetOf(p.excerpt.rowAt(offset))
		p.move(m, -p.h/3)
		return
	}
	p.rowsBefore = p.h / 3
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
		p.nextReadAt = time.Time{}
	}
}
