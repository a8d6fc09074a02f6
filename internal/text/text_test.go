package text

import (
	"os/exec"
	"strings"
	"testing"
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
