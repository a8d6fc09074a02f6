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
		{"a\u00a0b", "U+00A0 is a no-break space"}, {"'a\u00a0b'", "U+00A0"}, {"a\u200bb",
			"U+200B is invisible"}, {"\u202eabc", "U+202E"},
		{"“rbf”", "U+201C is a typographic quote"}, {"−1", "U+2212 is a dash"}, {"1…3",
			"U+2026 is an ellipsis"}, {"1–3", "U+2013"}, {"'a' –b", "U+2013"},
	} {
		t.Run(c.text, func(t *testing.T) {
			if _, why := Ambiguous(c.text); c.want == "" && why != "" || !strings.Contains(why, c.want) {
				t.Errorf("%q: got %q, want %q", c.text, why, c.want)
			}
		})
	}
	if _, err := Parse(strings.NewReader("#DCS name=a\u00a0b\necho\n"), "f", false, 1); err == nil ||
		!strings.Contains(err.Error(), "f:1: the character U+00A0") {
		t.Errorf("a no-break space in an option: got %v", err)
	}
}

// TestCharactersOfCommandsAreMeant checks that commands may contain every character, and texts in
// JSON each that can be seen.
func TestCharactersOfCommandsAreMeant(t *testing.T) {
	for _, object := range []string{`{"command":"echo “a” –b\u00a0c"}`, `{"command":"a","setup":"b\u00a0c"}`,
		`{"command":"a","name":"“b” – c…"}`} {
		t.Run(object, func(t *testing.T) {
			if _, err := Parse(strings.NewReader(object+"\n"), "f", true, 1); err != nil {
				t.Errorf("%s: %v", object, err)
			}
		})
	}
}

// TestErrorsOfValuesNameTheCharacter checks that an error about a number, a time, or a size names a
// character that is not what it looks like, and a decimal comma.
func TestErrorsOfValuesNameTheCharacter(t *testing.T) {
	for _, c := range []struct{ object, want string }{
		{`{"command":"a","mem":"−1G"}`, "U+2212 is a dash"}, {`{"command":"a","timeout":"1,5h"}`,
			"written as a point: 1.5h"}, {`{"command":"a","slots":"1 "}`, "U+00A0"},
		{`{"command":"a","mem":"1,5G"}`, "1.5G"}, {`{"command":"a","after":"1–2"}`,
			"U+2013"}, {`{"command":"a","deadline":"2026‑01‑02"}`, "U+2011"}, {`{"command":"a","gpus":"0,5"}`, "0.5"},
		{`{"command":"a","name":"b c"}`, "name: the character U+00A0"}, {`{"command":"a","tags":["b\u200b"]}`,
			"tags: the character U+200B is invisible: remove it"},
		{`{"command":"a","params":{"p":"1\u00a0"}}`, "params.p: the character U+00A0"}, {`{“command”:"a"}`,
			"not valid JSON: the character U+201C"},
	} {
		t.Run(c.object, func(t *testing.T) {
			if _, err := Parse(strings.NewReader(c.object+"\n"), "f", true, 1); err == nil ||
				!strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.object, err, c.want)
			}
		})
	}
}
