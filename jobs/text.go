package jobs

import "dcs-tui/internal/text"

// Clean is text.Clean.
func Clean(s string, limit int) string { return text.Clean(s, limit) }

// Plural is text.Plural.
func Plural(n int, thing string) string { return text.Plural(n, thing) }

// Verb is text.Verb.
func Verb(n int, one, more string) string { return text.Verb(n, one, more) }
