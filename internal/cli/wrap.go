package cli

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// wrap breaks a line at blanks into rows of at most width runes. A word that is wider stays
// whole. Further rows are indented more than the first. Color sequences have no width.
func wrap(line string, width int) string {
	if len(line) <= width {
		return line
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	return wrapIndented(line, width, min(indent+2, width/2))
}

// wrapIndented is wrap with the indentation of further rows.
func wrapIndented(line string, width, indent int) string {
	var rows strings.Builder
	row, blank, begin := 0, 0, 0 // runes in the row, blanks waiting, where the next word begins
	for begin < len(line) {
		end := begin
		for end < len(line) && line[end] != ' ' {
			end++
		}
		word := line[begin:end]
		n := ansi.StringWidth(word)
		switch {
		case row == 0 && rows.Len() == 0, row+blank+n <= width:
			rows.WriteString(strings.Repeat(" ", blank))
			row += blank + n
		default:
			rows.WriteString("\n" + strings.Repeat(" ", indent))
			row = indent + n
		}
		rows.WriteString(word)
		for blank, begin = 0, end; begin < len(line) && line[begin] == ' '; begin++ {
			blank++
		}
	}
	return rows.String()
}
