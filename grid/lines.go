package grid

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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

// maxFaults is the maximum number of errors of a template that are shown.
const maxFaults = 10

// faults collects the errors or the warnings of a template.
type faults struct {
	file      string
	firstFlag int // first line that was made from flags; 0: all lines are of the file
	list      []*jobs.ParseError
}

func (f *faults) add(line, column int, format string, args ...any) {
	fault := &jobs.ParseError{File: f.file, Line: line, Column: column, Err: fmt.Errorf(format, args...)}
	if f.firstFlag > 0 && line >= f.firstFlag {
		fault.File, fault.Line, fault.Column = "--search", 0, 0
	}
	f.list = append(f.list, fault)
}

// at adds a fault at an offset of a line's text.
func (f *faults) at(l *line, offset int, format string, args ...any) {
	no, column := l.place(offset)
	f.add(no, column, format, args...)
}

// sorted returns the faults in the order of the file.
func (f *faults) sorted() []*jobs.ParseError {
	slices.SortStableFunc(f.list, func(a, b *jobs.ParseError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f.list
}

// err returns an error with a line for each of the first maxFaults faults, or nil if there are
// none.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	var all []error
	for i, fault := range f.sorted() {
		if i == maxFaults {
			all = append(all, &jobs.ParseError{File: f.file,
				Err: fmt.Errorf("there are %d more errors", len(f.list)-maxFaults)})
			break
		}
		all = append(all, fault)
	}
	return errors.Join(all...)
}
