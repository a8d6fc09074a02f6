package text

import (
	"os/exec"
	"strings"
	"testing"
)

// A command that a message suggests must mean to a shell what it says.
func FuzzShellWord(f *testing.F) {
	for _, s := range []string{"plain-1.txt", "", "a b", "it's", "$HOME", "a\\b", "#x", "~root", "*", "-n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.ContainsRune(s, 0) {
			return // no argument can hold it
		}
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+ShellWord(s)).Output()
		if err != nil || string(out) != s && !strings.HasPrefix(s, "-") {
			t.Errorf("%q became %q (%v)", s, out, err)
		}
	})
}
