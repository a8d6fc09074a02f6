package query

import (
	"strings"
	"unicode/utf8"
)

// Contains returns a function that reports whether a text contains s, in upper or lower
// case.
func Contains(s string) func(string) bool {
	lower := strings.ToLower(s)
	if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return func(text string) bool { return strings.Contains(strings.ToLower(text), lower) }
	}
	if lower == "" {
		return func(string) bool { return true }
	}
	// A list may have a million long commands: nothing is copied.
	first, k := lower[0], len(lower)
	capital := first
	if 'a' <= first && first <= 'z' {
		capital -= 'a' - 'A'
	}
	return func(text string) bool {
		for i := 0; i+k <= len(text); i++ {
			if c := text[i]; (c == first || c == capital) && equalFold(text[i:i+k], lower) {
				return true
			}
		}
		return false
	}
}

// equalFold compares a text with an ASCII text in lower case of the same length.
func equalFold(text, lower string) bool {
	for i := range len(lower) {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
