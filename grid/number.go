package grid

import (
	"strconv"
	"strings"

	"dcs-tui/jobs"
)

// cutAny slices s around the first of the characters. Without one, before is s.
func cutAny(s, chars string) (before, after string) {
	if i := strings.IndexAny(s, chars); i >= 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// isNumber reports whether a text is a number: 3, -0.5, .5, 1e-3.
func isNumber(s string) bool {
	_, ok := jobs.ParseDecimal(s)
	return ok
}

// rounded formats a number with the given number of significant digits.
func rounded(f float64, digits int) string {
	s := strconv.FormatFloat(f, 'e', digits-1, 64)
	if d, ok := jobs.ParseDecimal(s); ok {
		return d.String()
	}
	return s
}
