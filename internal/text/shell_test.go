package text

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestShellCommandRunsAVector checks that every shell runs exactly the program and the arguments
// that were quoted, also if the name of the program is a reserved word or looks like an assignment.
func TestShellCommandRunsAVector(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf '<%s>' \"${0##*/}\" \"$@\"\n"
	for _, name := range []string{"a b", "if", "time", "x=1", "done"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, shell := range []string{"sh", "bash", "dash", "ksh", "zsh", "fish"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		for _, c := range []struct {
			words []string
			want  string
		}{
			{[]string{"printf", "<%s>", "a b", "", "$HOME", "it's", "x=1", "=ls", "*", "~", "#", "a\nb"},
				"<a b><><$HOME><it's><x=1><=ls><*><~><#><a\nb>"},
			{[]string{"a b", "c  d"}, "<a b><c  d>"},
			{[]string{"if", "x"}, "<if><x>"},
			{[]string{"time", "x"}, "<time><x>"},
			{[]string{"x=1", "x"}, "<x=1><x>"},
			{[]string{"done"}, "<done>"},
			{[]string{"sh", "-c", "echo a && echo b"}, "a\nb\n"},
		} {
			t.Run(shell+" "+c.words[0], func(t *testing.T) {
				cmd := exec.Command(path, "-c", ShellCommand(c.words))
				cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
				if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
					t.Errorf("%s runs %q as %q: %q, %v", shell, c.words, ShellCommand(c.words), out, err)
				}
			})
		}
	}
}
