package text

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// FuzzShellWord checks that a shell reads a quoted word as the original text. Commands in messages
// depend on that.
func FuzzShellWord(f *testing.F) {
	for _, s := range []string{"plain-1.txt", "", "a b", "it's", "$HOME", "a\\b", "#x", "~root", "*", "-n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) {
			return // an argument cannot contain NUL
		}
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+ShellWord(s)).Output()
		if err != nil || string(out) != s && !strings.HasPrefix(s, "-") {
			t.Errorf("%q became %q (%v)", s, out, err)
		}
	})
}

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
		got := Wrap(line, width)
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
