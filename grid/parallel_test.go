package grid

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dcs-tui/internal/progtest"
	"dcs-tui/internal/text"
)

// parallelCases are command lines for GNU parallel and dcs-tui run. Their words are
// separated by |.
var parallelCases = []string{
	// Placeholders of a path.
	"echo|:::|1|2",
	"echo {}|:::|1|2",
	"echo {}{}|:::|a",
	"echo x{}y|:::|a b",
	"echo {.}|:::|a.tar.gz|d.d/y|.bashrc|a.|d/.x|a.b.|x.y z|",
	"echo {/}|:::|d/e/a.log|f|a/|/|//|../..|",
	"echo {//}|:::|a//b/|/a|/|//|a/../b|..|./x|",
	"echo {/.}|:::|d/e/a.log|f|a.tar.gz/|a/.x|d.d/y",
	"echo {..}|:::|a.tar.gz|x.y|x|d.d/a.b|a.b.c.d|.a.b",
	"echo {...}|:::|a.tar.gz|a.b.c.d|x|d.a.b.c/y|e/.a.b.c",
	"echo {/..}|:::|d/a.tar.gz|x.y|d.d/x|d/.a.b",
	"echo {/...}|:::|d/a.b.tar.gz|x.y.z|d/x",
	"echo {+/}|:::|d/e/a.log|f|/a|a/|//|a//b",
	"echo {+.}|:::|d/a.tar.gz|f|.x|a.|d.d/f",
	"echo {+..}|:::|d/a.tar.gz|f|a.b|.a.b|d.d/e.f|x.",
	"echo {+...}|:::|d/a.b.tar.gz|f|a.b.c|a.b.c.d|d.d/e.f.g",
	"cp {} {.}.bak|:::|d.d/a.tar.gz|x y.z",
	"echo {+/}/{/}|:::|d/a.b|d/e/f",
	"echo {.}.{+.}|:::|d/a.b|f.g",
	"echo {#}|:::|a|b|c",
	"echo {#}:{}|:::|a|b",
	"echo ${}|:::|a|b_c",
	"echo {{}}|:::|a",
	"echo {{.}}|:::|a.b",
	// Positions.
	"echo {1}|:::|a|b",
	"echo {01}|:::|a",
	"echo {1}-{2}|:::|A|B|:::|1|2",
	"echo {2}{1}|:::|A|B|:::|1|2",
	"echo {}|:::|A|B|:::|1|2",
	"echo|:::|A|B|:::|1|2",
	"echo {1}|:::|a|:::|1|2",
	"echo {-1}|:::|a|b|:::|c|d",
	"echo {-2} {-1}|:::|a|b|:::|c|d",
	"echo {-1/.}|:::|a|:::|d/c.x|d",
	"echo {-2..}|:::|a.b.c|:::|d",
	"echo {1.} {1/} {1//} {1/.}|:::|d/a.b|c",
	"echo {2.} {2/} {2//} {2/.}|:::|x|:::|d/a.b|c",
	"echo {1..} {1...} {1/..} {1/...}|:::|d/a.b.c.d|c",
	"echo {1+/} {1+.} {1+..} {1+...}|:::|d/a.b.c.d|c",
	"echo {#} {1}|:::|a|:::|b|c",
	"echo {.}|:::|a.b|:::|c.d",
	"echo {/.}|:::|a/a.b|:::|c.d",
	"echo {//}|:::|a/b|:::|c/d",
	"echo {1}{2}{3}|:::|A|B|:::|1|2|:::|x|y",
	"echo {3} {1}|:::|A|B|:::|1|:::|x|y",
	// Sources.
	"echo {}|::::|LIST-A|LIST-B",
	"echo|::::|LIST-A|LIST-B",
	"echo {1} {2}|::::|LIST-A|LIST-B",
	"echo {2}|::::|LIST-A|LIST-B",
	"echo {2} {1}|::::|LIST-A|::::|LIST-B",
	"echo {-1}|::::|LIST-A|LIST-B",
	"echo {}|::::+|LIST-A|LIST-B",
	"echo {}|::::|LIST-A|::::+|LIST-B",
	"echo {1} {2}|::::|LIST-A|::::+|LIST-B",
	"echo {}|:::|x|y|::::+|LIST-A|LIST-B",
	"echo {}|:::|x|y|::::+|LIST-A",
	"echo {}|:::|x|y|z|::::+|LIST-A",
	"echo {}|:::|x|::::|LIST-A|LIST-B",
	"echo {}|::::|LIST-A|LIST-B|:::|z",
	"echo {3}{2}{1}|::::|LIST-A|LIST-B|:::|z|w",
	"echo {}|:::|x|y|::::|LIST-A|::::+|LIST-B",
	"echo {}|::::|LIST-A|:::+|1|2",
	"echo {}|::::|LIST-A|LIST-B|LIST-A",
	"echo {}|::::|LIST-E",
	"echo {/.}|::::|LIST-E",
	"echo {1} {2}|:::|A|B|:::+|1|2|3",
	"echo {1}{2}{3}|:::|A|B|:::|1|2|:::+|x|y",
	"echo {}|:::|a|b|:::+|1|2|:::+|x|y",
	"echo {2/.} {1}|:::|A|B|:::+|d/1.x|d/2.y",
	// Commands as values.
	":::|echo a|echo b c",
	"::::|LIST-C",
	":::|echo|:::|a|b",
	// Values that need quotes.
	"echo {}|:::|a b|it's|$HOME|$(echo pwned)|`echo pwned`|a\\b|\"|a;b|a&b",
	"echo {}|:::|*|?|[a]|~|~root|#|!|{a,b}|<x|>x|(a)|a=b|%|^|é",
	"echo a{}|:::|'|''|a'b'c|\\'|\\",
	"echo {}|:::|-n|--|-e a|",
	"echo {1} {2}|:::|a b|:::|c d|",
	"echo {.}|:::|a b.c|$x.y",
	"echo {/}|:::|a b/c d|x/$(y)",
	"echo {//}|:::|a b/c d|$(y)/x",
	"echo {1/.}|:::|a b/c d.e",
	"echo {}|:::|two  blanks| lead|trail ",
	"echo $(echo {})|:::|a|b c",
	"echo \"$(echo {})\"|:::|a  b|$HOME",
	"echo {} | cat|:::|a b",
	"echo {} \\| cat|:::|a b",
	"echo {} && echo {.}|:::|a b.c",
	"echo {}; echo {/}|:::|x/a b",
	"(echo {})|:::|a b",
	// Values in quotes that need none.
	"echo \"{}\"|:::|a|b.c|d/e",
	"echo '{}'|:::|a|b.c|d/e",
	"sh -c 'echo {}'|:::|a|b",
	"sh -c \"echo {/.}\"|:::|d/a.b",
	"echo 'it is {1}' \"{2}\"|:::|a|:::|b",
	"sh -c 'printf %s \"$1\"' _ {}|:::|a b|$(echo pwned)",
	// Braces that are no placeholders.
	"echo {x}|:::|a",
	"echo ${HOME}|:::|a",
	"echo ${HOME} {}|:::|a",
	"echo {,} {a,b} { }|:::|a",
	"echo a{1,2}b|:::|a",
	"echo {1..3}|:::|a",
	"echo {a..c} {}|:::|a",
	"echo {1:x} {1x} {+1}|:::|a",
	"awk '{print}' /dev/null|:::|/dev/null",
	"awk 'BEGIN {print \"{}\"}'|:::|a",
	"echo '{\"a\": 1}'|:::|a",
	"echo ${#}|:::|a|b",
	"echo %{} @{}|:::|a",
	"x() { echo; }; x|:::|a",
}

