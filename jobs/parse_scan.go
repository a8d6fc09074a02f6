package jobs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"dcs-tui/internal/text"
)

// Scanner parses jobs one by one, each as soon as its line is complete, so that a run can start
// before its input ends.
type Scanner struct {
	name   string
	jsonl  bool
	again  bool                                    // see ParseAgain
	check  func(command string, isLine bool) error // see CheckCommands; nil: no check
	id     ID                                      // of the next job
	lines  lineReader
	joined []byte // a continued line
	last   []byte // the last physical line

	intern Interner

	stream  bool // see Stream
	ask     *StreamAsk
	keys    map[string]ID // jobs so far, by the submitter's own ids
	spoiled int           // in a stream, the line of an invalid #DCS line before the next job; 0: none

	names       []jobName // of the jobs so far
	defaults    settings
	shared      *Options   // the defaults, interned; nil after a change
	own         settings   // of the line or job that is being parsed
	labels      *Labels    // of the last job
	pending     []keyValue // options of the next job
	pendingLine int        // of the first of them
	defaultLine int        // of a default that no job has followed yet
	err         error
}

// jobName is a name to which after= may refer, with the number of its job.
type jobName struct {
	name string
	id   ID
}

// jobsNamed returns the jobs so far whose names match a pattern.
func (s *Scanner) jobsNamed(pattern string) (ids []ID) {
	if id, ok := s.keys[pattern]; ok {
		return []ID{id}
	}
	// A star also matches slashes.
	flat := func(text string) string { return strings.ReplaceAll(text, "/", "\x00") }
	for _, n := range s.names {
		if ok, _ := path.Match(flat(pattern), flat(n.name)); ok || n.name == pattern {
			ids = append(ids, n.id)
		}
	}
	return ids
}

// NewScanner returns a Scanner that reads from r. The name is used in messages and in
// Options.File. With jsonl, each line is a JSON object; see Parse. The first job gets the
// number first.
func NewScanner(r io.Reader, name string, jsonl bool, first ID) *Scanner {
	s := &Scanner{name: name, jsonl: jsonl, id: first, lines: lineReader{r: bufio.NewReaderSize(r, 64<<10)}}
	s.defaults.File, s.defaults.named = name, s.jobsNamed
	return s
}

// CheckCommands makes s, which has read nothing, refuse commands for which check returns an error.
// isLine reports whether a command ends with its line, which a command in JSON does not.
func (s *Scanner) CheckCommands(check func(command string, isLine bool) error) *Scanner {
	s.check = check
	return s
}

// checkCommand returns the error of the check for a command.
func (s *Scanner) checkCommand(command string, isLine bool) error {
	if s.check == nil || s.again {
		return nil
	}
	return s.check(command, isLine)
}

// Next returns the next job, or io.EOF after the last one. Any other error has file and line
// and is final. Jobs that were returned before it are valid.
func (s *Scanner) Next() (*Spec, error) {
	if s.err != nil {
		return nil, s.err
	}
	spec, _, err := s.scan()
	s.err = err
	return spec, err
}

// scan returns the next job or error. more reports whether scanning can continue after an
// error.
func (s *Scanner) scan() (spec *Spec, more bool, err error) {
	for {
		at, line, err := s.logicalLine()
		if err != nil {
			s.pending, s.pendingLine = s.pending[:0], 0
			return nil, s.stream && err != io.EOF && !s.lines.failed, err
		}
		line = bytes.TrimLeft(line, Blanks)
		switch {
		case len(line) == 0:
			continue
		case s.jsonl:
			id := s.id
			s.id++
			spec, err = s.parseObject(line, id, at)
		case s.stream && isObject(line):
			if spec, err = s.parseObject(line, s.id, at); err == nil {
				if spec != nil {
					s.id++
				}
				return spec, true, nil
			}
		case isDirective(line):
			if _, why := Ambiguous(string(line[4:])); why != "" && !s.again {
				err = errors.New(why)
			} else {
				err = s.addDirective(string(line[4:]), at)
			}
			if err != nil && s.stream {
				if isDefault, _, _ := parseDirective(string(line[4:])); isDefault {
					return nil, false, s.errorAt(at, err) // all jobs that follow would lack it
				}
			}
		case line[0] == '#':
			if at == 1 && isScript(line) {
				return nil, !s.stream, s.errorAt(at,
					errors.New("this is a script, not a jobs file: each of its lines would run by itself; "+
						"put the name of the script into a jobs file"))
			} else if isMisspeltDirective(line) {
				err = errors.New("this comment looks like options: they begin with #DCS, " +
					"in capitals and without a space")
			}
		case s.stream && s.spoiled > 0:
			s.spoiled = 0
			return nil, true, s.errorAt(at, errWrongDirective)
		default:
			column := StrayBlankColumn(s.last)
			command := string(line)
			if wrong := s.checkCommand(command, true); wrong == nil && (column == 0 || s.again) {
				spec = s.job(command, at)
			} else {
				s.job(command, at) // uses up the options and, in a file, the number
				if s.stream {
					s.id--
				}
				if column == 0 {
					return nil, true, s.errorAt(at, wrong)
				}
				return nil, true, &ParseError{s.name, s.lines.line, column, errStrayBlank}
			}
		}
		switch {
		case err != nil && s.stream && line[0] == '#':
			s.pending, s.pendingLine, s.spoiled = s.pending[:0], 0, at
			fallthrough
		case err != nil:
			return nil, true, s.errorAt(at, err)
		case spec != nil:
			return spec, true, nil
		}
	}
}

