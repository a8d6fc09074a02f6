package tui

import (
	"strings"

	"dcs-tui/jobs"
)

// draw shows the rows at the top place, or the last ones.
func (p *outputPane) draw(m *model, w, h int, focused bool) []string {
	p.w, p.h = w, h
	if words := p.words(m); words != "" {
		return limit(wrapped(words, w), h)
	}
	if p.follow {
		return p.tail(m, h)
	}
	return p.from(m, p.top, h)
}

// words stand in the place of output when there is none.
func (p *outputPane) words(m *model) string {
	name := p.name(p.file)
	e := &p.text
	switch {
	case p.job == 0:
		return styleFaint.Render("no job")
	case p.shown.id.N == 0:
		s := "It has not started yet."
		if m.pic != nil && m.pic.Detail != nil && m.pic.Detail.Row.ID == p.job && m.pic.Detail.Why != "" {
			s = m.clean(m.pic.Detail.Why)
		}
		return s
	case p.err != nil && len(e.rows) == 0:
		return "The output cannot be read now: " + m.clean(p.err.Error())
	case !p.read && len(e.rows) == 0:
		return styleFaint.Render("reading " + m.g.cut)
	case len(e.rows) == 0 && e.over && p.file == jobs.FileOut && p.row.Last != "":
		return "It printed nothing on stdout. " + styleBold.Render("o") + " shows its stderr, which ends with: " + m.clean(p.row.Last)
	case len(e.rows) == 0 && e.over:
		return styleFaint.Render("It printed nothing on " + name + ".")
	case len(e.rows) == 0:
		return styleFaint.Render("It has printed nothing on " + name + " so far.")
	}
	return ""
}

// parts are the lines of the screen that a row takes.
func (p *outputPane) parts(m *model, i int) []string {
	b := p.text.bytesOf(i)
	if !p.wrap {
		if most := 8*p.w + 64; len(b) > most {
			b = b[:most]
		}
		return []string{m.fit(m.line(b), p.w)}
	}
	return wrapped(m.line(b), p.w)
}

// tail are the last h lines.
func (p *outputPane) tail(m *model, h int) []string {
	var back []string
	for i := len(p.text.rows) - 1; i >= 0 && len(back) < h; i-- {
		parts := p.parts(m, i)
		for k := len(parts) - 1; k >= 0 && len(back) < h; k-- {
			back = append(back, p.mark(m, parts[k]))
		}
	}
	for i, k := 0, len(back)-1; i < k; i, k = i+1, k-1 {
		back[i], back[k] = back[k], back[i]
	}
	return back
}

// from are the h lines that begin at a place.
func (p *outputPane) from(m *model, at place, h int) []string {
	var out []string
	sub := at.sub
	for i := p.text.find(at.offset); i < len(p.text.rows) && len(out) < h; i++ {
		parts := p.parts(m, i)
		for _, l := range parts[min(sub, len(parts)-1):] {
			out = append(out, p.mark(m, l))
		}
		sub = 0
	}
	return limit(out, h)
}

// mark shows what was searched for.
func (p *outputPane) mark(m *model, l string) string {
	if p.find == "" {
		return l
	}
	var out strings.Builder
	fold := matcher(p.find)
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

// move goes by lines of the screen. Going down to the end follows it again.
func (p *outputPane) move(m *model, by int) {
	if !p.read || len(p.text.rows) == 0 {
		return
	}
	if p.follow {
		if by >= 0 {
			return
		}
		p.stand(m)
	}
	e := &p.text
	i := e.find(p.top.offset)
	sub := min(p.top.sub, len(p.parts(m, i))-1)
	for ; by < 0; by++ {
		switch {
		case sub > 0:
			sub--
		case i > 1 || i == 1 && e.from == 0: // the first row may be half a line
			i--
			sub = len(p.parts(m, i)) - 1
		default:
			if e.from > 0 {
				p.owe = by // when the piece before has come
			}
			by = -1
		}
	}
	if by > 0 {
		room := len(p.from(m, place{e.at(i), sub}, p.h+by+1)) - p.h // before the end is on the screen
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
	p.soon()
}

// stand stops at what is shown now.
func (p *outputPane) stand(m *model) {
	if !p.follow {
		return
	}
	p.follow = false
	left := p.h
	for i := len(p.text.rows) - 1; i >= 0; i-- {
		n := len(p.parts(m, i))
		p.top = place{offset: p.text.at(i), sub: max(0, n-left)}
		if left -= n; left <= 0 {
			break
		}
	}
}

// end says that the excerpt reaches to the end of the file, as far as it is known.
func (p *outputPane) end() bool { return p.text.end() >= p.text.size }

// seen is the offset after what is shown.
func (p *outputPane) seen() int64 {
	e := &p.text
	i := e.find(p.top.offset) + p.h
	if i >= len(e.rows) {
		return e.end()
	}
	return e.at(i)
}

// show goes to a place in the file; -1 is the end, which it then follows.
func (p *outputPane) show(offset int64) {
	e := &p.text
	p.owe = 0
	switch {
	case offset < 0:
		p.follow = true
		if !p.end() {
			p.anew(-1)
		}
	case p.read && offset >= e.from && offset <= e.end():
		p.follow, p.top = false, place{offset: offset}
	default:
		p.follow = false
		p.anew(offset)
	}
	p.missed = ""
	p.soon()
}

// anew reads another excerpt; what is there is shown until then.
func (p *outputPane) anew(offset int64) {
	p.read, p.target = false, offset
	p.serial++ // a read under way is of the old one
}

// setWrap wraps long lines, or cuts them.
func (p *outputPane) setWrap(*model) {
	p.wrap = !p.wrap
	p.top.sub = 0
}

func limit(lines []string, n int) []string { return lines[:min(len(lines), max(0, n))] }

var _ pane = (*outputPane)(nil)
