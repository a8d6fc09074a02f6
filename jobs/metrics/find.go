package metrics

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxValue is how many bytes of a value are kept.
const MaxValue = 1000

// Text is what there is to search: the end of an output or of a file. Several
// columns are looked for in one Text; it is not safe for concurrent use.
type Text struct {
	lines []byte // whole lines
	words []byte // the same, and the end of the line before, from a word's beginning on
	whole bool   // lines is all of it

	decoded *jsonLine // the line that was decoded last: most columns want the same
	doc     *jsonLine // lines as one document
}

// lineEnds end a line: a progress line that is written over ends with a return alone.
const lineEnds = "\n\r"

// NewText makes a Text of data, which must not change while it is used. whole says
// that nothing stands before data; otherwise its first line is only the end of one, of
// which whole words alone say something. Colours are taken out.
func NewText(data []byte, whole bool) *Text {
	data = uncolored(data)
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

// uncolored takes out what colors a terminal's text (and clears the rest of a line,
// which some write with it): in the midst of a value it would end it.
func uncolored(b []byte) []byte {
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

// Find returns the column's value: the last one in the text.
func (c *Metric) Find(t *Text) (value string, ok bool) {
	switch {
	case c.expr != nil:
		value = c.findRE(t.lines)
	case c.path != nil:
		value = c.findJSON(t)
	default:
		value = c.findKey(t.words)
	}
	return value, value != ""
}

// bound cuts a value to MaxValue bytes, not within a character.
func bound(b []byte) string {
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

// findRE tries each line apart, so that what is found does not depend on how much
// of an output was read.
func (c *Metric) findRE(data []byte) (value string) {
	linesBackward(data, func(line []byte) bool {
		all := c.expr.FindAllSubmatchIndex(line, -1)
		for i := len(all) - 1; i >= 0 && value == ""; i-- {
			if from, to := all[i][2], all[i][3]; from >= 0 {
				value = bound(bytes.TrimSpace(line[from:to]))
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
		if !wordBefore(data[:i]) {
			if v := valueAfter(data[i+len(c.key):]); v != "" {
				return v
			}
		}
		end = i + len(c.key) - 1
	}
}

// wordBefore reports whether what follows b is only the end of a name: `acc` in `val_acc`.
func wordBefore(b []byte) bool {
	r, _ := utf8.DecodeLastRune(b)
	return len(b) > 0 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_.-/@", r))
}

// valueAfter reads what follows a name: `=0.9`, `: 0.9`, `" : "a b"`; "" if that is
// no value.
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
	// Nothing beyond a value's bound is looked at: there may be a megabyte of brackets.
	b = b[:min(len(b), MaxValue+utf8.UTFMax)]
	for _, end := range []byte(lineEnds) {
		if i := bytes.IndexByte(b, end); i >= 0 {
			b = b[:i]
		}
	}
	if len(b) > 1 && (b[0] == '"' || b[0] == '\'') {
		rest := b[1:]
		if i := bytes.IndexByte(rest, b[0]); i >= 0 {
			return bound(rest[:i])
		} else if len(rest) >= MaxValue {
			return bound(rest)
		}
	}
	i := 0
	for i < len(b) && b[i] > ' ' && (b[i] != ',' || withinDigits(b, i)) && b[i] != ';' && b[i] != 0x7f {
		i++
	}
	return bound(trimClosing(b[:i]))
}

// withinDigits reports whether digits stand on both sides: of 1,234.5 neither 1 nor 1234.5 is
// taken for the number, which may be meant as either; it is a text, and so found out.
func withinDigits(b []byte, i int) bool {
	digit := func(i int) bool { return 0 <= i && i < len(b) && '0' <= b[i] && b[i] <= '9' }
	return digit(i-1) && digit(i+1)
}

// trimClosing takes away what ends a sentence or a bracket that was opened before.
func trimClosing(b []byte) []byte {
	for len(b) > 0 {
		open := byte(0)
		switch b[len(b)-1] {
		case '.':
		case ')':
			open = '('
		case ']':
			open = '['
		case '}':
			open = '{'
		default:
			return b
		}
		if open != 0 && bytes.IndexByte(b, open) >= 0 {
			return b
		}
		b = b[:len(b)-1]
	}
	return b
}

func skipBlanks(b []byte) []byte { return bytes.TrimLeft(b, " \t") }
