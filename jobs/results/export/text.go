package export

import (
	"strings"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// aligned writes columns two blanks apart; a cell with nothing is a dash.
func (t *table) aligned() {
	numbers := t.numeric()
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = utf8.RuneCountInString(t.name(c))
		for row := range t.s.Len() {
			widths[i] = max(widths[i], utf8.RuneCountInString(t.text(row, c)), 1)
		}
	}
	t.narrow(widths, numbers)
	var line strings.Builder
	for row := -1; row < t.s.Len(); row++ {
		line.Reset()
		for i, c := range t.columns {
			cell := ""
			switch {
			case row < 0:
				cell = t.name(c)
			default:
				if cell = t.text(row, c); cell == "" {
					cell = "-"
				}
			}
			if i > 0 {
				line.WriteString("  ")
			}
			line.WriteString(pad(jobs.Clean(cell, widths[i]), widths[i], numbers[i]))
		}
		text := strings.TrimRight(line.String(), " ")
		if row < 0 && t.o.Color {
			text = "\x1b[1m" + text + "\x1b[0m"
		}
		t.b.WriteString(text)
		t.b.WriteByte('\n')
	}
}

// minText is how much of a text stays where there is no room.
const minText = 10

// narrow makes columns of text narrower, the widest first, until the table fits; what
// is no text keeps its width.
func (t *table) narrow(widths []int, numbers []bool) {
	total := -2
	for _, w := range widths {
		total += w + 2
	}
	for ; t.o.Width > 0 && total > t.o.Width; total-- {
		widest := -1
		for i, w := range widths {
			if !numbers[i] && w > minText && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// pad fills a cell with blanks, on the left of a number.
func pad(cell string, width int, right bool) string {
	blanks := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cell)))
	if right {
		return blanks + cell
	}
	return cell + blanks
}
