package jobs

import (
	"strings"
	"testing"
)

// TestAmbiguousCharactersAreNamed checks which characters are refused in options, and that quotes
// make those meant that can be seen.
func TestAmbiguousCharactersAreNamed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"plain", ""}, {"é ß 漢 ✓", ""}, {"'It’s – fine…'", ""}, {`"😀\u200d😀"`, ""},
		{"a\u00a0b", "U+00A0 is a no-break space"}, {"'a\u00a0b'", "U+00A0"}, {"a\u200bb", "U+200B is invisible"}, {"\u202eabc", "U+202E"},
		{"“rbf”", "U+201C is a typographic quote"}, {"−1", "U+2212 is a dash"}, {"1…3", "U+2026 is an ellipsis"}, {"1–3", "U+2013"}, {"'a' –b", "U+2013"},
	} {
		if _, why := Ambiguous(c.text); c.want == "" && why != "" || !strings.Contains(why, c.want) {
			t.Errorf("%q: got %q, want %q", c.text, why, c.want)
		}
	}
	if _, err := Parse(strings.NewReader("#DCS name=a\u00a0b\necho\n"), "f", false, 1); err == nil || !strings.Contains(err.Error(), "f:1: the character U+00A0") {
		t.Errorf("a no-break space in an option: got %v", err)
	}
}
