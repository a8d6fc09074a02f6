package jobs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxParseErrors is the maximum number of errors of a file that are shown.
const maxParseErrors = 10

// IsJSONLines reports whether a jobs file of that name holds JSON objects.
func IsJSONLines(name string) bool { return strings.EqualFold(filepath.Ext(name), ".jsonl") }

// Parse parses a jobs file, which has one shell command per line. Blank lines and lines that begin
// with # are ignored. A line that ends in \ continues in the next, as in sh. `#DCS key=value …` sets
// options of the next job, `#DCS default …` those of all jobs after it. An empty value resets an
// option to the run's default. With jsonl, each line is a JSON object with the same keys and
// "command". The name is used in messages.
//
// The first job gets the number first, and after= refers to numbers. Equal options are one
// shared value. An error has a line for each of up to ten faults, with file and line. A file
// without a job is an error.
func Parse(r io.Reader, name string, jsonl bool, first ID) ([]*Spec, error) {
	return NewScanner(r, name, jsonl, first).All()
}

// ParseAgain parses the lines of a jobs file that was accepted before, perhaps by an older program.
// It accepts what is only a probable mistake.
func ParseAgain(r io.Reader, name string, first ID) ([]*Spec, error) {
	s := NewScanner(r, name, false, first)
	s.again = true
	return s.All()
}

// All returns all jobs, or up to maxParseErrors errors.
func (s *Scanner) All() ([]*Spec, error) {
	name := s.name
	var specs []*Spec
	var faults []error
	for {
		spec, more, err := s.scan()
		switch {
		case err == io.EOF && len(faults) > 0:
			return nil, errors.Join(faults...)
		case err == io.EOF && len(specs) == 0:
			return nil, fmt.Errorf("%s: there is no job in it; write one shell command per line", name)
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
			faults = append(faults,
				fmt.Errorf("%s: there may be more errors; these are the first %d", name, maxParseErrors))
			return nil, errors.Join(faults...)
		}
	}
}

// keyValue is one option of a #DCS line.
type keyValue struct{ key, value string }

// isShared reports whether the option is one of Options, which jobs share.
func (kv keyValue) isShared() bool { return kv.key != "name" && kv.key != "after" }

// isDirective reports whether a line (without leading blanks) is a #DCS line.
func isDirective(line []byte) bool { return len(line) >= 4 && string(line[:4]) == "#DCS" }

// parseDirective parses the text after #DCS.
func parseDirective(text string) (isDefault bool, options []keyValue, err error) {
	if text != "" && text[0] != ' ' && text[0] != '\t' {
		return false, nil, fmt.Errorf("a space must follow #DCS: #DCS key=value")
	}
	rest := strings.TrimLeft(text, " \t")
	if after, ok := strings.CutPrefix(rest, "default"); ok && (after == "" || after[0] == ' ' || after[0] == '\t') {
		isDefault, rest = true, strings.TrimLeft(after, " \t")
	}
	for rest != "" {
		var kv keyValue
		if kv, rest, err = nextOption(rest); err != nil {
			return isDefault, nil, err
		}
		for _, earlier := range options {
			if earlier.key == kv.key {
				return isDefault, nil, fmt.Errorf("%s is given twice", kv.key)
			}
		}
		options = append(options, kv)
	}
	if len(options) == 0 {
		return isDefault, nil, fmt.Errorf("no option follows: write key=value, for example #DCS timeout=2h")
	}
	return isDefault, options, nil
}

// nextOption parses the key=value at the beginning of s, which is not empty and does not begin
// with a blank.
func nextOption(s string) (kv keyValue, rest string, err error) {
	end := strings.IndexAny(s, "= \t")
	if end < 0 {
		end = len(s)
	}
	kv.key, rest = s[:end], s[end:]
	if rest == "" || rest[0] != '=' {
		if strings.HasPrefix(strings.TrimLeft(rest, " \t"), "=") {
			return kv, "", fmt.Errorf("write %s=value without spaces around the =", kv.key)
		}
		return kv, "", fmt.Errorf(
			"unknown directive %q: after #DCS come options as key=value, or the word default and then options", kv.key,
		)
	}
	if kv.value, rest, err = nextValue(rest[1:]); err != nil {
		return kv, "", fmt.Errorf("%s: %w", kv.key, err)
	}
	return kv, strings.TrimLeft(rest, " \t"), nil
}

