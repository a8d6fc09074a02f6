package tui

import (
	"math"
	"strings"
)

// bar draws a share between 0 and 1 in w cells: full ones, a part of one, empty ones.
func (m *model) bar(share float64, w int) string {
	if w <= 0 {
		return ""
	}
	steps := len(m.g.bar) - 1 // parts of a cell that can be told apart
	if math.IsNaN(share) {
		share = 0
	}
	n := int(min(1, max(0, share)) * float64(w*steps))
	full, part := n/steps, n%steps
	s := strings.Repeat(m.g.bar[steps], full)
	if part > 0 {
		s += m.g.bar[part]
		full++
	}
	return s + strings.Repeat(m.g.bar[0], w-full)
}

// shares draws how a whole is divided, in w cells: first what went well, then what
// failed and what was left out, each in a glyph of its own, then the rest. What is not
// zero has a cell where there is room, what is not whole is not full.
func (m *model) shares(good, bad, other, whole, w int) string {
	if w <= 0 {
		return ""
	}
	if whole <= 0 {
		return styleFaint.Render(strings.Repeat(m.g.bar[0], w))
	}
	left := w
	cells := func(n int) int {
		if n <= 0 {
			return 0
		}
		n = min(left, max(1, int(float64(n)/float64(whole)*float64(w))))
		left -= n
		return n
	}
	b, o := cells(bad), cells(other)
	exact := float64(good) / float64(whole) * float64(w)
	if good+bad+other < whole { // it is not full
		left = max(0, left-1)
	} else {
		exact = float64(left)
	}
	g := min(left, int(exact))
	part := ""
	if steps := len(m.g.bar) - 1; bad+other == 0 && steps > 1 && g < left {
		if n := int((exact - float64(g)) * float64(steps)); n > 0 {
			part = m.g.bar[n]
		}
	}
	full := m.g.bar[len(m.g.bar)-1]
	rest := strings.Repeat(m.g.bar[0], max(0, w-g-b-o-width(part)))
	return styleGood.Render(strings.Repeat(full, g)+part) + styleBad.Render(strings.Repeat(m.g.badBar, b)) +
		styleFaint.Render(strings.Repeat(m.g.othersBar, o)+rest)
}
