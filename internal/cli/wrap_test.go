package cli

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// FuzzWrap checks that wrapping never breaks a line inside a word and loses no word.
func FuzzWrap(f *testing.F) {
	f.Add("  a line that is longer than it may be, and goes on", 20)
	f.Add("\x1b[31m✗ red\x1b[0m  and-a-word-that-is-wider-than-the-terminal more", 12)
	f.Add(strings.Repeat("x ", 50), 10)
	f.Add("", 1)
	f.Fuzz(func(t *testing.T, line string, width int) {
		if width < 1 || width > 1000 || strings.ContainsRune(line, '\n') || strings.Trim(line, " ") != line {
			return
		}
		got := wrap(line, width)
		if a, b := strings.Fields(got), strings.Fields(line); strings.Join(a, " ") != strings.Join(b, " ") {
			t.Errorf("%q became %q", line, got)
		}
		for i, row := range strings.Split(got, "\n") {
			if words := strings.Fields(row); ansi.StringWidth(row) > width && len(words) > 1 && i > 0 {
				t.Errorf("%q is wider than %d", row, width)
			}
		}
	})
}
