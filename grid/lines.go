package grid

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// line is a line of a template with those it is continued by.
type line struct {
	no     int      // number of its first line
	raw    []string // its lines as they stand, without their ends
	text   string   // joined, without blanks before it
	skip   int      // how many bytes of blanks those were
	starts []int    // where each of raw begins in the joined text
	open   bool     // the file ends after a \ that continues it
}

// blanks may stand before a command, and make an empty line; as in jobs files.
const blanks = " \t\r\v\f"

// place returns line and column of a byte of text.
func (l *line) place(offset int) (no, column int) {
	offset = min(offset, len(l.text)) + l.skip
	i := sort.SearchInts(l.starts, offset+1) - 1
	head := l.raw[i][:min(offset-l.starts[i], len(l.raw[i]))]
	return l.no + i, utf8.RuneCountInString(head) + 1
}

// splitLines makes the logical lines of a text: a \ at the end of a line that is no
// comment continues it, as in jobs files.
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
		goesOn := continues(raw) && (len(l.raw) > 1 || !isComment(raw))
		if goesOn {
			raw = raw[:len(raw)-1]
		}
		joined = append(joined, raw...)
		if l.open = goesOn; !goesOn {
			l.finish(string(joined))
			l = nil
		}
	}
	if l != nil {
		l.finish(string(joined))
	}
	return all
}

// writeLine writes a line of raw so that it is read as it was.
func writeLine(b *strings.Builder, raw string) {
	b.WriteString(raw)
	if strings.HasSuffix(raw, "\r") {
		b.WriteByte('\r') // the last is part of the line's end
	}
	b.WriteByte('\n')
}

func (l *line) finish(joined string) {
	l.text = strings.TrimLeft(joined, blanks)
	l.skip = len(joined) - len(l.text)
}

// continues reports whether a line ends in a backslash that is not itself escaped.
func continues(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}

// strayBlank refuses a blank after the \ that was to continue a line, which no editor
// shows; package jobs finds that of commands.
func (p *parser) strayBlank(l *line) bool {
	raw := l.raw[len(l.raw)-1]
	bare := strings.TrimRight(raw, blanks)
	if p.Again || bare == raw || !continues(bare) {
		return false
	}
	p.wrong.add(l.no+len(l.raw)-1, utf8.RuneCountInString(bare)+1, `a blank follows the \ at the end of this line, so the line does not continue: remove the blank`)
	return true
}

// isComment is true for comments, which end with their line, not for #DCS lines.
func isComment(s string) bool {
	s = strings.TrimLeft(s, blanks)
	return strings.HasPrefix(s, "#") && !strings.HasPrefix(s, "#DCS")
}
