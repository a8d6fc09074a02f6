package query

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is what a row holds in a field: nothing, a text, or a number. The zero Value is
// nothing.
type Value struct {
	// Text is the text. For a number it is the number as written; if it is empty, String
	// makes it.
	Text   string
	Number float64 // of a number; NaN and the infinities are numbers
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
		c = cmp.Compare(a.Number, b.Number)
	case a.Kind == Text:
		c = strings.Compare(a.Text, b.Text)
	}
	if desc {
		return -c
	}
	return c
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
// and numbers beyond the range of float64 are not numbers.
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
	if strings.ContainsAny(text, "xX_pP") { // only Go reads these as numbers
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// decimal is a number and a bound of its rounding error, so that 0.1 + 0.2 = 0.3 holds, as users
// expect of decimals.
type decimal struct{ v, off float64 }

// epsilon is the rounding error of one operation.
const epsilon = 0x1p-52

// decimalOf returns the decimal for a number that a user wrote. Whole numbers are exact.
func decimalOf(v float64) decimal {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return decimal{v, 0}
	}
	return decimal{v, math.Abs(v) * epsilon / 2}
}

func calculate(op string, a, b decimal) decimal {
	var r decimal
	switch op {
	case "+":
		r = decimal{a.v + b.v, a.off + b.off}
	case "-":
		r = decimal{a.v - b.v, a.off + b.off}
	case "*":
		r = decimal{a.v * b.v, math.Abs(a.v)*b.off + math.Abs(b.v)*a.off}
	case "/":
		r.v = a.v / b.v
		r.off = (a.off + math.Abs(r.v)*b.off) / math.Abs(b.v)
	case "%":
		q := math.Trunc(a.v / b.v)
		r = decimal{math.Mod(a.v, b.v), a.off + math.Abs(q)*b.off}
		if math.Abs(b.v)-math.Abs(r.v) <= r.off {
			r.v = 0 // 0.3 % 0.1
		}
	}
	if r.v != math.Trunc(r.v) || math.Abs(r.v) >= 1<<53 {
		r.off += math.Abs(r.v) * epsilon
	}
	return r
}

// unordered is what compare returns if one of the numbers is NaN.
const unordered = 2

// compare returns -1, 0, 1, or unordered. Two NaN are equal.
func (d decimal) compare(e decimal) int {
	switch {
	case math.IsNaN(d.v) && math.IsNaN(e.v):
		return 0
	case math.IsNaN(d.v) || math.IsNaN(e.v):
		return unordered
	case d.v == e.v || math.Abs(d.v-e.v) <= min(d.off+e.off, math.MaxFloat64):
		return 0
	case d.v < e.v:
		return -1
	}
	return 1
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
