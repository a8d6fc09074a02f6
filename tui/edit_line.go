package tui

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// edited is a text in one line that a person changes. It keeps every character that
// is put in, also newlines and what a terminal must not see: the text of a command
// must not change by being looked at. (The text input of Bubbles makes blanks of
// newlines, and asks programs for the clipboard.)
type edited struct {
	text []rune
	pos  int
}

func newEdited(s string) edited { r := []rune(s); return edited{r, len(r)} }

func (e *edited) String() string { return string(e.text) }

func (e *edited) insert(s string) {
	r := []rune(s)
	e.text = slices.Insert(e.text, e.pos, r...)
	e.pos += len(r)
}

// cutTo deletes what stands between the cursor and a position.
func (e *edited) cutTo(pos int) {
	from, to := min(pos, e.pos), max(pos, e.pos)
	e.text = slices.Delete(e.text, from, to)
	e.pos = from
}

// word returns the position a word before or after the cursor.
func (e *edited) word(by int) int {
	is := func(i int) bool { return i >= 0 && i < len(e.text) && !unicode.IsSpace(e.text[i]) }
	i := e.pos
	if by < 0 {
		for i > 0 && !is(i-1) {
			i--
		}
		for is(i - 1) {
			i--
		}
		return i
	}
	for i < len(e.text) && !is(i) {
		i++
	}
	for is(i) {
		i++
	}
	return i
}

// key changes the text as a key says; false: the key means nothing here.
func (e *edited) key(k tea.KeyPressMsg) bool {
	left, right := max(0, e.pos-1), min(len(e.text), e.pos+1)
	switch k.String() {
	case "left", "ctrl+b":
		e.pos = left
	case "right", "ctrl+f":
		e.pos = right
	case "home", "ctrl+a":
		e.pos = 0
	case "end", "ctrl+e":
		e.pos = len(e.text)
	case "alt+b", "alt+left", "ctrl+left":
		e.pos = e.word(-1)
	case "alt+f", "alt+right", "ctrl+right":
		e.pos = e.word(1)
	case "backspace", "ctrl+h":
		e.cutTo(left)
	case "delete", "ctrl+d":
		e.cutTo(right)
	case "ctrl+w", "alt+backspace":
		e.cutTo(e.word(-1))
	case "alt+d":
		e.cutTo(e.word(1))
	case "ctrl+u":
		e.cutTo(0)
	case "ctrl+k":
		e.cutTo(len(e.text))
	default:
		if k.Text == "" || k.Mod&(tea.ModCtrl|tea.ModAlt) != 0 {
			return false
		}
		e.insert(k.Text)
	}
	return true
}

// view draws the part of the text round the cursor in exactly w cells, the cursor
// reversed.
func (e *edited) view(m *model, w int) string {
	if w < 4 {
		return strings.Repeat(" ", max(0, w))
	}
	before := e.text[max(0, e.pos-2*w):e.pos]
	under, after := " ", []rune(nil)
	if e.pos < len(e.text) {
		if under = m.clean(string(e.text[e.pos])); width(under) == 0 {
			under = "?" // nothing that a cursor can be seen on
		}
		after = e.text[e.pos+1 : min(len(e.text), e.pos+1+2*w)]
	}
	room := w - 1 - min(width(m.clean(string(after))), w/3) - width(under)
	left := m.clean(string(before))
	for more := len(before) < e.pos || width(left) > room+1; more; more = width(left) > room {
		if len(before) == 0 {
			break
		}
		before = before[1:]
		left = m.g.cut + m.clean(string(before))
	}
	s := left + styleHere.Render(under) + m.clean(string(after))
	return m.fit(s, w)
}
