package jobs

import (
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestPatternsMatchWithinNames checks the rules of patterns: no wildcard matches a slash, ** stands
// for directories, and \ takes the meaning from a wildcard.
func TestPatternsMatchWithinNames(t *testing.T) {
	for _, c := range []struct{ pattern, matches, others string }{
		{"*.csv", "a.csv .csv", "a/b.csv a.csv/x"},
		{"a?c", "abc aéc", "a/c ac"},
		{"a[!b]c", "axc", "a/c abc"},
		{"a[^b]c", "axc", "a/c abc"},
		{"a[.-0]c", "a.c a0c", "a/c"},
		{"[]a]", "] a", "b"},
		{"[!]a]", "b", "] a /"},
		{"[a-]", "a -", "b"},
		{"[-a]", "a -", "b"},
		{`[\]]`, "]", `\`},
		{"**/x", "x a/x a/b/x", "ax a/xb"},
		{"a/**/x", "a/x a/b/x a/b/c/x", "x a/bx b/a/x"},
		{"a/**", "a/b a/b/c", "a b"},
		{"**/b/**/d", "b/d a/b/c/d b/b/d a/b/b/c/d", "b d a/d b/c"},
		{"a**b", "ab axxb", "a/b"},
		{`\*\[1]\,\\`, `*[1],\`, `a[1],\ *1,\`},
		{"./a//b/", "a/b", "a"},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for _, name := range strings.Fields(c.matches) {
			if !p.Match(name) {
				t.Errorf("%s does not match %s", c.pattern, name)
			}
		}
		for _, name := range strings.Fields(c.others) {
			if p.Match(name) {
				t.Errorf("%s matches %s", c.pattern, name)
			}
		}
	}
	for _, bad := range []string{"a[", "a[b/c]", `a\`, "[!]", "[[:alpha:]]", "[]"} {
		t.Run(bad, func(t *testing.T) {
			if _, err := ParsePattern(bad); err == nil {
				t.Errorf("%s: got no error, want one", bad)
			}
		})
	}
}

// TestPatternOfOneNameIsThatOfPath checks that within a name, a pattern means what path.Match
// defines, for random patterns and names.
func TestPatternOfOneNameIsThatOfPath(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(letters string) string {
		b := make([]byte, 1+r.IntN(6))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	matched := 0
	for range 20_000 {
		pattern, name := random(`ab*?[]^\-`), random("ab-]")
		want, err := path.Match(pattern, name)
		p, err2 := ParsePattern(pattern)
		if err != nil || err2 != nil || pattern == anyNames {
			continue // classes may begin with ] or contain - at an end
		}
		if got := p.Match(name); got != want {
			t.Fatalf("%s and %s: got %v, path.Match says %v", pattern, name, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 100 {
		t.Errorf("only %d of the names matched", matched)
	}
}

// TestSelectionIsStable checks that a selection of files, selected again, loses none: the dispatcher
// checks the list of a host with the function that made it.
func TestSelectionIsStable(t *testing.T) {
	files := []string{"run1.csv", "run[1].csv", "out/a", "out/b/c", "o[12]/x", "o1/y", "z"}
	for _, patterns := range [][]string{{"run[1].csv"}, {"*"}, {"o[12]", "run*"}, {"out/**", "run[1].csv", "z"}, {"."},
		{"**/c", "o?"}} {
		returns, err := ParseReturn(patterns)
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		selected, missing := returns.Select(files)
		for i, ok := range selected {
			if ok {
				kept = append(kept, files[i])
			}
			if ok && !returns.Match(files[i]) {
				t.Errorf("%q: Match denies %s, which was selected", patterns, files[i])
			}
		}
		again, stillMissing := returns.Select(kept)
		if len(kept) == 0 || slices.Contains(again, false) || missing != "" || stillMissing != "" {
			t.Errorf("%q: selected %q, and of them %v; missing %q, %q", patterns, kept, again, missing, stillMissing)
		}
	}
}

// TestQuotedPatternMeansItsText checks that QuotePattern takes the meaning from all wildcards.
func TestQuotedPatternMeansItsText(t *testing.T) {
	for _, name := range []string{"a", "*", "**", "[a]", `\`, `\*`, "?", "[", "a,b", "é[1]*"} {
		t.Run(name, func(t *testing.T) {
			p, err := ParsePattern(QuotePattern(name))
			if err != nil || !p.Match(name) || p.Match("a"+name) {
				t.Errorf("%s: the pattern %s does not mean it alone: %v", name, QuotePattern(name), err)
			}
		})
	}
}

// TestDirsOfReturnPatterns checks which directories exist before a job that returns files.
func TestDirsOfReturnPatterns(t *testing.T) {
	r, err := ParseReturn([]string{"a.csv", "out/17.csv", "./x//y/*.csv", "**", "d[1]/e/f", `a/b\*/c`, "."})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Dirs(), []string{"out", "x/y", "a"}; !slices.Equal(got, want) {
		t.Errorf("directories %q, want %q", got, want)
	}
}

// TestCommaInAList checks that \, is a comma in an item, that other backslashes stay, and that the
// text of a list can be parsed again.
func TestCommaInAList(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{`a,b`, []string{"a", "b"}},
		{`out/lr=0.1\,bs=32/m.csv, b`, []string{"out/lr=0.1,bs=32/m.csv", "b"}},
		{`a\*,b`, []string{`a\*`, "b"}},
		{`a\\,b`, []string{`a\\`, "b"}},
	} {
		t.Run(c.text, func(t *testing.T) {
			if got := splitList(c.text); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.text, got, c.want)
			}
			if got := splitList(joinList(c.want)); !slices.Equal(got, c.want) {
				t.Errorf("%q: written and read: %q", c.want, got)
			}
		})
	}
	specs, err := Parse(strings.NewReader(`#DCS return=out/lr=0.1\,bs=32/m.csv`+"\necho\n"), "jobs.txt", false, 1)
	if err != nil || !slices.Equal(specs[0].Return, []string{"out/lr=0.1,bs=32/m.csv"}) {
		t.Errorf("got %v, %v; want one pattern", specs, err)
	}
}
