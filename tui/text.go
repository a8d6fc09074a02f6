package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"dcs-tui/internal/text"
	"dcs-tui/jobs"
	"dcs-tui/observe/runview"
)

// clean makes a text from a job, a host, or a user safe to show (rule 10). No line of the screen is
// longer than maxShown.
func (m *model) clean(s string) string { return m.cleanWhole(prefix(s, maxShown)) }

// cleanWhole is clean for a text of any length.
func (m *model) cleanWhole(s string) string {
	s = text.Clean(s, 0)
	if !m.opt.ASCII {
		return strings.Map(separateRune, s)
	}
	return strings.Map(func(r rune) rune {
		if r > '~' {
			return '?'
		}
		return r
	}, s)
}

// separateRune prevents characters from joining into one. Only some terminals join them, so columns
// would be misaligned on the others.
func separateRune(r rune) rune {
	switch {
	case r < 0x1100:
		return r
	case r >= 0x1f1e6 && r <= 0x1f1ff: // halves of flags
		return 'A' + r - 0x1f1e6
	case r == '\u200d', // the parts of an emoji are shown beside each other
		r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef, // variations
		r >= 0x1f3fb && r <= 0x1f3ff: // skin colors
		return -1
	case r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7ff, // parts of a Hangul syllable
		r == 0x3164, r == 0xffa0, r == 0x115f: // fillers
		return '\ufffd'
	}
	return r
}

// maxShown bounds the number of bytes of a text that are drawn.
const maxShown = 4096

// width returns the width of a text in cells without its escape sequences, counted by character as
// most terminals and Bubble Tea do.
func width(s string) int { return ansi.StringWidthWc(s) }

// fit cuts or pads a text, which may contain styles, to exactly w cells.
func (m *model) fit(s string, w int) string {
	switch n := width(s); {
	case w <= 0:
		return ""
	case n > w:
		// The added blanks are never visible. Without them, TruncateWc does not cut a text that
		// fits if its characters join.
		s = ansi.TruncateWc(s+strings.Repeat(" ", n), w, m.glyphs.ellipsis)
		return s + strings.Repeat(" ", max(0, w-width(s))) // half of a wide character may be missing
	default:
		return s + strings.Repeat(" ", w-n)
	}
}

// padLeft pads a text on the left to w cells.
func (m *model) padLeft(s string, w int) string {
	if n := width(s); n < w {
		return strings.Repeat(" ", w-n) + s
	}
	return m.fit(s, w)
}

// justify puts one text at the left and one at the right of w cells. The left one is cut if space
// is short.
func (m *model) justify(left, right string, w int) string {
	r := width(right)
	if r+2 > w {
		return m.fit(left, w)
	}
	return m.fit(left, w-r) + right
}

// wrap breaks a text into lines of at most w cells, between words if possible.
func (m *model) wrap(s string, w int) []string {
	return strings.Split(ansi.WrapWc(s, max(1, w), ""), "\n")
}

// hangingIndent returns lines with a head to the left of the first one, and blanks to the left of
// the others.
func hangingIndent(head string, lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = head + l
		head = strings.Repeat(" ", width(head))
	}
	return out
}

// errorLines returns the lines of an error that replaces a result.
func (m *model) errorLines(text string, w int) []string {
	return m.wrapStyled(m.sign(runview.Failed)+" "+m.clean(text), &styleBad, w)
}

// wrapStyled returns the lines of a text in a style, indented by one cell.
func (m *model) wrapStyled(s string, style *textStyle, w int) []string {
	return text.Each(m.wrap(s, w-2), func(line string) string { return " " + style.Render(line) })
}

// cellText makes a text from outside safe for a cell of w cells. It processes only what can be
// visible, because a name may have megabytes.
func (m *model) cellText(s string, w int) string {
	return m.clean(prefix(s, 16*w+16)) // maximum length of a letter with its accents in bytes
}

// cutCell shortens a text from outside to at most w cells.
func (m *model) cutCell(s string, w int) string { return m.cut(m.cellText(s, w), w) }

// maxTextWidth returns the width of the widest text in cells, but not more than most.
func (m *model) maxTextWidth(most int, texts ...string) (w int) {
	for _, text := range texts {
		w = max(w, min(most, width(m.cellText(text, most))))
	}
	return w
}

// plainText removes the styles from a text.
func plainText(s string) string { return ansi.Strip(s) }

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// formatElapsed formats the duration of something finished. It distinguishes durations below one
// second, which a running clock shows as 0:00.
func formatElapsed(d time.Duration) string {
	if d > 0 && d < time.Second {
		return text.Duration(d)
	}
	return text.Clock(d)
}

// formatLatency formats a round-trip time, which is unknown if it is 0.
func formatLatency(d time.Duration) string { return orDash(d > 0, text.Duration(d)) }

// formatPeak formats the peak memory of a job with a format for sizes: <16M if it is not above the
// smallest measurable amount.
func formatPeak(n int64, format func(int64) string) string {
	if n > 0 && n <= jobs.MemoryFloor {
		return "<" + format(jobs.MemoryFloor)
	}
	return format(n)
}

// formatPercent formats a fraction. It is 100% only for the whole, and 0.0% only for zero.
func formatPercent(part, whole int) string {
	if whole <= 0 {
		return "-"
	}
	tenths := part * 1000 / whole
	if part > 0 && tenths == 0 {
		return "<0.1%"
	}
	return fmt.Sprintf("%d.%d%%", tenths/10, tenths%10)
}

// waitingText describes what an empty pane waits for. It returns none if the pane has nothing to
// show.
func (m *model) waitingText(none string) string {
	switch {
	case m.snap == nil && m.snapshotErr != nil:
		return " no answer from the dispatcher: " + m.clean(m.snapshotErr.Error())
	case m.snap == nil:
		return " waiting for the dispatcher"
	}
	return " " + none
}
