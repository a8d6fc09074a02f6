package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Line is a line of a stream (docs/reference/protocol.md): a job or, if Spec is nil, a StreamAsk.
type Line struct {
	Spec *Spec
	Ask  *StreamAsk
}

// StreamAsk is a line of a stream that adds no job. The numbers in Repeats and Named are
// those of the Scanner; Jobs holds the numbers of the run.
type StreamAsk struct {
	Line    int    // its number
	ID      string // the submitter's own; "": none
	Repeats ID     // it has the id of this earlier job
	Do      string // AskCancel or AskRequeue
	Named   []ID   // jobs that were named by the submitter's ids
	Jobs    Ranges
	All     bool  // cancel: every job
	Err     error // why the line is not taken; the stream continues
}

// The keys of requests in a stream.
const (
	AskCancel  = "cancel"
	AskRequeue = "requeue"
)

// maxKey is the maximum length of a submitter's own id of a job, in bytes.
const maxKey = 256

// Stream makes s, which has read nothing, a Scanner of a stream: lines of a jobs file, and
// JSON objects, which begin with {". earlier yields the jobs of the run. New jobs get the numbers
// after theirs. Use NextLine.
func (s *Scanner) Stream(earlier iter.Seq[*Spec]) *Scanner {
	s.stream, s.lines.skip, s.id = true, true, 1
	for spec := range earlier {
		if spec != nil {
			s.remember(spec, s.id)
		}
		s.id++
	}
	return s
}

// remember makes a job known to later lines.
func (s *Scanner) remember(spec *Spec, id ID) {
	if spec.Name != "" {
		s.names = append(s.names, jobName{spec.Name, id})
	}
	if key := spec.Key(); key != "" {
		Insert(&s.keys, key, id)
	}
}

// NextLine returns the next line, or io.EOF after the last. An error in a line is in Ask.Err,
// and the line after it can be read. Any other error is final.
func (s *Scanner) NextLine() (Line, error) {
	if s.err != nil {
		return Line{}, s.err
	}
	s.ask = &StreamAsk{}
	spec, more, err := s.scan()
	switch {
	case err != nil && !more:
		s.err = err
		return Line{}, err
	case err != nil:
		s.ask.Line, s.ask.ID, s.ask.Err = s.lines.line, idOf(s.last), err
	case spec != nil:
		return Line{Spec: spec}, nil
	}
	return Line{Ask: s.ask}, nil
}

// idOf returns the id of an object that has another error, or "" if it has no id.
func idOf(line []byte) string {
	var object struct{ ID any }
	if json.Unmarshal(line, &object) != nil || object.ID == nil {
		return ""
	}
	return fmt.Sprint(object.ID)
}

// askFor parses the jobs of a request: one, a list, or true for all. A number is the job's
// number in the run, a text the submitter's own id.
func (s *Scanner) askFor(do string, v jsontext.Value) error {
	q := s.ask
	if q.Do != "" {
		return fmt.Errorf("%s and %s cannot be combined in one line", q.Do, do)
	}
	q.Do = do
	if do == AskCancel && v.Kind() == 't' {
		q.All = true
		return nil
	}
	list := []jsontext.Value{v}
	if v.Kind() == '[' {
		var err error
		if list, err = items(v); err != nil {
			return err
		}
	}
	for _, v := range list {
		text, err := scalar(do, v)
		if err != nil {
			return err
		}
		if v.Kind() == '"' {
			id, ok := s.keys[text]
			if !ok {
				return fmt.Errorf("%s: no earlier line has the id %q", do, text)
			}
			q.Named = append(q.Named, id)
			continue
		}
		r, err := ParseRanges(text)
		if err != nil {
			return fmt.Errorf("%s: %w", do, err)
		}
		q.Jobs = append(q.Jobs, r...)
	}
	return nil
}

// isObject reports whether a line of a stream is a JSON object: no command begins like that.
func isObject(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"`)) }

var errWrongDirective = errors.New("the job is not taken, because the #DCS line before it is wrong")
