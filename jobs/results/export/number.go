package export

import (
	"math"
	"strconv"

	"dcs-tui/jobs/results"
	"dcs-tui/jobs/results/sheet"
)

// appendJSON adds a cell.
func appendJSON(b []byte, v sheet.Value) []byte {
	switch {
	case v.Kind == sheet.Nothing:
		return append(b, "null"...)
	case v.Kind == sheet.Text:
		return results.AppendText(b, v.Text)
	case math.IsNaN(v.Number):
		return append(b, `"NaN"`...)
	case math.IsInf(v.Number, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v.Number, -1):
		return append(b, `"-Infinity"`...)
	case jsonNumber(v.Text):
		return append(b, v.Text...)
	}
	return strconv.AppendFloat(b, v.Number, 'g', -1, 64) // +1, .5, 007, 91% …
}

// jsonNumber says that JSON has a number written so (RFC 8259, section 6).
func jsonNumber(s string) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	if len(s) > 1 && s[0] == '0' && '0' <= s[1] && s[1] <= '9' || !digits() {
		return false
	}
	if len(s) > 0 && s[0] == '.' {
		if s = s[1:]; !digits() {
			return false
		}
	}
	if len(s) > 0 && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; len(s) > 0 && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}
