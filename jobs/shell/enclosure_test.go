package shell

import (
	"os/exec"
	"strings"
	"testing"

	"dcs-tui/internal/text"
)

// TestEnclosureOfPlaceholders checks that a value in a placeholder is one word of the shell exactly
// where the placeholder is Unenclosed: there, sh and bash print each value as it is, and run nothing.
func TestEnclosureOfPlaceholders(t *testing.T) {
	for _, c := range []struct {
		command string
		want    Enclosure
	}{
		{`p {}`, Unenclosed},
		{`p "a b"{}`, Unenclosed},
		{`p "a'b" {}`, Unenclosed},
		{`p 'a"b' {}`, Unenclosed},
		{`p a\'b {}`, Unenclosed},
		{`p a\"b {}`, Unenclosed},
		{`p "a\"b" {}`, Unenclosed},
		{`p '\' {}`, Unenclosed},
		{`p "$(p {})"`, Unenclosed},
		{`p "$(p "$(p {})")"`, Unenclosed},
		{`p "$(p "x")" {}`, Unenclosed},
		{`(p {})`, Unenclosed},
		{`( (p {}) )`, Unenclosed},
		{`p "${HOME}" {}`, Unenclosed},
		{`p ${NONE:-{}}`, Unenclosed},
		{`p $((1 + (2))) {}`, Unenclosed},
		{`p a#b {}`, Unenclosed},
		{"p x # it's\np {}", Unenclosed},
		{"p `p x` {}", Unenclosed},
		{`p \${}`, Unenclosed},
		{`p \\{}`, Unenclosed},
		{`p "{}"`, doubleQuotes},
		{`p "'{}'"`, doubleQuotes},
		{`p "$(p x) {}"`, doubleQuotes},
		{`p "${NONE:-{}}"`, doubleQuotes},
		{`p "${NONE:-"{}"}"`, doubleQuotes},
		{`p "$(p "{}")"`, doubleQuotes},
		{`sh -c "p {}"`, doubleQuotes},
		{`p '{}'`, singleQuotes},
		{`p "a"'{}'`, singleQuotes},
		{`p "$(p '{}')"`, singleQuotes},
		{`p $'{}'`, escapedQuotes},
		{`p $'\'{}'`, escapedQuotes},
		{`p ${}`, escapedQuotes},
		{"p `p {}`", backticks},
		{"p \"`p {}`\"", backticks},
		{`p $(({}))`, arithmetic},
		{`p $((1 + (2 + {})))`, arithmetic},
		{`(({}))`, arithmetic},
		{`p ${HOME:{}}`, arithmetic},
		{`p ${HOME:0:{}}`, arithmetic},
		{`p ${a[{}]}`, arithmetic},
		{`a[{}]=1`, arithmetic},
		{`a=([{}]=1)`, arithmetic},
		{`let a={}`, arithmetic},
		{`[[ {} -eq 1 ]]`, arithmetic},
		{`p \{}`, afterBackslash},
		{`p x # {}`, comment},
		{"cat <<E\n{}\nE", hereDocument},
		{"p x <<-E\n\t{}\nE", hereDocument},
	} {
		i := strings.Index(c.command, "{}")
		if got := Enclosures("", c.command, [][]int{{i, i + 2}})[0]; got != c.want {
			t.Errorf("%s: {} is %v, want %v", c.command, got, c.want)
		}
		if c.want != Unenclosed {
			continue
		}
		for _, value := range []string{"a b", "$(p pwned)", "`p pwned`", `\'; p pwned; '`, `"; p pwned; "`, "it's",
			`a\b`, ""} {
			for _, shell := range []string{"sh", "bash"} {
				path, err := exec.LookPath(shell)
				if err != nil {
					continue
				}
				script := `p() { printf '<%s>' "$*"; }` + "\n" + strings.Replace(c.command, "{}",
					text.ShellWord(value), 1)
				out, err := exec.Command(path, "-c", script).CombinedOutput()
				if err != nil || !strings.Contains(string(out), value) || strings.Contains(string(out), "<pwned") {
					t.Errorf("%s prints %q as %q, %v", shell, script, out, err)
				}
			}
		}
	}
}

// TestEnclosureInOtherShells checks that, in a command of another shell, a placeholder that nothing can
// enclose gets any value, and that one that something may enclose does not.
func TestEnclosureInOtherShells(t *testing.T) {
	for command, want := range map[string]Enclosure{
		`set x (date); echo $x {}`:         Unenclosed,
		`for f in *.c; echo $f {}; end`:    Unenclosed,
		`echo (cat {})`:                    Unenclosed,
		`echo (date) "{}"`:                 unparsed,
		`echo (date) \{}`:                  unparsed,
		`echo (date) ${}`:                  unparsed,
		`for f (*.c) echo $((1 + {}))`:     unparsed,
		`for f (*.c) [[ {} -eq 1 ]]`:       unparsed,
		`echo (date) # {}`:                 unparsed,
		"for f (*.c) cat <<E\n{}\nE\n":     unparsed,
		`for f (*.c) echo ${HOME:{}} done`: unparsed,
	} {
		t.Run(command, func(t *testing.T) {
			i := strings.Index(command, "{}")
			if got := Enclosures("", command, [][]int{{i, i + 2}})[0]; got != want {
				t.Errorf("{} is %v, want %v", got, want)
			}
		})
	}
}
