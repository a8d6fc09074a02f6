package tui

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"dcs-tui/jobs/runview"
)

// huntPiece is what a search reads at once. Of a file only one such piece is in memory.
const huntPiece = 256 << 10

// hunt is a search under way: it reads piece after piece, up or down, until the text
// is found or the file is at its end.
type hunt struct {
	find  string
	up    bool
	at    int64 // everything before it has been searched; going up: everything after it
	limit int   // of the next read; smaller when a source gives less
	begun int64 // where it began
}

func (h *hunt) next() (offset int64, limit int) {
	if h.up {
		offset = max(0, h.at-int64(h.limit))
		return offset, int(h.at - offset)
	}
	return h.at, h.limit
}

// progress is how far it is, in the title.
func (h *hunt) progress(e *excerpt) string {
	whole, done := e.size-h.begun, h.at-h.begun
	if h.up {
		whole, done = h.begun, h.begun-h.at
	}
	s := "searching"
	if whole > 0 {
		s += fmt.Sprintf(" %d%% of %s", min(100, max(0, done)*100/whole), size(whole))
	}
	return s + ", esc ends it"
}

// askSearch asks what to look for. From the end of a file it looks upwards, from
// elsewhere downwards; n goes on in that direction.
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

// again goes on to the next place, or back.
func (p *outputPane) again(m *model, back bool) tea.Cmd {
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
	return nil
}

func (p *outputPane) begin(up bool, from int64) {
	if up && from <= 0 {
		p.missed = "above"
		return
	}
	p.serial++ // a read under way is for something else
	p.hunt = &hunt{find: p.find, up: up, at: from, begun: from, limit: huntPiece}
	p.missed = ""
	p.soon()
}

// endHunt gives the search up.
func (p *outputPane) endHunt() {
	if p.hunt != nil {
		p.hunt = nil
		p.serial++
	}
}

// hunted looks through a piece.
func (p *outputPane) hunted(m *model, ask runview.Read, piece *runview.Piece) tea.Cmd {
	h := p.hunt
	p.text.size, p.text.over = max(p.text.size, piece.Size), piece.Over
	data, overlap := piece.Data, int64(len(h.find)-1)
	end := piece.Offset + int64(len(data))
	switch {
	case len(data) == 0: // the end, or the file has shrunk
		return p.nothing(m)
	case h.up && end < h.at && int64(len(data)) < int64(ask.Limit): // a source that gives less than was asked for
		h.limit = len(data)
		return nil
	}
	match := matcher(h.find)
	if h.up {
		match = lastMatcher(h.find)
	}
	if i, _ := match(string(data)); i >= 0 {
		p.hit = piece.Offset + int64(i)
		line := p.hit - int64(i-(bytes.LastIndexByte(data[:i], '\n')+1))
		p.endHunt()
		p.reveal(m, line)
		return nil
	}
	switch {
	case h.up && piece.Offset == 0, !h.up && end >= piece.Size:
		return p.nothing(m)
	case h.up:
		h.at = piece.Offset + overlap
		if h.at >= end { // shorter than what is looked for
			return p.nothing(m)
		}
	default:
		h.at = max(end-overlap, piece.Offset+1)
	}
	return nil
}

// nothing ends a search that has come to the end of the file.
func (p *outputPane) nothing(m *model) tea.Cmd {
	p.missed = "below"
	if p.hunt.up {
		p.missed = "above"
	}
	p.endHunt()
	p.due = m.now().Add(pollEvery)
	return nil
}

// reveal shows the row at an offset, with some of what comes before it.
func (p *outputPane) reveal(m *model, offset int64) {
	p.show(offset)
	if p.read {
		p.top.offset = p.text.at(p.text.find(offset))
		p.move(m, -p.h/3)
		return
	}
	p.lead = p.h / 3
}

// matcher returns the first place of a text, and its length. Small letters stand for
// capitals as well, unless there is a capital in what is looked for.
func matcher(find string) func(string) (int, int) { return searching(find, strings.Index) }

// lastMatcher returns the last place.
func lastMatcher(find string) func(string) (int, int) { return searching(find, strings.LastIndex) }

func searching(find string, index func(s, sub string) int) func(string) (int, int) {
	if lowered(find) != find {
		return func(s string) (int, int) { return index(s, find), len(find) }
	}
	return func(s string) (int, int) { return index(lowered(s), find), len(find) }
}

// lowered makes small letters of A to Z and keeps the place of every byte.
func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// soon lets the next read begin at once, unless the last one has failed.
func (p *outputPane) soon() {
	if p.err == nil {
		p.due = time.Time{}
	}
}