// TestCommandsAreThoseOfParallel checks that a command with values makes the same jobs as GNU
// parallel, which may quote values in another way: the shell prints the same words for both.
func TestCommandsAreThoseOfParallel(t *testing.T) {
	parallel := progtest.FindParallel(t)
	dir := t.TempDir()
	for name, lines := range map[string]string{
		"LIST-A": "A\nB\n", "LIST-B": "D\nE\n", "LIST-C": "echo a\necho 'b c'\n", "LIST-E": "a b\n\nd/e.f",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for _, c := range parallelCases {
		t.Run(c, func(t *testing.T) {
			words := strings.Split(strings.ReplaceAll(c, " | ", "\x00"), "|")
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "\x00", " | ")
			}
			want := theirCommands(t, parallel, words)
			before, sources := CutArguments(words)
			a, err := ParseArguments("", strings.Join(before, " "), sources, nil)
			if err != nil {
				t.Fatal(err)
			}
			specs, err := a.Jobs(100, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]string, len(specs))
			for i, s := range specs {
				got[i] = s.Command
			}
			if len(got) != len(want) || meaning(t, got) != meaning(t, want) {
				t.Errorf("jobs = %q\nGNU parallel's = %q", got, want)
			}
		})
	}
}

// TestValuesAreThoseOfParallel checks that files of values have the values that GNU parallel reads, but for
// the files that are known to differ.
func TestValuesAreThoseOfParallel(t *testing.T) {
	parallel := progtest.FindParallel(t)
	for _, c := range valueFiles {
		cmd := exec.Command(parallel, "--will-cite", "-k", "-j1", `printf '%s\0' {}`, "::::", "-")
		cmd.Stdin = strings.NewReader(c.content)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", c.content, err)
		}
		want := strings.Split(string(out), "\x00")
		if want = want[:len(want)-1]; slices.Equal(want, c.want) == c.differs {
			t.Errorf("%q: %q; GNU parallel: %q", c.content, c.want, want)
		}
	}
}

