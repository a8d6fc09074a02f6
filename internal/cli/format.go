package cli

import (
	"fmt"
	"strings"

	"dcs-tui/jobs"
)

// rateText writes a rate in the unit that gives a readable number.
func rateText(perSecond float64) string {
	switch {
	case perSecond >= 100:
		return fmt.Sprintf("%.0f/s", perSecond)
	case perSecond >= 0.95:
		return fmt.Sprintf("%.1f/s", perSecond)
	case perSecond*60 >= 1:
		return fmt.Sprintf("%.1f/min", perSecond*60)
	}
	return fmt.Sprintf("%.1f/h", perSecond*3600)
}

// plural writes "1 job", "2 jobs".
func plural(n int, what string) string { return jobs.Plural(n, what) }

// shorten cuts a text of the user's for a message.
func shorten(s string) string { return shortenTo(s, 100) }

func shortenTo(s string, n int) string {
	if c := cut(s, n); c != s {
		return cut(s, n-1) + "…"
	}
	return s
}

// shellWord quotes s so that a shell reads it as one word; plain words stay as
// they are. Used for commands that a message suggests.
func shellWord(s string) string {
	plain := s != ""
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_-./,:=@%+", c) >= 0) {
			plain = false
		}
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
