package column

import (
	"strconv"
	"strings"
)

// Number reads a value as a number: decimal, with an exponent or not, nan, inf,
// +inf, -inf and infinity in any case (IEEE 754 then says what follows from them).
// A % behind it is dropped: 91.3% is 91.3. ok is false for all other texts, and for
// numbers that are too large for a float64.
func Number(text string) (v float64, ok bool) {
	text = strings.TrimSuffix(text, "%")
	if text == "" || len(text) > 400 {
		return 0, false
	}
	// Most texts that are no number show it in their first byte.
	switch c := text[0]; {
	case '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'n', c == 'N', c == 'i', c == 'I':
	default:
		return 0, false
	}
	if strings.ContainsAny(text, "xX_pP") { // what only Go takes for a number
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}
