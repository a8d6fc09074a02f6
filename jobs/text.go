package jobs

import "dcs-tui/internal/text"

// Clean is text.Clean.
func Clean(s string, limit int) string { return text.Clean(s, limit) }

// Plural is text.Plural.
func Plural(n int, thing string) string { return text.Plural(n, thing) }