// logicalLine returns a line with its continuation lines, and the number of the first.
func (s *Scanner) logicalLine() (at int, line []byte, err error) {
	line, err = s.lines.next()
	at, s.last = s.lines.line, line
	if err == io.EOF {
		return at, nil, s.endOfInput()
	}
	if err == nil && (s.jsonl || !IsContinued(line) || IsComment(line)) {
		return at, line, nil
	}
	s.joined = s.joined[:0]
	for err == nil && IsContinued(line) {
		s.joined = append(s.joined, line[:len(line)-1]...)
		if len(s.joined) > maxLine {
			return at, nil, s.errorAt(at, fmt.Errorf("the continued line is longer than %d MiB", maxLine>>20))
		}
		if line, err = s.lines.next(); err == nil && isDirective(bytes.TrimLeft(line, Blanks)) {
			s.spoiled = s.lines.line
			return at, nil, s.errorAt(s.lines.line,
				errors.New(`a #DCS line inside a command: the line before it ends in \`))
		}
	}
	switch {
	case err == io.EOF:
		return at, nil, s.errorAt(at, errors.New(`the file ends inside this command: its last line ends in \`))
	case err != nil && s.lines.line == 0:
		return at, nil, fmt.Errorf("%s: %w", s.name, err)
	case err != nil:
		return at, nil, s.errorAt(s.lines.line, err)
	}
	s.last = line
	s.joined = append(s.joined, line...)
	return at, s.joined, nil
}

// IsComment reports whether a line is a comment. #DCS lines are not.
func IsComment(line []byte) bool {
	line = bytes.TrimLeft(line, Blanks)
	return len(line) > 0 && line[0] == '#' && !isDirective(line)
}

// isScript reports whether the first line is that of a script for another interpreter.
func isScript(line []byte) bool {
	return bytes.HasPrefix(line, []byte("#!")) && !bytes.Contains(line, []byte("dcs-tui"))
}

// endOfInput returns io.EOF, or an error if options were left without a job.
func (s *Scanner) endOfInput() error {
	pending, byDefault := s.pendingLine, s.defaultLine
	s.pendingLine, s.defaultLine = 0, 0 // report it once
	switch {
	case pending > 0:
		return s.errorAt(pending, errors.New("no job follows this #DCS line"))
	case byDefault > 0:
		return s.errorAt(
			byDefault, errors.New("no job follows this #DCS default line: it applies to the jobs after it"),
		)
	}
	return io.EOF
}

func (s *Scanner) errorAt(line int, err error) error { return &ParseError{s.name, line, 0, err} }

// addDirective stores the options of a #DCS line. It checks each of them here, so that an error
// has the number of this line.
func (s *Scanner) addDirective(text string, at int) error {
	isDefault, options, err := parseDirective(text)
	if !isDefault && s.pendingLine == 0 {
		s.pendingLine = at // also of an invalid line, so that its job does not cause another error
	}
	if err != nil {
		return err
	}
	s.defaults.last = s.id - 1
	next := &s.own
	*next = s.defaults
	for _, kv := range options {
		if !isDefault {
			for _, earlier := range s.pending {
				if earlier.key == kv.key {
					return fmt.Errorf("%s is given twice for one job; line %d has it too", kv.key, s.pendingLine)
				}
			}
		}
		if err := next.set(kv.key, kv.value); err != nil {
			return err
		}
	}
	if isDefault {
		s.defaults, s.shared, s.defaultLine = *next, nil, at
	} else {
		s.pending = append(s.pending, options...)
	}
	return nil
}

// job returns the specification of a command.
func (s *Scanner) job(command string, at int) *Spec {
	if s.shared == nil {
		s.shared = s.intern.Share(&s.defaults.Options)
	}
	name, after, options := s.defaults.name, s.defaults.after, s.shared
	if len(s.pending) > 0 {
		own := &s.own
		*own = s.defaults
		own.last = math.MaxInt
		for _, kv := range s.pending {
			_ = own.set(kv.key, kv.value) // was checked in directive
		}
		name, after = own.name, own.after
		if slices.ContainsFunc(s.pending, keyValue.isShared) {
			options = s.intern.Share(&own.Options)
		}
	}
	if !slices.Equal(after, s.labels.dependencies()) { // otherwise this job and the last one share them
		s.labels = NewLabels("", nil, after...)
	}
	s.pending, s.pendingLine, s.defaultLine = s.pending[:0], 0, 0
	spec := &Spec{ID: s.id, Line: at, Command: command, Name: name,
		Labels: s.labels, Options: options}
	s.remember(spec, s.id)
	s.id++
	return spec
}

// ParseError is an error or a warning about a jobs file or a template.
type ParseError struct {
	File   string
	Line   int // from 1; 0: the whole file
	Column int // in characters from 1; 0: not known, or the whole line
	Err    error
}

// Error returns FILE:LINE:COLUMN: TEXT without what is not known, on one line.
func (e *ParseError) Error() string {
	where := e.File + text.If(e.Line > 0, fmt.Sprintf(":%d", e.Line))
	where += text.If(e.Column > 0, fmt.Sprintf(":%d", e.Column))
	return text.Clean(where+": "+e.Err.Error(), 0)
}

// Text returns the message without its position. Control characters in text from the file are
// replaced.
func (e *ParseError) Text() string { return text.Clean(e.Err.Error(), 0) }

// Unwrap returns the error without its position.
func (e *ParseError) Unwrap() error { return e.Err }