// needsPlus matches placeholders that GNU parallel replaces only with --plus. That option also gives
// {1,2} another meaning.
var needsPlus = regexp.MustCompile(`\{-?[0-9]*(\+|/?\.\.)`)

// theirCommands returns the commands that GNU parallel would run.
func theirCommands(t *testing.T, parallel string, words []string) []string {
	options := []string{"--will-cite", "--dry-run", "-k", "-j1"}
	if needsPlus.MatchString(words[0]) {
		options = append(options, "--plus")
	}
	cmd := exec.Command(parallel, append(options, words...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", cmd.Args, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// meaning returns what a shell prints if the programs are replaced by one that prints its words.
func meaning(t *testing.T, commands []string) string {
	var script strings.Builder
	for _, program := range []string{"echo", "cp"} {
		fmt.Fprintf(&script, "%s() { printf '<%%s>' \"$@\"; }\n", program)
	}
	for _, c := range commands {
		fmt.Fprintf(&script, "( eval %s )\necho NEXT\n", text.ShellWord(c))
	}
	out, err := exec.Command("/bin/sh", "-c", script.String()).CombinedOutput()
	if err != nil {
		t.Errorf("%q: %v: %s", commands, err, out)
	}
	return string(out)
}

// TestUnsupportedPlaceholdersAreRefused checks that a replacement string of GNU parallel that has no
// meaning here is refused with what to use instead, in commands and in --return, and that the same
// characters are left alone where they mean something else.
func TestUnsupportedPlaceholdersAreRefused(t *testing.T) {
	for placeholder, advice := range map[string]string{
		"{%}":           "$DCS_SLOT",
		"{1%}":          "$DCS_SLOT",
		"{0%}":          "$DCS_SLOT",
		"{0#}":          "{#}",
		"{1#}":          "{#}",
		"{##}":          "number of jobs",
		"{= s/a/b/ =}":  "Perl",
		"{=1 s/a/b/ =}": "Perl",
		"{1= $_++ =}":   "Perl",
		"{+}":           "dcs-tui help jobs",
		"{/+}":          "dcs-tui help jobs",
		"{....}":        "dcs-tui help jobs",
		"{///}":         "dcs-tui help jobs",
		"{%%}":          "dcs-tui help jobs",
		"{slot}":        "$DCS_SLOT",
		"{host}":        "$DCS_HOST",
		"{sshlogin}":    "$DCS_HOST",
		"{hgrp}":        "tags=",
		"{agrp}":        "tags=",
		"{uniq}":        "@where",
		"{choose_k}":    "@where",
	} {
		t.Run(placeholder, func(t *testing.T) {
			_, err := ParseArguments("", "echo "+placeholder, []string{":::", "a"}, nil)
			if err == nil || !strings.Contains(err.Error(), placeholder+" in the command") ||
				!strings.Contains(adviceOf(err), advice) {
				t.Errorf("echo %s: %v, advice %q; want %q", placeholder, err, adviceOf(err), advice)
			}
			a, err := ParseArguments("", "echo", []string{":::", "a"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.SetReturn([]string{"out/" + placeholder}); err == nil {
				t.Errorf("--return out/%s: no error", placeholder)
			}
		})
	}
	for _, command := range []string{`python3 -c 'print(f"{host}")'`, `echo ${slot} ${host}`, `grep 'a{2,3}'`} {
		a, err := ParseArguments("", command, []string{":::", "a"}, nil)
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		if specs, err := a.Jobs(1, nil); err != nil || specs[0].Command != command+" a" {
			t.Errorf("%s: %v, %v", command, specs, err)
		}
	}
}

// TestHostileValuesAreRefusedInQuotes checks that no value whose quotes would lose their meaning
// reaches a shell, and that values that need no quotes are accepted in quotes.
func TestHostileValuesAreRefusedInQuotes(t *testing.T) {
	hostile := []string{"a b", "$(touch pwned)", "`x`", "", "é", "it's"}
	for _, command := range []string{
		`sh -c "wc -l {}"`, `sh -c 'wc -l {}'`, `echo "{1}"`, `echo '{-1}'`, `echo ${}`, `echo \{}`, "echo `cat {}`",
		`echo $(({}))`, "x # {}",
	} {
		t.Run(command, func(t *testing.T) {
			for _, v := range hostile {
				a, err := ParseArguments("", command, []string{":::", "good", v}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.Jobs(2, nil); err == nil || !strings.HasPrefix(err.Error(), "job 2: ") ||
					!strings.Contains(adviceOf(err), `"$1"`) {
					t.Errorf("%s with %q: %v", command, v, err)
				}
			}
			a, err := ParseArguments("", command, []string{":::", "good", "d/e-1.5_x,y:z=@%+"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := a.Jobs(2, nil); err != nil {
				t.Errorf("%s with harmless values: %v", command, err)
			}
		})
	}
	a, err := ParseArguments("", `sh -c 'wc -l "$1"' _ {}`, slices.Concat([]string{":::"}, hostile), nil)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := a.Jobs(len(hostile), nil)
	if err != nil || specs[1].Command != `sh -c 'wc -l "$1"' _ '$(touch pwned)'` {
		t.Errorf("the way out: %v, %v", specs, err)
	}
}

// TestHostileValuesAreNotGivenToSSH checks that a value that needs quotes is refused where ssh would
// drop them, with the way that works, and that other values are accepted there.
func TestHostileValuesAreNotGivenToSSH(t *testing.T) {
	const advice = "ssh HOST 'read -r x;"
	for value, want := range map[string]string{"a-1.log": "", "a b": advice, "$(x)": advice} {
		a, err := ParseArguments("", "ssh host wc {}", []string{":::", value}, nil)
		if err == nil {
			_, err = a.Jobs(1, nil)
		}
		if (err == nil) != (want == "") || !strings.Contains(adviceOf(err), want) {
			t.Errorf("%s: %v, with the advice %q, want %q", value, err, adviceOf(err), want)
		}
	}
}

// adviceOf returns the advice of an error, or "".
func adviceOf(err error) string {
	var advised *text.Error
	if !errors.As(err, &advised) {
		return ""
	}
	return advised.Advice
}
