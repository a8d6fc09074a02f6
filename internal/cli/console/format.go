package console

import (
	"strings"

	"dcs-tui/jobs"
)

// Shorten cuts a text of the user's for a message.
func Shorten(s string) string { return ShortenTo(s, 100) }

// ShortenTo cuts it to n runes.
func ShortenTo(s string, n int) string {
	if c := cut(s, n); c != s {
		return cut(s, n-1) + "…"
	}
	return s
}

// ShellWord quotes s so that a shell reads it as one word; plain words stay as
// they are. Used for commands that a message suggests.
func ShellWord(s string) string {
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

// CleanLine makes any text fit to be one line on a terminal.
func CleanLine(s string) string {
	return jobs.Clean(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; "), 0)
}
