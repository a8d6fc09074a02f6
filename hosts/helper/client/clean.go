package client

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// escapes are the control sequences of terminals: CSI, OSC, and two-character ones.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)?|[ -/]*[0-~])")
})

// maxLine is the most bytes of one line from a host that are shown or logged.
const maxLine = 4 << 10

// clean makes one printable line of what a host wrote: no control sequences or
// characters, none that change the direction of text, valid UTF-8, and at most
// maxLine bytes. jobs.Clean shows in pictures what it replaces; here that is left out:
// it is the colours and titles of somebody's rc files, and hides what they say.
func clean(s string) string {
	s = escapes().ReplaceAllString(s, "")
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
		s = strings.ToValidUTF8(s[:maxLine], "") // the last character may have been cut
	}
	return s
}
