package console

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

func TestRateText(t *testing.T) {
	for rate, want := range map[float64]string{1234: "1234/s", 12.34: "12.3/s", 0.99: "1.0/s", 0.5: "30.0/min", 0.001: "3.6/h"} {
		if got := rateText(rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}
