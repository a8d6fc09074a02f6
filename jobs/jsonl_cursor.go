package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonCursor reads JSON text piece by piece. encoding/json would do, but not
// for a million lines in a second, and it replaces bytes that are not UTF-8.
type jsonCursor struct {
	b       []byte
	i       int
	scratch []byte // unescaped string, valid until the next call of str
}

var errJSONEnd = errors.New("the JSON text ends too early")

// space skips blanks.
func (c *jsonCursor) space() {
	for c.i < len(c.b) && (c.b[c.i] == ' ' || c.b[c.i] == '\t' || c.b[c.i] == '\r' || c.b[c.i] == '\n') {
		c.i++
	}
}

// lit skips text and says whether it was there.
func (c *jsonCursor) lit(text string) bool {
	if end := c.i + len(text); end <= len(c.b) && string(c.b[c.i:end]) == text {
		c.i = end
		return true
	}
	return false
}

// peek returns the next byte, 0 at the end.
func (c *jsonCursor) peek() byte {
	if c.i < len(c.b) {
		return c.b[c.i]
	}
	return 0
}

// str reads a string. The result is valid until the next call. Bytes that are
// not UTF-8 pass through unchanged.
func (c *jsonCursor) str() ([]byte, error) {
	if c.peek() != '"' {
		return nil, c.want("a string in double quotes")
	}
	start := c.i + 1
	for k := start; k < len(c.b); k++ {
		switch ch := c.b[k]; {
		case ch == '"':
			c.i = k + 1
			return c.b[start:k], nil
		case ch == '\\':
			return c.escaped(start, k)
		case ch < ' ':
			return nil, fmt.Errorf("a control character (byte 0x%02x) in a JSON string: write it as \\u%04x", ch, ch)
		}
	}
	return nil, errJSONEnd
}

// escaped goes on where str met the first backslash, at k.
func (c *jsonCursor) escaped(start, k int) ([]byte, error) {
	out := append(c.scratch[:0], c.b[start:k]...)
	defer func() { c.scratch = out }()
	for k < len(c.b) {
		ch := c.b[k]
		switch {
		case ch == '"':
			c.i = k + 1
			return out, nil
		case ch < ' ':
			return nil, fmt.Errorf("a control character (byte 0x%02x) in a JSON string: write it as \\u%04x", ch, ch)
		case ch != '\\':
			out = append(out, ch)
			k++
			continue
		}
		if k+1 >= len(c.b) {
			return nil, errJSONEnd
		}
		if c.b[k+1] == 'u' {
			r, n, err := unicodeEscape(c.b[k:])
			if err != nil {
				return nil, err
			}
			out = utf8.AppendRune(out, r)
			k += n
			continue
		}
		at := bytes.IndexByte([]byte(`"\/bfnrt`), c.b[k+1])
		if at < 0 {
			return nil, fmt.Errorf("unknown escape %q in a JSON string", c.b[k:k+2])
		}
		out = append(out, "\"\\/\b\f\n\r\t"[at])
		k += 2
	}
	return nil, errJSONEnd
}

// unicodeEscape reads \uXXXX, or two of them that form a surrogate pair.
func unicodeEscape(b []byte) (r rune, n int, err error) {
	one := func(b []byte) (rune, bool) {
		if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
			return 0, false
		}
		v, err := strconv.ParseUint(string(b[2:6]), 16, 32)
		return rune(v), err == nil
	}
	r, ok := one(b)
	if !ok {
		return 0, 0, fmt.Errorf("\\u in a JSON string needs four hexadecimal digits")
	}
	if !utf16.IsSurrogate(r) {
		return r, 6, nil
	}
	low, _ := one(b[6:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, 0, fmt.Errorf("half of a surrogate pair (%s) in a JSON string", b[:6])
	}
	return r, 12, nil
}

// number returns the text of a number as JSON defines it.
func (c *jsonCursor) number() ([]byte, error) {
	start, k := c.i, c.i
	digits := func() bool {
		from := k
		for k < len(c.b) && c.b[k] >= '0' && c.b[k] <= '9' {
			k++
		}
		return k > from
	}
	skip := func(set string) bool {
		if k < len(c.b) && bytes.IndexByte([]byte(set), c.b[k]) >= 0 {
			k++
			return true
		}
		return false
	}
	skip("-")
	zero := k < len(c.b) && c.b[k] == '0'
	first := k
	if !digits() || zero && k > first+1 {
		return nil, c.want("a number")
	}
	if skip(".") && !digits() {
		return nil, c.want("a number")
	}
	if skip("eE") {
		skip("+-")
		if !digits() {
			return nil, c.want("a number")
		}
	}
	c.i = k
	return c.b[start:k], nil
}

// integer reads a number without fraction that fits an int64.
func (c *jsonCursor) integer() (int64, error) {
	text, err := c.number()
	if err != nil {
		return 0, err
	}
	if len(text) < 10 && text[0] != '-' { // the common case, without an allocation
		n := int64(0)
		for _, ch := range text {
			if ch < '0' || ch > '9' {
				return 0, fmt.Errorf("%s is not an integer", text)
			}
			n = 10*n + int64(ch-'0')
		}
		return n, nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not an integer of 64 bits", text)
	}
	return n, nil
}

// want says what was expected where the cursor stands.
func (c *jsonCursor) want(what string) error {
	if c.i >= len(c.b) {
		return errJSONEnd
	}
	return fmt.Errorf("expected %s at character %d, found %q", what, c.i+1, c.b[c.i:min(len(c.b), c.i+12)])
}

// appendJSONString writes s as a JSON string, or, when s is not valid UTF-8,
// as {"b64":"…"}: JSON cannot hold such bytes, and they must survive.
func appendJSONString(b []byte, s string) []byte {
	plain, ascii := true, true
	for i := 0; i < len(s); i++ {
		ch := s[i]
		plain = plain && ch >= ' ' && ch != '"' && ch != '\\'
		ascii = ascii && ch < utf8.RuneSelf
	}
	if !ascii && !utf8.ValidString(s) {
		return appendBase64(b, s)
	}
	b = append(b, '"')
	if plain {
		return append(append(b, s...), '"')
	}
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case ch == '"' || ch == '\\':
			b = append(b, '\\', ch)
		case ch == '\n':
			b = append(b, '\\', 'n')
		case ch == '\t':
			b = append(b, '\\', 't')
		case ch < ' ':
			b = append(b, '\\', 'u', '0', '0', "01"[ch>>4], "0123456789abcdef"[ch&15])
		default:
			b = append(b, ch)
		}
	}
	return append(b, '"')
}
