package sheet

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"dcs-tui/jobs/results/column"
)

// Value is a cell: nothing, a text, or a number with the text in which it was
// written. The zero Value is nothing.
type Value struct {
	Text   string
	Number float64 // of a number; NaN and the infinities are numbers
	Kind   Kind
}

// Kind is what a cell holds.
type Kind uint8

// The kinds, in the order in which they are sorted.
const (
	Nothing Kind = iota
	Number
	Text
)

// ValueOf reads a text, "" as nothing.
func ValueOf(text string) Value {
	if text == "" {
		return Value{}
	}
	if v, ok := column.Number(text); ok {
		return Value{text, v, Number}
	}
	return Value{Text: text, Kind: Text}
}

// TextValue is a text that is no number whatever it looks like.
func TextValue(text string) Value {
	if text == "" {
		return Value{}
	}
	return Value{Text: text, Kind: Text}
}

// NumberValue makes a cell of a computed number: its shortest exact text; nan, inf
// and -inf for those.
func NumberValue(v float64) Value {
	text := ""
	switch {
	case math.IsNaN(v):
		text = "nan"
	case math.IsInf(v, 1):
		text = "inf"
	case math.IsInf(v, -1):
		text = "-inf"
	default:
		text = strconv.FormatFloat(v, 'g', -1, 64)
		if a := math.Abs(v); a >= 1e-4 && a < 1e15 {
			text = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	return Value{text, v, Number}
}

func countValue(n int64) Value { return Value{strconv.FormatInt(n, 10), float64(n), Number} }

// compareValues orders numbers, then NaN, then texts, then nothing; desc turns numbers
// round and texts, and leaves NaN and nothing behind them.
func compareValues(a, b Value, desc bool) int {
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
