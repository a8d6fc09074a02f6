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
