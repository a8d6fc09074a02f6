package results

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"dcs-tui/internal/text"
)

// writeAligned writes columns two blanks apart. An empty cell is a dash.
func (t *writer) writeAligned() {
	numbers := t.numericColumns()
	widths := t.widths()
	if t.o.Width > 0 && tableWidth(widths) > t.o.Width {
		t.digits = fewDigits
		widths = t.widths()
	}
	t.shrink(widths, numbers)
	for k, page := range pages(widths, t.numFixed(widths), t.o.Width) {
		if k > 0 {
			t.b.WriteByte('\n')
		}
		t.writePage(page, widths, numbers)
	}
}

// numFixed returns how many of the first columns identify a row: the number of a job, or the common
// values of a group. Of the values of a group, it counts only those that fit into half of the
// width.
func (t *writer) numFixed(widths []int) int {
	n := 1
	for t.s.Unit() != "job" && n < len(t.columns) && t.s.Columns[t.columns[n]].Role != Stat &&
		2*tableWidth(widths[:n+1]) <= t.o.Width {
		n++
	}
	return min(n, len(t.columns))
}

func (t *writer) writePage(columns []int, widths []int, numbers []bool) {
	var line strings.Builder
	for row := -1; row < t.s.Len(); row++ {
		line.Reset()
		for k, i := range columns {
			c := t.columns[i]
			cell := t.name(c)
			if row >= 0 {
				cell = cmp.Or(t.text(row, c), "-")
			}
			if k > 0 {
				line.WriteString("  ")
			}
			line.WriteString(pad(text.Clean(cell, widths[i]), widths[i], numbers[i]))
		}
		text := strings.TrimRight(line.String(), " ")
		if row < 0 && t.o.Color {
			text = "\x1b[1m" + text + "\x1b[0m"
		}
		t.b.WriteString(text)
		t.b.WriteByte('\n')
	}
}

func (t *writer) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = max(utf8.RuneCountInString(t.name(c)), min(t.s.Len(), 1))
	}
	for row := range t.s.Len() {
		for i, c := range t.columns {
			widths[i] = max(widths[i], utf8.RuneCountInString(t.text(row, c)))
		}
	}
	return widths
}

// minText is the width below which a column of texts is not narrowed.
const minText = 10

// shrink makes columns of texts narrower, the widest first, until the table fits.
func (t *writer) shrink(widths []int, numbers []bool) {
	total := tableWidth(widths)
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

// columnGap is the distance between two columns. If a table is wider than the terminal, its columns
// are written in pages, one below the other, each with the columns that identify a row.
const columnGap = 2

// fewDigits is the number of digits of a computed number if six do not fit.
const fewDigits = 3

// tableWidth returns the total width of columns.
func tableWidth(widths []int) int {
	total := -columnGap
	for _, w := range widths {
		total += w + columnGap
	}
	return total
}

// pages divides columns into pages that are at most room cells wide. 0 means a single page. Each
// page begins with the first stay columns.
func pages(widths []int, stay, room int) [][]int {
	var all [][]int
	used := 0
	for i, w := range widths {
		if len(all) == 0 || i >= stay && room > 0 && used+columnGap+w > room && len(all[len(all)-1]) > min(stay, i) {
			page := make([]int, min(stay, i))
			used = -columnGap
			for k := range page {
				page[k] = k
				used += widths[k] + columnGap
			}
			all = append(all, page)
		}
		all[len(all)-1] = append(all[len(all)-1], i)
		used += columnGap + w
	}
	return all
}
