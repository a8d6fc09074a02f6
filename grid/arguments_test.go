package grid

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dcs-tui/jobs"
)

// TestPlaceholdersMeanWhatTheyDoInParallel checks that the placeholders and separators have the
// meaning that they have in GNU parallel, and that values are quoted.
func TestPlaceholdersMeanWhatTheyDoInParallel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values")
	if err := os.WriteFile(file, []byte("x 1\ny\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, words, want string }{
		{"echo {}", "::: 1 2", "echo 1|echo 2"},
		{"echo", "::: 1 2", "echo 1|echo 2"},
		{"echo {#}", "::: a b", "echo 1|echo 2"},
		{"cp {} {.}.bak", "::: d.d/a.tar.gz", "cp d.d/a.tar.gz d.d/a.tar.bak"},
		{"echo {/} {//} {/.}", "::: d/e/a.log f", "echo a.log d/e a|echo f . f"},
		{"echo {//}", "::: a//b/ /a / // a/../b .. ./x", "echo a|echo /|echo /|echo /|echo a/..|echo .|echo ."},
		{"echo {1}-{2}", "::: A B ::: 1 2", "echo A-1|echo A-2|echo B-1|echo B-2"},
		{"echo {}", "::: A B ::: 1 2", "echo A 1|echo A 2|echo B 1|echo B 2"},
		{"echo {2/.} {1}", "::: A B :::+ d/1.x d/2.y d/3.z", "echo 1 A|echo 2 B"},
		{"echo {1}{2}{3}", "::: A B ::: 1 2 :::+ x y", "echo A1x|echo A2y|echo B1x|echo B2y"},
		{"echo {}", ":::: " + file, "echo 'x 1'|echo y"},
		{"echo {}", "::: a ::::+ -", "echo a in"},
		{"rm --", "::: -rf $HOME it's", `rm -- -rf|rm -- '$HOME'|rm -- 'it'\''s'`},
		{"echo {x} ${y}", "::: a", "echo {x} ${y} a"},
		{"", "::: ls date>f", "ls|date>f"},
	} {
		t.Run(c.command+" "+c.words, func(t *testing.T) {
			a, err := ParseArguments("", c.command, strings.Fields(c.words), strings.NewReader("in\n"))
			if err != nil {
				t.Fatal(err)
			}
			specs, err := a.Jobs(100, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, s := range specs {
				got = append(got, s.Command)
				if s.ID != jobs.ID(i+1) {
					t.Errorf("job %d has the number %d", i+1, s.ID)
				}
			}
			if want := strings.Split(c.want, "|"); !slices.Equal(got, want) {
				t.Errorf("commands = %q\nwant %q", got, want)
			}
		})
	}
}

// TestArgumentsBecomeParameters checks that the values become the job's parameters.
func TestArgumentsBecomeParameters(t *testing.T) {
	a, err := ParseArguments("", "echo {2}", strings.Fields("::: a ::: b.c"), nil)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := a.Jobs(1, nil)
	want := []jobs.Param{{Name: "1", Value: "a"}, {Name: "2", Value: "b.c"}}
	if err != nil || !slices.Equal(specs[0].Params(), want) {
		t.Errorf("Jobs = %v, %v; want parameters %v", specs, err, want)
	}
}

// TestInvalidArgumentsAreRefused checks that invalid sources of values are refused with the reason,
// and that the number of combinations is limited.
func TestInvalidArgumentsAreRefused(t *testing.T) {
	for _, c := range []struct{ command, words, want string }{
		{"echo", ":::", "no values after :::"},
		{"echo", "::: 1 ::::", "no values after ::::"},
		{"echo", ":::+ 1", ":::+ links values to those before it, but there are none: begin with :::"},
		{"echo {3}", "::: 1 ::: 2", "{3} in the command: there are 2 sources of values"},
		{"echo {0}", "::: 1", "{0} in the command: there is one source of values"},
		{"echo", ":::: no-such-file", "read values: open no-such-file: no such file or directory"},
		{"echo", ":::: -", "read values: -:2: the line contains a NUL byte"},
		{"echo", "::: a b\nc",
			`the value "b␊c" after ::: has a newline, which begins another value in GNU parallel`},
	} {
		t.Run(c.command, func(t *testing.T) {
			_, err := ParseArguments("", c.command, strings.Split(c.words, " "), strings.NewReader("a\nb\x00\n"))
			if err == nil || err.Error() != c.want {
				t.Errorf("ParseArguments(%q, %q) = %v, want %s", c.command, c.words, err, c.want)
			}
		})
	}
	a, err := ParseArguments("", "echo", strings.Fields("::: 1 2 3 ::: 1 2 3"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Jobs(8, nil); err == nil || err.Error() != "the values have more than 8 combinations" {
		t.Errorf("9 combinations with a limit of 8: %v", err)
	}
}

// TestNumbersFollowTheOrder checks that {#} is the number of the job also in another order, as with --shuf of GNU
// parallel.
func TestNumbersFollowTheOrder(t *testing.T) {
	a, err := ParseArguments("", "echo {#} {}", strings.Fields("::: a b c"), nil)
	if err != nil {
		t.Fatal(err)
	}
	specs, err := a.Jobs(3, func(int) []int { return []int{2, 0, 1} })
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"echo 1 c", "echo 2 a", "echo 3 b"} {
		if specs[i].Command != want || specs[i].ID != jobs.ID(i+1) {
			t.Errorf("job %d: %d %s, want %s", i+1, specs[i].ID, specs[i].Command, want)
		}
	}
}

// valueFiles are files of values, with the values that they have here, and in GNU parallel unless it
// differs.
var valueFiles = []struct {
	content string
	want    []string
	differs bool
}{
	{"", nil, false},
	{"\n", []string{""}, false},
	{"a\nb", []string{"a", "b"}, false},
	{"a\n\nb\n\n", []string{"a", "", "b", ""}, false},
	{" a  b \t\n\"x y\"\n'\n\\\n", []string{" a  b \t", `"x y"`, "'", `\`}, false},
	{"# a\n", []string{"# a"}, false},
	{"a\xff\xfe\né\n", []string{"a\xff\xfe", "é"}, false},
	{"a\rb\n\r\r\n", []string{"a\rb", "\r"}, true},
	{"a\r\nb\r\n", []string{"a", "b"}, true},
	{"\ufeffa\nb\n", []string{"a", "b"}, true},
}

// TestValuesOfAFile checks the values of files with empty lines, quotes, and carriage returns.
func TestValuesOfAFile(t *testing.T) {
	for _, c := range valueFiles {
		got, err := readValueLines(Stdin, strings.NewReader(c.content))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.content, got, err, c.want)
		}
	}
	_, err := readValueLines(Stdin, strings.NewReader("a\n"+strings.Repeat("x", maxValue+1)))
	const want = "read values: -:2: the line is longer than 127 KiB, more than Linux hands to a program"
	if err == nil || err.Error() != want {
		t.Errorf("a long line: %v; want %s", err, want)
	}
}
