package client

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escapes are the control sequences of terminals: CSI, OSC, and two-character ones.
var escapes = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)?|[ -/]*[0-~])")

// maxLine is the most bytes of one line from a host that are shown or logged.
const maxLine = 4 << 10

// clean makes one printable line of what a host wrote: no control sequences or
// characters, none that change the direction of text, valid UTF-8, and at most
// maxLine bytes.
func clean(s string) string {
	s = escapes.ReplaceAllString(s, "")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r // what is not UTF-8 comes as U+FFFD
	}, s)
	s = strings.TrimRight(s, " ")
	if len(s) > maxLine {
		s = s[:maxLine]
		for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) {
			s = s[:len(s)-1]
		}
	}
	return s
}
