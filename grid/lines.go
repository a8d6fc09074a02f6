package grid

import (
	"sort"
	"strings"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// line is a line of a template with its continuation lines.
type line struct {
	no     int      // number of its first line
	raw    []string // its physical lines, without their ends
	text   string   // joined, without leading blanks
	skip   int      // number of leading blanks, in bytes
	starts []int    // offset of each of raw in the joined text
	open   bool     // the file ends after a \ that continues the line
}

// blanks may precede a command, and make up an empty line, as in jobs files.
const blanks = jobs.Blanks

// place returns the line and the column of an offset in text.
func (l *line) place(offset int) (no, column int) {
	offset = min(offset, len(l.text)) + l.skip
	i := sort.SearchInts(l.starts, offset+1) - 1
	head := l.raw[i][:min(offset-l.starts[i], len(l.raw[i]))]
	return l.no + i, utf8.RuneCountInString(head) + 1
}

// splitLines returns the logical lines of a text. As in jobs files, a \ at the end of a line
// continues it, except in comments.
func splitLines(text string) []*line {
	var all []*line
	var l *line
	var joined []byte
	no := 0
	for raw := range strings.Lines(text) {
		no++
		raw = strings.TrimSuffix(strings.TrimSuffix(raw, "\n"), "\r")
		if l == nil {
			l = &line{no: no}
			all = append(all, l)
			joined = joined[:0]
		}
		l.starts = append(l.starts, len(joined))
		l.raw = append(l.raw, raw)
		isContinued := jobs.IsContinued([]byte(raw)) && (len(l.raw) > 1 || !jobs.IsComment([]byte(raw)))
		if isContinued {
			raw = raw[:len(raw)-1]
		}
		joined = append(joined, raw...)
		l.open = isContinued
		if !isContinued {
			l.finish(string(joined))
			l = nil
		}
	}
	if l != nil {
		l.finish(string(joined))
	}
	return all
}

// writeLine writes an element of raw as a line.
func writeLine(b *strings.Builder, raw string) {
	b.WriteString(raw)
	if strings.HasSuffix(raw, "\r") {
		b.WriteByte('\r') // the last \r belongs to the end of the line
	}
	b.WriteByte('\n')
}

func (l *line) finish(joined string) {
	l.text = strings.TrimLeft(joined, blanks)
	l.skip = len(joined) - len(l.text)
}

// hasStrayBlank reports whether a line ends in a \ and an invisible blank, and adds an error
// about it. Package jobs checks the lines of commands.
func (p *parser) hasStrayBlank(l *line) bool {
	column := jobs.StrayBlankColumn([]byte(l.raw[len(l.raw)-1]))
	if p.Again || column == 0 {
		return false
	}
	p.wrong.add(l.no+len(l.raw)-1, column,
		`a space follows the \ at the end of this line, so the line does not continue: remove the space`)
	return true
}
