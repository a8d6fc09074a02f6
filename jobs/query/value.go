package query

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"dcs-tui/jobs"
)

// Value is what a row holds in a field: nothing, a text, or a number. The zero Value is
// nothing.
type Value struct {
	// Text is the text. For a number it is the number as written; if it is empty, String
	// makes it.
	Text string
	// Number is the nearest float of a number; NaN and the infinities are numbers. Compare compares
	// exactly.
	Number float64
	Kind   ValueKind
}

// ValueKind is what a Value holds.
type ValueKind uint8

// The kinds, in the order in which they are sorted.
const (
	Absent ValueKind = iota
	Number
	Text
)

// ValueOf reads a text as a number if it is written as one. An empty text is nothing.
func ValueOf(text string) Value {
	if v, ok := ParseNumber(text); ok {
		return Value{text, v, Number}
	}
	return TextValue(text)
}

// TextValue returns a text that is not a number even if it looks like one.
func TextValue(text string) Value {
	if text == "" {
		return Value{}
	}
	return Value{Text: text, Kind: Text}
}

// NumberValue returns a number.
func NumberValue(v float64) Value { return Value{Number: v, Kind: Number} }

// String returns the text of a value. It is "" for nothing. A number without a text is
// written in its shortest exact form, or as nan, inf, or -inf.
func (v Value) String() string {
	if v.Kind != Number || v.Text != "" {
		return v.Text
	}
	switch a := math.Abs(v.Number); {
	case math.IsNaN(a):
		return "nan"
	case math.IsInf(v.Number, 1):
		return "inf"
	case math.IsInf(v.Number, -1):
		return "-inf"
	case a == 0 || a >= 1e-4 && a < 1e15:
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	}
	return strconv.FormatFloat(v.Number, 'g', -1, 64)
}

// Compare orders numbers before NaN, NaN before texts, and texts before nothing. With
// desc, numbers and texts are in descending order; NaN and nothing still come last.
func Compare(a, b Value, desc bool) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	c := 0
	switch {
	case a.Kind == Number && !math.IsNaN(a.Number):
		c = compareNumbers(&a, &b)
	case a.Kind == Text:
		c = strings.Compare(a.Text, b.Text)
	}
	if desc {
		return -c
	}
	return c
}

// exactDigits is the number of decimal digits up to which different numbers have different floats.
const exactDigits = 15

// compareNumbers compares two numbers, neither of which is NaN, exactly. In most cases it needs no
// more than their floats, because those of two numbers are never in the wrong order.
func compareNumbers(a, b *Value) int {
	if a.Number != b.Number || math.IsInf(a.Number, 0) || a.Text == b.Text {
		return cmp.Compare(a.Number, b.Number)
	}
	if a.isShort() && b.isShort() {
		return 0
	}
	return a.decimal().Compare(b.decimal())
}

// isShort reports whether the number has so few digits that another such number has another float.
// A number near 0 may have that of 0.
func (v *Value) isShort() bool {
	return len(v.Text) <= exactDigits && (v.Number != 0 || !strings.ContainsAny(v.Text, "eE")) &&
		(v.Text != "" || v.Number == math.Trunc(v.Number) && math.Abs(v.Number) < 1<<exactDigits)
}

// decimal returns the number as it is written. Without a text it is the shortest decimal number
// that has the float.
func (v *Value) decimal() jobs.Decimal {
	d, _ := jobs.ParseDecimal(strings.TrimSuffix(v.String(), "%"))
	return d
}

func rank(v Value) int {
	switch {
	case v.Kind == Number && !math.IsNaN(v.Number):
		return 0
	case v.Kind == Number:
		return 1
	case v.Kind == Text:
		return 2
	}
	return 3
}

// ParseNumber reads a decimal number, with or without an exponent, or nan, inf, +inf,
// -inf, or infinity in any case. A % at the end is dropped: 91.3% is 91.3. Other texts
// and numbers beyond the range of float64 are not numbers. v is the nearest float.
func ParseNumber(text string) (v float64, ok bool) {
	text = strings.TrimSuffix(text, "%")
	if text == "" || len(text) > 400 {
		return 0, false
	}
	// Most texts that are not numbers show it in their first byte.
	switch c := text[0]; {
	case '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'n', c == 'N', c == 'i', c == 'I':
	default:
		return 0, false
	}
	for i := range len(text) {
		switch text[i] {
		case 'x', 'X', '_', 'p', 'P': // only Go reads these as numbers
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// Contains returns a function that reports whether a text contains s, in upper or lower
// case.
func Contains(s string) func(string) bool {
	lower := strings.ToLower(s)
	if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return func(text string) bool { return strings.Contains(strings.ToLower(text), lower) }
	}
	if lower == "" {
		return func(string) bool { return true }
	}
	// A list may have a million long commands: nothing is copied.
	first := lower[:1] + strings.ToUpper(lower[:1])
	return func(text string) bool {
		for {
			i := strings.IndexAny(text, first)
			if i < 0 || len(text)-i < len(lower) {
				return false
			}
			if strings.EqualFold(text[i:i+len(lower)], lower) {
				return true
			}
			text = text[i+1:]
		}
	}
}
