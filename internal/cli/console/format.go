package console

import "dcs-tui/internal/text"

// Shorten cuts s to 100 runes.
func Shorten(s string) string { return text.Shorten(s) }

// ShortenTo cuts s to n runes.
func ShortenTo(s string, n int) string { return text.ShortenTo(s, n) }

// ShellWord quotes s so that a shell reads it as one word.
func ShellWord(s string) string { return text.ShellWord(s) }

// CleanLine makes any text safe to print as one line on a terminal.
func CleanLine(s string) string { return text.Line(s) }
