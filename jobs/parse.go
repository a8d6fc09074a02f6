package jobs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxParseErrors is how many errors of one file are shown at once.
const maxParseErrors = 10

// IsJSONLines says whether a jobs file of that name holds JSON objects.
func IsJSONLines(name string) bool { return strings.EqualFold(filepath.Ext(name), ".jsonl") }

// ParseFile reads a jobs file: one shell command a line. Blank lines and lines
// that begin with # are left out; a line that ends in \ goes on in the next, as
// in sh. `#DCS key=value …` sets options of the next job, `#DCS default …` of
// all jobs after it; an empty value takes an option back to the run's default.
// In a file whose name ends in .jsonl each line is a JSON object with the same
// keys and "command".
//
// The first job gets the number first; after= refers to numbers. Equal options
// are one shared value. An error names file and line of up to ten faults, one a
// line, and then no job is returned. A file without a job is an error.
func ParseFile(path string, first ID) ([]*Spec, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the jobs file: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory, not a jobs file", path)
	}
	return Parse(f, path, IsJSONLines(path), first)
}

// Parse reads all jobs of r as ParseFile does. The name stands in messages.
func Parse(r io.Reader, name string, jsonl bool, first ID) ([]*Spec, error) {
	return NewScanner(r, name, jsonl, first).all()
}

// ParseAgain reads the lines of a jobs file that was accepted once, perhaps by an older
// program: what is only probably a slip is not refused any more.
func ParseAgain(r io.Reader, name string, first ID) ([]*Spec, error) {
	s := NewScanner(r, name, false, first)
	s.again = true
	return s.all()
}

// all reads all jobs, and up to maxParseErrors faults.
func (s *Scanner) all() ([]*Spec, error) {
	name := s.name
	var specs []*Spec
	var faults []error
	for {
		spec, more, err := s.scan()
		switch {
		case err == io.EOF && len(faults) > 0:
			return nil, errors.Join(faults...)
		case err == io.EOF && len(specs) == 0:
			return nil, fmt.Errorf("%s: there is no job in it; write one shell command a line", name)
		case err == io.EOF:
			return specs, nil
		case err == nil:
			specs = append(specs, spec)
			continue
		}
		faults = append(faults, err)
		if !more {
			return nil, errors.Join(faults...)
		}
		if len(faults) == maxParseErrors {
			faults = append(faults, fmt.Errorf("%s: there may be more errors; these are the first %d", name, maxParseErrors))
			return nil, errors.Join(faults...)
		}
	}
}
