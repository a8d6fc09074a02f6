package jobs

import (
	"strconv"
	"strings"
)

// ReadProgress reads DCS_PROGRESS: "0.42", "42%" or "21/50". A text of another form has
// the share -1 and is returned as said.
func ReadProgress(text string) (share float64, said string) {
	const longest = 64
	text = strings.TrimSpace(text[:min(len(text), longest)])
	number := func(s string) (float64, bool) {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		return f, err == nil
	}
	share = -1
	if s, ok := strings.CutSuffix(text, "%"); ok {
		if f, ok := number(s); ok {
			share = f / 100
		}
	} else if s, of, ok := strings.Cut(text, "/"); ok {
		a, ok1 := number(s)
		n, ok2 := number(of)
		if ok1 && ok2 && n > 0 {
			share = a / n
		}
	} else if f, ok := number(text); ok {
		share = f
	}
	if share >= 0 && share <= 1 {
		return share, ""
	}
	return -1, text
}
