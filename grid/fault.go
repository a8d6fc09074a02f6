package grid

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"dcs-tui/jobs"
)

// maxFaults is the maximum number of errors of a template that are shown.
const maxFaults = 10

// Fault is an error or a warning about a template. Line and Column begin at 1. Columns count
// characters, and 0 is the whole line.
type Fault struct {
	File         string
	Line, Column int
	Text         string // the problem and its remedy, on one line
}

// Error returns FILE:LINE:COLUMN: TEXT, without control characters.
func (f *Fault) Error() string {
	where := fmt.Sprintf("%s:%d", f.File, f.Line)
	switch {
	case f.Line == 0:
		where = f.File
	case f.Column > 0:
		where += fmt.Sprintf(":%d", f.Column)
	}
	return jobs.Clean(where+": "+f.Text, 0)
}

// faults collects the errors or the warnings of a template.
type faults struct {
	file string
	list []*Fault
}

func (f *faults) add(line, column int, format string, args ...any) {
	f.list = append(f.list, &Fault{File: f.file, Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

// at adds a fault at an offset of a line's text.
func (f *faults) at(l *line, offset int, format string, args ...any) {
	no, column := l.place(offset)
	f.add(no, column, format, args...)
}

// sorted returns the faults in the order of the file.
func (f *faults) sorted() []*Fault {
	slices.SortStableFunc(f.list, func(a, b *Fault) int {
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
			all = append(all, &Fault{File: f.file, Text: fmt.Sprintf("there are %d more errors", len(f.list)-maxFaults)})
			break
		}
		all = append(all, fault)
	}
	return errors.Join(all...)
}
