package metrics

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"dcs-tui/jobs/results"
)

// MaxValue is the maximum length of a value, in bytes.
const MaxValue = 1000

// Text is the end of an output or of a file, in which metrics are searched for. It is not safe
// for concurrent use.
type Text struct {
	lines []byte // whole lines
	words []byte // lines, preceded by the last part of the line before, from the start of a word
	whole bool   // lines holds the whole text

	decoded *jsonLine // line decoded last: most metrics are on the same line
	doc     *jsonLine // the whole text decoded as one document
}

// lineEnds end a line: a progress line that is overwritten ends with only a carriage return.
const lineEnds = "\n\r"

// NewText makes a Text of data, which must not change while the Text is used. whole means that
// nothing precedes data. Otherwise the first line of data is incomplete, and only its whole words
// are used. Colors are removed.
func NewText(data []byte, whole bool) *Text {
	data = withoutColors(data)
	if whole {
		data = bytes.TrimPrefix(data, []byte("\uFEFF")) // a byte order mark
		return &Text{lines: data, words: data, whole: true}
	}
	after := func(ends string) []byte {
		if i := bytes.IndexAny(data, ends); i >= 0 {
			return data[i+1:]
		}
		return nil
	}
	return &Text{lines: after(lineEnds), words: after(lineEnds + " \t")}
}

// withoutColors removes the escape sequences that color text or clear the rest of a line. Within a
// value they would end it.
func withoutColors(b []byte) []byte {
	start := []byte("\x1b[")
	if !bytes.Contains(b, start) {
		return b
	}
	plain := make([]byte, 0, len(b))
	for {
		i := bytes.Index(b, start)
		if i < 0 {
			return append(plain, b...)
		}
		end := i + len(start)
		for end < len(b) && ('0' <= b[end] && b[end] <= '9' || b[end] == ';' || b[end] == ':') {
			end++
		}
		if end < len(b) && (b[end] == 'm' || b[end] == 'K') {
			plain, b = append(plain, b[:i]...), b[end+1:]
		} else {
			plain, b = append(plain, b[:end]...), b[end:]
		}
	}
}

// Find returns the last value of the metric in the text, or "" if there is none.
func (c *Metric) Find(t *Text) string {
	switch {
	case c.expr != nil:
		return c.findRE(t.lines)
	case c.path != nil:
		return c.findJSON(t)
	}
	return c.findKey(t.words)
}

// limitValue cuts a value to MaxValue bytes, not within a character.
func limitValue(b []byte) string {
	if n := MaxValue; len(b) > n {
		for n > MaxValue-utf8.UTFMax && !utf8.RuneStart(b[n]) {
			n--
		}
		b = b[:n]
	}
	return string(b)
}

// linesBackward calls f with each line, the last first, until it returns true.
func linesBackward(data []byte, f func(line []byte) bool) {
	for len(data) > 0 {
		end := len(data)
		if strings.IndexByte(lineEnds, data[end-1]) >= 0 {
			end--
		}
		start := end
		for start > 0 && data[start-1] != '\n' && data[start-1] != '\r' {
			start--
		}
		if f(data[start:end]) {
			return
		}
		data = data[:start]
	}
}

// findRE matches each line separately, so that the result does not depend on how much of an
// output was read.
func (c *Metric) findRE(data []byte) (value string) {
	linesBackward(data, func(line []byte) bool {
		all := c.expr.FindAllSubmatchIndex(line, -1)
		for i := len(all) - 1; i >= 0 && value == ""; i-- {
			if from, to := all[i][2], all[i][3]; from >= 0 {
				value = limitValue(bytes.TrimSpace(line[from:to]))
			}
		}
		return value != ""
	})
	return value
}

// findKey looks for the last `key=value` or `key: value`.
func (c *Metric) findKey(data []byte) string {
	for end := len(data); ; {
		i := bytes.LastIndex(data[:end], []byte(c.key))
		if i < 0 {
			return ""
		}
		if !endsInWord(data[:i]) {
			if v := valueAfter(data[i+len(c.key):]); v != "" {
				return v
			}
		}
		end = i + len(c.key) - 1
	}
}