// nextValue parses a bare word or a text in quotes.
func nextValue(s string) (value, rest string, err error) {
	if s == "" || s[0] != '\'' && s[0] != '"' {
		end := strings.IndexAny(s, " \t")
		if end < 0 {
			end = len(s)
		}
		if strings.ContainsAny(s[:end], `'"`) {
			return "", "", fmt.Errorf("a quote inside the value %s: put the whole value in quotes", s[:end])
		}
		return s[:end], s[end:], nil
	}
	value, rest, ok := CutQuoted(s)
	switch {
	case !ok:
		return "", "", fmt.Errorf("the closing %c is missing", s[0])
	case rest != "" && rest[0] != ' ' && rest[0] != '\t':
		return "", "", fmt.Errorf("a space must follow the closing quote")
	}
	return value, rest, nil
}

// CutQuoted parses the quoted text at the beginning of s: 'a text' without escapes, or "a text" in
// which \" and \\ mean " and \. ok is false if the closing quote is missing.
func CutQuoted(s string) (text, rest string, ok bool) {
	var out []byte
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return string(out), s[i+1:], true
		case s[0] == '"' && s[i] == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		}
		out = append(out, s[i])
	}
	return "", "", false
}

// isMisspeltDirective reports whether a comment was probably meant as a #DCS line: it has DCS in
// another case or after blanks, and then an option.
func isMisspeltDirective(line []byte) bool {
	if len(line) > 200 {
		line = line[:200]
	}
	word, rest, _ := strings.Cut(strings.TrimLeft(string(line[1:]), " \t"), " ")
	next, _, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
	return strings.EqualFold(word, "DCS") && (next == "default" || strings.IndexByte(next, '=') > 0)
}

// maxLine is the maximum length of a line of a jobs file, in bytes. Without it, a file of
// another kind could be read into memory completely.
const maxLine = 4 << 20

// lineReader reads the lines of a jobs file, each as soon as it is complete.
type lineReader struct {
	r    *bufio.Reader
	line int    // number of the last line
	long []byte // a line that does not fit the reader's buffer
	skip bool   // continue after a line that is too long

	failed bool // r has failed
}

// errNotText ends the reading of a file.
var errNotText = errors.New("this is not a text file: a jobs file has one shell command per line")

// next returns a line without its end (\n or \r\n). The line is valid until the next call. At
// the end, next returns io.EOF. After another error, the next line can be read unless failed
// is set.
func (l *lineReader) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if err == nil && len(l.long) == 0 {
			l.line++
			return l.clean(part)
		}
		l.long = append(l.long, part...)
		switch {
		case err == nil || err == io.EOF && len(l.long) > 0:
			l.line++
			return l.clean(l.long)
		case err != bufio.ErrBufferFull:
			l.failed = err != io.EOF
			return nil, err
		case len(l.long) > maxLine:
			for l.skip && err == bufio.ErrBufferFull {
				_, err = l.r.ReadSlice('\n')
			}
			l.line++
			return nil, fmt.Errorf("the line is longer than %d MiB; put the work into a script and call that",
				maxLine>>20)
		}
	}
}

func (l *lineReader) clean(line []byte) ([]byte, error) {
	if l.line == 1 {
		if bytes.HasPrefix(line, []byte("\xff\xfe")) || bytes.HasPrefix(line, []byte("\xfe\xff")) {
			return nil, errors.New("this is UTF-16 text: save it as UTF-8")
		}
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return nil, fmt.Errorf("%w; it holds a NUL byte", errNotText)
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// IsContinued reports whether a line ends in a backslash that is not itself escaped.
func IsContinued(line []byte) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// errStrayBlank is the error for a line that only seems to continue in the next.
var errStrayBlank = errors.New(`a space follows the \ at the end of this line, so the line does not continue: ` +
	`remove the space, or put it in quotes if it is intended`)

// StrayBlankColumn returns the column of a blank after the \ at the end of a line, which editors do
// not show, or 0.
func StrayBlankColumn(line []byte) int {
	bare := bytes.TrimRight(line, Blanks)
	if len(bare) == len(line) || !IsContinued(bare) {
		return 0
	}
	return utf8.RuneCount(bare) + 1
}

// Blanks holds the blanks that may precede a command. A line of blanks is empty.
const Blanks = " \t\r\v\f"
