package export

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"dcs-tui/jobs"
	"dcs-tui/jobs/results/sheet"
)

// HeatLevels is how many shades a heat map in characters has.
const HeatLevels = 5

// The shades, from the smallest number to the largest, and their colours: blue, cyan,
// green, yellow, red of the terminal's own sixteen. Colour repeats what the shade says.
var (
	shades      = []string{"··", "░░", "▒▒", "▓▓", "██"}
	asciiShades = []string{"..", "::", "++", "##", "@@"}
	heatColors  = []string{"34", "36", "32", "33", "31"}
)

// HeatOptions say what the terminal can show.
type HeatOptions struct {
	Color bool
	ASCII bool
	Width int // as Options.Width
}

// Heat writes a heat map: each cell its number and its shade. g must have HeatLevels.
func Heat(w io.Writer, g *sheet.Grid, o HeatOptions) error {
	s := g.Sheet()
	marks := shades
	if o.ASCII {
		marks = asciiShades
	}
	paint := func(level int, text string) string {
		if !o.Color || level < 0 {
			return text
		}
		return "\x1b[" + heatColors[min(level, len(heatColors)-1)] + "m" + text + "\x1b[0m"
	}
	digits := 0
	cell := func(row, column int) string {
		v := g.Cells[row][column]
		if v.Kind == sheet.Nothing {
			return "-"
		}
		return shorter(&s.Columns[column+1], v, digits)
	}
	var b strings.Builder
	b.WriteString(jobs.Clean(g.Title(), 0) + "\n")
	if !math.IsNaN(g.Min) {
		of := &sheet.Column{Role: sheet.Stat, Unit: g.Unit}
		fmt.Fprintf(&b, "%s %s to %s %s\n", paint(0, marks[0]), ForPeople(of, sheet.NumberValue(g.Min)), ForPeople(of, sheet.NumberValue(g.Max)), paint(len(marks)-1, marks[len(marks)-1]))
	}
	first := utf8.RuneCountInString(jobs.Clean(g.Down, maxCell))
	for _, v := range g.Rows {
		first = max(first, utf8.RuneCountInString(jobs.Clean(v.Text, maxCell)))
	}
	const shade = 3           // cells of a blank and a mark
	measure := func() []int { // of the names of the rows, and of each column
		widths := make([]int, 1+len(g.Columns))
		widths[0] = first
		for k, v := range g.Columns {
			w := utf8.RuneCountInString(jobs.Clean(v.Text, maxCell)) - shade
			for row := range g.Rows {
				w = max(w, utf8.RuneCountInString(cell(row, k)))
			}
			widths[1+k] = w + shade
		}
		return widths
	}
	widths := measure()
	if o.Width > 0 && tableWidth(widths) > o.Width {
		digits = few
		widths = measure()
	}
	for n, page := range pages(widths, 1, o.Width) {
		if n > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(pad(jobs.Clean(g.Down, maxCell), first, false))
		for _, at := range page[1:] {
			b.WriteString("  " + pad(jobs.Clean(g.Columns[at-1].Text, maxCell), widths[at], true))
		}
		b.WriteByte('\n')
		for row, v := range g.Rows {
			line := pad(jobs.Clean(v.Text, maxCell), first, false)
			for _, at := range page[1:] {
				k, mark := at-1, "  "
				if level := g.Level[row][k]; level >= 0 {
					mark = marks[min(level, len(marks)-1)]
				}
				text := pad(cell(row, k), widths[at]-shade, true) + " " + mark
				line += "  " + paint(g.Level[row][k], text)
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