// endsInWord reports whether the text after b is only the end of a name: `acc` in `val_acc`.
func endsInWord(b []byte) bool {
	r, _ := utf8.DecodeLastRune(b)
	return len(b) > 0 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-/@", r))
}

// valueAfter reads the value after a name, as in `=0.9`, `: 0.9`, or `" : "a b"`. It returns "" if
// there is none.
func valueAfter(b []byte) string {
	if len(b) > 0 && (b[0] == '"' || b[0] == '\'') {
		b = b[1:]
	}
	b = skipBlanks(b)
	switch {
	case len(b) > 1 && b[0] == ':' && b[1] == '=':
		b = b[2:]
	case len(b) > 1 && b[0] == '=' && b[1] == '=': // a comparison
		return ""
	case len(b) > 0 && (b[0] == '=' || b[0] == ':'):
		b = b[1:]
	default:
		return ""
	}
	b = skipBlanks(b)
	// Nothing beyond MaxValue is read, because there may be a megabyte of brackets.
	b = b[:min(len(b), MaxValue+utf8.UTFMax)]
	for _, end := range []byte(lineEnds) {
		if i := bytes.IndexByte(b, end); i >= 0 {
			b = b[:i]
		}
	}
	if len(b) > 1 && (b[0] == '"' || b[0] == '\'') {
		rest := b[1:]
		if i := bytes.IndexByte(rest, b[0]); i >= 0 {
			return limitValue(rest[:i])
		} else if len(rest) >= MaxValue {
			return limitValue(rest)
		}
	}
	i := valueEnd(b)
	value := trimClosing(b[:i])
	if rest := b[i:]; len(value) == i && len(rest) > 1 && rest[0] == ' ' {
		word := rest[1:]
		if end := bytes.IndexAny(word, " \t,;)]}"); end >= 0 {
			word = word[:end]
		}
		word = bytes.TrimSuffix(word, []byte{'.'})
		if _, unit := results.CutUnit(string(value) + " " + string(word)); unit != "" { // 3 ms
			value = b[:i+1+len(word)]
		}
	}
	return limitValue(value)
}

// valueEnd returns the length of the value at the start of a line without quotes: up to a blank, a
// comma, or a semicolon that is not in brackets that the value opens. Brackets that are not closed
// in the line do not count.
func valueEnd(b []byte) int {
	ends := func(i int) bool {
		return b[i] <= ' ' || b[i] == ',' && !isWithinDigits(b, i) || b[i] == ';' || b[i] == 0x7f
	}
	i, opened := 0, 0 // brackets before i
	plain := -1       // the end if brackets do not count; -1: not reached
	for ; i < len(b); i++ {
		switch {
		case ends(i) && plain < 0 && opened > 0:
			plain = i
		case ends(i) && opened == 0:
			return i
		case b[i] == '(' || b[i] == '[' || b[i] == '{':
			opened++
		case (b[i] == ')' || b[i] == ']' || b[i] == '}') && opened > 0:
			opened--
			if opened == 0 {
				plain = -1
			}
		}
	}
	if opened > 0 && plain >= 0 {
		return plain
	}
	return i
}

// isWithinDigits reports whether there are digits on both sides. 1,234.5 may mean 1 or 1234.5, so
// it stays a text, which the user notices.
func isWithinDigits(b []byte, i int) bool {
	digit := func(i int) bool { return 0 <= i && i < len(b) && '0' <= b[i] && b[i] <= '9' }
	return digit(i-1) && digit(i+1)
}

// trimClosing removes punctuation at the end of a value, and closing brackets that the value does
// not open.
func trimClosing(b []byte) []byte {
	for len(b) > 0 {
		last := b[len(b)-1]
		bracket := strings.IndexByte(")]}", last)
		if last != '.' && bracket < 0 || bracket >= 0 && bytes.IndexByte(b, "([{"[bracket]) >= 0 {
			return b
		}
		b = b[:len(b)-1]
	}
	return b
}

func skipBlanks(b []byte) []byte { return bytes.TrimLeft(b, " \t") }
