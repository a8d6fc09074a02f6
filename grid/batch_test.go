package grid

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQueuesAreNamedAfterFiles checks that queues are named after their files, so that they can be
// distinguished (K3).
func TestQueuesAreNamedAfterFiles(t *testing.T) {
	for _, c := range []struct{ files, want string }{
		{"a.txt b.txt", "a b"}, {"x/a.txt y/a.txt c", "x/a.txt y/a.txt c"}, {".jobs -", ".jobs "}, {"a.b.txt", "a.b"},
	} {
		t.Run(c.files, func(t *testing.T) {
			same(t, c.files, strings.Join(queueNames(strings.Split(c.files, " ")), " "), c.want)
		})
	}
}

// TestTemplatesShareColumns checks that templates that declare the same metric share one column
// (K3). If two templates define one name differently, the second is refused.
func TestTemplatesShareColumns(t *testing.T) {
	b := new(Batch)
	for _, c := range []struct{ columns, want string }{
		{"acc time=json:t", ""}, {"acc", ""}, {"loss", ""}, {"time",
			"b.txt: @result time is another one than that of a file before it (time=json:t)"},
	} {
		t.Run(c.columns, func(t *testing.T) {
			err := b.addColumns("b.txt", strings.Fields(c.columns))
			if (err != nil) != (c.want != "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %v", c.columns, err)
			}
		})
	}
	same(t, "the columns", strings.Join(b.Columns, " "), "acc time=json:t loss")
}

// TestTemplatesAreRecognized checks that a template is distinguished from a list of commands by its
// lines of values. Brackets of the shell do not make a template.
func TestTemplatesAreRecognized(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		text string
		want bool
	}{
		{"svm -C [1]\n[1] 0.1, 1\n", true}, {"run [C]\n  [C]\t1..5\n", true}, {"[ -f x ] && true\n",
			false}, {"[[ -f x ]] && true\n", false},
		{"echo a[1] b\n", false}, {"[prog]/bin/run\n", false}, {"", false}, {"# [C] 1 2\ntrue\n",
			false}, {strings.Repeat("x", 70_000) + "\n[C] 1\n", true},
		{strings.Repeat("x", 70_000) + " [C] 1\n", false},
	} {
		t.Run(c.text, func(t *testing.T) {
			name := fmt.Sprintf("f%d.txt", i)
			write(name, c.text)
			same(t, name, IsTemplate(filepath.Join(dir, name)), c.want)
		})
	}
	write("x.jsonl", "[C] 1\n")
	if IsTemplate(filepath.Join(dir, "x.jsonl")) || IsTemplate(dir) || IsTemplate(filepath.Join(dir, "none")) {
		t.Error("what is no text of jobs is a template")
	}
}
