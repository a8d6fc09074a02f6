package cli

import (
	"strings"

	"dcs-tui/jobs"
)

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

// cleanLine makes any text fit to be one line on a terminal.
func cleanLine(s string) string {
	return jobs.Clean(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; "), 0)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
